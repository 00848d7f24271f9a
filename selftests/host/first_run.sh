#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test the first run after a clone: with a language other than English, without a network, with a
# log instead of a terminal. Use a copy of the tree with its own cache; apt, the emulator and
# other commands are stand-ins, so that neither root nor a network is needed.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2016 # what is in single quotes is for another shell

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

# These variables choose among the tests of the whole run, of which this is one.
unset TESTS EXCEPT

work=$build/first_run
tree=$work/tree
stubs=$work/bin

# stub NAME: write a stand-in for that command, from the lines on stdin.
stub()
{
	{ echo '#!/bin/bash'; cat; } >"$stubs/$1"
	chmod +x "$stubs/$1"
}

# in_tree COMMAND...: run a command in the tree, with the stand-ins.
in_tree()
{
	(cd "$tree" && PATH=$stubs:$PATH "$@")
}

# with_apt COMMAND: run a command after sourcing apt.sh.
with_apt()
{
	in_tree bash -c '. tools/vm/lib/common.sh; . tools/vm/lib/apt.sh; '"$1"
}

# fresh_tree: make a copy of the tree with an empty cache, and remove all stand-ins.
fresh_tree()
{
	rm -rf "$work"
	mkdir -p "$tree/.cache" "$stubs"
	(cd "$top" && cp -pr Kbuild Makefile dkms.conf twheel_*.c engine include uapi \
		selftests examples tools "$tree/")
}

# Make an apt that speaks German, if its environment allows.
stub_german_apt()
{
	stub apt-cache <<-'EOT'
	[ "$LC_ALL" = C ] && word=Candidate || word=Installationskandidat
	printf '%s:\n  %s: 1.2-3\n' "${@: -1}" "$word"
	EOT
	stub apt-get <<<'exit 0'
}

translated_apt_is_understood()
{
	stub_german_apt
	export LANG=de_DE.UTF-8 LANGUAGE=de:en LC_ALL=de_DE.UTF-8
	with_apt 'mkdir -p $apt_state; resolve $cache/packages echo busybox-static'
	grep -x busybox-static=1.2-3 "$tree/.cache/packages"
}

# Scripts search output for warnings, and would miss a translated word.
everything_speaks_english()
{
	local script

	export LANG=de_DE.UTF-8 LANGUAGE=de:en LC_MESSAGES=de_DE.UTF-8
	in_tree bash -c '. tools/vm/lib/common.sh; [ "$LC_ALL" = C ] && ! env | grep ^LANGUAGE='
	for script in "$top"/tools/vm/*.sh "$top"/tools/check/check.sh "$top"/selftests/host/*.sh; do
		! head -n 1 "$script" | grep -q '^#!' ||
			grep -H '^\. .*/common.sh"$' "$script"
	done
}

# Use the real apt with a port where nobody listens, as if there were no network.
without_a_network()
{
	local command='get_packages $cache/packages echo busybox-static'

	export DEBIAN_MIRROR=http://127.0.0.1:1 APT_CONFIG=$work/apt.conf
	echo 'Acquire::Retries::Delay "false";' >"$APT_CONFIG"
	stub sleep <<<'exit 0'
	! with_apt "$command" 2>"$work/said" || return
	cat "$work/said"
}

a_run_without_a_network_says_so()
{
	without_a_network
	grep 'error: .*http://127.0.0.1:1.*network' "$work/said"
}

# stub_apt: make an apt that reaches a mirror.
stub_apt()
{
	stub apt-cache <<-'EOT'
	[[ " $* " != *' show '* ]] || { echo 'Size: 1549999'; exit; }
	for lists in "$@"; do [[ $lists != Dir::State::lists=* ]] || break; done
	[ -e "${lists#*=}/x_Packages" ] && version=1.2-3 || version='(none)'
	printf '%s:\n  Candidate: %s\n' "${@: -1}" "$version"
	EOT
	stub apt-get <<-'EOT'
	for lists in "$@"; do [[ $lists != Dir::State::lists=* ]] || break; done
	case " $* " in
	*' update '*) touch "${lists#*=}/x_Packages" ;;
	*' download '*)
		touch busybox-static_1.2-3_amd64.deb
		[[ " $* " != *Status-Fd=5* ]] || printf 'dlstatus:1:%s:file 1 of 1\n' 12.5 50.0 >&5
		;;
	esac
	EOT
}

