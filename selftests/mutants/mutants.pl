#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# mutants.pl COMMAND: the mistakes in the files AREA.txt beside this script, which
# `make mutants' puts into the module. The commands are
#
#	list			print a line for each: AREA/NAME PROGRAM KERNEL [TEST]
#	show AREA/NAME		print its entry
#	check			say which ones cannot be made in the sources, and why
#	apply AREA/NAME TREE	make the mistake in a copy of the sources
#
# An entry is a name, a sentence that says who would be hurt, and in parentheses the test that
# has to fail. If that takes several lines, all but the first begin with a tab. The changes
# follow: a file and a function, the lines out, the lines in.
#
#	due_early: A slot in which a tick ends is taken for due as a whole (G1). (wheel)
#	@ twheel_wheel.c twheel_wheel_turn()
#	-		w->base_ns = level ? l->begin_ns - 1 : min(end_ns, edge_ns);
#	+		w->base_ns = level ? l->begin_ns - 1 : end_ns;
#
# Empty lines separate entries, and a line that begins with "#" is a comment.
#
# The test is "PROGRAM", "PROGRAM on KERNEL" or "PROGRAM.TEST on KERNEL". PROGRAM is `kunit', a
# program of the virtual machine, a test on the host, or a step of make check. If there is a
# TEST, the program runs this one alone. If there is no KERNEL, it is 6.12. A mistake that
# nobody can notice is "equivalent: REASON", and is not run.
#
# The lines out are looked for in the function, wherever they stand there, and by whatever they
# are indented. Comments and empty lines in the source do not count. Instead of a function, the
# place may be a structure ("struct NAME"), a table or a macro. "@" alone is the same place as
# before. A line that begins with a space stays: if a change adds lines only, it says where. If
# the lines out are there several times, "#2" after the place says that it is the second time.
# All changes of an entry are looked for in the source as it is without the others.

use strict;
use warnings;

my $here = $0 =~ m{(.*)/} ? $1 : '.';
my (@mutants, %mutant_of, $failed);

# problem MUTANT|AREA TEXT...
sub problem
{
	my ($where, @text) = @_;

	$where = "$where->{area}/$where->{name}" if ref $where;
	print STDERR "$where: ", @text, "\n";
	$failed = 1;
}

sub slurp
{
	my ($path) = @_;

	open(my $in, '<', $path) or return;
	local $/;
	return <$in>;
}

