#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# shown.pl DOCUMENT...: if a document shows lines of a file, does the file have them? The block
# after "<!-- test: FILE -->", or after ".. test: FILE" in reStructuredText, must hold successive
# lines of that file, which a test compiles or runs. The script prints the lines that the file
# lacks.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Slurp;

my %blocks = (
	md => qr/^<!-- test: (\S+) -->\n```\w+\n(.*?)^```$/ms,
	# A block is indented by a tab, so that tabs in it keep their width.
	rst => qr/^\.\. test: (\S+)\n\n\.\. code-block:: \w+\n\n((?:\t.*\n|\n(?=\n*\t))+)/m,
);
my $shown = 0;

for my $document (@ARGV) {
	my ($kind) = $document =~ /\.(md|rst)$/ or die "$document is neither .md nor .rst\n";
	my $text = slurp($document);
	my $marks = () = $text =~ /^(?:<!--|\.\.) test: /mg;

	while ($text =~ /$blocks{$kind}/g) {
		my ($file, $lines) = ($1, $2);

		$lines =~ s/^\t//mg if $kind eq 'rst';
		print "$document shows lines that are not in $file:\n$lines"
			if index("\n" . slurp($file), "\n$lines") < 0;
		$marks--;
		$shown++;
	}
	print "$document: $marks marks have no block behind them\n" if $marks;
}
# Finding no block at all is an error.
die "no document shows lines of a file\n" if !$shown;
