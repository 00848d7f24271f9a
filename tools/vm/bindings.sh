#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make test-bindings: build libtwheel, and each binding below `bindings' with it; run the tests that
# need no device here; and boot a virtual machine with the module for the others. If this machine
# lacks the tools of a binding, the binding is skipped. BINDINGS="python rust" chooses among them.
# The script fetches Debian's jars that Java needs. make test, which runs the same without the
# device, uses the jars that are there.
#
# Each folder has a script test.sh:
#
#	test.sh needs		prints each tool that this machine lacks, one a line
#	test.sh build DIR	builds the binding and its tests into that folder
#	test.sh test DIR	runs the tests that need no device, and prints TAP
#	test.sh device DIR	runs those that need /dev/twheel, in the virtual machine
#
# $TWHEEL_LIB is a folder with lib and include, filled by `make install-lib install-headers'. Files
# have the same paths in the virtual machine as here.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"
. "$(dirname "$0")/lib/bindings.sh"
. "$(dirname "$0")/lib/boot.sh"
. "$(dirname "$0")/lib/tap.sh"

series=${kernels[-1]}
files=$run/bindings

# Print the names of all bindings, or of those in BINDINGS.
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

# If a binding does not build, count a failure and go on.
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

# Put this machine's runtimes into the guest: each interpreter, and the files that it loads.
bring_runtimes()
{
	local runtime=$files/runtime modules

	mkdir -p "$runtime/programs"
	cp "$(type -P bash)" "$runtime/programs/"
	! have node || cp "$(readlink -f "$(type -P node)")" "$runtime/programs/node"
	# Debian's node has a part of its sources there.
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

# Copy the libraries that all these programs need. A runtime finds its own libraries in its
# folder, so leave those out.
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

# bring FOLDER: put a folder of this tree below /tree in the guest. The guest links this tree's
# path to /tree: the path itself may be in a folder such as /tmp, which the guest mounts.
bring()
{
	more_folders+=("$1=/tree${1#"$top"}")
}

# Print the script for the guest. It prints the name of each binding, and its exit status at the
# end.
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

# Boot the guest. It prints a TAP stream for each binding.
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
