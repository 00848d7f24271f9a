#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# ties.pl [TOP]: does twheel.pml still do what the module does? TAP.
#
# The phases and flags of the state word are the same.  For each function in the table,
# ties, the steps in the module's source are those of the model, and in the same order:
# changes of the state word, with what becomes of it, and the other steps that the table
# names.  Within a step of the model, which nobody can look into, their order is free, but
# for the lock.
# Each change of the state word, on either side, is in one of these functions, and the table
# in Documentation/design.rst has them all.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use source;

my $top = $ARGV[0] // "$FindBin::RealBin/../..";
my (%text, %homes, @comments, %model, @tokens, @ties, %aside, %without, @said);
my $nr = 0;

sub problem { push @said, join '', @_ }

sub verdict
{
	print @said ? 'not ok ' : 'ok ', ++$nr, " - $_[0]\n", map { "# $_\n" } @said;
	our $failed ||= @said;
	@said = ();
}

source::read_module($top, \%text, \%homes, \@comments);

# The model with all its parts and none of its mistakes.
sub read_model
{
	my ($path) = @_;
	my (@on, $source);

	open(my $in, '<', $path) or die "$path: $!";
	while (<$in>) {
		if (/^#if(def|ndef)?\s+(.*)/) {
			my ($way, $what) = ($1 // '', $2);
			my $is = $what =~ /BREAK_/ ? 0 : 1;

			push @on, $way eq 'ndef' ? !$is : $is;
		} elsif (/^#else/) {
			$on[-1] = !$on[-1];
		} elsif (/^#endif/) {
			pop @on;
		} elsif (!grep { !$_ } @on) {
			$source .= $_;
		}
	}
	$source =~ s{/\*.*?\*/}{}gs;
	while ($source =~ /^(?:inline|proctype) (\w+)\([^)]*\)\n\{\n(.*?)\n\}/gms) {
		my ($name, $body) = ($1, $2);

		$body =~ s/\s+/ /g;
		$model{$name} = $body;
	}
	return $source;
}

# The text from a parenthesis that has just been opened to its end.
sub inside
{
	my ($text) = @_;
	my $depth = 1;

	while ($text =~ /[()]/g) {
		$depth += $& eq '(' ? 1 : -1;
		return substr($text, 0, $-[0]) if !$depth;
	}
	return $text;
}

sub arguments
{
	my ($depth, @argument) = (0, '');

	for my $c (split //, inside($_[0])) {
		$depth += $c eq '(' ? 1 : $c eq ')' ? -1 : 0;
		if ($c eq ',' && !$depth) {
			push @argument, '';
		} else {
			$argument[-1] .= $c;
		}
	}
	s/^\s+|\s+$//g for @argument;
	return @argument;
}

# What becomes of the state: the phase, and where the flags come from.
sub flags
{
	my ($flags) = @_;
	my @from;

	push @from, "kept $1" while $flags =~ /\& STATE_(LIFE|FLAGS)/g;
	push @from, 'drained' if $flags =~ /STATE_DRAINED/;
	push @from, 'overdue' if $flags =~ /flags_once|\| nr\b/;
	push @from, 'new' if $flags =~ /^(life->)?flags$/;
	return @from ? ' (' . join(', ', @from) . ')' : '';
}

