#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# commands.pl DOCUMENT...: is each command in the documents run by a test? For each command, the
# list selftests/commands.txt names the file that runs it and the text in that file. The script
# prints commands that are not in the list, lines of the list that no document needs, and lines
# whose text is not in their file.
#
# A command is a line that is indented by four blanks, or a quoted text that begins with one of
# the programs below. Lines that run tests or list their names do not count.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Slurp;

my $list = 'selftests/commands.txt';
my $programs = qr/(?:sudo|make|apt|cat|modinfo|modprobe|systemctl|udevadm|fuser|twheelctl|perf|bpftrace|trace-cmd)/;
my $tests = qr/^make (?:-C bench|bench|check|demo|docs|drawings|fuzz|help|list|model|mutants|shell|soak|test)/;
my (%shown, %listed);

sub show
{
	my ($document, $line) = @_;

	$line =~ s/\s+/ /g;
	for my $command (split / && /, $line) {
		$command =~ s/ # .*//;
		$command =~ s/\bsudo //g;
		$shown{$command} = $document if $command !~ $tests;
	}
}

for my $document (@ARGV) {
	my $text = slurp($document);

	$text =~ s/^```.*?^```$//msg;
	if ($document =~ /\.rst$/) {
		while ($text =~ /::\n\n((?: {4}.*\n|\n)+)/g) {
			show($document, $_) for $1 =~ /^ {4}(\S.*)/mg;
		}
	} else {
		show($document, $_) for $text =~ /^ {4}([^#\s].*)/mg;
	}
	show($document, $_) for $text =~ /(?<!`)``?($programs [^`]+)`/g;
}
# Finding no command at all is an error.
die "no commands found\n" if !%shown;

for my $line (split /\n/, slurp($list)) {
	next if $line =~ /^#/;
	my ($command, $file, $text) = split /\t+/, $line;

	$listed{$command} = 1;
	print "$list: no document shows \"$command\"\n" if !$shown{$command};
	next if $file eq 'by hand';
	print "$list: $file does not run \"$text\"\n" if index(slurp($file), $text // $command) < 0;
}
print "$shown{$_} shows \"$_\", which $list does not have\n" for grep { !$listed{$_} } sort keys %shown;
