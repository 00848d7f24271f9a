#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The tests of the binding for Python, for `make test-bindings': tools/vm/bindings.sh describes
# the commands. TWHEEL_LIB is a folder with libtwheel.
#
# On Debian: apt-get install gcc libpython3-dev python3-cffi python3-setuptools
set -eu
unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd)
export PYTHONDONTWRITEBYTECODE=1

# tests DIR MODULE...
tests()
{
	export PYTHONPATH=$1/lib:$here/tests
	shift
	python3 "$here/tests/tap.py" "$@"
}

case ${1:-} in
needs)
	for tool in gcc python3; do
		command -v "$tool" >/dev/null || echo "$tool"
	done
	for module in cffi setuptools; do
		python3 -c "import $module" 2>/dev/null || echo "python3-$module"
	done
	python3 -c 'import os, sys, sysconfig
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not os.path.exists(header))' 2>/dev/null || echo libpython3-dev
	;;
build)
	# setuptools writes beside the sources, so build in a copy.
	mkdir -p "$2/source"
	cp -r "$here"/{src,build_twheel.py,setup.py,pyproject.toml,README.md} "$2/source"
	cd "$2/source"
	python3 setup.py -q build --build-lib "$2/lib"
	;;
test)
	tests "$2" test_table test_aio acceptance.Process
	;;
device)
	tests "$2" test_device acceptance.Device
	;;
*)
	echo "usage: test.sh needs | build DIR | test DIR | device DIR" >&2
	exit 2
	;;
esac
