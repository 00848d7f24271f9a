#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# tables.pl DOCUMENT FOLDER: print the document with the figures of its tables taken from the
# records, FOLDER/recorded-*.csv.
#
# The comment before a table says which figures it has: WORKLOAD.METRIC@N of the record of 6.12, or
# WORKLOAD@N if the metric is "cost". "-empty" behind it takes the loop's figure away.
#
#	.. counted: arm@10000 - cancel.later@10000-empty
#
# This table begins with a column for each word, except "-". It has a row for each peer, whose
# name the row begins with.
#
#	.. counted: arm@10000 young@10000
#		twheel:?
#		twheel-keyed:?|twheel:?
#		twheel:?%7.3
#
#	.. counted: @10000 @100000
#		twheel:arm
#		twheel:slow@10000-empty
#
# These tables have a row for each line and a column for each word. ? stands for the column's text
# before its @, and an @N of the line has precedence. The figure behind | is put in brackets. %7.3
# takes the record of another kernel, and %native that of make bench-native.
#
# If the record lacks a figure, the cell stays as it is.
#
# If figures are written by hand in a paragraph or a list, a comment before it names them. The
# script warns about those that the text lacks. ~2 rounds to two digits.
#
#	.. figures: libtwheel:arm@100000-empty~2 twheel:expire@1000
#	<!-- figures: ... -->		in Markdown, and .\" figures: in a man page

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../tools/check";
use Slurp;

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
			$value{"$peer:$workload.$metric\@$n"} = $value if $mode =~ /^(?:instructions|native)$/;
		}
		\%value;
	};
}

# Write three digits, or all digits before the point.
sub written
{
	my ($value) = @_;

	return 0 + sprintf('%.3f', $value) if abs($value) < 1;
	return sprintf('%.3g', $value) if abs($value) < 999.5;
	$value = sprintf('%.0f', $value);
	1 while $value =~ s/^(-?\d+)(\d{3})/$1,$2/;
	return $value;
}

# Return a figure, or undef if the record lacks it.
sub figure
{
	my ($formula, $default_n) = @_;
	my $record = record($formula =~ s/%(\S+)$// ? $1 : '6.12');
	my $above = $formula =~ s/-empty$//;
	my ($peer, $what, $n) = split /[:\@]/, $formula;
	my $at = ($what =~ /\./ ? $what : "$what.cost") . '@' . ($n // $default_n);
	my $value = $record->{"$peer:$at"};
	my $loop = $above ? $record->{"empty:$at"} : 0;

	return defined $value && defined $loop ? $value - $loop : undef;
}

# Return one of a row's cells, or undef if a record lacks one of its figures.
sub cell
{
	my ($column, $line, $peer) = @_;

	return if $column eq '-';
	my ($what, $n) = split /\@/, $column;
	my @formulas = split /\|/, defined $line ? $line =~ s/\?/$what/gr : $column;
	my @values = map { figure(defined $line ? $_ : "$peer:$_", $n) } @formulas;

	return if grep { !defined } @values;
	return written($values[0]) . (@values > 1 ? ' (' . written($values[1]) . ')' : '');
}

# Warn about figures that the text lacks.
sub figures
{
	my ($formulas, $text) = @_;

	for my $named (split ' ', $formulas) {
		my ($formula, $digits) = split /~/, $named;
		my $value = figure($formula) // die "$document: no record has $formula\n";
		my $written = written($digits ? sprintf("%.${digits}g", $value) : $value);

		warn "$document: $named is $written, and the text does not have that\n"
			if $text !~ /(?<![\d.,])\Q$written\E(?!\d|[.,]\d)/;
	}
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
	my ($columns, $of, $text) = @_;
	my @columns = split ' ', $columns;
	my @of = split ' ', $of;
	my @lines = split /\n/, $text;
	my @widths = map { length } split ' ', $lines[0];
	my @wide = ($widths[0]);
	my (@rows, $seen, $borders, $row);

	for (@lines) {
		$borders++, push(@rows, undef), next if /^=/;
		my @cells = cells($_, @widths);

		if ($borders == 2) {
			my $line = @of ? $of[$row++] : undef;

			for my $i (1 .. @columns) {
				my $value = cell($columns[$i - 1], $line, $cells[0]) // next;

				$cells[$i] = $value;
				$seen++;
			}
		}
		for my $i (0 .. $#cells) {
			$wide[$i] = length $cells[$i] if length $cells[$i] > ($wide[$i] // 0);
		}
		push @rows, \@cells;
	}
	die "no record has anything of this table: $columns\n" if !$seen;
	return join '', map {
		my $cells = $_;

		($cells ? join('  ', map { sprintf('%*s', $_ ? $wide[$_] : -$wide[0], $cells->[$_]) }
				0 .. $#$cells) =~ s/\s+$//r :
			join('  ', map { '=' x $_ } @wide)) . "\n"
	} @rows;
}

my $text = slurp($document);

figures($1, $2)
	while $text =~ /^(?:\.\.|<!--|\.\\") figures: ((?:[^\n>]|\n\t)*?)(?: -->)?\n(?!\t)\n?((?:.+\n)+)/gm;
$text =~ s/^(\.\. counted: (.*)\n((?:\t.*\n)*)\n)((?:=.*\n)(?:.+\n)+)/$1 . table($2, $3, $4)/gem;
print $text;
