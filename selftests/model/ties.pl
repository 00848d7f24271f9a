#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# ties.pl [TOP]: does twheel.pml still do what the module does? TAP.
#
# For each line of the table, ties, the steps that it names stand in the same order in the
# module's functions and in the model's; and no function stores to a member that is not to.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use source;

my $top = $ARGV[0] // "$FindBin::RealBin/../..";
my (%text, %homes, @comments, %model, @tokens, @stores, @ties, $nr, $failed);

source::read_module($top, \%text, \%homes, \@comments);

# The model without its mistakes.
sub read_model
{
	my ($path) = @_;
	my (@on, $source);

	open(my $in, '<', $path) or die "$path: $!";
	while (<$in>) {
		if (/^#if(def|ndef)?\s+(.*)/) {
			my ($way, $what) = ($1 // '', $2);
			my $is = $what !~ /BREAK_/;

			push @on, $way eq 'ndef' ? !$is : $is;
		} elsif (/^#else/) {
			$on[-1] = !$on[-1];
		} elsif (/^#endif/) {
			pop @on;
		} elsif (!grep { !$_ } @on) {
			$source .= $_;
		}
	}
	$source =~ s{/\*.*?\*/}{}gs;
	while ($source =~ /^(?:inline|(?:active )?proctype) (\w+)\([^)]*\)\n\{\n(.*?)\n\}/gms) {
		my ($name, $body) = ($1, $2);

		$model{$name} = $body =~ s/\s+/ /gr;
	}
}

# The steps of some functions, with others put in where they are called.
sub steps
{
	my ($from, $side, $names, $roots, @inline) = @_;
	my $body = join ' ; ', map { $from->{$_} // die "there is no $_()\n" } @$roots;
	my %wanted = map { $_ => 1 } @$names;
	my @found;

	for my $name (@inline, @inline) {
		die "there is no $name()\n" if !defined $from->{$name};
		$body =~ s/(?<![\w\x03])\Q$name\E\(/"{ $from->{$name} } \x03$name("/ge;
	}
	for my $token (grep { $wanted{$_->{name}} } @tokens) {
		while ($body =~ /$token->{$side}/g) {
			push @found, [$-[0], $token->{name}]
				if substr($body, $-[0] - 1, 1) ne "\x03";
		}
	}
	return join ' ', map { $_->[1] } sort { $a->[0] <=> $b->[0] } @found;
}

# Any store to a member of that name, by a pattern.
sub store_to
{
	my ($member) = @_;
	my $what = qr/(?:->|\.)$member\b/;

	return qr/$what\s*(?:[-+*\/%|&^]|<<|>>)?=(?!=)|$what(?:\+\+|--)|(?:\+\+|--)[\w>.-]*$what|
		  \b(?:WRITE_ONCE\(|smp_store_\w+\(&|\w*xchg\w*\(&|(?:set|clear|change)_bit\([^;]*&)
		  [\w>.-]*$what|\bmem(?:set|cpy)\([^,]*$what/x;
}

# judge NAME, SENTENCE, what is wrong with it or nothing
sub judge
{
	my ($name, $says, $wrong) = @_;

	print $wrong ? 'not ok ' : 'ok ', ++$nr, " - $name: $says\n";
	print $wrong =~ s/^/# /mgr if $wrong;
	$failed ||= $wrong;
}

open(my $in, '<', "$FindBin::RealBin/ties") or die;
while (<$in>) {
	next if /^\s*(#|$)/;
	chomp;
	if (/^token (\S+)\s+\| (.*?)\s+\| (.*)$/) {
		push @tokens, { name => $1, code => qr/$2/, model => qr/$3/ };
	} elsif (/^store (\S+)\s+\| (\w+)\s+\| (.*?)\s+\| (.*)$/) {
		push @tokens, { name => $1, code => store_to($2), model => qr/$3/ };
		push @stores, { member => $2, code => $tokens[-1]{code}, functions => $4 };
	} elsif (/^(\w+): (.*)/) {
		push @ties, { name => $1, says => $2 };
	} elsif (/^\t(code|model) ([^|]*)(?:\|(.*))?/) {
		$ties[-1]{$1} = [[split /[\s+]+/, $2], split ' ', $3 // ''];
	} elsif (/^\ttokens (.*)/) {
		$ties[-1]{tokens} = [split ' ', $1];
	} else {
		die "ties:$.: $_\n";
	}
}

read_model("$top/selftests/model/twheel.pml");
print "TAP version 13\n";
for my $tie (@ties) {
	my ($code, $model) = eval {
		map { steps($_ eq 'code' ? \%text : \%model, $_, $tie->{tokens}, @{$tie->{$_}}) }
		    qw(code model);
	};
	# If a pattern matches nothing any more, the two agree in that.
	my @gone = grep { " $code " !~ / \Q$_\E / } @{$tie->{tokens}} if !$@;

	judge($tie->{name}, $tie->{says}, $@ || (@gone ? "the module does not have: @gone\n" :
		$code eq $model ? '' : "the module: $code\nthe model: $model\n"));
}
for my $store (@stores) {
	my @found = grep { $text{$_} =~ $store->{code} } sort keys %text;

	judge($store->{member}, "is stored to by $store->{functions}",
	      "@found" eq $store->{functions} ? '' : "the module: @found\n");
}
print "1..$nr\n";
exit($failed ? 1 : 0);
