# SPDX-License-Identifier: GPL-2.0
#
# The functions of the module, as text, for the checks that compare them with models.

package source;

use strict;
use warnings;

# Fill %$text with the body of each function, by name: in one line, without comments,
# where \x01FILE:LINE\x02 says at which line it goes on.  Fill %$homes with the files that
# define it, and @$comments with the comments, { text, where }.
sub read_module
{
	my ($top, $text, $homes, $comments) = @_;

	for my $path (glob("$top/engine/*.[ch]"), glob("$top/twheel_*.c")) {
		my $name = substr($path, length($top) + 1);
		my ($number, @lines) = (0);

		open(my $in, '<', $path) or die "$path: $!";
		my $source = do { local $/; <$in> };
		while ($source =~ m{/\*.*?\*/}gs) {
			push @$comments, { text => $&, where => "$name:" .
					   (1 + (substr($source, 0, $-[0]) =~ tr/\n//)) };
		}
		$source =~ s{/\*.*?\*/}{ (my $c = $&) =~ s/[^\n]//g; $c }gse;
		for my $line (split /\n/, $source, -1) {
			$number++;
			push @lines, $line =~ /^\s+\S/ ? "\x01$name:$number\x02$line" : $line;
		}
		$source = join "\n", @lines;
		# A body stands between braces in the first column.
		while ($source =~ /^([a-z_](?:[^;{}=#\n]|\n\s|\n(?=[a-z_0-9]+\())*\([^;{}]*?)\n\{\n(.*?)\n\}/gms) {
			my ($head, $body) = ($1, $2);

			$head =~ s/\x01[^\x02]*\x02|__must_hold\(.*//gs;
			next if $head !~ /\b([a-z_0-9]+)\(/;
			my $function = $1;
			$body =~ s/\s+/ /g;
			$text->{$function} = $body;
			push @{$homes->{$function}}, $name;
		}
	}
}

1;
