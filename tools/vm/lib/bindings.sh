# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced: building and calling the bindings in `bindings', see ../bindings.sh.

# binding NAME ARGUMENT...: calls its script.
binding()
{
	bash "$top/bindings/$1/test.sh" "${@:2}"
}

# The tools that it needs and this machine lacks, in one line.
binding_lacks()
{
	binding "$1" needs | paste -sd, | sed 's/,/, /g'
}

# library_for_bindings FOLDER: libtwheel and all headers, where bindings look for them; and the
# Python that setup.sh has got.
library_for_bindings()
{
	export TWHEEL_LIB=$1

	quietly "$1.log" make -C "$top/lib" OUTPUT="$build/bindings-lib" PREFIX="$1" install-lib
	quietly "$1.log" make -C "$top" PREFIX="$1" install-headers
	[ ! -d "$cache/python-cffi" ] || export PATH=$cache/python-cffi/usr/bin:$PATH
}
