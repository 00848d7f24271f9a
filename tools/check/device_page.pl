#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# device_page.pl: are the man pages of the device, lib/man/twheel.4 and twheel_structs.4, complete
# against the header and the sources? The second declares each structure as the header does and says
# what each member is. Both together name each macro and enumerator of the header and no other. The
# first says what each errno, each key of fdinfo and each module parameter is, and no other. It
# prints what differs.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Slurp;

my $page_name = 'lib/man/twheel*.4';
my $header_name = 'uapi/linux/twheel.h';
# The title of a page is in capitals, as the names of the header are.
my $page = join('', map { slurp($_) } glob($page_name)) =~ s/^\.TH .*//mgr;
my $header = slurp($header_name);

# Prints what is in one list and not in the other.
sub compare
{
	my ($what, $of_source, $of_page) = @_;
	my (%source, %page);

	@source{@$of_source} = ();
	@page{@$of_page} = ();
	# Without any, all would be well.
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

# The tags of a list: what stands in the line after each .TP and .TQ, without its font.
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
