#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make test-bindings: the bindings to other languages, each a folder below `bindings'. It builds
# libtwheel, and each binding with it; runs the tests that need no device here; and boots a virtual
# machine with the module for the others. A binding whose tools this machine lacks is skipped, and
# counted as that. BINDINGS="python rust" chooses among them. It fetches the jars of Debian that Java
# needs; make test, which runs the same without the device, has what is there.
#
# Each folder has a script for that, test.sh:
#
#	test.sh needs		prints each tool that this machine lacks, one a line
#	test.sh build DIR	builds the binding and its tests into that folder
#	test.sh test DIR	runs the tests that need no device, and prints TAP
#	test.sh device DIR	runs those that need /dev/twheel, in the virtual machine
#
# $TWHEEL_LIB is a folder with lib and include, filled by `make install-lib install-headers'. The
# virtual machine finds all files by the same paths as this one.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"
. "$(dirname "$0")/lib/bindings.sh"
. "$(dirname "$0")/lib/boot.sh"
. "$(dirname "$0")/lib/tap.sh"

series=${kernels[-1]}
files=$run/bindings

# All there are, or those that were asked for.
bindings()
{
	local name

	for name in ${BINDINGS:-"$top"/bindings/*/}; do
		name=$(basename "$name")
		[ -e "$top/bindings/$name/test.sh" ] || die "there is no bindings/$name/test.sh"
		echo "$name"
	done
}

have()
{
	[[ $(type -P "$1") ]]
}

# One that does not build has failed, and the others go on.
build_binding()
{
	local name=$1 lacks

	lacks=$(binding_lacks "$name")
	if [ -n "$lacks" ]; then
		result ok "$name # SKIP this machine lacks: $lacks"
		return
	fi
	say "building the binding for $name"
	mkdir -p "$files/$name"
	if quietly "$files/$name.log" binding "$name" build "$files/$name"; then
		built+=("$name")
	else
		result 'not ok' "$name: builds"
	fi
}

# The runtimes that this machine has: an interpreter, and what it loads.
bring_runtimes()
{
	local runtime=$files/runtime modules

	mkdir -p "$runtime/programs"
	cp "$(type -P bash)" "$runtime/programs/"
	! have node || cp "$(readlink -f "$(type -P node)")" "$runtime/programs/node"
	# A part of Debian's node is there.
	[ ! -d /usr/share/nodejs ] || more_folders+=(/usr/share/nodejs=/usr/share/nodejs)
	[ ! -d "$cache/python-cffi" ] || more_folders+=("$cache/python-cffi/usr=/usr")
	if have jlink; then
		modules=java.base,java.logging,java.management,java.naming,java.xml,jdk.unsupported
		"$(dirname "$(readlink -f "$(type -P javac)")")/jlink" --add-modules "$modules" \
			--no-header-files --no-man-pages --output "$runtime/java"
		more_folders+=("$runtime/java=/usr/lib/java")
		ln -s /usr/lib/java/bin/java "$runtime/programs/java"
	fi
	more_folders+=("$runtime/programs=/programs" "$runtime/libraries=/")
}

# What all these programs and libraries need of this machine's. Those of its own are where a
# runtime looks for them.
bring_libraries()
{
	local root=$files/runtime/libraries

	find "$files" -type f -size +4k \( -name '*.so*' -o -perm -u+x \) >"$files/list"
	mapfile -t programs <"$files/list"
	copy_libraries "$root" "${programs[@]}"
	find "$files" "$cache/python-cffi" -name '*.so*' ! -path "$root/*" -printf '%f\n' |
		grep -vE '^(libc|libm|libdl|libpthread|librt)\.so' |
		(cd "$root/lib/x86_64-linux-gnu" && xargs rm -f)
}

# bring FOLDER: a part of this tree, below /tree, which the guest gives the path of the tree: that
# may be in a folder such as /tmp, which the guest mounts.
bring()
{
	more_folders+=("$1=/tree${1#"$top"}")
}

# The script that runs in the guest. It says which binding comes, and how it ended.
guest_script()
{
	local name

	cat <<-END
	mkdir -p ${top%/*}
	ln -s /tree $top
	export TWHEEL_LIB=$TWHEEL_LIB LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu
	END
	for name in "${built[@]}"; do
		cat <<-END
		echo "@begin $name"
		bash "$top/bindings/$name/test.sh" device "$files/$name" </dev/null 2>&1
		echo "@end \$?"
		END
	done
}

# What the guest says: a TAP stream for each binding.
in_the_machine()
{
	local console=$files/console.log line

	hear "$console" @done "$series" "$files/initramfs" \
		"vm_mode=demo vm_demo=bash;/programs/bindings.sh,echo;@done" || {
		result 'not ok' "the virtual machine reaches its end"
		show "the last lines of $console" "$(tail -n 20 "$console")"
	}
	stream=
	for line in "${said[@]}"; do
		case $line in
		'@begin '*) stream_begin "${line#* } on the device" ;;
		'@end '*) stream_end "${line#* }"; stream= ;;
		*) [ -z "$stream" ] || stream_line "$line" ;;
		esac
	done
	[ -z "$stream" ] || stream_end 'unknown'
}

lock_cache
KERNELS=$series bash "$top/tools/vm/setup.sh" test-bindings
mapfile -t names < <(bindings)
[ ${#names[@]} != 0 ] || die "there are no bindings"
rm -rf "$files"
mkdir -p "$files"
build_module "$series"
say "building libtwheel"
library_for_bindings "$files/twheel"
echo "TAP version 13"
built=()
for name in "${names[@]}"; do
	[ "$name" != java ] || quietly "$files/jars.log" bash "$top/bindings/java/jars.sh" get || :
	build_binding "$name"
done
for name in "${built[@]}"; do
	say "running the tests of $name that need no device"
	host_test "$name" binding "$name" test "$files/$name"
done
if [ ${#built[@]} != 0 ]; then
	bring_runtimes
	bring_libraries
	guest_script >"$files/bindings.sh"
	for name in "${built[@]}"; do
		bring "$top/bindings/$name"
		bring "$files/$name"
	done
	bring "$TWHEEL_LIB"
	make_initramfs "$files/initramfs" "$(module_tree "$series")/twheel.ko" "$files/bindings.sh"
	say "booting a virtual machine with the module for the others"
	in_the_machine
fi
tap_summary
