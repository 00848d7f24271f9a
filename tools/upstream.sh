#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# upstream.sh KSRC [FOLDER], called by `make upstream': write the tree form of the module, of its
# documents and its tests into the source tree of a kernel. Files that are up to date are not
# touched, so a second run changes nothing. With FOLDER, do not change the tree, but write patches
# for it into FOLDER: the first six, and one for the rest. Documentation/upstream.rst describes
# the form.

set -euo pipefail
unset CDPATH MAKEFLAGS MFLAGS MAKELEVEL
export LC_ALL=C

die()
{
	printf 'error: %s\n' "$*" >&2
	exit 1
}

ksrc=${1:-}
series=${2:+$(mkdir -p -- "$2" && cd -- "$2" && pwd)}
for file in MAINTAINERS drivers/misc/Kconfig scripts/unifdef.c; do
	[ -f "$ksrc/$file" ] || die "KSRC=\"$ksrc\" is no source tree of a kernel: it lacks $file"
done
ksrc=$(cd -- "$ksrc" && pwd)
cd -- "$(dirname -- "$0")/.."
top=$PWD
here=$top/tools/upstream
driver=drivers/misc/twheel
tests=tools/testing/selftests/twheel
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
new=$work/new

contact=$(sed -n 's/^MODULE_AUTHOR("\(.*\)");$/\1/p' twheel_main.c)
magic=$(sed -n 's/^#define TWHEEL_IOC_MAGIC[[:space:]]*0x\(..\)$/0x\U\1/p' uapi/linux/twheel.h)
[ -n "$contact" ] || die "twheel_main.c has no MODULE_AUTHOR() of the usual form"
[ -n "$magic" ] || die "uapi/linux/twheel.h has no TWHEEL_IOC_MAGIC of the usual form"

# write FILE: write standard input to a file of the new tree.
write()
{
	mkdir -p "$new/$(dirname "$1")"
	cat >"$new/$1"
}

# edit FILE PATCH AWK-PROGRAM: change a file of the kernel's tree. The program removes the lines
# about twheel, and adds the new ones if $patch is PATCH or later.
edit()
{
	awk -v contact="$contact" -v magic="$magic" -v add=$((patch >= $2)) -v new="$new" "$3" "$ksrc/$1" |
		write "$1"
}

# Write the compat header without the parts that this kernel does not need, by Kbuild's flags.
shims()
{
	local flags

	flags=$(make -s -f "$here/flags.mk" src=. abs_srctree="$ksrc")
	cc -w -o "$work/unifdef" "$ksrc/scripts/unifdef.c"
	# unifdef exits with 1 if it has changed the file.
	# shellcheck disable=SC2046 # several words
	"$work/unifdef" $(grep -oE 'TWHEEL_HAVE_\w+' include/twheel_compat.h | sort -u | sed 's/^/-U/') \
		$(grep -oE -e '-DTWHEEL_HAVE_\w+' <<<"$flags") \
		include/twheel_compat.h >"$work/shims" || [ $? = 1 ]
}

# Write the driver. The current folder has the sources, either all or those carved for a patch.
module()
{
	local file

	for file in twheel_*.c engine/*.[ch] include/*.h; do
		[ -e "$file" ] || continue
		case $file in
		*/syncpoint.h | */twheel_compat.h) ;;
		*) perl "$here/form.pl" "$work/shims" <"$file" | write "$driver/${file#include/}" ;;
		esac
	done
	[ ! -e uapi ] || write include/uapi/linux/twheel.h <uapi/linux/twheel.h
	if [ "$patch" -ge 4 ]; then
		write $driver/Kconfig <"$here/Kconfig"
		objects >"$work/objects"
		sed -e "/^@OBJECTS@$/{r $work/objects
			d}" "$here/Makefile.driver" | without_traces | write $driver/Makefile
	else
		awk '/^config / { skip = $2 == "TWHEEL" } !skip' "$here/Kconfig" |
			sed 's/ && (TWHEEL=n || m)//; /^\t  They compile the driver/d; s/^\t  kernel only if .*  For/\t  For/' |
			write $driver/Kconfig
		sed '/^obj-.*twheel\.o$/,/^$/d; /^ccflags-y/,$d' "$here/Makefile.driver" |
			sed '$!b; /^$/d' | write $driver/Makefile
	fi
}

