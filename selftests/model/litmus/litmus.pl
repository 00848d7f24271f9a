#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# litmus.pl TOP PAIRINGS OUTPUT: make litmus tests of the pairings, from the source.
#
# Each thread of a pairing is a list of functions, with others put in where they are
# called.  Their text gives the accesses that the pairing names, in the order in which they
# stand there, with the marks that they have there, and all that orders them: barriers,
# locks, RCU, read-modify-write.  A mark that is weakened in the source, or a statement
# that is moved, makes another test.
#
# Writes OUTPUT/tests.h for litmus.pml, and OUTPUT/tests, a line for each test: its
# number, pairing, thread, what was weakened ("" for the code as it is), and how it is
# written in C.  OUTPUT/problems says what cannot be found, is not marked, or is in no
# pairing.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use source;

my ($top, $table, $output) = @ARGV;

# The numbers of litmus.pml.
my $steps = 16;
my %number_of = (NONE => 0, LOAD => 1, STORE => 2, CHANGE => 3, FENCE => 4, LOCK => 5,
		 UNLOCK => 6, SECTION => 7, LEAVE => 8, GRACE => 9);

my (%text, %homes, %aside, @comments, @problems, %marks_used);

sub problem { push @problems, join '', @_ }

source::read_module($top, \%text, \%homes, \@comments);

# The orders that a primitive gives: R, W or C (both); once, acquire, release, full.
sub primitive
{
	my ($name) = @_;
	my $suffix = $name =~ s/_(relaxed|acquire|release)$// ? $1 : '';

	return ('R', $suffix || 'once')
		if $name =~ /^(READ_ONCE|atomic(64|_long)?_read|rcu_dereference(_check|_raw)?)$/;
	return ('W', $suffix || 'once') if $name =~ /^(WRITE_ONCE|atomic(64|_long)?_set)$/;
	return ('R', 'acquire') if "${name}_$suffix" eq 'smp_load_acquire';
	return ('W', 'release')
		if "${name}_$suffix" eq 'smp_store_release' || $name eq 'rcu_assign_pointer';
	return ('C', 'full') if $name =~ /^llist_(add|add_batch|del_all|del_first)$/;
	return ('C', $suffix eq 'relaxed' ? 'once' : $suffix || 'full')
		if $name =~ /^(atomic(64|_long)?_)?(try_)?(cmp)?xchg$/ ||
		   $name =~ /^atomic(64|_long)?_(\w+_return|fetch_\w+|\w+_and_test)$/;
	return ('C', 'once') if $name =~ /^atomic(64|_long)?_(add|sub|inc|dec|or|and)$/;
	return ('C', 'acquire') if $name =~ /^(mutex|spin)_trylock$/;
	return ('W', 'release') if $name =~ /^(mutex|spin)_unlock(_irq|_bh)?$/;
	return ();
}

# What orders without an access that a pairing names.
sub barrier
{
	my ($name) = @_;

	return 'mb' if $name =~ /^(smp_mb|smp_mb__(before|after)_atomic|smp_store_mb)$/;
	return $1 if $name =~ /^smp_([rw]mb)$/;
	return 'grace' if $name =~ /^(synchronize_rcu|call_rcu(_hurry)?)$/;
	return 'section' if $name eq 'rcu_read_lock';
	return 'leave' if $name eq 'rcu_read_unlock';
	return 'acquire' if $name =~ /^(spin_lock|mutex_lock)(_irq|_bh|_killable|_interruptible)?$/;
	my ($way, $order) = primitive($name);
	return $order eq 'full' ? 'mb' : $order if $way && $order ne 'once';
	return;
}

