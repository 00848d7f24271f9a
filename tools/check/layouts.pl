#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# layouts.pl: compare the tables of layouts and numbers in Documentation/bindings.rst with the
# headers, for 64 and 32 bits. It prints the names that the tables lack, and the errors of gcc for
# assertions made from the tables' lines.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Slurp;

my @headers = ('uapi/linux/twheel.h', 'lib/twheel/table.h');
my $document = 'Documentation/bindings.rst';

my $text = slurp($document);
my $source = "#include <stddef.h>\n#include <linux/twheel.h>\n#include <twheel/table.h>\n";
my %there;

# A row begins with the name of a structure and its size; the members follow in these columns.
while ($text =~ /^``(twheel_\w+)`` +(\d+) +((?:.*\n)(?: {20,}.*\n)*)/mg) {
	my ($struct, $size, $members) = ($1, $2, $3);

	$source .= "_Static_assert(sizeof(struct $struct) == $size, \"$struct\");\n";
	while ($members =~ /(\w+) (\d+)/g) {
		$there{"$struct.$1"} = 1;
		$source .= "_Static_assert(offsetof(struct $struct, $1) == $2, \"$struct.$1\");\n";
	}
}
while ($text =~ /\b(TWHEEL_\w+) (0x[0-9a-f]+|\d+)[,\n]/g) {
	$there{$1} = 1;
	$source .= "_Static_assert($1 == $2, \"$1\");\n";
}

for my $header (map { slurp($_) } @headers) {
	my @names = $header =~ /^(?:#define\s+|\t)(TWHEEL_\w+)/mg;

	while ($header =~ /^struct (\w+) \{\n(.*?)^\};/msg) {
		my ($struct, $members) = ($1, $2);

		push @names, map { "$struct.$_" } $members =~ /(\w+)(?:\[\w+\])?;/g;
	}
	# Finding none at all is an error.
	die "no names found\n" if !@names;
	print "$document lacks $_\n" for grep { !$there{$_} } @names;
}

for my $width ('-m64', '-m32 -idirafter /usr/include/x86_64-linux-gnu') {
	open(my $gcc, '|-', "gcc $width -Iuapi -Ilib -fsyntax-only -xc - 2>&1 | grep error")
		or die "gcc: $!\n";
	print $gcc $source;
	close($gcc);
}