# Print the lines of Kbuild that name objects, with those whose sources exist.
objects()
{
	local first word rest

	grep '^twheel-y ' "$top/Kbuild" | while read -r first word rest; do
		printf '%s %s' "$first" "$word"
		for word in $rest; do
			[ ! -e "${word%.o}.c" ] || printf ' %s' "$word"
		done
		echo
	done | grep '\.o'
}

without_traces()
{
	if [ -e engine/trace.h ]; then
		cat
	else
		sed '/tracepoints/d; /^CFLAGS_twheel_main/d'
	fi
}

# Write the KUnit tests, which include the engine and the wheel. In the tree they are a folder
# higher.
kunit()
{
	local file

	for file in selftests/kunit/*.[ch] selftests/kunit/engine/*.[ch]; do
		[ -e "$file" ] || continue
		perl "$here/form.pl" "$work/shims" <"$file" |
			sed 's|^#include "\.\./\.\./|#include "../|
				/^\/\* How many cases the sources have/,$d' |
			sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' |
			write "$driver/tests/${file#selftests/kunit/}"
	done
	printf '// SPDX-License-Identifier: GPL-2.0\n#include "../twheel_wheel.c"\n' |
		write $driver/tests/wheel.c
	if [ -e selftests/kunit/twheel_engine_test.c ]; then
		cat "$here/Makefile.kunit"
	else
		sed 's/ twheel_engine_test\.o//; /^CFLAGS_twheel_engine/d' "$here/Makefile.kunit"
	fi | write $driver/tests/Makefile
	printf 'CONFIG_KUNIT=y\nCONFIG_TWHEEL_KUNIT_TEST=y\n' | write $driver/.kunitconfig
}

selftests()
{
	local file programs=()

	for file in selftests/twheel_*.h selftests/{device,clocks,stress}/*.[ch]; do
		[ -e "$file" ] || continue
		case $file in
		*_module.[ch]) continue ;;
		*.c) programs+=("$(basename "$file" .c)") ;;
		esac
		write "$tests/${file##*/}" <"$file"
	done
	[ ! -e lib/twheel/device.h ] || write $tests/twheel/device.h <lib/twheel/device.h
	write $tests/config <"$here/config"
	echo timeout=1200 | write $tests/settings
	printf '%s\n' "${programs[@]}" | write $tests/.gitignore
	sed "s/@PROGRAMS@/$(printf ' \\\\\\n\\t%s' "${programs[@]}")/" "$here/Makefile.selftests" |
		write $tests/Makefile
}

# Edit the lists of the tree that name each driver, in their order.
# shellcheck disable=SC2016 # awk has variables of its own
lists()
{
	edit drivers/misc/Kconfig 1 '
		/"drivers\/misc\/twheel\/Kconfig"/ { next }
		/^endmenu/ && add { print "source \"drivers/misc/twheel/Kconfig\"" }
		{ print }'
	edit drivers/misc/Makefile 1 '
		/\+= twheel\/$/ { next }
		{ print }
		END { if (add) print "obj-y\t\t\t\t+= twheel/" }'
	edit tools/testing/selftests/Makefile 5 '
		/^TARGETS \+= twheel$/ { next }
		{ print }
		/^TARGETS \+= tty$/ && add { print "TARGETS += twheel" }'
	edit Documentation/userspace-api/index.rst 6 '
		/^   twheel$/ { next }
		/^   vduse$/ && add && !done++ { print "   twheel" }
		{ print }'
	edit Documentation/userspace-api/ioctl/ioctl-number.rst 3 '
		/^0x.*linux\/twheel\.h/ { next }
		/^0x/ && substr($0, 1, 4) > magic && add && !done++ { print magic "  00-1F  linux/twheel.h" }
		{ print }'
	# An entry is a paragraph. Entries are sorted by their first lines.
	edit MAINTAINERS 1 '
		function f(name) {
			if (!system("test -e " new "/" name))
				print "F:\t" name
		}
		/^TWHEEL TIMEOUT DEVICE$/ { skip = 1 }
		/^$/ { blank = 1; if (skip) { skip = 0; next } print; next }
		skip { next }
		/^3C59X / { begun = 1 }
		add && blank && begun && !done && toupper($0) > "TWHEEL TIMEOUT DEVICE" {
			done = 1
			print "TWHEEL TIMEOUT DEVICE"
			print "M:\t" contact
			print "L:\tlinux-kernel@vger.kernel.org"
			print "S:\tMaintained"
			f("Documentation/ABI/testing/sysfs-class-misc-twheel")
			f("Documentation/userspace-api/twheel.rst")
			f("drivers/misc/twheel/")
			f("include/uapi/linux/twheel.h")
			f("tools/testing/selftests/twheel/")
			print ""
		}
		{ blank = 0; print }'
}

