#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# upstream.sh KSRC: writes the tree form of the module, and of its documents and tests, into the
# source tree of a kernel: make upstream. A file that is in place already is not touched, so that a
# second run changes nothing. Documentation/upstream.rst says what the form is.

set -euo pipefail
unset CDPATH MAKEFLAGS MFLAGS MAKELEVEL
export LC_ALL=C

die()
{
	printf 'error: %s\n' "$*" >&2
	exit 1
}

ksrc=${1:-}
for file in MAINTAINERS drivers/misc/Kconfig scripts/unifdef.c; do
	[ -f "$ksrc/$file" ] || die "KSRC=\"$ksrc\" is no source tree of a kernel: it lacks $file"
done
ksrc=$(cd -- "$ksrc" && pwd)
cd -- "$(dirname -- "$0")/.."
here=tools/upstream
driver=drivers/misc/twheel
tests=tools/testing/selftests/twheel
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
new=$work/new

contact=$(sed -n 's/^MODULE_AUTHOR("\(.*\)");$/\1/p' twheel_main.c)
magic=$(sed -n 's/^#define TWHEEL_IOC_MAGIC[[:space:]]*0x\(..\)$/0x\U\1/p' uapi/linux/twheel.h)
[ -n "$contact" ] || die "twheel_main.c has no MODULE_AUTHOR() of the usual form"
[ -n "$magic" ] || die "uapi/linux/twheel.h has no TWHEEL_IOC_MAGIC of the usual form"

# write FILE: of the tree, from the input.
write()
{
	mkdir -p "$new/$(dirname "$1")"
	cat >"$new/$1"
}

# edit FILE AWK-PROGRAM: a file that the tree has.
edit()
{
	awk -v contact="$contact" -v magic="$magic" "$2" "$ksrc/$1" | write "$1"
}

# The compat header without what this tree has. Kbuild says what that is.
shims()
{
	local flags

	flags=$(make -s -f $here/flags.mk src=. abs_srctree="$ksrc")
	cc -w -o "$work/unifdef" "$ksrc/scripts/unifdef.c"
	# unifdef exits with 1 if it has changed something.
	# shellcheck disable=SC2046 # several words
	"$work/unifdef" $(grep -oE 'TWHEEL_HAVE_\w+' include/twheel_compat.h | sort -u | sed 's/^/-U/') \
		$(grep -oE -e '-DTWHEEL_HAVE_\w+' <<<"$flags") \
		include/twheel_compat.h >"$work/shims" || [ $? = 1 ]
}

module()
{
	local file

	for file in twheel_*.c engine/*.[ch] include/*.h; do
		case $file in
		*/syncpoint.h | */twheel_compat.h) ;;
		*) perl $here/form.pl "$work/shims" <"$file" | write "$driver/${file#include/}" ;;
		esac
	done
	write include/uapi/linux/twheel.h <uapi/linux/twheel.h
	write $driver/Kconfig <$here/Kconfig
	grep '^twheel-y ' Kbuild >"$work/objects"
	sed -e "/^@OBJECTS@$/{r $work/objects
		d}" $here/Makefile.driver | write $driver/Makefile
}

# The engine is compiled into them, and the wheel: tests are one folder deeper than that.
kunit()
{
	local file

	for file in selftests/kunit/*.[ch] selftests/kunit/engine/*.[ch]; do
		perl $here/form.pl "$work/shims" <"$file" |
			sed 's|^#include "\.\./\.\./|#include "../|
				/^\/\* How many cases the sources have/,$d' |
			sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' |
			write "$driver/tests/${file#selftests/kunit/}"
	done
	printf '// SPDX-License-Identifier: GPL-2.0\n#include "../twheel_wheel.c"\n' |
		write $driver/tests/wheel.c
	write $driver/tests/Makefile <$here/Makefile.kunit
	printf 'CONFIG_KUNIT=y\nCONFIG_TWHEEL_KUNIT_TEST=y\n' | write $driver/.kunitconfig
}

selftests()
{
	local file programs=()

	for file in selftests/twheel_*.h selftests/{device,clocks,stress}/*.[ch]; do
		case $file in
		*_module.[ch]) continue ;;
		*.c) programs+=("$(basename "$file" .c)") ;;
		esac
		write "$tests/${file##*/}" <"$file"
	done
	write $tests/twheel/device.h <lib/twheel/device.h
	write $tests/config <$here/config
	echo timeout=1200 | write $tests/settings
	printf '%s\n' "${programs[@]}" | write $tests/.gitignore
	sed "s/@PROGRAMS@/$(printf ' \\\\\\n\\t%s' "${programs[@]}")/" $here/Makefile.selftests |
		write $tests/Makefile
}