# Put the text of functions in where they are called.
sub put_in
{
	my ($pairing, $body, @inline) = @_;

	for my $depth (1 .. 6) {
		my $more;

		for my $name (@inline) {
			if (!defined $text{$name}) {
				problem("$pairing: there is no function $name()");
				return $body;
			}
			# \x03 marks a call that has its text before it.
			$more |= $body =~ s/(?<![\w\x03])\Q$name\E\(/"{ $text{$name} }\x03$name("/ge;
		}
		last if !$more;
	}
	$body =~ s/\x03//g;
	return $body;
}

# FILE:LINE of a position.
sub where
{
	my ($body, $at) = @_;

	return substr($body, 0, $at) =~ /.*\x01([^\x02]*)\x02/s ? $1 : '';
}

# The call that a position is an argument of, and the number of the argument.
sub call_around
{
	my ($body, $at) = @_;
	my ($depth, $argument) = (0, 0);

	while (--$at >= 0) {
		my $c = substr($body, $at, 1);

		return if $c eq ';' || $c eq '{' || $c eq '}';
		$depth++ if $c eq ')';
		$argument++ if $c eq ',' && !$depth;
		next if $c ne '(' || $depth-- > 0;
		return ($1, $argument, $at) if substr($body, 0, $at) =~ /(\w+)$/;
		return;
	}
}

# How the access at a position is made: its way, order and the primitive's name.
sub access_at
{
	my ($body, $from, $to) = @_;
	my ($name, $argument) = call_around($body, $from);
	my ($before, $after) = (substr($body, 0, $from), substr($body, $to));

	if ($name) {
		my ($way, $order) = primitive($name);
		my $address = $name eq 'llist_add_batch' ? 2 : $name eq 'llist_add' ? 1 :
			      $name =~ /^atomic.*_(add|sub)(_return(_\w+)?)?$/ ? 1 : 0;

		return ($way, $order, $name) if $way && $argument == $address;
	}
	return ('W', 'plain', '=')
		if $after =~ /^[\w\]\[.>-]*\s*([-+|&]?=[^=]|\+\+|--)/ || $before =~ /(\+\+|--)[\w>.-]*$/;
	return ('R', 'plain', '');
}

# Whether a position stands behind an if, or in a block behind an if or else, or in a function
# that is called behind && or ||, where none of the steps is: they may be done without what
# stands there.
sub may_be_left_out
{
	my ($body, $at, @step) = @_;
	my ($depth, $from) = (0, $at);

	(my $before = substr($body, 0, $at)) =~ s/.*[;{}]//s;
	return 1 if $before =~ /\bif \(/ && ($before =~ tr/(//) == ($before =~ tr/)//);
	while (--$from >= 0) {
		my $c = substr($body, $from, 1);

		$depth++ if $c eq '}';
		next if $c ne '{' || $depth-- > 0;
		$depth = 0;
		# The beginning of a block that the position is in, and its end.
		(my $head = substr($body, 0, $from)) =~ s/.*[;{}]//s;
		next if $head !~ /\bif \(.*\) $|\belse $|(&&|\|\|) !?$/s;
		my ($to, $inner) = ($from, 0);
		do {
			$c = substr($body, $to++, 1);
			$inner += $c eq '{' ? 1 : $c eq '}' ? -1 : 0;
		} while ($inner && $to < length($body));
		# What follows && in a statement is done only after what stands before it.
		$to += length((substr($body, $to) =~ /^([^;{}]*)/)[0]) if $head !~ /\) $|\belse $/;
		return 1 if !grep { $_->{at} > $from && $_->{at} < $to } @step;
	}
	return 0;
}

# The steps of a thread.
sub thread_steps
{
	my ($pairing, $thread) = @_;
	my $who = "$pairing->{name}, $thread->{name}";
	my $body = '';
	my (@step, %taken);

	for my $root (@{$thread->{roots}}) {
		if (!defined $text{$root}) {
			problem("$who: there is no function $root()");
			return;
		}
		problem("$who: there are several functions $root()") if @{$homes{$root}} > 1;
		$body .= " ; $text{$root}";
	}
	$body = put_in($who, $body, @{$thread->{inline}});

	for my $item (@{$thread->{items}}) {
		my @found;
		my $pattern = $item->{pattern};
		my $left = $pattern =~ /^\w/ ? '(?<!\w)' : '';
		my $right = $pattern =~ /\w$/ ? '(?!\w)' : '';

		while ($body =~ /$left\Q$pattern\E$right/g) {
			my ($from, $to) = ($-[0], $+[0]);
			my ($way, $order, $name) = $item->{stands} || $item->{way} =~ /[LU]/ ?
				($item->{way}, 'plain', $pattern) : access_at($body, $from, $to);

			next if $taken{$from};
			next if $way ne $item->{way} && $way ne 'C';
			my $call = (call_around($body, $from))[2] // $from;
			push @found, { at => $from, way => $way, order => $order, name => $name,
				       item => $item, where => where($body, $call) };
		}
		if ($item->{nth} ? @found < $item->{nth} : @found != 1) {
			problem("$who: $item->{way} $item->{name} ($pattern) stands there ",
				scalar(@found), " times");
			return;
		}
		my $step = $found[($item->{nth} || 1) - 1];
		problem("$who: $item->{name} is accessed without a mark in $step->{where}")
			if $step->{order} eq 'plain' && !$item->{plain} && !$item->{stands} &&
			   $item->{way} !~ /[LU]/;
		$taken{$step->{at}} = 1;
		push @step, $step;
	}

	# All else that orders, between the first and the last of them.
	my ($first, $last) = (sort { $a <=> $b } map { $_->{at} } @step)[0, -1];
	my @other;

	while ($body =~ /\b(\w+)\(/g) {
		my ($at, $name) = ($-[1], $1);
		my $kind = barrier($name) or next;
		my $inside = substr($body, $+[0]);
		my ($end, $depth) = (0, 1);

		# Is it one of the steps?
		for my $c (split //, $inside) {
			$end++;
			$depth++ if $c eq '(';
			$depth-- if $c eq ')';
			last if !$depth;
		}
		next if grep { ($_->{at} >= $at && $_->{at} < $at + length($name) + 1 + $end &&
				($_->{name} eq $name || $_->{way} =~ /[LU]/)) } @step;
		next if $kind !~ /section|leave/ && ($at < $first || $at > $last);
		next if !$thread->{forced}{$name} && may_be_left_out($body, $at, @step);
		push @other, { at => $at, way => 'F', order => $kind, name => $name,
			       where => where($body, $at) };
	}
	# Sections that no step is in do not matter, nor do any without a grace period.  Where
	# there are several ways out of a section, the last one ends it.
	my (@outside, $in, $leave);
	my $close = sub {
		push @outside, grep { $_ } $in, $leave
			if !$in || !$leave || !$pairing->{grace} ||
			   !grep { $_->{at} > $in->{at} && $_->{at} < $leave->{at} } @step;
		($in, $leave) = ();
	};
	for my $other (sort { $a->{at} <=> $b->{at} } @other) {
		if ($other->{order} eq 'section') {
			$close->();
			$in = $other;
		} elsif ($other->{order} eq 'leave') {
			push @outside, $leave if $leave;
			$leave = $other;
		}
	}
	$close->();
	my %drop = map { $_ => 1 } @outside;
	@step = sort { $a->{at} <=> $b->{at} } @step, grep { !$drop{$_} } @other;
	if (@step > $steps) {
		problem("$who: has ", scalar(@step), " steps");
		return;
	}
	$marks_used{$_->{where}} = 1 for @step;
	return @step;
}

# Whether step $b has to wait for step $a, which stands before it: by what either orders,
# since both are at the same place, or since one leads to the other.
sub is_ordered
{
	my ($a, $b) = @_;
	my ($x, $y) = ($a->{order}, $b->{order});
	my $reads = $a->{way} =~ /[RC]/;

	return 1 if $x =~ /^(mb|full|acquire|grace|section)$/ ||
		    $y =~ /^(mb|full|release|grace|leave)$/ ||
		    $a->{way} eq 'L' || $b->{way} eq 'U';
	return 1 if $a->{item} && $b->{item} && $a->{item}{name} eq $b->{item}{name};
	return 1 if $y eq 'rmb' && $reads || $y eq 'wmb' && $a->{way} =~ /[WC]/;
	return 1 if $x eq 'rmb' && $b->{way} =~ /[RC]/ || $x eq 'wmb' && $b->{way} =~ /[WC]/;
	# A dependency orders if what it comes from was read with a mark.
	return 1 if $b->{item} && $b->{item}{dep} && $a->{item} &&
		    $b->{item}{dep} eq $a->{item}{name} && $x ne 'plain';
	return 0;
}

# The pairings
my (@pairings, $pairing, $thread);
open(my $in, '<', $table) or die "$table: $!";
while (<$in>) {
	next if /^\s*(#|$)/;
	chomp;
	if (/^kernel (\w+):\s+(.*)/) {
		($text{$1}, $homes{$1}) = ($2, ['the kernel']);
	} elsif (/^aside (\w+):\s+\S/) {
		$aside{$1} = 1;
	} elsif (/^(\w+):\s+(.*)/) {
		$pairing = { name => $1, says => $2, threads => [] };
		push @pairings, $pairing;
	} elsif (/^\tnever\s+(.*)/) {
		$pairing->{never} = $1;
	} elsif (/^\t(\w+)( any)?:\s+([^|]*)(?:\|(.*))?/) {
		$thread = { name => $1, any => $2, roots => [split / *\+ */, $3],
			    inline => [split ' ', $4 // ''], items => [] };
		s/\s//g for @{$thread->{roots}};
		push @{$pairing->{threads}}, $thread;
	} elsif (/^\t\tF (\w+)/) {
		$thread->{forced}{$1} = 1;
	} elsif (/^\t\t([RWLU]) (\w+)(?: as (\w+))?(?:=(\d))?\s+(.*)/) {
		my $item = { way => $1, name => $2, as => $3 // $2, value => $4 // 1,
			     pattern => $5 };

		$item->{dep} = $1 if $item->{pattern} =~ s/\s+depends on (\w+)$//;
		$item->{plain} = 1 if $item->{pattern} =~ s/\s+plain$//;
		$item->{nth} = $1 if $item->{pattern} =~ s/\s+#(\d)$//;
		$item->{stands} = 1 if $item->{pattern} =~ s/^@//;
		push @{$thread->{items}}, $item;
	} else {
		die "$table:$.: $_\n";
	}
}

for my $pairing (@pairings) {
	my @calls = map { $text{$_} // '' } map { (@{$_->{roots}}, @{$_->{inline}}) }
		    @{$pairing->{threads}};

	$pairing->{grace} = grep { /\b(synchronize_rcu|call_rcu(_hurry)?)\(/ } @calls;
}

my (@set_up, @first, @judge, @tests);

# A test: the threads' steps, of which some are weakened.
sub test
{
	my ($pairing, $weak_thread, $weakened, @threads) = @_;
	my $number = @tests;
	my (%place, %step_of, @shown);

	push @first, scalar(@set_up);
	for my $t (0 .. $#threads) {
		my @step = @{$threads[$t]};
		my @shown_here;

		for my $i (0 .. $#step) {
			my $step = $step[$i];
			my $at = $t * $steps + $i;
			my $item = $step->{item};
			my $need = 0;
			my $kind = { R => 'LOAD', W => 'STORE', C => 'CHANGE', F => 'FENCE',
				     L => 'LOCK', U => 'UNLOCK' }->{$step->{way}};

			$kind = 'GRACE' if $step->{order} eq 'grace';
			$kind = 'SECTION' if $step->{order} eq 'section';
			$kind = 'LEAVE' if $step->{order} eq 'leave';
			for my $j (0 .. $i - 1) {
				$need |= 1 << $j if is_ordered($step[$j], $step);
			}
			my ($where, $value) = (0, 0);
			if ($item) {
				$place{$item->{name}} //= keys %place;
				($where, $value) = ($place{$item->{name}}, $item->{value});
				$step_of{"$pairing->{threads}[$t]{name}.$item->{as}"} = $at;
			}
			push @set_up, "\t{ $at, $number_of{$kind}, $where, $value, $need },\n";
			push @shown_here, $item ? "$step->{way} $item->{name} ($step->{order})" :
						  $step->{name};
		}
		push @shown, "$pairing->{threads}[$t]{name}: " . join(', ', @shown_here);
	}
	my $never = $pairing->{never};
	$never =~ s/\b(\w+\.\w+)\b/defined $step_of{$1} ? "seen[$step_of{$1}]" : die "$pairing->{name}: $1\n"/ge;
	$never =~ s/\b(?!seen\b|memory\b)([a-z]\w*)\b/defined $place{$1} ? "memory[$place{$1}]" : die "$pairing->{name}: $1\n"/ge;
	push @set_up, "\t{ -1 },\n";
	push @judge, "\tcase $number: return $never;\n";
	push @tests, join("\t", $number, $pairing->{name}, $weak_thread, $weakened,
			  join(' | ', @shown));
}

# A step without what it orders; nothing at all where that is all that it does.
sub weak
{
	my ($step) = @_;

	return if $step->{way} =~ /[FLU]/;
	my $item = { %{$step->{item}} };
	my $order = $step->{order} eq 'plain' ? 'plain' : 'once';
	return { %$step, order => $order, item => $item };
}

sub orders { $_[0]{order} !~ /^(once|plain)$/ || $_[0]{way} =~ /[LU]/ || $_[0]{item} && $_[0]{item}{dep} }

for my $pairing (@pairings) {
	my @threads = map { [thread_steps($pairing, $_)] } @{$pairing->{threads}};

	next if grep { !@$_ } @threads;
	test($pairing, '', '', @threads);
	for my $t (0 .. $#threads) {
		my @step = @{$threads[$t]};
		my $thread = $pairing->{threads}[$t];
		my @weak;

		for my $i (0 .. $#step) {
			next if !orders($step[$i]);
			my @one = @step;
			my ($step) = weak($step[$i]);

			# A section goes with its end.
			next if $step[$i]{order} eq 'leave';
			delete $step->{item}{dep} if $step;
			splice @one, $i, 1, $step ? $step : ();
			if ($step[$i]{order} eq 'section') {
				my ($end) = grep { $_->{at} > $step[$i]{at} &&
						   $_->{order} eq 'leave' } @one;

				@one = grep { $_ != $end } @one;
			}
			my ($what) = "$step[$i]{name} in $step[$i]{where}";
			test($pairing, $thread->{name}, $what,
			     map { $_ == $t ? [@one] : $threads[$_] } 0 .. $#threads);
		}
		next if !grep { orders($_) } @step;
		@weak = map { my $s = weak($_); delete $s->{item}{dep} if $s; $s ? $s : () } @step;
		test($pairing, $thread->{name}, $thread->{any} ? 'ALL' : 'all',
		     map { $_ == $t ? [@weak] : $threads[$_] } 0 .. $#threads);
	}
}

# All that orders is part of a pairing, or set aside with a reason.
for my $function (sort keys %text) {
	next if $homes{$function}[0] eq 'the kernel' || delete $aside{$function};
	while ($text{$function} =~ /\b(\w+)\(/g) {
		my ($name, $at) = ($1, $-[0]);
		my (undef, $order) = primitive($name);

		# Where nobody looks whether it has failed, nothing is ordered.
		problem(where($text{$function}, $at) . ": $name() orders only if it succeeds, " .
			"and nobody asks")
			if $name =~ /^atomic(64|_long)?_(try_)?cmpxchg$/ &&
			   substr($text{$function}, 0, $at) =~ /(^|[;{}])(\x01[^\x02]*\x02|\s)*$/;
		next if $name !~ /^(smp_(mb|rmb|wmb|store|load)\w*|rcu_assign_pointer|wake_up_all|
				   call_rcu\w*|synchronize_rcu|wq_has_sleeper|poll_wait|
				   wait_event_\w+)$/x &&
			(!$order || $order eq 'once' || $name =~ /^(mutex|spin)_/);
		my $where = where($text{$function}, $at);
		problem("$where: $name() orders, and is in no pairing") if !$marks_used{$where};
	}
}
problem("$_() is set aside, and does not exist") for sort keys %aside;

# Each comment about a pairing says what tests it, and that exists.
my %known = map { $_->{name} => 0 } @pairings;
for my $comment (@comments) {
	my ($text, $where) = @$comment{qw(text where)};

	$text =~ s/^\s*\*\/?|\*\/$//gm;
	# The names end with their paragraph.
	$text =~ s/\n[ \t]*\n/ \x04 /g;
	$text =~ s/\s+/ /g;
	problem("$where: the comment names no test of the pairing")
		if $text =~ /\bpairs with\b|\bfull barrier\b/i && $text !~ /\bTests?: \w/;
	next if $text !~ /\bTests?: ([^\x04]*?)\s*(\x04|$)/;
	for my $test (split /,? and |, /, $1) {
		$test =~ s/\.$//;
		$test =~ s/^litmus //;
		if ($test =~ /^(\w+)\.(\w+)$/) {
			my ($fixture, $name) = ($1, $2);

			problem("$where: there is no test $test")
				if system("grep -rqE 'TEST_F\\($fixture, $name\\)|TEST\\($name\\)' " .
					  "'$top/selftests'");
		} elsif (defined $known{$test}) {
			$known{$test}++;
		} else {
			problem("$where: there is no pairing $test");
		}
	}
}
problem("no comment names the pairing $_") for grep { !$known{$_} } sort keys %known;

open(my $out, '>', "$output/tests.h") or die;
print $out "/* Made by litmus.pl. */\n#define TESTS ", scalar(@tests), "\n\n";
print $out "static const struct { int at, kind, place, value, need; } steps[] = {\n", @set_up, "};\n\n";
print $out "static const short first_step[] = { ", join(', ', @first), " };\n\n";
print $out "static int is_never(int test, const unsigned char *memory, const unsigned char *seen)\n{\n";
print $out "\tswitch (test) {\n", @judge, "\t}\n\treturn 0;\n}\n";
close $out;
open($out, '>', "$output/tests") or die;
print $out "$_\n" for @tests;
close $out;
open($out, '>', "$output/problems") or die;
print $out "$_\n" for @problems;
close $out;
