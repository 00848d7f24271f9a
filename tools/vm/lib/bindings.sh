# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced: functions that build and call the bindings, see ../bindings.sh.

# binding NAME ARGUMENT...: call the script of a binding.
binding()
{
	bash "$top/bindings/$1/test.sh" "${@:2}"
}

# Print the tools that a binding needs and this machine lacks, in one line.
binding_lacks()
{
	binding "$1" needs | paste -sd, | sed 's/,/, /g'
}

# library_for_bindings FOLDER: install libtwheel and all headers there for the bindings, and use
# the Python that setup.sh has fetched.
library_for_bindings()
{
	export TWHEEL_LIB=$1

	quietly "$1.log" make -C "$top/lib" OUTPUT="$build/bindings-lib" PREFIX="$1" install-lib
	quietly "$1.log" make -C "$top" PREFIX="$1" install-headers
	[ ! -d "$cache/python-cffi" ] || export PATH=$cache/python-cffi/usr/bin:$PATH
}