# Lists of the tree that name each driver, in their order.
# shellcheck disable=SC2016 # awk has variables of its own
lists()
{
	edit drivers/misc/Kconfig '
		/"drivers\/misc\/twheel\/Kconfig"/ { next }
		/^endmenu/ { print "source \"drivers/misc/twheel/Kconfig\"" }
		{ print }'
	edit drivers/misc/Makefile '
		/\+= twheel\/$/ { next }
		{ print }
		END { print "obj-y\t\t\t\t+= twheel/" }'
	edit tools/testing/selftests/Makefile '
		/^TARGETS \+= twheel$/ { next }
		{ print }
		/^TARGETS \+= tty$/ { print "TARGETS += twheel" }'
	edit Documentation/userspace-api/index.rst '
		/^   twheel$/ { next }
		/^   vduse$/ && !done++ { print "   twheel" }
		{ print }'
	edit Documentation/userspace-api/ioctl/ioctl-number.rst '
		/^0x.*linux\/twheel\.h/ { next }
		/^0x/ && substr($0, 1, 4) > magic && !done++ { print magic "  00-1F  linux/twheel.h" }
		{ print }'
	# Entries are paragraphs, in the order of their first lines.
	edit MAINTAINERS '
		/^TWHEEL TIMEOUT DEVICE$/ { skip = 1 }
		/^$/ { blank = 1; if (skip) { skip = 0; next } print; next }
		skip { next }
		/^3C59X / { begun = 1 }
		blank && begun && !done && toupper($0) > "TWHEEL TIMEOUT DEVICE" {
			done = 1
			print "TWHEEL TIMEOUT DEVICE"
			print "M:\t" contact
			print "L:\tlinux-kernel@vger.kernel.org"
			print "S:\tMaintained"
			print "F:\tDocumentation/ABI/testing/sysfs-class-misc-twheel"
			print "F:\tDocumentation/userspace-api/twheel.rst"
			print "F:\tdrivers/misc/twheel/"
			print "F:\tinclude/uapi/linux/twheel.h"
			print "F:\ttools/testing/selftests/twheel/"
			print ""
		}
		{ blank = 0; print }'
}

shims
module
kunit
selftests
lists
write Documentation/userspace-api/twheel.rst <$here/twheel.rst
sed "s/@CONTACT@/${contact//\//\\/}/" $here/sysfs-class-misc-twheel |
	write Documentation/ABI/testing/sysfs-class-misc-twheel

# Take back what an earlier form had and this one has not, but no product of a build.
for folder in $driver $tests; do
	[ ! -d "$ksrc/$folder" ] || (cd "$ksrc" && find "$folder" -name '*.[ch]' ! -name '*.mod.c')
done | while IFS= read -r file; do
	[ -e "$new/$file" ] || rm -v -- "$ksrc/$file"
done
(cd "$new" && find . -type f -printf '%P\n' | sort) | while IFS= read -r file; do
	cmp -s "$new/$file" "$ksrc/$file" && continue
	mkdir -p "$(dirname "$ksrc/$file")"
	# A new file: the old one may be a hard link of another tree's.
	cp -- "$new/$file" "$ksrc/$file.new"
	mv -- "$ksrc/$file.new" "$ksrc/$file"
	echo "$file"
done