sub becomes
{
	my ($expression) = @_;

	$expression =~ s/^\s+|\s+$//g;
	if ($expression =~ /^state_next\((.*)/) {
		my (undef, $phase, $flags) = arguments($1);

		return ($phase =~ s/PHASE_//r) . flags($flags);
	}
	return 'FREE, next generation, and the entry' if $expression =~ /^state_freed\(.*STATE_ENTRY/;
	return 'FREE, next generation' if $expression =~ /^state_freed\(/;
	return 'ARMED, next sequence number (kept FLAGS)' if $expression =~ /^state_placed\(/;
	# In the module each transition has a function.
	if ($expression =~ /^(state_\w+)\((.*)/ && defined $text{$1}) {
		my ($name, @argument) = ($1, arguments($2));
		my ($result) = $text{$name} =~ /return (.*);/ or return $expression;

		return 'NEW (new)' if $name eq 'state_new';
		if ($result =~ /^(state_\w+)\((.*)\) \| STATE_DRAINED$/) {
			return becomes("$1($2)") =~ s/\)$/, drained)/r;
		}
		$result =~ s/\bflags\b/$argument[1]/g if defined $argument[1];
		# A new life that is not overdue.
		$result =~ s/flags_once\(false\)/flags/;
		return becomes($result);
	}
	return $expression;
}

# The last value that a variable got before a position.
sub value_before
{
	my ($body, $at, $name) = @_;
	my $value = $name;

	while ($body =~ /(?<![\w.>])\Q$name\E = ([^;=][^;]*);/g) {
		$value = $1 if $-[0] < $at;
	}
	return $value =~ /^state_\w+\(/ ? $value : $name;
}

sub put_in
{
	my ($from, $roots, $inline) = @_;
	my $body = join ' ; ', map { $from->{$_} // (problem("there is no $_()"), '') } @$roots;

	for my $name (@$inline, @$inline) {
		problem("there is no $name()") if !defined $from->{$name};
		# A call that was replaced is behind \x03.
		$body =~ s/(?<![\w\x03])\Q$name\E\(/"{ $from->{$name} } \x03$name("/ge;
	}
	return $body;
}

# The changes of the state word in a text: (position, "swap STATE" or "set STATE").
sub changes_in_code
{
	my ($body) = @_;
	my @found;

	while ($body =~ /\b(state_change|atomic64_set(?:_release)?)\(/g) {
		my ($at, $name) = ($-[0], $1);
		my @argument = arguments(substr($body, $+[0]));
		my $swap = $name eq 'state_change';

		next if !$swap && $argument[0] !~ /[>.]state$/;
		s/\x01[^\x02]*\x02 ?//g for @argument;
		# One of two.
		my @to = $argument[$swap ? 2 : 1] =~ /\? (.*?) : (.*)/ ? ($1, $2) :
			 $argument[$swap ? 2 : 1];
		for my $to (@to) {
			$to = value_before($body, $at, $to) if $to =~ /^\w+$/;
			push @found, [$at, ($swap ? 'swap ' : 'set ') . becomes($to)];
		}
	}
	return @found;
}

sub changes_in_model
{
	my ($body, $name) = @_;
	my @found;

	while ($body =~ /\bstate\[\w+\] = ([^;}]*?)(?=;| \}| ::| fi)|\bstate_set\(|\bto = (state_next\()/g) {
		my ($at, $to) = ($-[0], $1);
		my $way = 'set';

		if ($& eq 'state_set(') {
			$to = (arguments(substr($body, $+[0])))[2];
		} elsif (defined $2) {
			$to = 'state_next(' . inside(substr($body, $+[0])) . ')';
		} else {
			# Compared just before, in the same step.
			my $step = substr($body, 0, $at);
			$step =~ s/.*\b(atomic|d_step) \{//;
			$way = 'swap' if $step =~ /state\[\w+\] == seen/;
			$to = value_before($body, $at, $to) if $to =~ /^\w+$/;
		}
		next if $to eq 'to';
		push @found, [$at, "$way " . becomes($to)];
	}
	return @found;
}

sub named
{
	my ($body, $side, $names) = @_;
	my (%wanted, @found);

	$wanted{$_} = 1 for @$names;
	for my $token (grep { $wanted{$_->{name}} } @tokens) {
		while ($body =~ /$token->{$side}/g) {
			# Where a call was put in, its own steps count, and not its name.
			next if substr($body, $-[0] - 1, 1) eq "\x03";
			push @found, [$-[0], $token->{name}];
		}
	}
	return @found;
}

# The number of the step of the model that a position is in.
sub steps_of
{
	my ($body) = @_;
	my ($depth, $outer, $number, @step) = (0, undef, 0);

	for my $at (0 .. length($body) - 1) {
		my $c = substr($body, $at, 1);

		if ($c eq '{') {
			if (!defined $outer && substr($body, 0, $at) =~ /\b(atomic|d_step) $/) {
				$outer = $depth;
				$number++;
			}
			$depth++;
		} elsif ($c eq '}') {
			$depth--;
			if (defined $outer && $depth == $outer) {
				undef $outer;
				$number++;
			}
		}
		$number++ if !defined $outer;
		$step[$at] = $number;
	}
	return @step;
}

sub compare
{
	my ($tie) = @_;
	my ($code, $pml) = (put_in(\%text, @{$tie->{code}}), put_in(\%model, @{$tie->{model}}));
	my @step = steps_of($pml);
	my @code = sort { $a->[0] <=> $b->[0] } changes_in_code($code),
		   named($code, 'code', $tie->{tokens});
	my @pml = sort { $a->[0] <=> $b->[0] } changes_in_model($pml),
		  named($pml, 'model', $tie->{tokens});
	my %count;

	for my $skip (@{$tie->{skip}}) {
		@code = grep { $_->[1] !~ /\b\Q$skip\E\b/ } @code;
		@pml = grep { $_->[1] !~ /\b\Q$skip\E\b/ } @pml;
	}
	if ($tie->{once}) {
		my %last = map { $_ => 1 } @{$tie->{last}};

		for my $side (\@code, \@pml) {
			my (%first, %later);

			@$side = grep { $last{$_->[1]} || !$first{$_->[1]}++ } @$side;
			@$side = reverse grep { !$last{$_->[1]} || !$later{$_->[1]}++ }
				 reverse @$side;
		}
	}
	$count{$_->[1]}++ for @code;
	$count{$_->[1]}-- for @pml;
	for my $name (sort keys %count) {
		problem("$name: ", $count{$name} > 0 ? "only in the module" : "only in the model")
			if $count{$name};
	}
	return if @said;
	my %loose = map { $_ => 1 } @{$tie->{loose}};
	@code = grep { !$loose{$_->[1]} } @code;
	@pml = grep { !$loose{$_->[1]} } @pml;
	# Take the module's steps, as many as a step of the model has.
	while (@pml) {
		my $step = $step[$pml[0][0]];
		my @of_model = map { $_->[1] } grep { $step[$_->[0]] == $step } @pml;
		my @of_code = map { $_->[1] } @code[0 .. $#of_model];

		if ("@{[sort @of_model]}" ne "@{[sort @of_code]}") {
			problem("the model goes on with: ", join('; ', @of_model));
			problem("the module with: ", join('; ', @of_code));
			return;
		}
		# The lock is taken before the rest of a step, and released after it.
		for my $i (0 .. $#of_code) {
			problem("the module does not hold the lock for: ", join('; ', @of_code))
				if $of_code[$i] eq 'lock' && $i > 0 ||
				   $of_code[$i] eq 'unlock' && $i < $#of_code;
		}
		return if @said;
		splice @code, 0, scalar(@of_model);
		splice @pml, 0, scalar(@of_model);
	}
}

# The table
open(my $in, '<', "$FindBin::RealBin/ties") or die;
while (<$in>) {
	next if /^\s*(#|$)/;
	chomp;
	if (/^token (\S+)\s+\| (.*?)\s+\| (.*)$/) {
		push @tokens, { name => $1, code => qr/$2/, model => qr/$3/ };
	} elsif (/^aside (\w+): /) {
		$aside{$1} = 1;
	} elsif (/^without (\w+): /) {
		$without{$1} = 1;
	} elsif (/^(\w+): (.*)/) {
		push @ties, { name => $1, says => $2, tokens => [], loose => [], last => [], skip => [] };
	} elsif (/^\t(code|model) ([^|]*)(?:\|(.*))?/) {
		$ties[-1]{$1} = [[split /[\s+]+/, $2], [split ' ', $3 // '']];
	} elsif (/^\t(tokens|loose|last|skip) ?([^:]*)/) {
		$ties[-1]{$1} = [split ' ', $2];
	} elsif (/^\ttokens$/) {
	} elsif (/^\tonce$/) {
		$ties[-1]{once} = 1;
	} else {
		die "ties:$.: $_\n";
	}
}

my $source = read_model("$top/selftests/model/twheel.pml");
my $word = do { open(my $f, '<', "$top/engine/timeout.h") or die; local $/; <$f> };
print "TAP version 13\n";

# The word
my %in_code = map { $_ => 1 } $word =~ /\b(PHASE_[A-Z]+)\b/g;
my %in_model = map { $_ => 1 } $source =~ /\b(PHASE_[A-Z]+)\b/g;
for my $phase (sort keys %{{%in_code, %in_model}}) {
	problem("$phase is only in the ", $in_code{$phase} ? 'module' : 'model')
		if !$in_code{$phase} || !$in_model{$phase};
}
my ($enum) = $word =~ m{enum twheel_phase \{(.*?)\};}s;
my @order = $enum =~ /\b(PHASE_[A-Z]+)\b/g;
for my $i (0 .. $#order) {
	problem("$order[$i] has another place among the phases of the model")
		if $source !~ /#define $order[$i]\s+$i\n/;
}
%in_code = map { $_ => 1 } $word =~ /^#define STATE_(\w+)/gm;
%in_model = map { $_ => 1 } $source =~ /^#define STATE_(\w+)/gm;
for my $flag (sort keys %in_code) {
	problem("the model does not have STATE_$flag")
		if !$in_model{$flag} && !delete $without{$flag} && $flag !~ /^(SEQ|GEN)$/;
}
problem("STATE_$_ is no flag of the module") for sort keys %without;
for my $set (qw(LIFE FLAGS)) {
	my @flags = map { join ' ', sort grep { $_ ne 'SLACK' } /STATE_([A-Z_]+)/g }
		    map { /^#define STATE_$set\s+((?:.*\\\n)*.*)/m ? $1 : '' } $word, $source;

	problem("STATE_$set has other flags: $flags[0]; in the model: $flags[1]")
		if $flags[0] ne $flags[1];
}
# Three transitions have no other form to be compared by.
problem('state_freed() does more or less than the next generation')
	if $text{state_freed} !~ /return \(state & \(STATE_GEN \| STATE_SEQ\)\) \+ BIT_ULL\(STATE_GEN_SHIFT\);/ ||
	   $source !~ /state_freed\(s\)\s+\(\(\(s\) & STATE_GEN_SEQ\) \+ GEN_STEP\)/;
problem('state_placed() does more or less than the next sequence number')
	if $text{state_placed} !~ /seq = \(state \+ BIT_ULL\(STATE_SEQ_SHIFT\)\) & STATE_SEQ;/ ||
	   $text{state_placed} !~ /return \(state & STATE_GEN\) \| seq \| PHASE_ARMED \| \(state & STATE_FLAGS\);/ ||
	   $source !~ /\(\(\(s\) & STATE_GEN_SEQ\) \+ SEQ_STEP\) \| PHASE_ARMED \| \(flags\)/;
problem('state_next() does more or less than it does in the model')
	if $text{state_next} !~ /return \(state & \(STATE_GEN \| STATE_SEQ\)\) \| phase \| flags;/ ||
	   $source !~ /\(\(\(s\) & STATE_GEN_SEQ\) \| \(phase\) \| \(flags\)\)/;
verdict('the state word has the same phases and flags, and the same arithmetic');

for my $tie (@ties) {
	compare($tie);
	verdict("$tie->{name}: $tie->{says}");
}

# All changes
my (%tied, %modelled);
for my $tie (@ties) {
	$tied{$_} = 1 for map { @$_ } @{$tie->{code}};
	$modelled{$_} = 1 for map { @$_ } @{$tie->{model}};
}
for my $function (sort keys %text) {
	next if $function eq 'state_change' || !changes_in_code($text{$function});
	next if $tied{$function} || delete $aside{$function};
	problem("$function() changes the state, and is not tied to the model");
}
for my $function (sort keys %model) {
	problem("$function() of the model changes the state, and is not tied to the module")
		if $function ne 'state_set' && changes_in_model($model{$function}) &&
		   !$modelled{$function};
}
problem("$_() is set aside, and changes no state") for sort keys %aside;
verdict('each change of the state word is tied');

# The table of transitions in the design
my $design = do { open(my $f, '<', "$top/Documentation/design.rst") or die; local $/; <$f> };
my ($table) = $design =~ /^transition +function .*?\n=[= ]*\n(.*?)\n=[= ]*\n/ms;
my %shown = map { $_ => 1 } ($table // '') =~ /``(\w+)\(\)``/g;
for my $function (sort keys %text) {
	my $changes = $function ne 'state_change' && changes_in_code($text{$function});

	problem("$function() changes the state, and the table does not have it")
		if $changes && !delete $shown{$function};
}
problem("$_() is in the table, and changes no state") for sort keys %shown;
verdict('the table of transitions in design.rst has the functions that change the state');
print "1..$nr\n";
exit(our $failed ? 1 : 0);