a_run_without_a_network_leaves_the_next_one_unharmed()
{
	without_a_network
	stub_apt
	with_apt 'get_packages $cache/packages echo busybox-static'
	[ -e "$tree/.cache/debs/busybox-static=1.2-3/busybox-static_1.2-3_amd64.deb" ]
}

# An older version left such folders behind if there was no network.
an_empty_cache_that_calls_itself_complete_is_mended()
{
	mkdir -p "$tree/.cache/apt/lists/partial"
	touch "$tree/.cache/apt/updated"
	stub_apt
	with_apt 'get_packages $cache/packages echo busybox-static'
	grep -x busybox-static=1.2-3 "$tree/.cache/packages"
}

# stub_installed PATTERN: all packages are installed, except those that match.
stub_installed()
{
	stub dpkg-query <<-EOT
	[[ \${@: -1} != $1 ]] && echo installed
	EOT
}

# Make a cache in which nothing is missing.
full_cache()
{
	local cache=$tree/.cache

	mkdir -p "$cache"/{bindgen,busybox,jobs,kselftest,loops,python,trixie,kernels/6.1,kernels/6.12,kernels/7.3} \
		"$cache"/udev/{bookworm,trixie}
	touch "$cache"/{trixie,kernels/6.1,kernels/6.12,kernels/7.3}/complete
	ln -sfn usr/lib "$cache/loops/lib"
}

the_set_up_finds_libraries_that_are_named_t64()
{
	full_cache
	stub_installed '@(libelf1|libssl3|libclang-rt-14-dev)'
	stub id <<<'echo 1000'
	for purpose in demo shell test fuzz; do
		in_tree bash tools/vm/setup.sh $purpose 2>&1 | tee -a "$work/said"
	done
	[ ! -s "$work/said" ]
}

a_user_without_root_gets_the_command_to_run()
{
	full_cache
	stub_installed 'qemu-system-x86'
	stub id <<<'echo 1000'
	! in_tree bash tools/vm/setup.sh demo 2>"$work/said" || return
	cat "$work/said"
	grep 'as root, run: .*apt-get install .*qemu-system-x86$' "$work/said"
}

# says_one_sentence SENTENCE COMMAND...: the command fails, and prints only this error.
says_one_sentence()
{
	! in_tree "${@:2}" >"$work/said" 2>&1 || return
	cat "$work/said"
	[ "$(cat "$work/said")" = "error: $1" ]
}

