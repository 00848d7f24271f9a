#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0
#
# What power cuts leave of a database of examples/jobs:
#
#	cut.pl JOBS RECORD FOLDER CUTS DRAINS
#
# RECORD is by record.c.  Beside its records are "A ID", the program was told that the job is on
# the disk, and "E ID", the command of the job ran.  At CUTS random places of RECORD, the disk has
# what was written before the last sync of each file.  Each later write may be there, or not, or
# some of its sectors.  In the database that this leaves in FOLDER, the program JOBS has to find
# each job that was told and did not run.  After DRAINS of the cuts the jobs are run, and have to
# run in the order of the list, each once.
use strict;
use warnings;
use File::Path qw(make_path remove_tree);

use constant SECTOR => 512;

my ($jobs, $record, $folder, $cuts, $drains) = @ARGV;
my $seed = $ENV{SEED} // time;
srand $seed;

# ---- the record ---------------------------------------------------------------------

sub read_records
{
	my @records;

	open my $file, '<:raw', $record or die "$record: $!";
	while (my $line = <$file>) {
		chomp $line;
		my ($kind, @words) = split / /, $line;
		die "a record begins with '$line'" if $line !~ /^(W \S+ \d+ \d+|T \S+ \d+|[USAE] \S+)$/;
		read($file, $words[2], $words[2]) if $kind eq 'W';
		push @records, [$kind, @words];
	}
	return @records;
}

# ---- the disk -----------------------------------------------------------------------

my (%disk, %pending);

sub put
{
	my ($disk, $name, $offset, $bytes) = @_;
	my $gap = $offset - length($disk->{$name} //= '');

	$disk->{$name} .= "\0" x $gap if $gap > 0;
	substr($disk->{$name}, $offset, length $bytes) = $bytes;
}

sub apply
{
	my ($disk, $kind, $name, $where, $bytes) = @_;

	if ($kind eq 'W') {
		put($disk, $name, $where, $bytes);
	} elsif ($kind eq 'U') {
		delete $disk->{$name};
	} else {
		my $longer = $where - length($disk->{$name} //= '');

		$disk->{$name} .= "\0" x $longer if $longer > 0;
		$disk->{$name} = substr $disk->{$name}, 0, $where;
	}
}

# If it is a folder, which files are there is on the disk from now on.
sub sync_name
{
	my $name = shift;

	if (my $ops = delete $pending{$name}) {
		apply(\%disk, @$_) for @$ops;
		return;
	}
	return if $name =~ /^db/;
	for my $ops (values %pending) {
		while (grep { $_->[0] eq 'U' } @$ops) {
			apply(\%disk, @{shift @$ops});
		}
	}
}

sub tear
{
	my ($disk, $kind, $name, $offset, $bytes) = @_;

	for (my $at = 0; $at < length $bytes; $at += SECTOR) {
		put($disk, $name, $offset + $at, substr $bytes, $at, SECTOR) if rand 2 < 1;
	}
}

# Of all that is not on the disk yet, nothing comes there, or all, or some.
sub cut
{
	my %left = %disk;
	my $mode = int rand 4;

	for my $op (map { @$_ } values %pending) {
		my $luck = $mode == 0 ? 0 : $mode == 1 ? 1 : rand;

		if ($luck > 0.6) {
			apply(\%left, @$op);
		} elsif ($luck > 0.4 && $op->[0] eq 'W') {
			tear(\%left, @$op);
		}
	}
	remove_tree($folder);
	make_path($folder);
	for my $name (keys %left) {
		open my $file, '>:raw', "$folder/$name" or die "$folder/$name: $!";
		print $file $left{$name};
		close $file or die "$folder/$name: $!";
	}
}

# ---- the program after a cut ----------------------------------------------------------

sub listed
{
	my @rows = qx("$jobs" list "$folder/db");

	die "the list ends with status $?\n" if $?;
	return map { /^(\d+)/ } @rows;
}

sub drained
{
	$ENV{RECORD} = "$folder/effects";
	system($jobs, 'run', '--drain', "$folder/db") == 0 or die "the run ends with status $?\n";
	open my $file, '<', $ENV{RECORD} or return;
	return map { /^E (\d+)/ } <$file>;
}

sub check
{
	my ($drain, %owed) = @_;
	my @listed = listed();

	delete @owed{@listed};
	die "lost: ", join(' ', sort { $a <=> $b } keys %owed), "\n" if %owed;
	return if !$drain;
	my @drained = drained();
	die "listed: @listed\ndrained: @drained\n" if "@listed" ne "@drained";
}

# ---------------------------------------------------------------------------------------

my @records = read_records();
my %at;
$at{int rand @records}++ while keys %at < $cuts;
my %owed;
my $nr = 0;
my $some = int($cuts / $drains);

for my $i (0 .. $#records) {
	my ($kind, $name) = @{$records[$i]};

	if ($kind eq 'A') {
		# Its command may have run before its number was written.
		$owed{$name} = 1 if !exists $owed{$name};
	} elsif ($kind eq 'E') {
		$owed{$name} = 0;
	} elsif ($kind eq 'S') {
		sync_name($name);
	} else {
		push @{$pending{$name}}, $records[$i];
	}
	next if !$at{$i};
	cut();
	eval { check($nr++ % $some == 0, map { $_ => 1 } grep { $owed{$_} } keys %owed) };
	die "after $i of $#records records, SEED=$seed: $@" if $@;
}
print "$cuts cuts in ", scalar @records, " records\n";