# The lines of an entry after the sentence.
sub read_changes
{
	my ($mutant, @lines) = @_;
	my $changes = $mutant->{changes};

	for my $line (@lines) {
		if ($line =~ /^@(?: (\S+) (.+?))?(?: #([1-9]))?$/) {
			my ($path, $place, $time) = ($1, $2, $3);

			($path, $place) = @{$changes->[-1]}{qw(path place)} if !defined $path && @$changes;
			push @$changes, { path => $path, place => $place, time => $time,
					  out => [], in => [] };
		} elsif ($line =~ /^([-+ ])(.*)$/ && @$changes) {
			push @{$changes->[-1]{out}}, $2 if $1 ne '+';
			push @{$changes->[-1]{in}}, $2 if $1 ne '-';
		} else {
			problem($mutant, "a line that begins with none of \"@\", \"-\", \"+\", \" \": $line");
		}
	}
	my $why = !@$changes ? 'it changes nothing' :
		  !defined $changes->[0]{path} ? 'its first change has no place' :
		  (grep { !@{$_->{out}} } @$changes) ? 'a change has no line that is there' :
		  return;
	problem($mutant, $why);
	@$changes = ();
}

sub read_area
{
	my ($path) = @_;
	my ($area) = $path =~ m{([^/]+)\.txt$};

	for my $entry (split /\n{2,}/, slurp($path) =~ s/^#.*\n//mgr) {
		my ($head, @lines) = split /\n/, $entry =~ s/^\n+//r;

		next if !defined $head;
		$head .= ' ' . (shift(@lines) =~ s/^\t//r) while @lines && $lines[0] =~ /^\t/;
		if ($head !~ /^(\w+):\ (?:\S+\ ){3,}\((?:equivalent:\ .+|
				(\w+)(?:\.(\w+))?(?:\ on\ ([\w.-]+))?)\)$/x) {
			problem($area, "not a name, who would be hurt, and a test: $head");
			next;
		}
		my $mutant = { area => $area, name => $1, program => $2 // 'equivalent',
			       test => $3 // '', kernel => $4 // '6.12', text => "$entry\n",
			       changes => [] };
		problem($mutant, 'there are two of that name') if $mutant_of{"$area/$1"};
		$mutant_of{"$area/$1"} = $mutant;
		push @mutants, $mutant;
		read_changes($mutant, @lines);
	}
}

# Where a function, a structure, a table or a macro stands in the code of a file: pairs of the
# first and the last line. All of these begin in the first column, and a body ends there.
sub find_place
{
	my ($code, $place) = @_;
	my ($function) = $place =~ /^(\w+)\(\)$/;
	my (@found, $to);

	for (my $from = 0; $from < @$code; $from = $to + 1) {
		my $head = $code->[$to = $from];
		my $is;

		if ($head =~ /^#define (\w+)/) {
			$is = $1 eq $place;
			$to++ while $to < $#$code && $code->[$to] =~ /\\$/;
		} elsif ($head =~ /^\w/) {
			$head .= "\n" . $code->[++$to] while $to < $#$code && $head !~ /[{;]/;
			my ($name, $rest) = $head =~ /^([^{;=]*)(.*)/s;
			$is = defined $function ? $name =~ /\b$function\(/ && $rest =~ /^\{/ :
						  $name =~ /(?<!\w)\Q$place\E(?:\[.*\])?\s*$/;
			if ($rest !~ /^[^{]*;|\{.*\}/s) {
				$to++ while $to < $#$code && $code->[$to] !~ /^\}/;
			}
		}
		push @found, [$from, $to] if $is;
	}
	return @found;
}

# Where the lines out of a change stand in the code between these lines: pairs of the first and
# the last line.
sub find_lines
{
	my ($code, $change, $from, $to) = @_;
	my @out = map { s{/\*.*?\*/}{}gr =~ s/^\s+|\s+$//gr } @{$change->{out}};
	my @numbers = grep { $code->[$_] ne '' } $from .. $to;
	my @found;

	for my $i (0 .. $#numbers - $#out) {
		push @found, [@numbers[$i, $i + $#out]]
			if !grep { $code->[$numbers[$i + $_]] =~ s/^\s+//r ne $out[$_] } 0 .. $#out;
	}
	return @found;
}

# Where a change is to be made in a file; or undef, and why not.
sub find_change
{
	my ($file, $change) = @_;
	my ($path, $place, $time) = @{$change}{qw(path place time)};

	return (undef, "there is no $path") if !$file;
	my @places = find_place($file->{code}, $place);
	return (undef, "there is no $place in $path") if !@places;
	my @found = map { find_lines($file->{code}, $change, @$_) } @places;
	my $what = "$path $place has \"" . ($change->{out}[0] =~ s/^\s+//r) . '"';
	return (undef, $what =~ s/ has / does not have /r) if !@found;
	return (undef, "$what " . @found . ' times: add #1, #2 to its place') if !$time && @found > 1;
	return (undef, "$what once: remove #$time from its place") if $time && @found == 1;
	return (undef, "$what no more than " . @found . ' times') if $time && $time > @found;
	return $found[($time // 1) - 1];
}

# Make the mistake: return the lines of the files that it changes, or nothing.
sub mutate
{
	my ($mutant, $files) = @_;
	my (%edits, %result, $bad);

	for my $change (@{$mutant->{changes}}) {
		my ($where, $why) = find_change($files->{$change->{path}}, $change);

		push @{$edits{$change->{path}}}, { change => $change, first => $where->[0],
						   last => $where->[1] } if $where;
		problem($mutant, $why), $bad = 1 if !$where;
	}
	return if $bad;
	for my $path (sort keys %edits) {
		my @lines = @{$files->{$path}{lines}};
		my $end = @lines;

		for my $edit (sort { $b->{first} <=> $a->{first} } @{$edits{$path}}) {
			my $change = $edit->{change};
			my ($written) = $change->{out}[0] =~ /^(\s*)/;
			my ($there) = $lines[$edit->{first}] =~ /^(\s*)/;

			if ($edit->{last} >= $end) {
				problem($mutant, "two of its changes in $path overlap");
				return;
			}
			$end = $edit->{first};
			splice @lines, $end, $edit->{last} - $end + 1,
			       map { s/^$written/$there/r } @{$change->{in}};
		}
		$result{$path} = join "\n", @lines;
		if ($result{$path} eq join "\n", @{$files->{$path}{lines}}) {
			problem($mutant, "$path is the same as before");
			return;
		}
	}
	return \%result;
}

# The files that mutants change: their lines, and what of these is code.
sub read_files
{
	my ($tree, @of) = @_;
	my %files;

	for my $path (map { map { $_->{path} } @{$_->{changes}} } @of) {
		next if $files{$path};
		my $text = slurp("$tree/$path") // next;
		my $code = $text =~ s{/\*.*?\*/}{ $& =~ s/[^\n]//gr }gser;

		$files{$path} = { lines => [split /\n/, $text, -1],
				  code => [map { s/\s+$//r } split /\n/, $code, -1] };
	}
	return \%files;
}

my ($command, $name, $tree) = (@ARGV, '', '', '');

read_area($_) for glob("$here/*.txt");
die "$here: no mutants found\n" if !@mutants;
my $mutant = $mutant_of{$name};
die "there is no mutant $name\n" if $command =~ /^(show|apply)$/ && !$mutant;

if ($command eq 'list') {
	for (@mutants) {
		my $line = "$_->{area}/$_->{name} $_->{program} $_->{kernel} $_->{test}";
		print $line =~ s/ $//r, "\n";
	}
} elsif ($command eq 'show') {
	print $mutant->{text};
} elsif ($command eq 'check') {
	my $files = read_files("$here/../..", @mutants);

	mutate($_, $files) for @mutants;
} elsif ($command eq 'apply') {
	my $result = mutate($mutant, read_files($tree, $mutant));

	for my $path (keys %{$result // {}}) {
		open(my $out, '>', "$tree/$path") or die "$tree/$path: $!\n";
		print $out $result->{$path};
		close($out) or die "$tree/$path: $!\n";
	}
} else {
	die "usage: $0 list|show|check|apply [AREA/NAME] [TREE]\n";
}
exit($failed ? 1 : 0);
