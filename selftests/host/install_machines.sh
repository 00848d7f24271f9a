#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test the build and the installation on all kinds of machines: with CDPATH, another umask,
# without exec or x bits, without bash, with files that cannot be written, a path that kbuild
# cannot use, and a kernel built by clang. All this happens below a DESTDIR, with a stand-in for
# the kernel.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2016 # what is in single quotes is for another shell

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/install_machines
. "$(dirname "$0")/../../tools/vm/lib/stand_in.sh"
case_options=-ex
fresh_tree() { fresh_stage; }
targets=(modules lib install install-lib dkms-source uninstall-lib uninstall)

# Make all targets that need no virtual machine, except list, whose files are in another folder.
everything_works()
{
	local target

	for target in "${targets[@]}"; do
		twheel "$target"
		[ "$target" != install ] || [ "$(modules)" = updates/twheel.ko ]
	done
	twheel dkms-remove
	nothing_is_left
}

# mounted OPTION COMMAND...: run a command in a namespace where the tree is mounted with this
# option.
mounted()
{
	local namespace=(unshare -m)

	[ "$(id -u)" = 0 ] || namespace=(unshare --map-root-user -m)
	export -f twheel modules nothing_is_left everything_works fails
	export tree root work PATH
	"${namespace[@]}" bash -exc '
		mount --bind "$tree" "$tree"
		mount -o "remount,bind,$1" "$tree"
		as_root=(env sign_file=/nonexistent)
		targets=('"${targets[*]}"')
		"${@:2}"' bash "$@"
}

with_cdpath()
{
	local path

	mkdir -p "$work/elsewhere"/{tools,lib,vm,..}
	for path in "$work/elsewhere" ".:$HOME" ".:..:/usr/src"; do
		export CDPATH=$path
		everything_works
		(cd "$top" >/dev/null && make -s list) >"$work/said"
		grep -w twheel_arm "$work/said"
	done
}

# If a script is not started by make, the variable is still set.
each_script_that_changes_folders_unsets_cdpath()
{
	local script found=0

	while IFS= read -r script; do
		grep -qE '(^|[ ($])cd ' "$script" || continue
		grep -qE '^(unset CDPATH|\. .*/common\.sh")' "$script" || { echo "$script"; return 1; }
		found=$((found + 1))
	done < <(grep -lE '^#!/usr/bin/env bash' -r "$top"/{.ci,bench,selftests,tools} \
		--include='*.sh' --include=run)
	[ $found -gt 10 ]
}

with_a_umask_of_077()
{
	umask 077
	twheel install
	twheel install-lib
	twheel dkms-source
	twheel dkms-install
	! find "$root" \( -type d ! -perm -555 -o -type f ! -perm -444 \) -printf '%m %p\n' | grep .
}

without_x_bits()
{
	find "$tree" -type f -exec chmod a-x {} +
	everything_works
}

a_run_of_tests_without_exec_says_so()
{
	export -f no_exec
	mounted noexec no_exec
}

no_exec()
{
	fails env -u CDPATH bash -c '. "$1/tools/vm/lib/common.sh"; lock_cache' bash "$tree"
	grep 'error: no program can be run below .*noexec' "$work/said"
}

