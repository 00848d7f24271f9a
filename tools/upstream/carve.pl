#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0
#
# carve.pl MANIFEST PATCH OUT: write the sources as they are after a patch of the series, into the
# folder OUT. MANIFEST lists the files of each patch, and what comes in later ones: names, and
# values that expressions have until then ("tw->keys.used => false"). From that:
#
# - Expressions are simplified. If a condition is known, its branch is taken. A local variable that
#   is unused then is removed.
# - An item (a function, a type, a macro) is removed if nothing refers to it any more, or if it
#   refers to something that comes later. So are prototypes, members, elements of tables, includes.
# - A sentence of a comment is removed if it has one of the words for things that come later.
#
# If the sources lack a name or an expression of the manifest, or refer to something that comes
# later in a way that the manifest does not cover, carve.pl reports it and fails.
use strict;
use warnings;

my ($manifest, $patch, $out) = @ARGV;
my (@failures, %said);

sub slurp
{
	my ($name) = @_;

	open my $in, '<', $name or die "$name: $!\n";
	local $/;
	return scalar <$in>;
}

# If CARVE_VERBOSE=1, print what is removed, and why.
sub say_why
{
	print STDERR "left out: $_[0]\n" if $ENV{CARVE_VERBOSE} && !$said{$_[0]}++;
}

# Tokens: [text before the token, the token].

my $comment = qr{/\*.*?\*/}s;
my $token = qr{
	[A-Za-z_]\w* | \d[\w.]* | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' |
	\.\.\. | <<= | >>= | -> | \+\+ | -- | << | >> | [<>=!*/%+\-&^|]= | && | \|\| | \#\# |
	[^\s\w]
}xs;