# form PATCH NEW [DOCUMENT]: write all files, as they are after a patch; 9 stands for the whole.
form()
{
	patch=$1
	new=$2
	module
	kunit
	[ "$patch" -lt 5 ] || selftests
	[ "$patch" -lt 6 ] || write Documentation/userspace-api/twheel.rst <"${3:-$here/twheel.rst}"
	[ "$patch" -lt 9 ] || sed "s/@CONTACT@/${contact//\//\\/}/" "$here/sysfs-class-misc-twheel" |
		write Documentation/ABI/testing/sysfs-class-misc-twheel
	lists
}

# in_git ARGUMENT...: run git in a repository with the files that the series changes.
in_git()
{
	local address=${contact##*<}

	git -C "$work/git" -c user.name="${contact% <*}" -c user.email="${address%>}" \
		-c commit.gpgsign=false -c core.hooksPath=/dev/null "$@"
}

# commit NEW MESSAGE: commit the files of NEW.
commit()
{
	find "$work/git" -mindepth 1 -maxdepth 1 ! -name .git -exec rm -r {} +
	cp -r "$1/." "$work/git"
	in_git add -A
	in_git commit -q -s -F "$2"
}

patches()
{
	local nr

	git init -q "$work/git"
	patch=0
	new=$work/0/new
	lists
	echo base >"$work/base"
	commit "$work/0/new" "$work/base"
	for nr in 1 2 3 4 5 6; do
		perl "$here/carve.pl" "$here/series/manifest" $nr "$work/$nr"
		(cd "$work/$nr" && form $nr "$work/$nr/new" "$work/$nr/tools/upstream/twheel.rst")
		commit "$work/$nr/new" "$here/series/$nr"
	done
	(form 9 "$work/new")
	commit "$work/new" "$here/series/rest"
	rm -f -- "$series"/[0-9][0-9][0-9][0-9]-*.patch
	in_git format-patch -q --zero-commit --no-signature -o "$series" HEAD~7
	(cd "$series" && ls)
}

shims
if [ -n "$series" ]; then
	patches
	exit
fi
form 9 "$work/new"

# Remove sources that an earlier form had and this one has not, but no product of a build.
for folder in $driver $tests; do
	[ ! -d "$ksrc/$folder" ] || (cd "$ksrc" && find "$folder" -name '*.[ch]' ! -name '*.mod.c')
done | while IFS= read -r file; do
	[ -e "$new/$file" ] || rm -v -- "$ksrc/$file"
done
(cd "$new" && find . -type f -printf '%P\n' | sort) | while IFS= read -r file; do
	cmp -s "$new/$file" "$ksrc/$file" && continue
	mkdir -p "$(dirname "$ksrc/$file")"
	# Write a new file and rename it: the old one may be a hard link into another tree.
	cp -- "$new/$file" "$ksrc/$file.new"
	mv -- "$ksrc/$file.new" "$ksrc/$file"
	echo "$file"
done