a_system_without_dpkg_gets_an_error()
{
	local purpose

	# Link all commands of this system, except dpkg and apt.
	mkdir "$work/commands"
	ln -s /usr/bin/* /bin/* /usr/sbin/* /sbin/* "$work/commands/" 2>/dev/null || true
	rm -f "$work"/commands/{dpkg,apt}*
	for purpose in demo test model; do
		says_one_sentence 'this needs Debian 12 or 13 on amd64; this system has no dpkg' \
			env PATH="$work/commands" tools/vm/setup.sh $purpose
	done
}

another_architecture_gets_an_error()
{
	stub dpkg <<<'echo riscv64'
	says_one_sentence 'this needs Debian 12 or 13 on amd64; this system is for riscv64' \
		tools/vm/setup.sh test
}

a_system_without_the_keys_of_debian_gets_the_package_to_install()
{
	# Ubuntu lacks these keys.
	sed -i "s|^keyring=.*|keyring=$work/none.gpg|" "$tree/tools/vm/lib/apt.sh"
	says_one_sentence "this system lacks the keys of Debian's packages, $work/none.gpg; \
as root, run: apt-get install debian-archive-keyring" tools/vm/setup.sh demo
}

keys_that_are_too_old_are_not_taken_for_a_missing_network()
{
	stub apt-get <<-'EOT'
	echo "E: The repository 'http://deb.debian.org/debian trixie InRelease' is not signed."
	exit 100
	EOT
	! with_apt 'get_packages $cache/packages echo busybox-static' 2>"$work/said" || return
	cat "$work/said"
	grep 'error: the keys in .* are not those of Debian bookworm; install a newer' "$work/said"
	! grep network "$work/said"
}

# apt-get runs as root, in a tree where nothing has run before.
a_set_up_without_a_cache_begins_one()
{
	rmdir "$tree/.cache"
	stub_installed 'qemu-system-x86'
	stub id <<<'echo 0'
	stub apt-get <<<'echo apt-get has its reasons; exit 100'
	! in_tree tools/vm/setup.sh demo 2>"$work/said" || return
	cat "$work/said"
	grep -x 'apt-get has its reasons' "$work/said"
	grep -x 'error: apt-get cannot install these tools; it says why above' "$work/said"
	! grep 'No such file' "$work/said"
}

a_user_whose_path_has_no_sbin_finds_modinfo()
{
	PATH=/usr/bin:/bin in_tree bash -c '. tools/vm/lib/common.sh; modinfo --version'
}

# Packages use both paths, /lib and /usr/lib.
libraries_in_lib_and_in_usr_lib_come_together()
{
	local folder packages=$tree/.cache/debs there=$tree/.cache/loops/usr/lib

	for folder in lib usr/lib; do
		mkdir -p "$work/$folder.package"/{DEBIAN,"$folder/here"}
		touch "$work/$folder.package/$folder/here/${folder%/*}.so"
		printf '%s\n' "Package: ${folder%/*}" 'Version: 1' 'Architecture: all' \
			'Maintainer: nobody' 'Description: none' \
			>"$work/$folder.package/DEBIAN/control"
		mkdir -p "$packages/${folder%/*}=1"
		dpkg-deb --build "$work/$folder.package" "$packages/${folder%/*}=1/one.deb"
		echo "${folder%/*}=1" >>"$tree/.cache/loops.packages"
	done
	full_cache
	rm -r "$tree/.cache/loops"
	mkdir -p "$tree/.cache/apt/lists"
	touch "$tree/.cache/apt/lists/x_Packages"
	stub_installed none
	in_tree tools/vm/setup.sh test
	[ "$(ls "$there/here")" = $'lib.so\nusr.so' ]
}

# Replace the virtual machine and all that make demo needs for it. The emulator opens its serial
# lines as the real one does, and make creates the expected files.
stub_machine()
{
	local series

	full_cache
	mkdir -p "$tree/.cache/busybox/bin"
	touch "$tree/.cache/busybox/bin/busybox"
	for series in 6.1 6.12 7.3; do
		echo "$series-stub" >"$tree/.cache/kernels/$series/release"
	done
	stub_installed none
	stub make <<-'EOT'
	while [ $# -gt 0 ]; do
		case $1 in
		-C) touch "$2/twheel.ko" ;;
		OUTPUT=*) mkdir -p "${1#*=}"; touch "${1#*=}/idle-server" ;;
		esac
		shift
	done
	EOT
	stub qemu-system-x86_64 <<-'EOT'
	files=()
	while [ $# -gt 0 ]; do
		[ "$1" != -serial ] || files+=("${2#file:}")
		shift
	done
	[ ${#files[@]} = 3 ] || exit 1
	echo console >"${files[0]}" && echo the program >"${files[1]}" && echo 0 >"${files[2]}"
	EOT
}

make_demo()
{
	in_tree bash tools/vm/demo.sh 2>&1
}

a_log_of_make_demo_has_all_of_it()
{
	stub_machine
	{ echo the beginning; make_demo; echo the end; } >"$work/said"
	cat "$work/said"
	[ "$(grep '^the ' "$work/said" | tr '\n' ' ')" = 'the beginning the program the end ' ]
	[ "$(head -n 1 "$work/said")" = 'the beginning' ]
}

make_demo_speaks_to_a_socket()
{
	stub_machine
	# Give it a socket as its output, and read the socket to the end.
	perl -MSocket -e '
		socketpair(my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die;
		if (!fork) {
			close($ours);
			open(STDOUT, ">&", $theirs) and exec(@ARGV);
			die;
		}
		close($theirs);
		print while <$ours>;
		wait;
		exit($? >> 8)' env PATH="$stubs:$PATH" bash "$tree/tools/vm/demo.sh" >"$work/said"
	grep -x 'the program' "$work/said"
}

# stub_kvm TEXT: make an emulator that has kvm, on which a kernel without a root prints TEXT. It
# prints which accelerator the machine has.
stub_kvm()
{
	stub_machine
	stub qemu-system-x86_64 <<-EOT
	[[ "\$*" = *-initrd* ]] || exec echo '$1'
	[[ "\$*" =~ -accel\ ([a-z]*) ]] && accelerator=\${BASH_REMATCH[1]}
	files=()
	while [ \$# -gt 0 ]; do
		[ "\$1" != -serial ] || files+=("\${2#file:}")
		shift
	done
	echo >"\${files[0]}" && echo "\$accelerator" >"\${files[1]}" && echo 0 >"\${files[2]}"
	EOT
	make_demo >"$work/said"
	cat "$work/said"
}

a_kvm_that_opens_and_boots_no_kernel_is_left_alone()
{
	stub_kvm 'KVM internal error. Suberror: 1'
	grep -x tcg "$work/said"
}

a_kvm_that_boots_a_kernel_is_used()
{
	stub_kvm 'Kernel panic - not syncing: VFS: Unable to mount root fs'
	grep -x kvm "$work/said"
}

# This must fail before anything is fetched or built, and print the names of all tests.
a_misspelt_test_is_an_error()
{
	local target

	for target in test test-debug check; do
		! in_tree make $target TESTS='wheel twheel_arm twheel_amr' >"$work/said" 2>&1 ||
			return
		cat "$work/said"
		grep -E 'error: TESTS: no test here is called (twheel_amr|wheel|twheel_arm)' "$work/said"
		grep -w "$([ $target = check ] && echo coccinelle || echo twheel_arm)" "$work/said"
		[ "$(ls -A "$tree/.cache")" = '' ]
	done
	! in_tree make test EXCEPT='twheel_arm twheel_amr' >"$work/said" 2>&1 || return
	cat "$work/said"
	grep 'error: EXCEPT: no test here is called twheel_amr' "$work/said"
}

make_list_names_all_tests()
{
	local name

	in_tree make list >"$work/said"
	cat "$work/said"
	for name in wheel first_run twheel_arm twheel_abi32 twheel_fuzz checkpatch_module; do
		grep -w $name "$work/said"
	done
}

# run_stubs KERNELS TESTS: run programs that pass at once, in fake machines.
run_stubs()
{
	stub_machine
	stub modinfo <<<'echo sum'
	stub make <<-'EOT'
	case " $* " in
	*' list '*) printf '%s\n' twheel_one twheel_two twheel_three ;;
	*' all '*) for name in one two three; do install "$0" "$(sed 's/.* OUTPUT=\([^ ]*\).*/\1/' <<<"$*")/twheel_$name"; done ;;
	*) touch "$2/twheel.ko" ;;
	esac
	EOT
	stub qemu-system-x86_64 <<-'EOT'
	[[ "$*" =~ vm_tests=([^ ]*) ]] || exit 0
	for name in ${BASH_REMATCH[1]//,/ }; do
		printf '@%s\n' "begin $name" 'module sum'
		printf '%s\n' 1..1 'ok 1 it does'
		echo '@end 0'
	done
	echo @done
	EOT
	in_tree env LANES=2 KERNELS="$1" TESTS="$2" bash tools/vm/test.sh >"$work/said" 2>&1 || {
		cat "$work/said"
		return 1
	}
	cat "$work/said"
}

