#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# tables.pl DOCUMENT FOLDER: the document with the figures of its tables taken from the records,
# FOLDER/recorded-*.csv, on standard output.
#
# The comment before a table says which figures it has: WORKLOAD.METRIC@N of the record, or
# WORKLOAD@N if the metric is "cost". "-empty" behind it takes the loop's figure away.
#
#	.. counted: arm@10000 - cancel.later@10000-empty
#
# This table begins with a column for each word, but for "-", and has a row for each peer, whose
# name the row begins with.
#
#	.. counted: @10000 @100000
#		twheel:arm
#		twheel-keyed:arm|twheel:arm
#		twheel:slow@10000-empty
#
# This table has a row for each line and a column for each word. What is behind | goes in
# brackets. An @N of the line has precedence, and ? in the line is what the column has before @.
#
# %7.3 at the end of the first line chooses another record than that of 6.12. A cell whose figure
# the record lacks stays as it is.

use strict;
use warnings;

my ($document, $folder) = @ARGV;
my %records;

sub record
{
	my ($series) = @_;

	return $records{$series} //= do {
		my %value;
		my $path = "$folder/recorded-$series.csv";

		open(my $in, '<', $path) or die "$path: $!\n";
		while (<$in>) {
			my ($mode, $peer, $workload, $n, $metric, $value) = split /,|\n/;
			$value{"$peer:$workload.$metric\@$n"} = $value if $mode eq 'instructions';
		}
		\%value;
	};
}

# Three digits, or all before the point.
sub written
{
	my ($value) = @_;

	return 0 + sprintf('%.3f', $value) if abs($value) < 1;
	return sprintf('%.3g', $value) if abs($value) < 999.5;
	$value = sprintf('%.0f', $value);
	1 while $value =~ s/^(-?\d+)(\d{3})/$1,$2/;
	return $value;
}

# undef if the record lacks it.
sub figure
{
	my ($formula, $n, $record) = @_;
	my $above = $formula =~ s/-empty$//;
	my ($peer, $what, $size) = split /[:\@]/, $formula;
	my $at = ($what =~ /\./ ? $what : "$what.cost") . '@' . ($size // $n);
	my $value = $record->{"$peer:$at"} // return;

	return $value if !$above;
	return $value - ($record->{"empty:$at"} // return);
}

sub cell
{
	my ($formula, $n, $record) = @_;
	my @values = map { figure($_, $n, $record) } split /\|/, $formula;

	return '' if !@values || @values != 1 + ($formula =~ tr/|//);
	return written($values[0]) . (@values > 1 ? ' (' . written($values[1]) . ')' : '');
}

sub cells
{
	my ($line, @widths) = @_;
	my $at = 0;

	return map {
		my $cell = $at < length $line ? substr($line, $at, $_) : '';

		$at += $_ + 2;
		$cell =~ s/^\s+|\s+$//gr;
	} @widths[0 .. $#widths - 1], 1000;
}

sub table
{
	my ($columns, $formulas, $text) = @_;
	my ($series) = $columns =~ s/\s*%(\S+)$// ? $1 : '6.12';
	my @columns = split ' ', $columns;
	my @formulas = split ' ', $formulas;
	my @lines = split /\n/, $text;
	my @widths = map { length } split ' ', $lines[0];
	my @wide = ($widths[0]);
	my (@rows, $seen, $borders, $row);

	for (@lines) {
		$borders++, push(@rows, undef), next if /^=/;
		my @cells = cells($_, @widths);

		if ($borders == 2) {
			my $formula = @formulas ? $formulas[$row++] : undef;

			for my $i (1 .. @columns) {
				my ($of, $n) = split /\@/, $columns[$i - 1];

				next if $of eq '-';
				my $value = cell(defined $formula ? $formula =~ s/\?/$of/gr :
						"$cells[0]:$of", $n, record($series));

				next if $value eq '';
				$cells[$i] = $value;
				$seen++;
			}
		}
		for my $i (0 .. $#cells) {
			$wide[$i] = length $cells[$i] if length $cells[$i] > ($wide[$i] // 0);
		}
		push @rows, \@cells;
	}
	die "the record $series has nothing of this table: $columns\n" if !$seen;
	return join '', map {
		my $cells = $_;

		($cells ? join('  ', map { sprintf('%*s', $_ ? $wide[$_] : -$wide[0], $cells->[$_]) }
				0 .. $#$cells) =~ s/\s+$//r :
			join('  ', map { '=' x $_ } @wide)) . "\n"
	} @rows;
}

sub slurp
{
	my ($path) = @_;

	open(my $in, '<', $path) or die "$path: $!\n";
	local $/;
	return <$in>;
}

my $text = slurp($document);

$text =~ s/^(\.\. counted: (.*)\n((?:\t.*\n)*)\n)((?:=.*\n)(?:.+\n)+)/$1 . table($2, $3, $4)/gem;
print $text;