sub lex
{
	my ($text) = @_;
	my @tokens;

	pos($text) = 0;
	until ($text =~ /\G\s*\z/gc) {
		$text =~ /\G((?:\s+|$comment|(?<![^\n])\/\/[^\n]*\n)*)/gc;
		my $before = $1;

		if ($before =~ /(?:^|\n)[ \t]*\z/ && $text =~ /\G(#(?:[^\n\\]|\\\n|\\.)*)/gc) {
			push @tokens, [$before, $1];
		} elsif ($text =~ /\G($token)/gc) {
			push @tokens, [$before, $1];
		} else {
			push @tokens, [$before, ''] if length $before;
			last;
		}
	}
	return \@tokens;
}

# The manifest

my (%file_patch, %gone, %gone_file, %calls, %exprs, %members, %drops, %params, %reserved, %pure);
my (%void, %keep, %gone_test, @words, @say, %used, %lines, %texts, %skip_words);

sub canon
{
	return join ' ', map { $_->[1] } @{lex($_[0])};
}

for (split /\n/, slurp($manifest) =~ s/\\\n\s*/ /gr) {
	next if /^\s*(?:#|$)/;
	my ($what, $rest) = /^(\S+)\s+(.*?)\s*$/ or die "$manifest: $_\n";

	if ($what =~ /^patch-(\d)$/) {
		for my $glob (split ' ', $rest) {
			my @files = glob $glob;

			push @failures, "there is no $glob" unless @files && -e $files[0];
			$file_patch{$_} = $1 for grep { !exists $gone_file{$_} } @files;
		}
	} elsif ($what eq 'no-file') {
		for my $glob (split ' ', $rest) {
			my @files = glob $glob;

			push @failures, "there is no $glob" unless @files && -e $files[0];
			$gone_file{$_} = 1 for @files;
		}
	} elsif ($what eq 'no') {
		$gone{$_} = 1 for split ' ', $rest;
	} elsif ($what eq 'no-test') {
		for (split ' ', $rest) {
			$gone_test{$_} = 1;
			$used{"no-test $_"} = 0;
		}
	} elsif ($what eq 'keep') {
		$keep{$_} = 1 for split ' ', $rest;
	} elsif ($what eq 'pure') {
		$pure{$_} = 1 for split ' ', $rest;
	} elsif ($what eq 'fact') {
		my ($scope, $pattern, $value) = $rest =~ /^(?:in (\w+): )?(.*?) => (.*)$/ or die "$manifest: $_\n";

		$used{"fact $rest"} = 0;
		my $fact = { value => $value, name => "fact $rest", scope => $scope };
		if ($pattern =~ /^([\w*]+)\(([\$\d, ]*)\)$/) {
			(my $glob = $1) =~ s/\*/\\w*/g;
			push @{$calls{$glob}}, $fact;
		} elsif ($pattern =~ /^->(\w+)$/) {
			push @{$members{$1}}, $fact;
		} else {
			push @{$exprs{canon($pattern)}}, $fact;
		}
	} elsif ($what eq 'drop') {
		my ($scope, $pattern) = $rest =~ /^(?:in (\w+): )?(.*)$/;

		$used{"drop $rest"} = 0;
		(my $re = quotemeta canon($pattern)) =~ s/\\\*\\ \\\*/.*/g;
		$re =~ s/(\w)\\ \\\*/$1\\w*/g;
		push @{$drops{$scope // ''}}, { re => qr/^$re(?: .*)?$/s, name => "drop $rest" };
	} elsif ($what eq 'param') {
		my ($function, $param, $value) = $rest =~ /^(\w+) (\w+)(?: = (\S+))?$/ or die "$manifest: $_\n";

		$used{"param $rest"} = 0;
		push @{$params{$function}}, { param => $param, value => $value, name => "param $rest" };
	} elsif ($what eq 'void') {
		$void{$rest} = 1;
		$used{"void $rest"} = 0;
	} elsif ($what eq 'reserve') {
		my ($member, $as) = split ' ', $rest;

		$reserved{$member} = $as;
		$used{"reserve $rest"} = 0;
	} elsif ($what eq 'words') {
		push @words, qr/$rest/;
	} elsif ($what eq 'words-not-in') {
		$skip_words{$_} = 1 for map { glob } split ' ', $rest;
	} elsif ($what eq 'say') {
		my ($old, $new) = $rest =~ /^"(.*)" =>\s+"(.*)"$/ or die "$manifest: $_\n";

		$used{"say $rest"} = 0;
		push @say, { old => $old, new => $new, name => "say $rest" };
	} elsif ($what eq 'text') {
		my ($file, $old, $new) = $rest =~ /^(\S+): (.*) => (.*)$/ or die "$manifest: $_\n";

		$used{"text $rest"} = 0;
		$old = join '(?:\s|\\\\\n)*', map { quotemeta $_->[1] } @{lex($old)};
		push @{$texts{$file}}, { old => qr/$old/, new => $new, name => "text $rest" };
	} elsif ($what eq 'line') {
		my ($file, $line) = $rest =~ /^(\S+): (.*)$/ or die "$manifest: $_\n";

		$used{"line $rest"} = 0;
		push @{$lines{$file}}, { line => qr/^\s*$line$/m, name => "line $rest" };
	} else {
		die "$manifest: $what\n";
	}
}

# Expressions. A result has: t, the text; c, 0 or 1 if its value is known; ch, whether it was
# changed; p, its precedence.

my ($T, $i, $env, $function, $changed, $leaves, $in_test);

my %binary = ('*' => 13, '/' => 13, '%' => 13, '+' => 12, '-' => 12, '<<' => 11, '>>' => 11,
	'<' => 10, '>' => 10, '<=' => 10, '>=' => 10, '==' => 9, '!=' => 9, '&' => 8, '^' => 7,
	'|' => 6, '&&' => 5, '||' => 4);
my %assigns = map { $_ => 1 } qw(= += -= *= /= %= <<= >>= &= |= ^=);
my $words_of_types = qr/(?:unsigned int|void|char|int|long|bool|[us](?:8|16|32|64)|size_t)/;
my $type = qr/^(?:const|volatile|static|extern|inline|struct|union|enum|unsigned|signed|void|char|short|int|long|float|
	double|bool|[us](?:8|16|32|64)|__[us](?:8|16|32|64)|__aligned_u64|u?int\d+_t|s?size_t|loff_t|
	pgoff_t|ktime_t|kuid_t|clockid_t|vm_fault_t|vm_flags_t|__poll_t|gfp_t|atomic_t|typeof|__typeof__|
	spinlock_t|pthread_t|pid_t|poll_table)$/x;

sub tok { return $i < @$T ? $T->[$i][1] : '' }

sub slice
{
	my ($from, $to) = @_;

	return '' if $from >= $to;
	return $T->[$from][1] . join '', map { $_->[0] . $_->[1] } @$T[$from + 1 .. $to - 1];
}

sub close_of
{
	my ($at) = @_;
	my $depth = 0;

	for (; $at < @$T; $at++) {
		my $t = $T->[$at][1];

		$depth++ if $t =~ /^[({\[]$/;
		return $at if $t =~ /^[)}\]]$/ && !--$depth;
	}
	die "unbalanced\n";
}

sub known
{
	my ($text, $was) = @_;
	my %values = (0 => 0, false => 0, 1 => 1, true => 1);

	return { t => $text, c => $values{$text}, p => 20, ch => $was };
}

sub fact_of
{
	my ($facts) = @_;

	for (@{$facts // []}) {
		next if $_->{scope} && $_->{scope} ne $function;
		$used{$_->{name}}++;
		return $_;
	}
	return;
}

sub by_canon
{
	my ($from, $to) = @_;
	my $canon = join ' ', map { $_->[1] } @$T[$from .. $to - 1];

	if ($to - $from == 1 && exists $env->{$canon} &&
	    !($from && $T->[$from - 1][1] =~ /^(?:->|\.|&)$/)) {
		return known($env->{$canon}, 1);
	}
	my $fact = $exprs{$canon} && fact_of($exprs{$canon}) or return;
	return known($fact->{value}, 1);
}

sub primary
{
	my $from = $i;
	my $t = tok();

	if ($t eq '(') {
		my $end = close_of($i);

		if ($T->[$i + 1][1] eq '{') {
			$i = $end + 1;
			return { t => slice($from, $i), p => 20 };
		}
		if ($T->[$i + 1][1] =~ $type && ($T->[$end + 1][1] // '') =~ /^(?:\w+|".*|[(&*!~{-])$/s) {
			$i = $end + 1;
			my $head = slice($from, $i) . $T->[$i][0];
			my $e = tok() eq '{' ? init() : unary();

			return { t => $head . $e->{t}, p => 14, ch => $e->{ch} };
		}
		$i++;
		my $before = $T->[$i][0];
		my $e = expression(1);

		die "no ) in $function\n" if tok() ne ')';
		$i++;
		return $e if defined $e->{c} && $e->{ch};
		return $e if $e->{ch} && $e->{p} >= 14;
		return { t => "($before$e->{t}$T->[$i - 1][0])", p => 20, ch => $e->{ch}, inner => $e };
	}
	if ($t eq '{') {
		return init();
	}
	if ($t =~ /^"/) {
		$i++ while tok() =~ /^"/ || (tok() =~ /^[A-Z]\w+$/ && $T->[$i - 1][1] =~ /^"/);
		return { t => slice($from, $i), p => 20 };
	}
	if ($t =~ /^(?:sizeof|typeof|__typeof__|offsetof|offsetofend|container_of|__alignof__)$/ && $T->[$i + 1][1] eq '(') {
		$i = close_of($i + 1) + 1;
		return { t => slice($from, $i), p => 20 };
	}
	$t =~ /^[\w.']/ or die "expected an operand before '$t' in $function\n";
	$i++;
	my $known = known($t);
	if (!($from && $T->[$from - 1][1] =~ /^(?:->|\.)$/) && (my $e = by_canon($from, $i))) {
		return $e unless tok() =~ /^(?:\(|\[|->|\.|\+\+|--)$/ ||
			(%assigns && $assigns{tok()});
	}
	return $known;
}

# { a, .b = c, ... }
sub init
{
	my $text = '{';
	my $was = 0;

	$i++;
	while (tok() ne '}') {
		my $before = $T->[$i][0];
		my $from = $i;

		if (tok() eq '.' || tok() eq '[') {
			$i = tok() eq '[' ? close_of($i) + 1 : $i + 2;
			$i++ while tok() ne '=' && tok() ne ',' && tok() ne '}' && tok() ne '{';
		}
		my $member = $T->[$from][1] eq '.' ? $T->[$from + 1][1] : '';
		my $head = slice($from, $i);

		if (tok() eq '=') {
			$head .= $T->[$i][0] . '=' . $T->[$i + 1][0];
			$i++;
		}
		my $e = tok() =~ /^[,}]$/ ? { t => '' } : expression(2);

		if ($gone{$member} && !$in_test || $e->{t} eq 'GONE') {
			$was = 1;
			$i++ if tok() eq ',';
			next;
		}
		$was ||= $e->{ch};
		$text .= $before . $head . $e->{t};
		if (tok() eq ',') {
			$text .= $T->[$i][0] . ',';
			$i++;
		}
	}
	$text =~ s/,\z// if $was && $text !~ /\n/;
	$text .= $T->[$i][0] . '}';
	$i++;
	return { t => $text, p => 20, ch => $was };
}

sub argument
{
	my $from = $i;

	if (tok() =~ $type || tok() eq '.' || tok() eq '{') {
		my $depth = 0;

		until (!$depth && tok() =~ /^[,)]$/) {
			$depth++ if tok() =~ /^[({\[]$/;
			$depth-- if tok() =~ /^[)}\]]$/;
			$i++;
		}
		return { t => slice($from, $i), p => 20 };
	}
	return expression(2);
}

sub call
{
	my ($from, $f) = @_;
	my $name = $f->{t};
	my (@args, @texts);
	my $text = '';
	my $was = $f->{ch};

	$i++;
	while (tok() ne ')') {
		my $before = $T->[$i][0];
		my $e = argument();

		$was ||= $e->{ch};
		push @args, $e;
		push @texts, $before . $e->{t};
		$i++ if tok() eq ',';
	}
	$i++;
	for my $glob (keys %calls) {
		# Leave such a call in a test: the whole test comes later.
		next if $name !~ /^$glob$/ || $in_test && $gone{$name};
		my $fact = fact_of($calls{$glob}) or next;
		(my $value = $fact->{value}) =~ s/\$(\d)/($args[$1 - 1] or die "$fact->{name}: argument $1\n")->{t}/ge;
		my $e = known($value, 1);

		$e->{p} = 12 if $value =~ /^\S+ [+-]/;
		return $e;
	}
	for my $param (sort { $b->{at} <=> $a->{at} } @{$params{$name} // []}) {
		splice @texts, $param->{at}, 1;
		$texts[0] =~ s/^\s+// if @texts;
		$was = 1;
	}
	if (@args == 1 && defined $args[0]{c} && $args[0]{ch} && $name =~ /^(?:un)?likely$|^READ_ONCE$/) {
		return { %{$args[0]}, ch => 1 };
	}
	return { t => $name . '(' . join(',', @texts) . ')', p => 20, ch => $was };
}

sub postfix
{
	my $from = $i;
	my $e = primary();

	for (;;) {
		my $t = tok();
		my $before = $i < @$T ? $T->[$i][0] : '';

		if ($t eq '(') {
			$e = call($from, $e);
		} elsif ($t eq '[') {
			$i++;
			my $inside = expression(1);

			$i++;
			$e = { t => "$e->{t}\[$inside->{t}]", p => 20, ch => $e->{ch} || $inside->{ch} };
		} elsif ($t eq '->' || $t eq '.') {
			my $member = $T->[$i + 1][1];

			$i += 2;
			$e = { t => $e->{t} . $t . $member, p => 20, ch => $e->{ch} };
			if ($members{$member} && tok() !~ /^(?:=|->|\.|\[)$/) {
				my $fact = fact_of($members{$member});

				$e = known($fact->{value}, 1) if $fact;
			}
		} elsif ($t eq '++' || $t eq '--') {
			$i++;
			$e = { t => $e->{t} . $t, p => 20, ch => $e->{ch} };
			next;
		} else {
			last;
		}
		if (!$e->{ch} && (my $fact = by_canon($from, $i))) {
			$e = $fact unless tok() =~ /^(?:->|\.|\[|=)$/;
		}
	}
	return $e;
}

sub unary
{
	my $from = $i;
	my $t = tok();

	if ($t =~ /^(?:[&*!~+-]|\+\+|--)$/ || $t eq 'sizeof' && $T->[$i + 1][1] ne '(') {
		$i++;
		my $before = $T->[$i][0];
		my $e = unary();

		return known($e->{c} ? 'false' : 'true', 1) if $t eq '!' && defined $e->{c} && $e->{ch};
		return { t => $t . $before . $e->{t}, p => 14, ch => $e->{ch},
			 ones => $t eq '~' && $e->{ch} && defined $e->{c} && !$e->{c} };
	}
	return postfix();
}

sub expression
{
	my ($least) = @_;
	my $from = $i;
	my $l = unary();

	for (;;) {
		my $op = tok();
		my $before = $i < @$T ? $T->[$i][0] : '';

		if ($op eq '?' && $least <= 3) {
			$i++;
			my $elvis = tok() eq ':';
			my $q = $T->[$i][0];
			my $a = $elvis ? undef : expression(2);
			my $colon = $T->[$i][0];

			die "no : in $function\n" if tok() ne ':';
			$i++;
			my $space = $T->[$i][0];
			my $b = expression(3);

			if (defined $l->{c} && $l->{ch}) {
				$l = { %{$l->{c} ? $a // $l : $b}, ch => 1 };
			} else {
				my $was = $l->{ch} || $b->{ch} || ($a && $a->{ch});

				$l = { t => $l->{t} . $before . '?' . ($a ? $q . $a->{t} . $colon : '') . ':' .
					$space . $b->{t}, p => 3, ch => $was };
			}
			if (my $fact = by_canon($from, $i)) {
				$l = $fact;
			}
			next;
		}
		if ($assigns{$op} && $least <= 2) {
			$i++;
			my $space = $T->[$i][0];
			my $r = expression(2);

			$l = { t => $l->{t} . $before . $op . $space . $r->{t}, p => 2, ch => $l->{ch} || $r->{ch} };
			next;
		}
		if ($op eq ',' && $least <= 1) {
			$i++;
			my $space = $T->[$i][0];
			my $r = expression(2);

			$l = { t => "$l->{t},$space$r->{t}", p => 1, ch => $l->{ch} || $r->{ch} };
			next;
		}
		my $p = $binary{$op};
		last if !$p || $p < $least || $least > $p;
		$i++;
		my $space = $T->[$i][0];
		my $r = expression($p + 1);
		my $lc = $l->{ch} ? $l->{c} : undef;
		my $rc = $r->{ch} ? $r->{c} : undef;
		my $e;

		if ($op eq '&&') {
			$e = defined $lc ? ($lc ? $r : $l) : defined $rc ? ($rc ? $l : $r) : undef;
		} elsif ($op eq '||') {
			$e = defined $lc ? ($lc ? $l : $r) : defined $rc ? ($rc ? $r : $l) : undef;
		} elsif ($op =~ /^[|+^-]$/) {
			$e = defined $rc && !$rc ? $l : defined $lc && !$lc && $op ne '-' ? $r : undef;
		} elsif ($op eq '&') {
			$e = defined $rc && !$rc ? $r : defined $lc && !$lc ? $l :
			     $r->{ones} ? $l : $l->{ones} ? $r : undef;
		}
		if ($e) {
			$e = $e->{inner} if $e->{inner};
			$l = { %$e, ch => 1 };
		} else {
			$l = { t => $l->{t} . $before . $op . $space . $r->{t}, p => $p, ch => $l->{ch} || $r->{ch} };
		}
		if (my $fact = by_canon($from, $i)) {
			$l = $fact;
		}
	}
	return $l;
}

# Lines of 100 columns

sub width
{
	my ($text) = @_;
	my $column = 0;

	$column = $_ eq "\t" ? ($column | 7) + 1 : $column + 1 for split //, $text;
	return $column;
}

# Wrap a statement, which begins with its tabs.
sub wrap
{
	my ($text) = @_;

	return $text if $text =~ /\/\*|\\\n|\{.*\}/s;
	my ($tabs) = $text =~ /^(\t*)/;
	$text =~ s/^\s+//;
	$text =~ s/\s*\n\s*/ /g;
	$text =~ s/([(\[!~]) /$1/g;
	my $result = '';
	my $line = $tabs;
	my @open;
	my $indent = "$tabs\t";
	my $last = '';

	while (width($line . $text) > 100) {
		my ($best, $best_depth, $best_indent);
		my @stack = @open;
		my $column = width($line);
		my $string = 0;

		for my $at (0 .. length($text) - 1) {
			my $c = substr $text, $at, 1;

			$string = !$string if $c eq '"';
			push @stack, $column + 1 if !$string && $c eq '(';
			pop @stack if !$string && $c eq ')';
			$column++;
			last if $column > 100;
			my $head = substr $text, 0, $at + 1;

			if (!$string && substr($text, $at + 1, 1) eq ' ' &&
			    $head =~ /(?:,|&&|\|\||[?:|]|[^=!<>]=|\+)$/ &&
			    (!defined $best || @stack + 2 * ($head =~ /=$/) <= $best_depth)) {
				($best, $best_depth, $best_indent) =
					($at + 1, @stack + 2 * ($head =~ /=$/), [@stack]);
			}
		}
		last unless defined $best;
		$result .= $line . substr($text, 0, $best) . "\n";
		$text = substr $text, $best + 1;
		@open = @$best_indent;
		$line = @open ? "\t" x int($open[-1] / 8) . ' ' x ($open[-1] % 8) : $indent;
	}
	return $result . $line . $text;
}

# Statements. Each function moves $i behind the statement that it parses, and returns the text
# with the comments and blank lines before it, or '' if nothing is left.

sub kills
{
	my ($from, $to) = @_;

	for my $at ($from .. $to - 1) {
		my $t = $T->[$at][1];

		next unless exists $env->{$t};
		my $next = $at + 1 < @$T ? $T->[$at + 1][1] : '';
		my $before = $at ? $T->[$at - 1][1] : '';
		next if $before =~ /^(?:->|\.)$/;
		delete $env->{$t} if $assigns{$next} || $next =~ /^(?:\+\+|--)$/ ||
			$before =~ /^(?:\+\+|--)$/ ||
			($before eq '&' && $T->[$at - 2][1] !~ /^[\w)\]]/);
	}
}

sub skip_statement
{
	my $t = tok();

	if ($t eq '{') {
		$i = close_of($i) + 1;
	} elsif ($t =~ /^#/) {
		$i++;
	} elsif ($t =~ /^(?:if|while|for|switch)$/ || ($t =~ /for_each/ && $T->[$i + 1][1] eq '(')) {
		$i = close_of($i + 1) + 1;
		skip_statement();
		if ($t eq 'if' && tok() eq 'else') {
			$i++;
			skip_statement();
		}
	} elsif ($t eq 'do') {
		$i++;
		skip_statement();
		$i++ while tok() ne ';';
		$i++;
	} elsif ($T->[$i + 1][1] eq ':' && $t =~ /^\w+$/ || $t =~ /^(?:case)$/) {
		$i++ while tok() ne ':';
		$i++;
	} else {
		my $depth = 0;

		until (!$depth && tok() eq ';') {
			$depth++ if tok() =~ /^[({\[]$/;
			$depth-- if tok() =~ /^[)}\]]$/;
			$i++;
		}
		$i++;
	}
}

sub end_of_statement
{
	my $at = $i;

	skip_statement();
	my $end = $i;
	$i = $at;
	return $end;
}

# Return whether the manifest drops the next statement.
sub is_dropped
{
	my $end = end_of_statement();
	my $canon = join ' ', map { $_->[1] } @$T[$i .. $end - 1];

	for my $drop (@{$drops{''}}, @{$drops{$function} // []}) {
		next unless $canon =~ $drop->{re};
		$used{$drop->{name}}++;
		$i = $end;
		$changed = 1;
		return 1;
	}
	return 0;
}

sub dedent
{
	my ($text) = @_;

	$text =~ s/\n\t/\n/g;
	return $text;
}

# Return the text of a block without its braces, one tab less indented.
sub unbrace
{
	my ($text) = @_;

	$text =~ s/^\s*\{// && $text =~ s/\n?\s*\}$//;
	return dedent($text);
}

# Keep the text before a statement in front of the statement that replaces it.
sub lead
{
	my ($before, $text) = @_;

	return '' if $text eq '';
	$text =~ s/^(\s*)//;
	return $before . $text;
}

sub is_declaration
{
	my $t = tok();
	my $next = $T->[$i + 1][1] // '';

	return 1 if $t =~ $type && $next ne '(';
	return 1 if $t =~ /^[A-Za-z_]\w*$/ && $next =~ /^[A-Za-z_]\w*$/ && $t !~ /^(?:return|goto|else|case)$/;
	return $t =~ /^[a-z_]\w*$/ && $next eq '*' && ($T->[$i + 2][1] // '') =~ /^[a-z]\w*$/ &&
		($T->[$i + 3][1] // '') =~ /^[=;,]$/ && $t =~ /_t$/;
}

# A declaration: declarators that are constant are added to $env.
sub declaration
{
	my $from = $i;
	my ($was, @parts, $spec) = (0);

	for (;;) {
		my $start = $i;
		my $depth = 0;

		until (!$depth && tok() =~ /^[=,;]$/) {
			$depth++ if tok() =~ /^[({\[]$/;
			$depth-- if tok() =~ /^[)}\]]$/;
			$i++;
		}
		my $head = slice($start, $i);
		my ($name) = $head =~ /(\w+)\s*(?:\[.*\])?(?:\s+__\w+)*$/s;

		if (tok() eq '=') {
			my $space = $T->[$i][0] . '=' . $T->[$i + 1][0];

			$i++;
			my $e = tok() eq '{' ? init() : expression(2);

			$was ||= $e->{ch};
			$env->{$name} = $e->{t} if defined $e->{c} && $name;
			$head .= $space . $e->{t};
		}
		push @parts, $T->[$start][0] . $head;
		last if tok() eq ';';
		$i++;
	}
	$i++;
	return ($was, join(',', @parts) . ';');
}

sub simple
{
	my ($before) = $T->[$i][0];
	my $from = $i;
	my $t = tok();
	my ($text, $was);

	my $end = end_of_statement();

	if ($t eq 'return') {
		$i++;
		if (tok() eq ';') {
			($was, $text) = (0, 'return');
		} else {
			my $space = $T->[$i][0];
			my $e = expression(1);

			($was, $text) = ($e->{ch}, "return$space$e->{t}");
		}
	} elsif ($t =~ /^(?:goto|break|continue)$/ || $t eq ';') {
		$i = $end - 1;
		($was, $text) = (0, slice($from, $i));
	} elsif (is_declaration()) {
		($was, $text) = declaration();
		$i = $end;
		$text =~ s/;$//;
		$text =~ s/^\Q$before\E//;
		$i--;
	} else {
		my $e = expression(1);

		($was, $text) = ($e->{ch}, $e->{t});
		if ($was && defined $e->{c}) {
			$i = $end;
			$changed = 1;
			return '';
		}
	}
	die "no ; in $function: " . slice($from, $i + 1) . "\n" if tok() ne ';';
	$i++;
	$text .= ';';
	return $before . $text unless $was;
	$changed = 1;
	my ($tabs) = $before =~ /(\t*)\z/;
	my $laid = wrap($tabs . $text);

	$laid =~ s/^\t*//;
	return $before . $laid;
}

sub head_of
{
	my ($keyword, $before, $inside, $from) = @_;
	my $start = $before =~ /\n(\t*)\z/ ? $1 : '';

	if ($before !~ /\n/) {
		# The statement follows an else on the same line.
		my $at = $from - 1;

		$at-- while $at > 0 && $T->[$at][0] !~ /\n/;
		$start = ($T->[$at][0] =~ /(\t*)\z/)[0] . join ' ', map { $_->[1] } @$T[$at .. $from - 1];
		$start .= ' ';
	}
	my $laid = wrap("$start$keyword ($inside)");

	return $before . substr $laid, length $start;
}

# Return whether a body is one statement on one line.
sub is_single
{
	my ($body) = @_;

	return $body =~ /^\s*\{\n\t+[^\n{}]+;\n\t*\}\s*$/ && $body !~ /\/\*/ &&
		$body !~ /^\s*\{\n\t+(?:if|while|for|do|switch)\b/;
}

sub strip_braces
{
	my ($body) = @_;

	$body =~ s/^\s*\{(\n\t+[^\n]+;)\n\t*\}\s*$/$1/;
	return $body;
}

sub body
{
	my ($was) = @_;
	my %env = %$env;
	my ($mark, $text) = ($changed);

	$changed = 0;
	$text = statement();
	$$was = $changed;
	$changed ||= $mark;
	$env = \%env;
	return $text;
}

sub statement
{
	my $t = tok();
	my $before = $T->[$i][0];
	my $from = $i;

	return block() if $t eq '{';
	return '' if is_dropped();
	if ($t =~ /^#/) {
		$i++;
		return $before . $t;
	}
	if ($t eq 'if') {
		my $end = end_of_statement();

		$i += 2;
		my $space = $T->[$i][0];
		my $cond = expression(1);
		my ($then_was, $else_was);

		$i++;
		my $known = $cond->{ch} && defined $cond->{c} ? $cond->{c} : undef;
		my $then = body(\$then_was);
		my $else;
		my $else_lead = '';

		if (tok() eq 'else') {
			$else_lead = $T->[$i][0];
			$i++;
			$else = body(\$else_was);
		}
		kills($from, $end);
		if (defined $known) {
			my $left = $known ? $then : $else // '';

			$changed = 1;
			return '' if $left eq '';
			if ($left =~ /^\s*\{/) {
				$left = unbrace($left);
				return '' if $left !~ /\S/;
			} else {
				$left = dedent($left);
			}
			$left =~ s/^\s*\n?\t*//;
			$leaves = $left =~ /^(?:continue|break|goto \w+|return[^;]*);$/;
			# If the condition was known, a comment before it stays with the rest.
			my $kept = $known || $before !~ /\/\*/ ? $before : $before =~ s/\s*$comment\s*(\n\t*)\z/$1/sr;

			return $kept . $left;
		}
		if ($then !~ /[^\s{}]/ && !defined $else) {
			$changed = 1;
			die "nothing is left of a condition in $function: $cond->{t}\n" if $cond->{t} =~ /\w\(/;
			return '';
		}
		my $head = $cond->{ch} ? head_of('if', $before, $cond->{t}, $from) :
			   $before . 'if (' . $space . $cond->{t} . ')';

		$changed ||= $cond->{ch};
		if (defined $else && $else !~ /[^\s{}]/) {
			undef $else;
			$then_was = 1;
		}
		if (($then_was || $else_was) && is_single($then) &&
		    (!defined $else || is_single($else) || $else !~ /^\s*\{/)) {
			$then = strip_braces($then);
			$else = strip_braces($else) if defined $else;
			$else_lead = $before =~ /(\n\t*)\z/ ? $1 : "\n";
		}
		return $head . $then . (defined $else ? "${else_lead}else$else" : '');
	}
	if ($t =~ /^(?:while|switch|for)$/ || ($t =~ /for_each/ && $T->[$i + 1][1] eq '(')) {
		my $end = end_of_statement();

		kills($from, $end);
		my $rp = close_of($i + 1);
		my $was = 0;
		my $inside = '';

		my $name = $t;
		$i += 2;
		while ($i < $rp) {
			my $start = $i;

			if (tok() =~ /^[;,]$/) {
				$inside .= $T->[$i][0] . tok();
				$i++;
			} elsif (is_declaration() || tok() =~ $type) {
				$i++ until $i >= $rp || tok() =~ /^[;,]$/;
				$inside .= $T->[$start][0] . slice($start, $i);
			} else {
				my $space = $T->[$i][0];
				my $e = expression($t eq 'for' || $t =~ /for_each/ ? 2 : 1);

				$was ||= $e->{ch};
				$inside .= $space . $e->{t};
			}
		}
		$i = $rp + 1;
		my $sub_was;
		my $gap = $t =~ /for_each/ ? '' : ' ';
		my $head = $was && $t !~ /for_each/ ? head_of($t, $before, $inside, $from) : "$before$t$gap($inside)";
		my $body = body(\$sub_was);

		$changed ||= $was;
		$body = strip_braces($body) if $sub_was && is_single($body);
		return $head . $body;
	}
	if ($t eq 'do') {
		my $end = end_of_statement();

		kills($from, $end);
		$i++;
		my $was;
		my $body = body(\$was);
		my $lead = $T->[$i][0];

		$i += 2;
		my $e = expression(1);

		$i += 2;
		$changed ||= $e->{ch};
		return $before . 'do' . $body . $lead . "while ($e->{t});";
	}
	if ($T->[$i + 1][1] eq ':' && $t =~ /^\w+$/ || $t eq 'case') {
		$env = {};
		$i++ while tok() ne ':';
		$i++;
		return $before . slice($from, $i);
	}
	my $end = end_of_statement();
	kills($from, $end) unless is_declaration();
	return simple();
}

sub block
{
	my %env = %$env;
	my $text = $T->[$i][0] . '{';
	my ($first, $gap) = (1, 0);

	$i++;
	while (tok() ne '}') {
		$leaves = 0;
		my $blank = $T->[$i][0] =~ /\n\s*\n/;
		my %before = %$env;
		my $statement = statement();

		if ($statement eq '') {
			$env = \%before;
			$gap ||= $blank;
		} elsif ($gap) {
			$statement =~ s/^\n(?!\s*\n)/\n\n/;
			$gap = 0;
		}
		# A comment that stands behind the last statement, on its line, is removed with
		# it.
		$statement =~ s/^(\n)\n+/$1/ if $first;
		$text .= $statement;
		$first = 0 if $statement ne '';
		while ($leaves && tok() ne '}' && tok() ne 'case' && $T->[$i + 1][1] ne ':') {
			skip_statement();
		}
	}
	$leaves = 0;
	$text .= $T->[$i][0] . '}';
	$i++;
	$env = \%env;
	return $text;
}

# Items of a file

my (%items, %orig, %orig_members);

sub names_of
{
	my ($item) = @_;
	my @t = map { $_->[1] } @{$item->{tokens}};
	my @names;

	if ($item->{kind} eq 'enum') {
		my $in = 0;

		for my $at (0 .. $#t) {
			$in = 1 if $t[$at] eq '{';
			push @names, $t[$at] if $in && $t[$at] =~ /^\w+$/ && $t[$at - 1] =~ /^[{,]$/;
		}
	}
	if ($item->{kind} eq 'invocation' && "@t" =~ /^(?:static )?(?:DEFINE|DECLARE)_/) {
		push @names, grep { /^[a-z]\w*$/ && !/$type/ } @t;
	}
	push @names, "setup $1" if "@t" =~ /^FIXTURE_SETUP \( (\w+) \)/;
	push @names, "fixture $1" if "@t" =~ /^FIXTURE\w* \( (\w+) [,)]/;
	push @names, "$1_suite" if "@t" =~ /^ENGINE_SUITE \( (\w+) \)/;
	# All fixtures of a file share the name of their macro.
	push @names, $item->{name} if ($item->{name} // '') !~ /^(?:FIXTURE\w*)?$/;
	push @names, $t[-2] if $item->{kind} eq 'struct' && @t > 3 && $t[-3] eq '}';
	return grep { !/$type/ } @names;
}

sub member_names
{
	my ($item) = @_;
	my @t = map { $_->[1] } @{$item->{tokens}};
	my @names;

	return unless $item->{kind} eq 'struct' || $t[0] =~ /^FIXTURE(?:_VARIANT)?$/;
	for my $at (1 .. $#t) {
		next unless $t[$at] =~ /^[;,\[)]$/ || $t[$at] =~ /^(?:____?cacheline|__aligned)/;
		push @names, $t[$at - 1] if $t[$at - 1] =~ /^[A-Za-z_]\w*$/;
	}
	return @names;
}

sub classify
{
	my ($item) = @_;
	my @t = map { $_->[1] } @{$item->{tokens}};
	my ($depth, $paren, $brace, $equals) = (0);

	if ($t[0] =~ /^#/) {
		$item->{kind} = 'pp';
		if ($t[0] =~ /^#\s*define\s+(\w+)(.?)/ && $t[0] !~ /^#\s*define\s+\w+_H$/) {
			$item->{kind} = 'macro';
			$item->{name} = $1;
		}
		return;
	}
	for my $at (0 .. $#t) {
		$paren //= $at if $t[$at] eq '(' && !$depth && !($at && $t[$at - 1] =~ /^(?:__aligned|__attribute__)$/);
		$brace //= $at if $t[$at] eq '{' && !$depth;
		$equals //= $at if $t[$at] eq '=' && !$depth;
		$depth++ if $t[$at] =~ /^[({\[]$/;
		$depth-- if $t[$at] =~ /^[)}\]]$/;
	}
	if (defined $brace && !defined $equals && (!defined $paren || $paren > $brace)) {
		$item->{kind} = $t[0] eq 'enum' ? 'enum' : 'struct';
		$item->{name} = $t[$brace - 1] =~ /^\w+$/ && $t[$brace - 1] !~ /^(?:enum|struct|union)$/ ? $t[$brace - 1] : '';
	} elsif (@t <= 3 && $t[0] =~ /^(?:struct|union)$/) {
		$item->{kind} = 'forward';
		$item->{name} = '';
	} elsif ("@t" =~ /^(?:static|typedef) [\w ]+\**? ?\( \* (\w+) \)/ ||
		 "@t" =~ /^typedef .*?(\w+) (?:\( .*\) )?;/) {
		$item->{kind} = 'variable';
		$item->{name} = $1;
	} elsif (defined $equals && (!defined $paren || $equals < $paren || $t[$paren + 1] eq '*')) {
		$item->{kind} = 'variable';
		my ($head) = join(' ', @t[0 .. $equals - 1]) =~ /^(.*)$/;
		$head =~ s/ \[.*//;
		$head =~ s/ \) \(.*//;
		($item->{name}) = $head =~ /(\w+)(?: (?:__\w+))*\s*$/;
		($item->{name}) = join(' ', @t) =~ /\( \* const (\w+)/ if join(' ', @t) =~ /\( \* const \w+/;
	} elsif (defined $paren && defined $brace && !(defined $equals && $equals < $brace)) {
		$item->{kind} = 'function';
		$item->{name} = $t[$paren - 1];
	} elsif (defined $paren && $paren <= 1 && $t[0] !~ $type || "@t" =~ /^static (?:DEFINE|DEVICE)/ || "@t" =~ /^(?:DECLARE|DEFINE)_/) {
		$item->{kind} = 'invocation';
		$item->{name} = '';
	} elsif (defined $paren && !("@t" =~ /^\w+ \w+ \[/)) {
		$item->{kind} = 'prototype';
		$item->{name} = $t[$paren - 1];
	} else {
		$item->{kind} = 'variable';
		my @n = "@t" =~ /(\w+)(?: \[.*?\])?(?: __\w+)? (?=[,;])/g;
		$item->{name} = $n[0];
		$item->{more} = [@n[1 .. $#n]];
	}
}

# Split a file into items. The text before an item, up to the last blank line, is an item too.
sub items_of
{
	my ($file, $text) = @_;
	my $tokens = lex($text);
	my (@list, @now);
	my $depth = 0;

	my $push = sub {
		my ($last) = @_;

		return unless @now;
		my $before = $now[0][0];
		my $own = '';

		if ($before =~ /\A(.*\n)?((?:[ \t]*$comment\s*?\n)+[ \t]*)\z/s && length $2) {
			my ($free, $mine) = ($1 // '', $2);

			# Only the comment right above the item belongs to it.
			if ($mine =~ /\A(.*\n\n)(.*)\z/s) {
				($free, $mine) = ($free . $1, $2);
			}
			($before, $own) = ($free, $mine);
		} elsif ($before =~ /\A(.*\n)([ \t]*)\z/s && $before =~ /\S/) {
			($before, $own) = ($1, $2);
		}
		push @list, { kind => 'free', text => $before, file => $file } if $before =~ /\S/;
		my $item = { file => $file, own => $own, lead => $before =~ /\S/ ? '' : $before,
			     tokens => [['', $now[0][1]], @now[1 .. $#now]] };
		classify($item);
		push @list, $item;
		@now = ();
	};

	for my $t (@$tokens) {
		if ($t->[1] eq '') {
			$push->();
			push @list, { kind => 'free', text => $t->[0], file => $file };
			next;
		}
		if (!@now && $t->[1] =~ /^#/) {
			@now = ($t);
			$push->();
			next;
		}
		if (!@now && $t->[1] eq ';') {
			push @{$list[-1]{tokens}}, $t;
			next;
		}
		push @now, $t;
		$depth++ if $t->[1] =~ /^[({\[]$/;
		$depth-- if $t->[1] =~ /^[)}\]]$/;
		next if $depth;
		if ($t->[1] eq ';') {
			$push->();
		} elsif ($t->[1] eq '}') {
			my $head = join ' ', map { $_->[1] } @now;

			# A function ends here, a type or a variable at its semicolon.
			my ($before) = $head =~ /^([^{]*)/;
			$push->() if $before =~ /\)/ && $before !~ /=/ && $before !~ /^(?:enum|struct) \w+ $/;
		}
	}
	$push->();
	return \@list;
}

sub text_of
{
	my ($item) = @_;

	return $item->{text} if $item->{kind} eq 'free';
	return $item->{lead} . $item->{own} . join '', map { $_->[0] . $_->[1] } @{$item->{tokens}};
}

sub refs_of
{
	my ($item) = @_;
	my (%names, %of_members);
	my $tokens = $item->{tokens} // [];

	if ($item->{kind} eq 'macro' || $item->{kind} eq 'pp') {
		my $body = $tokens->[0][1];

		return ({}, {}) if $body =~ /^#\s*(?:include|if|ifdef|ifndef|elif|endif|else|undef|pragma)/;
		$body =~ s/^#\s*define\s+\w+(?:\([^)]*\))?//;
		$names{$_} = 1 for $body =~ /(?<![\w.>])([A-Za-z_]\w*)/g;
		return (\%names, {});
	}
	my @t = map { $_->[1] } @$tokens;

	for my $at (0 .. $#t) {
		next unless $t[$at] =~ /^[A-Za-z_]/;
		if ($at && $t[$at - 1] =~ /^(?:->|\.)$/) {
			$of_members{$t[$at]} = 1;
		} else {
			$names{$t[$at]} = 1;
		}
	}
	$names{"$1_cases"} = 1 if "@t" =~ /^ENGINE_SUITE \( (\w+) \)/;
	if ("@t" =~ /^(?:TEST_F\w*|FIXTURE_TEARDOWN\w*) \( (\w+)/) {
		$names{"setup $1"} = 1;
		$names{"fixture $1"} = 1;
	}
	delete $names{$_} for names_of($item);
	delete $names{$_} for $item->{kind} eq 'struct' ? member_names($item) : ();
	if ($item->{kind} =~ /^(?:function|prototype)$/) {
		# The item's own parameters and variables.
		for my $list ("@t" =~ /(?:struct \w+|\b$words_of_types) ([^;(){}]*) ;/g) {
			delete $names{$_} for $list =~ /(?:^|, )(?:\* )*(\w+)/g;
		}
		my ($list) = "@t" =~ /^[^(]*\( ([^{]*?) \) (?:\{|;|__)/;
		delete $names{$_} for ($list // '') =~ /(\w+) (?:\[ \w* \] )?(?=,|$)/g;
		delete $names{$_} for ($list // '') =~ /(\w+)$/;
		delete $names{$_} for
			"@t" =~ /(?:struct \w+|\b$words_of_types)(?: \*)* (?:__\w+ )?(\w+) (?=[=;,)\[])/g;
		$names{$_} = 1 for "@t" =~ /\b(?:struct|enum) (\w+)/g;
	}
	return (\%names, \%of_members);
}

# A name is looked up in some kinds of files only: the driver sees the uapi header and itself, a
# KUnit suite also the driver, and a program the header and programs.
sub kind_of_file
{
	my ($file) = @_;

	return $file =~ /^uapi/ ? 1 : $file =~ m{^selftests/kunit} ? 4 : $file =~ /^selftests/ ? 8 : 2;
}

my %seen_by = (1 => 1, 2 => 1 | 2, 4 => 1 | 2 | 4, 8 => 1 | 8);

# Read all files of the project that an item may refer to, including those that come later.

my %text;
for my $file (keys %file_patch, keys %gone_file) {
	$text{$file} = slurp($file);
	for (@{$lines{$file} // []}) {
		$used{$_->{name}}++ if $text{$file} =~ s/$_->{line}\n//;
	}
	for my $edit (@{$texts{$file} // []}) {
		$used{$edit->{name}}++ if $text{$file} =~ s/$edit->{old}/$edit->{new}/;
	}
}
for my $file (sort { ($a =~ /^(?:selftests|lib)/) <=> ($b =~ /^(?:selftests|lib)/) || $a cmp $b } keys %text) {
	$items{$file} = $file =~ /\.[ch]$/ ? items_of($file, $text{$file}) :
			[{ kind => 'free', text => $text{$file}, file => $file }];
	@{$items{$file}} = grep {
		my ($test) = join(' ', map { $_->[1] } @{$_->{tokens} // []}) =~ /^TEST_F\w* \( \w+ , (\w+)/;

		$used{"no-test $test"}++ if $gone_test{$test // ''};
		!$gone_test{$test // ''};
	} @{$items{$file}};
	for my $item (@{$items{$file}}) {
		next if $item->{kind} eq 'free';
		$orig{$_} |= kind_of_file($file) for names_of($item), @{$item->{more} // []};
		$orig_members{$_} |= kind_of_file($file) for member_names($item);
	}
}
# A name that is undefined first belongs to the kernel.
delete @orig{join("\n", values %text) =~ /^#undef (\w+)$/mg};
for (sort keys %gone) {
	push @failures, "there is no $_" unless $orig{$_} || $orig_members{s/.*\.//r};
}

# For the first six patches, remove what comes later from all files.

sub drop_parameter
{
	my ($item, $param) = @_;
	my @t = @{$item->{tokens}};
	my ($lp) = grep { $t[$_][1] eq '(' } 0 .. $#t;

	$T = \@t;
	my $rp = close_of($lp);
	my ($depth, $nr, $start) = (0, 0, $lp + 1);
	for my $at ($lp + 1 .. $rp) {
		$depth++ if $t[$at][1] =~ /^[(\[]$/;
		$depth-- if $t[$at][1] =~ /^[)\]]$/ && $at < $rp;
		next if $depth || ($t[$at][1] ne ',' && $at < $rp);
		if ($t[$at - 1][1] eq $param) {
			my ($from, $to) = $nr ? ($start - 1, $at - 1) : ($start, $at);

			splice @t, $from, $to - $from + 1;
			my ($end) = grep { $t[$_][1] eq '{' || $t[$_][1] eq ';' } 0 .. $#t;
			my ($stop) = grep { $t[$_][1] eq ')' } reverse 0 .. $end - 1;
			my $head = '';

			$T = \@t;
			$stop = close_of($lp);
			$head = wrap(join '', map { $_->[0] . $_->[1] } @t[0 .. $stop]);
			my $tail = join '', map { $_->[0] . $_->[1] } @t[$stop + 1 .. $end - 1];
			$t[$stop + 1][0] = "\n\t" if $stop + 1 < $end && width(($head =~ /([^\n]*)\z/)[0] . $tail) > 100;
			$item->{tokens} = [['', ''], @{lex($head . join '', map { $_->[0] . $_->[1] } @t[$stop + 1 .. $#t])}];
			shift @{$item->{tokens}};
			return $nr;
		}
		$nr++;
		$start = $at + 1;
	}
	return;
}

for my $file (sort keys %items) {
	for my $item (@{$items{$file}}) {
		next unless $item->{kind} =~ /^(?:function|prototype)$/;
		my $nr = 0;

		for my $param (@{$params{$item->{name}} // []}) {
			my $at = drop_parameter($item, $param->{param});

			next unless defined $at;
			# Its index in the original list, if parameters are removed in order.
			$param->{at} = $at + $nr++;
			$used{$param->{name}}++;
			$item->{cut} = 1;
		}
	}
}
for (map { @$_ } values %params) {
	next if defined $_->{at};
	push @failures, "the manifest has \"$_->{name}\", which is not there";
	$_->{at} = 0;
}

sub split_commas
{
	my ($text) = @_;
	my @parts = ('');
	my $depth = 0;

	for my $c (split //, $text) {
		$depth++ if $c =~ /[({\[]/;
		$depth-- if $c =~ /[)}\]]/;
		if ($c eq ',' && !$depth) {
			push @parts, '';
		} else {
			$parts[-1] .= $c;
		}
	}
	s/^\s+// for @parts;
	return @parts;
}

# Remove local variables that nothing reads any more, and labels that no goto names.
sub tidy_locals
{
	my ($item) = @_;

	for (;;) {
		my $text = join '', map { $_->[0] . $_->[1] } @{$item->{tokens}};
		my $before = $text;
		my ($head, $inside) = $text =~ /\A(.*?)(\{.*)\z/s;
		my $bare = $inside =~ s/$comment//gsr;

		# Remove labels that no goto names, and those that lead to a return.
		while ($inside =~ /^([a-z_]\w*):\n/mg) {
			my $label = $1;

			next if $label eq 'default';
			if ($bare !~ /\bgoto $label;/) {
				# Remove code behind a return, if it has no label any more.
				$inside =~ s/^(\treturn [^;]*;\n)\n?$label:\n.*?(?=^\}|^\w+:)/$1/ms;
				$inside =~ s/^$label:\n//m;
				last;
			}
			if ($inside =~ /^$label:\n\t(return [^;]*;)/m) {
				my $return = $1;

				$inside =~ s/\bgoto $label;/$return/g;
				$inside =~ s/^$label:\n//m;
				last;
			}
		}
		for my $line ($inside =~ /^(\t+(?:const )?(?:struct \w+|unsigned \w+|\w+) [^;{}]*;)$/mg) {
			next if $line =~ /^\t+(?:return|goto|break|else|case)\b/;
			my ($spec, $rest) = $line =~ /^(\t+(?:const )?(?:(?:struct|unsigned|enum) )?\w+ (?:__user )?)(\**\w+.*);$/s or next;
			my @declarators = split_commas($rest);

			next if grep { !/^\**\w+(?:\[[^\]]*\])?(?: __\w+)?(?:\s*=.*)?$/s } @declarators;
			my (@kept, @calls);
			for (@declarators) {
				my ($name) = /^\**(\w+)/;
				my $uses = () = $bare =~ /(?<![\w>.])$name\b/g;
				my $sets = () = $bare =~ /(?<=\n)\t+$name = /g;
				my $init = /=\s*(.*)/s ? $1 : '';

				if ($uses == 1) {
					# Keep the call, unless it has no side effect.
					push @calls, $init if grep { !$pure{$_} } $init =~ /(\w+)\(/g;
					next;
				}
				push @kept, $_;
				next if $init ne '' || !$sets || $uses != 1 + $sets;
				$inside =~ s/^(\t+)$name = ([^;]*;)/$1$2/mg;
				$inside =~ s/^\t+(?!continue|break|return)\w+;\n//mg;
			}
			next if @kept == @declarators;
			my $new = @kept ? wrap($spec . join(', ', @kept) . ';') . "\n" : '';

			$inside =~ s/^\Q$line\E\n/$new/m;
			$inside =~ s/\n\n/"\n\n" . join('', map { wrap("\t$_;") . "\n" } @calls)/e if @calls;
			$inside =~ s/\A(\{\n)\n/$1/;
			last;
		}
		$inside =~ s/^(\t+[^\n;]*?) \+= 1;/$1++;/mg;
		$inside =~ s/^(\t+)(if \([^\n]*\)) \{\n(\t+[^\n{}]+;)\n\1\} else \{\n(\t+[^\n{}]+;)\n\1\}/$1$2\n$3\n$1else\n$4/mg;
		$text = $head . $inside;
		last if $text eq $before;
		$item->{tokens} = lex($text);
	}
}

sub carve_function
{
	my ($item) = @_;
	my @t = @{$item->{tokens}};
	my ($open) = grep { $t[$_][1] eq '{' } 0 .. $#t;

	$T = \@t;
	$function = $item->{name};
	$in_test = $item->{file} =~ m{^(?:selftests|lib)/};
	$changed = 0;
	$env = {};
	for my $param (@{$params{$function} // []}) {
		$env->{$param->{param}} = $param->{value} if defined $param->{value};
	}
	$i = $open;
	my $text = block();

	return unless $changed || $item->{cut};
	my $head = join '', map { $_->[0] . $_->[1] } @t[0 .. $open - 1];
	if ($void{$function}) {
		$used{"void $function"}++;
		my ($signature, $rest) = $head =~ /\A(.*?\))(\s*(?:__\w+\(.*\)\s*)*)\z/s;
		$signature =~ s/\w+(?= \**$function\()/void/;
		$head = wrap($signature) . $rest;
		$text =~ s/\n\treturn [^;]*;\n\}\z/\n}/;
		$text =~ s/\breturn [^;]*;/return;/g;
	}
	$item->{tokens} = lex($head . $text);
	$item->{changed} = 1;
	tidy_locals($item);
}

for my $file (sort keys %items) {
	next if $gone_file{$file} || $file !~ /\.[ch]$/;
	next if $file_patch{$file} == 5;
	for my $item (@{$items{$file}}) {
		next if $item->{kind} eq 'function' && $gone{$item->{name}};
		if ($item->{kind} eq 'function') {
			eval { carve_function($item); 1 } or push @failures, "$file: $item->{name}: $@";
		}
	}
}

sub member_text
{
	return join ' ', map { $_->[1] } @_;
}

# Split tokens into pieces, each with the separator that ends it; the last one may have none.
sub pieces
{
	my ($separator, @tokens) = @_;
	my $depth = 0;
	my @pieces = [];

	for my $token (@tokens) {
		push @{$pieces[-1]}, $token;
		$depth++ if $token->[1] =~ /^[({\[]$/;
		$depth-- if $token->[1] =~ /^[)}\]]$/;
		push @pieces, [] if !$depth && $token->[1] eq $separator;
	}
	return grep { @$_ } @pieces;
}

# Remove the members of a struct that come later, or whose type is not there.
sub carve_struct
{
	my ($item, $have) = @_;
	my @t = @{$item->{tokens}};
	my ($open) = grep { $t[$_][1] eq '{' } 0 .. $#t;
	my @new = @t[0 .. $open];
	my $end = do { $T = \@t; close_of($open) };
	my $separator = $item->{kind} eq 'enum' ? ',' : ';';
	my $at = $open;

	for my $piece (pieces($separator, @t[$open + 1 .. $end - 1])) {
		my @now = @$piece;

		$at += @now;
		if ($now[-1][1] ne $separator) {
			push @new, @now;
			next;
		}
		my $text = member_text(@now);
		my ($name) = $item->{kind} eq 'enum' ? $now[0][1] :
			     $text =~ /(\w+)(?: \[.*?\])?(?: (?:____\w+|__aligned \( \d+ \)))? ;$/;
		my ($tag) = $text =~ /^struct (\w+) \w/;
		my $absent = grep { defined && ($orig{$_} // 0) & 3 && !$have->{$_} }
			$tag, $text =~ /\[ (\w+) \]/;

		if ($name && (my $as = $reserved{"$item->{name}.$name"})) {
			$_->[1] =~ s/^\Q$name\E$/$as/ for @now;
			$item->{own} =~ s/^ \* \@\Q$name\E:.*?(?=^ \* \@|^ \*\n|^ \*\/)/ * \@$as: must be 0\n/ms;
			$used{"reserve $item->{name}.$name $as"}++;
			push @new, @now;
		} elsif ($gone{$name // ''} || $absent || ($name && $gone{"$item->{name}.$name"})) {
			# A comment behind a member is removed with it. One behind the member
			# before stays.
			my $lead = $now[0][0] =~ /\A([^\n]*)/ ? $1 : '';

			$t[$at + 1][0] = $lead . ($t[$at + 1][0] =~ s/\A[^\n]*//r);
			$item->{own} =~ s/^ \* \@\Q$name\E:.*?(?=^ \* \@|^ \*\n|^ \*\/)//ms;
		} else {
			push @new, @now;
		}
	}
	$item->{tokens} = [@new, @t[$end .. $#t]];
}

# Remove the elements of a table that use names which are not there.
sub carve_table
{
	my ($item, $absent) = @_;
	my @t = @{$item->{tokens}};
	my ($open) = grep { $t[$_][1] eq ($item->{kind} eq 'invocation' ? '(' : '{') } 0 .. $#t;

	return unless defined $open;
	my @new = @t[0 .. $open];
	my $end = do { $T = \@t; close_of($open) };
	my $cut;

	for my $piece (pieces(',', @t[$open + 1 .. $end - 1])) {
		my @now = @$piece;

		if ($now[0][1] eq '.' && $gone{$now[1][1]} || grep { $absent->($_->[1]) } @now) {
			$cut = 1;
		} else {
			push @new, @now;
		}
	}
	return unless $cut;
	pop @new if $item->{kind} eq 'invocation' && $new[-1][1] eq ',';
	$item->{tokens} = [@new, @t[$end .. $#t]];
	$item->{elements} = grep { $_->[1] =~ /^[a-z]/i } @new[$open + 1 .. $#new];
	if ($item->{kind} eq 'invocation') {
		my $laid = wrap(join '', map { $_->[0] . $_->[1] } @{$item->{tokens}});

		$item->{tokens} = lex($laid);
	}
}

# Select the items that are there after a patch.
sub select_items
{
	my ($level) = @_;
	my @files = sort grep { $file_patch{$_} <= $level } keys %file_patch;
	my @all = grep { $_->{kind} !~ /^(?:free|pp)$/ } map { @{$items{$_}} } @files;
	my $is_test = sub { $_[0]{file} =~ m{^(?:selftests|lib)/} };

	$_->{live} = $level < 4 ? $_->{six} : !(defined $_->{name} && $gone{$_->{name}}) for @all;
	for (;;) {
		my (%have, %have_members, %defined, %bad);
		my $was = 0;

		for my $item (grep { $_->{live} } @all) {
			$have{$_} = 1 for names_of($item), @{$item->{more} // []};
			$have_members{$_} = 1 for member_names($item);
			$defined{$item->{name}} = 1 if $item->{kind} eq 'function';
		}
		# Prototypes define nothing.
		for my $item (grep { $_->{live} && $_->{kind} eq 'prototype' } @all) {
			next if $defined{$item->{name}};
			$item->{live} = 0;
			$was = 1;
		}
		my $absent = sub {
			my ($name) = @_;

			return $orig{$name} && !$have{$name};
		};

		for my $item (grep { $_->{live} } @all) {
			carve_struct($item, \%have) if $item->{kind} eq 'struct' || $item->{kind} eq 'enum';
			carve_table($item, $absent)
				if ($item->{kind} eq 'variable' && grep { $_->[1] eq '{' } @{$item->{tokens}}) ||
				   ($item->{kind} eq 'invocation' && $item->{tokens}[0][1] eq 'kunit_test_suites');
			if (exists $item->{elements} && !$item->{elements}) {
				$item->{live} = 0;
				$was = 1;
			}
		}
		next if $was;
		for my $item (grep { $_->{live} && $_->{kind} =~ /^(?:function|macro|invocation|variable|prototype)$/ } @all) {
			my ($names, $of_members) = refs_of($item);
			my $seen = $seen_by{kind_of_file($item->{file})};
			my @bad = grep { $absent->($_) && $orig{$_} & $seen } keys %$names;

			push @bad, grep { ($orig_members{$_} // 0) & $seen && !$have_members{$_} } keys %$of_members;
			next unless @bad;
			if (!$is_test->($item) && $level >= 4 && $item->{tokens}[0][1] ne 'static_assert') {
				$bad{"$item->{file}: " . ($item->{name} || text_of($item)) .
				     " uses @{[sort @bad]}, which comes later"} = $item;
				next;
			}
			$item->{live} = 0;
			say_why("$item->{file}: $item->{name} uses @bad");
			$was = 1;
		}
		next if $was;
		# Mark all items that are reached from those that are there for their own sake,
		# and remove the others.
		my %by_name;
		for my $item (grep { $_->{live} } @all) {
			push @{$by_name{$_}}, $item for names_of($item), @{$item->{more} // []};
		}
		$_->{reached} = 0 for @all;
		my @queue = grep {
			$_->{live} && ($_->{kind} eq 'forward' || $_->{tokens}[0][1] =~ /^TEST/ || ($_->{name} // '') eq 'main' || $keep{$_->{name} // ''} ||
				($_->{kind} eq 'invocation' && !names_of($_)) ||
				($_->{kind} eq 'macro' && ($_->{name} eq 'pr_fmt' || $_->{tokens}[0][1] =~ m{^#\s*define \w+\s*(?:/\*.*)?$})) ||
				($level < 4 && $_->{kind} =~ /^(?:function|prototype)$/ && $_->{tokens}[0][1] ne 'static' && !$is_test->($_)) ||
				($level < 4 && $_->{file} =~ /\.h$/ && $_->{six}))
		} @all;
		while (my $item = shift @queue) {
			next if $item->{reached}++;
			my ($names) = refs_of($item);
			my @next = map { @{$by_name{$_} // []} } keys %$names, names_of($item);

			# Static functions of one program are not used by another.
			@next = grep { $file_patch{$_->{file}} != 5 || $_->{file} eq $item->{file} ||
				       $_->{file} =~ /\.h$/ } @next;
			# A test keeps only items of tests, so an item of the driver that only
			# tests use is removed.
			@next = grep { $is_test->($_) } @next if $is_test->($item);
			push @queue, @next;
		}
		for my $item (grep { $_->{live} && !$_->{reached} } @all) {
			$item->{live} = 0;
			$was = 1;
		}
		next if $was;
		push @failures, grep { $bad{$_}{live} } sort keys %bad;
		last;
	}
}

# Comments

my $file_now;

sub has_word
{
	my ($text) = @_;

	return 0 if $skip_words{$file_now};
	return grep { $text =~ $_ } @words;
}

# Fill a paragraph behind its prefix.
sub fill
{
	my ($first, $next, $text) = @_;
	my @lines;
	my $line = $first;

	for my $word (split /(?<=\S) (?=\S)/, $text =~ s/[ \t]*\n[ \t]*/ /gr) {
		my $joined = $line eq $first || $line eq $next ? "$line$word" : "$line $word";

		if (width($joined) > 100 && $line ne $first && $line ne $next) {
			push @lines, $line;
			$line = "$next$word";
		} else {
			$line = $joined;
		}
	}
	return join("\n", @lines, $line) . "\n";
}

# Return the sentences of a text that mention nothing that comes later.
sub sentences_left
{
	my ($text) = @_;
	my $flat = $text =~ s/\s*\n[ \t]*/ /gr;

	for (@say) {
		next unless index($flat, $_->{old}) >= 0;
		$used{$_->{name}}++;
		$flat =~ s/\Q$_->{old}\E/$_->{new}/;
	}
	$flat =~ s/^\s+|\s+$//g;
	my @sentences = split /(?<=[.!?])\s+(?=[A-Z`@\d(])|(?<=\.)\s+(?=[A-Z])/, $flat;
	my $nr = @sentences;

	say_why("$file_now: \"$_\"") for grep { has_word($_) } @sentences;
	@sentences = grep { !has_word($_) } @sentences;
	return undef if @sentences == $nr && $flat eq ($text =~ s/\s*\n[ \t]*/ /gr =~ s/^\s+|\s+$//gr);
	return join '  ', @sentences;
}

sub carve_comment
{
	my ($text, $lead) = @_;

	# A comment of one line.
	if ($text !~ /\n/) {
		my ($inside) = $text =~ m{^/\*\s*(.*?)\s*\*/$}s or return $text;
		my $left = sentences_left($inside);

		return !defined $left ? $text : $left eq '' ? '' : "/* $left */";
	}
	my @lines = split /\n/, $text;
	my $open = shift @lines;
	my $close = pop @lines;
	my (@result, @paragraphs);
	my $indent = $lead;

	if ($open !~ m{^/\*\*?$} || $close !~ m{^\s*\*/$}) {
		return $text;
	}
	for my $line (@lines) {
		my ($inside) = $line =~ /^\s*\*(.*)$/ or return $text;

		if ($inside eq '') {
			push @paragraphs, { blank => 1 };
		} elsif (@paragraphs && !$paragraphs[-1]{blank} &&
			 $inside !~ /^ (?:\@[\w.]+:|- |\w+ \w+ - |\d+\. )/ && $inside !~ /^ ?\t\S/ ||
			 (@paragraphs && !$paragraphs[-1]{blank} && $inside =~ /^ ?\t\s*\S/ && $paragraphs[-1]{head} =~ /^ (?:\@|- )/)
			 || (@paragraphs && !$paragraphs[-1]{blank} && $inside =~ /^\t\t/)) {
			$paragraphs[-1]{text} .= "\n" . $inside =~ s/^\s+//r;
			$paragraphs[-1]{next} //= $inside =~ /^(\s+)/ ? $1 : ' ';
		} else {
			my ($head, $rest) = $inside =~ /^(\s+(?:\@[\w.]+:\s*|- )?)(.*)$/;

			push @paragraphs, { head => $head, text => $rest, raw => [] };
		}
		push @{$paragraphs[-1]{raw}}, $line;
	}
	for my $p (@paragraphs) {
		if ($p->{blank}) {
			push @result, "$indent *\n" if @result && $result[-1] ne "$indent *\n";
			next;
		}
		my $left = sentences_left($p->{text});

		if (!defined $left) {
			push @result, "$_\n" for @{$p->{raw}};
		} elsif ($left ne '') {
			push @result, fill("$indent *$p->{head}", "$indent *" . ($p->{next} // $p->{head}), $left);
		}
	}
	pop @result while @result && $result[-1] eq "$indent *\n";
	return '' unless @result;
	if (@result == 1 && $open eq '/*' && $result[0] !~ /\n./ && $result[0] =~ /^\s*\* (\S.*)\n/ &&
	    width("$indent/* $1 */") <= 100 && @lines > 1) {
		return "/* $1 */";
	}
	return "$open\n" . join('', @result) . $close;
}

sub carve_comments
{
	my ($text) = @_;

	$text =~ s{(^|\n)([ \t]*)($comment)}{
		my ($start, $lead, $was) = ($1, $2, $3);
		my $is = carve_comment($was, $lead);

		$is eq '' ? "$start\0" : "$start$lead$is"
	}gse;
	$text =~ s/(?<![\n])[ \t]+($comment)(?=\n)/
		my ($all, $was) = ($&, $1);

		$was !~ m{\n} && has_word($was) ? '' : $all/gse;
	$text =~ s/\0[ \t]*\n//g;
	$text =~ s/\0//g;
	return $text;
}

# A document in reStructuredText: paragraphs, and entries of lists with an indented text.
sub document_text
{
	my ($text) = @_;
	my $result = '';

	# Each entry of a list of definitions is a paragraph too.
	for my $paragraph (split /\n\n|\n(?=\S[^\n]*\n {4}\S)/, $text) {
		my ($head, $indent, $body) = $paragraph =~ /\A((?:\S[^\n]*\n(?= ))?)( *)(.*)\z/s;
		my $left = sentences_left($body =~ s/^ +//gmr);

		if (!defined $left) {
			$result .= "$paragraph\n\n";
		} elsif ($left ne '') {
			$result .= $head . fill($indent, $indent, $left =~ s/  / /gr) . "\n";
		}
	}
	$result =~ s/^( {4}\S[^\n]*)\n\n(?=\S[^\n]*\n {4}\S)/$1\n/mg;
	# Remove a title without a text.
	1 while $result =~ s/^[^\n]+\n([=-])\1+\n\n(?=[^\n]+\n([=-])\2+\n)//m;
	$result =~ s/\n+\z/\n/;
	return $result;
}

# Write

sub file_text
{
	my ($file, $there) = @_;
	my (@kept, $blank);

	$file_now = $file;
	return document_text($text{$file}) if $file !~ /\.[ch]$/;

	for my $item (@{$items{$file}}) {
		my $left_out = 0;

		if ($item->{kind} eq 'pp') {
			my $line = $item->{tokens}[0][1];

			if ($line =~ /^#\s*include ["<]((?!linux).*)[">]/) {
				my $name = $1;
				my ($folder) = $file =~ m{^(.*/)};
				my ($target) = grep { exists $text{$_} } map { my $x = $_; 1 while $x =~ s{(^|/)(?!\.\./)[^/]+/\.\./}{$1}; $x }
					(($folder // '') . $name, $name, "include/$name", "engine/$name", "selftests/$name", "lib/$name");

				$left_out = $target && !$there->{$target};
			}
			$left_out ||= $line =~ /^#\s*include <linux\/twheel\.h>/ && !$there->{'uapi/linux/twheel.h'};
		} elsif ($item->{kind} ne 'free') {
			$left_out = !$item->{live};
		}
		if ($left_out) {
			$blank ||= $item->{lead} =~ /\n\s*\n/;
			next;
		}
		$item = { %$item, lead => "\n$item->{lead}" } if $blank && $item->{kind} ne 'free' && $item->{lead} =~ /^\n\s*\z/ && $item->{lead} !~ /\n\s*\n/;
		$blank = 0;
		push @kept, $item;
	}
	# Remove a heading that has nothing below it.
	for my $at (0 .. $#kept) {
		next unless $kept[$at]{kind} eq 'free' && $at;
		next if $at + 1 < @kept && $kept[$at + 1]{kind} ne 'free' &&
			($kept[$at + 1]{tokens}[0][1] !~ /^#endif/ || $file !~ /\.h$/);
		$kept[$at]{text} =~ s/$comment//gs if $kept[$at]{text} !~ /Kbuild has/;
	}
	my $text = carve_comments(join '', map { text_of($_) } @kept);

	# Remove empty sections, and blank lines that are left.
	1 while $text =~ s/^#if(?:n?def)? [^\n]*\n\s*(?:#else[^\n]*\n\s*)?#endif[^\n]*\n//mg;
	$text =~ s/\n{3,}/\n\n/g;
	$text =~ s/\n\n(?=\t*\}\n)/\n/g;
	$text =~ s/\{\n\n/{\n/g;
	$text =~ s/[ \t]+$//mg;
	$text =~ s/\s*\z/\n/;
	return $text;
}

select_items($patch < 5 ? 4 : $patch);
$_->{six} = $_->{live} for map { @$_ } values %items;
select_items($patch) if $patch < 4;

my %there = map { $_ => 1 } grep {
	my $file = $_;

	$file_patch{$file} <= $patch &&
		($file_patch{$file} != 5 || $file =~ /\.h$/ ||
		 grep { $_->{live} && $_->{tokens}[0][1] =~ /^TEST(?!_HARNESS)/ } @{$items{$file}}) &&
		($file !~ /\.[ch]$/ || $file =~ /_parts\.h$|_engine_test\.c$/ ||
		 grep { $_->{live} && $_->{kind} ne 'forward' } @{$items{$file}});
} keys %file_patch;
my %written;
for my $file (sort keys %there) {
	$written{$file} = file_text($file, \%there);
}
for (sort keys %used) {
	push @failures, "the manifest has \"$_\", which is not there" unless $used{$_} || $patch < 6;
}
for my $file (sort keys %written) {
	my $name = "$out/$file";
	my $folder = $name =~ s{/[^/]*$}{}r;

	system('mkdir', '-p', $folder) == 0 or die;
	open my $to, '>', $name or die "$name: $!\n";
	print $to $written{$file};
	close $to or die;
}
if (@failures) {
	my %seen;

	print STDERR "carve.pl: $_\n" for grep { !$seen{$_}++ } @failures;
	exit 1;
}
