#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0
#
# form.pl SHIMS <FILE >FILE: convert a source of the module into its tree form. Remove what refers
# to the compat header, to sync points and to files that a kernel tree lacks. SHIMS is the compat
# header for that tree: the functions of it that a file calls are added to the file.
use strict;
use warnings;

open my $shims, '<', $ARGV[0] or die "$ARGV[0]: $!\n";
my $compat = do { local $/; <$shims> };
my $text = do { local $/; <STDIN> };

my $wants_shims = $text =~ s/^#include "twheel_compat\.h"\n//m;
$text =~ s/^#include "(?:engine\/)?syncpoint\.h"\n//mg;
$text =~ s/^\t*twheel_syncpoint(?:s_init|s_exit)?\(\w*\);\n//mg;
$text =~ s/^#ifdef TWHEEL_SYNCPOINTS\n.*?^#endif\n//msg;
$text =~ s/^MODULE_VERSION\(TWHEEL_VERSION\);\n//m;
$text =~ s/^\/\* The only place for this address.*\n//m;
$text =~ s/^( \*\t(?:\w+ )*)syncpoint (.*) twheel_compat$/$1$2/m;

# Remove references to tests by litmus and by sync points, which are not in the tree.
my $tests = qr/Test: (?:litmus|syncpoints\.)[\w, ]*(?:\n[ \t]*\*[ \t]+\w[\w, ]*)?(?=\s*\*\/|\s*\n[ \t]*\*[ \t]*\n)/;
$text =~ s/^[ \t]*\/\* $tests \*\/\n//mg;
$text =~ s/  $tests(?= \*\/)//g;
$text =~ s/(?:\n[ \t]*\* |  )$tests//g;
$text =~ s/Documentation\/(?:design|operating)\.rst/userspace-api\/twheel.rst/g;
$text =~ s/\bdesign\.rst/twheel.rst/g;
$text =~ s/: see tools\/60-twheel\.rules\././;

# Write out the macros that exist for the sake of older kernels.
if ($compat =~ /\.mmap_prepare/) {
	$text =~ s/^\tVM_OPS_MAPPED\((\w+)\)$/\t.mapped\t= $1,/m;
	$text =~ s/^DEFINE_MMAP\(.*\);\n\n//m;
	$text =~ s/^\tFOPS_MMAP\((\w+)\)$/\t.mmap_prepare\t= $1,/m;
}

if ($wants_shims) {
	my ($body) = $compat =~ /^#include.*?\n\n(?!#include)(.*)^#endif/ms;
	my @used = grep {
		my @names = /^(?:#define (?=\w)|[a-z][^\n(]*[ *](?=\w+\())(\w+)/mg;
		grep { $text =~ /\b$_\(/ } @names
	} split /\n\n+(?=\/\*)/, $body // '';
	s/\s+\z// for @used;
	# Files include what they use, except this header, which older kernels lack.
	my ($line) = $compat =~ /^(#include <linux\/io_uring.*)$/m;
	$text =~ s/^(?=#include <linux\/k)/$line\n/m if $text =~ /\bio_uring_cmd\b/;
	$text =~ s/(.*^#include [^\n]*\n)/$1 . join '', map { "\n$_\n" } @used/mse;
}
print $text;