without_bash()
{
	local target

	mkdir "$work/bin"
	ln -s /usr/bin/* "$work/bin/"
	rm "$work/bin/bash"
	PATH=$work/bin
	twheel modules
	twheel lib
	for target in install dkms-install list test; do
		fails twheel $target
		grep "make $target needs bash, and there is none" "$work/said"
	done
}

# Users who also work with Windows have this setting.
with_autocrlf()
{
	local git=(git -c core.autocrlf=true -c user.name=a -c user.email=a@b -c safe.directory='*')

	cp "$top/.gitattributes" "$tree/"
	"${git[@]}" -C "$tree" init -q
	"${git[@]}" -C "$tree" add -A
	"${git[@]}" -C "$tree" commit -q -m all
	"${git[@]}" clone -q "$tree" "$work/clone"
	rm -rf "$work/clone/.git"
	grep -rlI $'\r$' "$work/clone" >"$work/said" || true
	[ ! -s "$work/said" ]
	rm -rf "$tree"
	mv "$work/clone" "$tree"
	everything_works
}

in_a_folder_that_kbuild_cannot_take()
{
	local name stage=$root target

	for name in 'a b' 'a:b' 'a(1)' "it's" 'a"b' 'a;b' 'a&b' 'a,b' 'a%b' 'a=b'; do
		rm -rf "$work/d"
		mkdir -p "$work/d"
		mv "$tree" "$work/d/$name"
		tree=$work/d/$name
		for target in modules install dkms-install; do
			fails twheel $target
			grep '^kbuild cannot work in a folder whose path has a blank' "$work/said"
		done
		twheel lib
		mkdir -p "$tree/selftests"
		cp -r "$top"/selftests/{Makefile,host} "$tree/selftests/"
		make -C "$tree" list >"$work/said"
		grep -w first_run "$work/said"
		twheel uninstall
		fails bash -c '. "$1/tools/vm/lib/common.sh"; lock_cache' bash "$tree"
		grep 'that kbuild cannot work with' "$work/said"
		mv "$tree" "$work/tree"
		tree=$work/tree
	done
	[ ! -e "$stage/usr" ]
}

headers_in_a_folder_that_kbuild_cannot_take()
{
	mv "$work/new" "$work/new kernel"
	fails twheel modules 'new kernel'
	grep 'kbuild cannot work in a folder' "$work/said"
}

a_tree_in_utf_8_is_built()
{
	mv "$tree" "$work/zähler"
	tree=$work/zähler
	everything_works
}

# Root on a network file system may not write.
a_tree_that_is_built_is_installed_without_writing()
{
	twheel modules
	mounted ro twheel install
	[ "$(modules)" = updates/twheel.ko ]
}

not_installed_because()
{
	fails mounted ro twheel install
	grep "cannot be written, and $1" "$work/said"
	[ ! -e "$root/usr" ]
}

a_tree_that_is_not_built_and_cannot_be_written()
{
	not_installed_because 'the module is not built'
	twheel modules
	touch -d '+1 minute' "$tree/engine/arm.c"
	not_installed_because 'engine/arm.c is newer than twheel.ko'
	touch "$tree/engine/arm.c"
	twheel modules old
	not_installed_because 'twheel.ko is not for 6.99.0-new'
}

# kernel_of_clang OPTION...: set options in the kernel's configuration.
kernel_of_clang()
{
	printf 'CONFIG_%s=y\n' CC_IS_CLANG "$@" >"$work/new/include/config/auto.conf"
}

# built_with WORDS: kbuild got these for the build and for modules_install.
built_with()
{
	grep -x "$1" "$work/new/compiler"
	grep -x "$1" "$work/new/compiler.install"
}

a_kernel_of_clang_gets_a_module_of_clang()
{
	twheel install
	built_with 'CC=cc LD=ld LLVM= LLVM_IAS='
	kernel_of_clang LD_IS_LLD AS_IS_LLVM
	twheel install
	built_with 'CC=cc LD=ld LLVM=1 LLVM_IAS='
	kernel_of_clang LD_IS_LLD AS_IS_GNU
	twheel install
	built_with 'CC=cc LD=ld LLVM=1 LLVM_IAS=0'
	kernel_of_clang LD_IS_BFD
	twheel install
	built_with 'CC=clang LD=ld LLVM= LLVM_IAS='
	mv "$work/new/include/config/auto.conf" "$work/new/.config"
	echo CONFIG_64BIT=y >>"$work/new/.config"
	twheel install
	built_with 'CC=clang LD=ld LLVM= LLVM_IAS='
	twheel dkms-install
	grep 'CC=clang' "$work/new/compiler"
}

the_caller_chooses_the_compiler()
{
	kernel_of_clang LD_IS_LLD
	twheel install new CC=gcc
	built_with 'CC=gcc LD=ld LLVM= LLVM_IAS='
	twheel install new LLVM=-19
	built_with 'CC=cc LD=ld LLVM=-19 LLVM_IAS='
	CC=gcc twheel install
	built_with 'CC=gcc LD=ld LLVM= LLVM_IAS='
	twheel install new CC=clang LD=ld.lld
	built_with 'CC=clang LD=ld.lld LLVM= LLVM_IAS='
}

echo "TAP version 13"
echo "1..15"
holds everything_works_with_an_exported_cdpath with_cdpath
holds each_script_that_changes_folders_unsets_cdpath each_script_that_changes_folders_unsets_cdpath
holds installed_files_are_readable_by_all_if_the_umask_is_077 with_a_umask_of_077
holds everything_works_without_exec mounted noexec everything_works
holds a_run_of_tests_without_exec_says_so a_run_of_tests_without_exec_says_so
holds everything_works_without_x_bits without_x_bits
holds the_module_is_built_without_bash_and_other_targets_say_that_they_need_it without_bash
holds everything_works_in_a_checkout_with_autocrlf with_autocrlf
holds a_path_that_kbuild_cannot_take_is_refused_with_a_sentence in_a_folder_that_kbuild_cannot_take
holds kernel_headers_in_a_path_that_kbuild_cannot_take_are_refused headers_in_a_folder_that_kbuild_cannot_take
holds a_tree_in_utf_8_is_built a_tree_in_utf_8_is_built
holds a_tree_that_is_built_is_installed_without_writing a_tree_that_is_built_is_installed_without_writing
holds a_tree_that_cannot_be_written_and_is_not_built_says_so a_tree_that_is_not_built_and_cannot_be_written
holds a_kernel_of_clang_gets_a_module_of_clang a_kernel_of_clang_gets_a_module_of_clang
holds the_caller_chooses_the_compiler the_caller_chooses_the_compiler
