# SPDX-License-Identifier: GPL-2.0
#
# slurp(PATH) returns the contents of a file, for the scripts that compare documents with sources.

package Slurp;

use strict;
use warnings;

use Exporter 'import';
our @EXPORT = ('slurp');

sub slurp
{
	my ($path) = @_;

	open(my $in, '<', $path) or die "$path: $!\n";
	local $/;
	return <$in>;
}

1;