a_run_prints_which_program_of_how_many_it_is_at()
{
	run_stubs '6.1 6.12' 'twheel_t*'
	grep -E '^# program 1 of 4: 6.12?/twheel_t[a-z]*, about 1 min left after it' "$work/said"
	grep -E '^# program 4 of 4: 6.12?/twheel_t[a-z]*, about 0 min left after it' "$work/said"
	[ "$(grep -c '^# program' "$work/said")" = 4 ]
	[ "$(cut -d ' ' -f 1 "$tree/.cache/seconds" | tr '\n' ' ')" = \
		'6.1/twheel_three 6.1/twheel_two 6.12/twheel_three 6.12/twheel_two ' ]
	tail -n 1 "$work/said" | grep -x '10 passed, 0 failed'
}

# An archive may lose the x bits, and a file system without exec ignores them.
scripts_start_each_other_without_x_bits()
{
	find "$tree" -name '*.sh' -exec chmod a-x {} +
	find "$tree/tools" -type f -exec chmod a-x {} +
	run_stubs 6.1 'twheel_t*'
	tail -n 1 "$work/said" | grep -x '6 passed, 0 failed'
}

# Programs are sorted by the time that they took last time.
the_longest_program_begins_first_and_the_others_share_the_second_machine()
{
	printf '6.1/twheel_%s\n' 'one 20' 'three 90' 'two 60' >"$tree/.cache/seconds"
	run_stubs 6.1 'twheel_*'
	grep -E '^== booting 6.1-stub for 1 programs' "$work/said"
	[ "$(grep -oE '^# program .*(one|two|three)' "$work/said" | sed 's/.*_//' |
		grep -v three | tr '\n' ' ')" = 'two one ' ]
	grep -E '^# slowest, in seconds: .*6.1/twheel_three ' "$work/said"
}

