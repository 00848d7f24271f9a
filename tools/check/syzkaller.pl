#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# syzkaller.pl: compare packaging/syzkaller/dev_twheel.txt with the header. It prints constants
# that the header lacks; commands, flags and values of enums that are not described; and
# structures whose members have other names, another order or another width.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Slurp;

my $header = slurp('uapi/linux/twheel.h');
my $text = slurp('packaging/syzkaller/dev_twheel.txt');

$header =~ s{/\*.*?\*/}{}gs;
$text =~ s/^#.*$//mg;

my %known = map { $_ => 1 } $header =~ /\b(TWHEEL_\w+)\b/g, $text =~ /^define (\w+)/mg;
my %used;
for my $name ($text =~ /\b(TWHEEL_\w+)\b/g) {
	print "the header has no $name\n" if !$known{$name} && !$used{$name}++;
}

my @commands = $header =~ /(TWHEEL_IOC_\w+)\s*=?\s*_IO\(/g;
print "no command found in the header\n" if !@commands;
for my $name (@commands) {
	print "$name is not described\n"
		if $text !~ /^ioctl\$$name\(fd fd_twheel, cmd const\[$name\]/m;
}
# Each value that a program may pass in is described, in a list or as a constant.
for my $name ($header =~ /\b(TWHEEL_(?:(?:SETUP|INFO|VECTOR|ARM|RECORD)_\w+(?=\s+\(1U << )|(?:CLOCK|OP)_\w+(?=\s*=)))/g) {
	print "$name is not described\n" if $text !~ /\b$name\b/;
}

# width(TYPE) returns the bits of a member; for an array, "BITS*NUMBER".
sub width
{
	my ($type) = @_;
	my ($alias) = $text =~ /^(?:type|resource) (?:\Q$type\E)(?: |\[)(\w+)/m;

	return "$1*$2" if $type =~ /^array\[int(\d+), (\w+)\]$/;
	return 64 if $type =~ /^ptr64\[/;
	return $1 if $type =~ /\bint(\d+)\b/;
	return $alias && $alias =~ /^int(\d+)/ ? $1 : "unknown";
}

my %bits = (__u32 => 32, __s32 => 32, __aligned_u64 => 64, char => 8);
while ($header =~ /^struct (twheel_\w+) \{\n(.*?)^\};/msg) {
	my ($struct, $body) = ($1, $2);
	my ($described) = $text =~ /^(?:type )?$struct(?:\[[^]]*\])? \{\n(.*?)^\}/ms;
	my (@ours, @theirs);

	if (!defined $described) {
		print "struct $struct is not described\n";
		next;
	}
	while ($body =~ /^\t(\w+) (\w+)(?:\[(\w+)\])?;/mg) {
		push @ours, "$2 $bits{$1}" . ($3 ? "*$3" : '');
	}
	while ($described =~ /^\t(\w+)\t+(.*?)(?:\t\(\w+\))?$/mg) {
		push @theirs, "$1 " . width($2);
	}
	print "struct $struct has (", join(', ', @ours), '), and is described as (',
		join(', ', @theirs), ")\n" if "@ours" ne "@theirs";
}
