#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# named_in.pl DOCUMENT...: if a document names a function of ours together with files, is the
# function in one of these files? The names of our files come on standard input. The script prints
# each function that is in another file.
#
# "Together" means within a clause: up to a full stop, a semicolon or a question mark, the end of
# a paragraph, or the end of a row of a table. A document may name a part without the suffix of
# its files, and a function without the prefix twheel_.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Slurp;

my (%paths, %homes);

while (my $path = <STDIN>) {
	chomp $path;
	next if $path !~ /\.(?:[ch]|sh)$/;
	my ($name) = $path =~ m{([^/]+)$};
	my $stem = $path =~ s/\.[ch]$//r;

	push @{$paths{$_}}, $path for $path, $name ne $path ? $name : (),
				      $stem =~ m{/} ? $stem : ();
	# A definition begins in the first column, in a line that does not end with a semicolon.
	my $text = slurp($path);
	while ($text =~ /^(?:[a-z_][\w *]*[ *])?([a-z_]\w*)\((?![^;{]*\);)/mg) {
		$homes{$1}{$path} = 1;
		$homes{$1 =~ s/^twheel_//r}{$path} = 1;
	}
}
# Finding no function at all is an error.
die "no functions found\n" if !%homes;

for my $document (@ARGV) {
	for my $clause (split /[.;?](?=\s)|\n\n|\n(?=\S[^\n]*?\S {2,})/, slurp($document)) {
		my @functions = grep { $homes{$_} } $clause =~ /\b([a-z_]\w*)\(\)/g;
		my @files = grep { $paths{$_} } $clause =~ m{(?<![\w/])([a-z_][\w/]*(?:\.[a-z]+)?)}g;

		next if !@files;
		for my $function (@functions) {
			next if grep { $homes{$function}{$_} } map { @{$paths{$_}} } @files;
			print "$document: $function() is not in ", join(' or ', @files), "\n";
		}
	}
}