downloads_print_their_size_and_progress()
{
	local tries=50

	stub_apt
	export PROGRESS_SECONDS=0
	with_apt 'get_packages $cache/packages echo busybox-static' 2>"$work/said"
	grep 'downloading 1.5 MB: busybox-static$' "$work/said"
	# apt does not wait for the process that prints the progress.
	until grep '50 % downloaded' "$work/said"; do
		[ $((tries--)) -gt 0 ]
		sleep 0.1
	done
}

cases=(
	translated_apt_is_understood
	everything_speaks_english
	a_run_without_a_network_says_so
	a_run_without_a_network_leaves_the_next_one_unharmed
	an_empty_cache_that_calls_itself_complete_is_mended
	the_set_up_finds_libraries_that_are_named_t64
	a_user_without_root_gets_the_command_to_run
	a_user_whose_path_has_no_sbin_finds_modinfo
	a_system_without_dpkg_gets_an_error
	another_architecture_gets_an_error
	a_system_without_the_keys_of_debian_gets_the_package_to_install
	keys_that_are_too_old_are_not_taken_for_a_missing_network
	a_set_up_without_a_cache_begins_one
	libraries_in_lib_and_in_usr_lib_come_together
	a_log_of_make_demo_has_all_of_it
	make_demo_speaks_to_a_socket
	a_kvm_that_opens_and_boots_no_kernel_is_left_alone
	a_kvm_that_boots_a_kernel_is_used
	downloads_print_their_size_and_progress
	a_run_prints_which_program_of_how_many_it_is_at
	scripts_start_each_other_without_x_bits
	the_longest_program_begins_first_and_the_others_share_the_second_machine
	a_misspelt_test_is_an_error
	make_list_names_all_tests
)

echo "TAP version 13"
echo "1..${#cases[@]}"
for case in "${cases[@]}"; do
	holds "$case" "$case"
done
