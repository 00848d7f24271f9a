#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# sentences.pl [update] HEADER LIST: is each sentence of the header in the list, together with a
# test that exists? The names of the programs come on standard input; their sources are in
# selftests/*. The script prints a line for each fault. The top of the list describes its form.
#
# With "update", the script writes the list again: the sentences in the order of the header, each
# with the tests that the list has for it. A sentence that is new or was changed gets no test.
#
# A sentence ends with its paragraph, or with a full stop or a question mark, unless a small
# letter follows that does not begin a name. The line of a member ("@NAME: ..."), of an errno and
# of a list begins a paragraph. A comment belongs to the structure, enum, function, macro or DOC:
# line that it stands with. If a plain comment in lines of its own ends without a full stop, it is
# a heading. Sentences of the library's headers about themselves belong to "the header". The code
# of an example is no sentence, and comments of private members and of inline code do not count.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Slurp;

my $update = @ARGV && $ARGV[0] eq 'update' ? shift : '';
my ($header, $list) = @ARGV;
die "usage: sentences.pl [update] HEADER LIST\n" if !$list;

# Split a text, which may have several paragraphs, into sentences.
sub sentences
{
	my ($text) = @_;
	my @sentences;

	for my $paragraph (split /\n\s*\n|\n(?=- |@\w+: |\t(?:-?E[A-Z0-9]+|others)\t|Return: )/, $text) {
		$paragraph =~ s/\s+/ /g;
		$paragraph =~ s/^ ?(?:- )?| $//g;
		push @sentences, split /(?<=[.?]) (?=[A-Z@"`0-9\/]|[a-z]+(?:\(\)|_))/, $paragraph;
	}
	# "@tw: the wheel" promises nothing that a test could check.
	return grep { /\w/ && !/^@(?!id)\w+: the (?:wheel|timer|device|batch|reader|table|number|timeout)$/ } @sentences;
}

# Return the sentences of the header as [SECTION, SENTENCE...]...
sub read_header
{
	my $text = slurp($header);
	my @sections;

	$text =~ s{^(?:#ifndef TWHEEL_NO_INLINE\n|/\* -+ how the inline functions are made).*}{}ms;
	$text =~ s/^#ifdef __cplusplus\n\/\*.*?^extern "C"//ms;
	$text =~ s/^\t\/\* private: .*?^};//msg;
	while ($text =~ m{^([^\n]*?)/(\*\*?)(?!\*)(.*?)\*/}msg) {
		my ($before, $kind, $body, $after) = ($1, $2, $3, substr($text, pos $text));
		my $name = '';

		next if $before =~ /^#(?!define)/ || $before =~ /^#define _/;
		$body =~ s/^ \* ?//mg;
		$body =~ s/^\s+//;
		if ($before =~ /^(?:#define)?\s*(\w+)/) {
			$name = $1;
		} elsif ($body =~ s/^libtwheel: //) {
			$name = 'the header';
			$body =~ s/^\t[^\n]*\n//mg;
		} elsif ($kind eq '**') {
			($name) = $body =~ /^(DOC: [^\n]+|(?:enum|struct) \w+|\w+(?=\(\) - | - ))/;
			$body =~ s/^[^\n]*\n//;
		} else {
			# A heading is not a sentence.
			next if $body !~ /\.\s*$/;
			($name) = $after =~ m{\A\s*(?:_TWHEEL_\w+\s+)?(?:[a-z]\w*[ *]+)+(twheel_\w+)\(}s;
			($name) = $after =~ m{\A(?:\s*/\*.*?\*/)*\s*(?:#if[^\n]*\s+)?(?:#define )?((?:enum |struct )?\w+)}s
				if !$name;
		}
		die "$header: what does this belong to: $body\n" if !$name;
		next if $name =~ /^_/;
		if (@sections && $sections[-1][0] eq $name) {
			push @{$sections[-1]}, sentences($body);
		} else {
			push @sections, [$name, sentences($body)];
		}
	}
	# Finding no sentence at all is an error.
	die "no sentences found in $header\n" if !@sections;
	return @sections;
}

# Return the text before the first section, and {SECTION}{SENTENCE} = [LINE, TEST...].
sub read_list
{
	my ($intro, $section, $tests, @order, %tests_of) = ('');

	open(my $in, '<', $list) or die "$list: $!\n";
	while (<$in>) {
		chomp;
		if (/^\[(.*)\]$/) {
			$section = $1;
		} elsif (!defined $section) {
			$intro .= "$_\n";
		} elsif (/^\t(.*\S)$/ && $tests) {
			push @$tests, $1;
		} elsif (/\S/) {
			$tests = $tests_of{$section}{$_} = [$.];
			push @order, [$section, $_];
		}
	}
	return ($intro, \@order, \%tests_of);
}

# Return {PROGRAM}{TEST} of the sources. A program may include another one as it is. "kunit" is
# the module with the KUnit suites, and "wheel" a program that runs on the host.
sub read_tests
{
	my $begin = qr/^(?!FIXTURE|TW_)[A-Z][A-Z_]*\((?:\w+,\s+)?|^\s+(?:KUNIT_CASE(?:_PARAM)?|TEST)\(/m;
	my %tests;

	for my $path (glob 'selftests/*/*.c selftests/*/*.cpp selftests/kunit/engine/*.c') {
		my ($folder, $program) = $path =~ m{^(.*)/([^/]+)\.c(?:pp)?$};
		my $text = slurp($path);

		$text .= slurp("$folder/$_") for $text =~ m{^#include "(\.\./\w+/\w+\.c)"}mg;
		$program = 'kunit' if $folder =~ /kunit/;
		$program = 'wheel' if $path =~ /\/wheel_test\.c$/;
		$tests{$program}{$1} = 1 while $text =~ /$begin([a-z]\w+)[,)]/g;
	}
	return \%tests;
}

my @sections = read_header();
my ($intro, $order, $tests_of) = read_list();

if ($update) {
	open(my $out, '>', $list) or die "$list: $!\n";
	print $out $intro;
	for my $section (@sections) {
		my ($name, @sentences) = @$section;

		print $out "[$name]\n";
		for my $sentence (@sentences) {
			my (undef, @tests) = @{$tests_of->{$name}{$sentence} || []};

			print $out "$sentence\n", map { "\t$_\n" } @tests;
		}
		print $out "\n" if $section != $sections[-1];
	}
	close($out) or die "$list: $!\n";
	exit;
}

my %programs = map { chomp; $_ => 1 } <STDIN>;
my $tests = read_tests();
my @expected = map { my ($name, @sentences) = @$_; map { [$name, $_] } @sentences } @sections;
my $hint = "run \"$0 update $header $list\", and write the tests beneath each new sentence";

for my $i (0 .. ($#expected > $#$order ? $#expected : $#$order)) {
	my ($wanted, $found) = ($expected[$i] || ['', 'the end'], $order->[$i] || ['', 'the end']);

	next if "@$wanted" eq "@$found";
	print "$list has \"$found->[1]\" where $header says \"$wanted->[1]\": $hint\n";
	exit;
}
for my $pair (@$order) {
	my ($section, $sentence) = @$pair;
	my ($line, @entries) = @{$tests_of->{$section}{$sentence}};

	print "$list:$line: no test fails if this is untrue: write one, and name it here\n" if !@entries;
	for my $entry (@entries) {
		next if $entry =~ /^none: \S/ && @entries == 1;
		my ($program, $test) = $programs{$entry} ? $entry : split /\./, $entry;

		if (!$programs{$program}) {
			print "$list:$line: there is no test program \"$entry\": see \"make list\"\n";
		} elsif ($test ? !$tests->{$program}{$test} : $tests->{$program}) {
			print "$list:$line: $program has no test \"", $test // '', "\": name one that it has\n";
		}
	}
}
