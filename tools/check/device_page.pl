#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# device_page.pl: compare the man pages of the device, lib/man/twheel.4 and twheel_structs.4, with
# the header and the sources. twheel_structs.4 must declare each structure as the header does and
# describe each member. Both pages together must name exactly the header's macros and enumerators.
# twheel.4 must describe exactly the errnos, the keys of fdinfo and the module parameters. The
# script prints the differences.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Slurp;

my $page_name = 'lib/man/twheel*.4';
my $header_name = 'uapi/linux/twheel.h';
# The title of a page is in capitals, like the names of the header, so remove it.
my $page = join('', map { slurp($_) } glob($page_name)) =~ s/^\.TH .*//mgr;
my $header = slurp($header_name);

# Print the elements that only one of two lists has.
sub compare
{
	my ($what, $of_source, $of_page) = @_;
	my (%source, %page);

	@source{@$of_source} = ();
	@page{@$of_page} = ();
	# Finding none at all is an error.
	die "no $what found\n" if !%source;
	print "$page_name lacks $what $_\n" for grep { !exists $page{$_} } sort keys %source;
	print "$page_name has $what $_, which is not there\n"
		for grep { !exists $source{$_} } sort keys %page;
}

sub section
{
	my ($name) = @_;

	return $page =~ /^\.S[HS] \Q$name\E\n(.*?)(?=^\.S[HS] |\z)/ms ? $1 : '';
}

# The tags of a list: the text of the line after each .TP and .TQ, without its font.
sub tags
{
	my ($text) = @_;
	my @tags = $text =~ /^\.T[PQ]\n\.[BIR]+ (.*)$/mg;

	return map { split /[", ]+/ } @tags;
}

my %structures = $header =~ /^struct (\w+) (\{\n.*?^\};)$/msg;

compare('struct', [keys %structures], [$page =~ /^\.SS struct (\w+)$/mg]);
for my $name (sort keys %structures) {
	my $section = section("struct $name");
	my $members = $structures{$name};

	print "$page_name declares struct $name in another way\n"
		if $section !~ /^\.EX\nstruct \Q$name $members\E\n\.EE$/m;
	compare("member of struct $name", [$members =~ /(\w+)(?:\[\w+\])?;/g], [tags($section)]);
}

compare('name', [$header =~ /^(?:#define\s+|\t)(TWHEEL_\w+)/mg], [$page =~ /\b(TWHEEL_\w+)/g]);
compare('errno', [$header =~ /^ \*\t(E[A-Z0-9]{3,})\t/mg], [tags(section('ERRORS'))]);
compare('key of fdinfo', [slurp('twheel_stat.c') =~ /"(\w+):\\t/g], [tags(section('FDINFO'))]);
compare('module parameter', [slurp('twheel_main.c') =~ /^module_param(?:_cb)?\((\w+),/mg],
	[tags(section('MODULE PARAMETERS'))]);
