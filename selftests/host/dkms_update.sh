#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test make dkms-install over an older module, with builds that fail and runs that are killed. All
# this happens below a DESTDIR, with a stand-in for the kernels.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/dkms_update
. "$(dirname "$0")/../../tools/vm/lib/stand_in.sh"
case_options=-ex
fresh_tree() { fresh_stage; }
new=6.99.0-new
other=6.98.0-other

# dkms_has KERNEL...: dkms has the module installed for exactly these kernels, and nothing is left
# over.
dkms_has()
{
	local state kernel

	state=$(LC_ALL=C in_dkms status)
	[ "$(wc -l <<<"$state")" = $# ]
	for kernel; do
		grep -E "^twheel[/, ]+$(in_tree_version), $kernel, [^:]*: installed$" <<<"$state"
	done
	[ "$(ls "$root/usr/src")" = "twheel-$(in_tree_version)" ]
	! find "$root" -name '.twheel*' | grep .
}

in_tree_version()
{
	sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "$tree/dkms.conf"
}

# install_old KERNEL...: install a module of the present sources for these kernels.
install_old()
{
	local kernel

	for kernel; do
		twheel dkms-install "${kernel#*-}"
	done
	old_sum=$(sum_of_sources)
}

# update_that_does_not_build [VERSION]
update_that_does_not_build()
{
	install_old $new
	before=$(all_files "$root")
	new_version "$@"
	touch "$work/new/broken"
	fails twheel dkms-install
	grep "^$new: it does not build; twheel $version stays$" "$work/said"
	[ "$(all_files "$root")" = "$before" ]
	rm "$work/new/broken"
	twheel dkms-install
	of_sources "$(sum_of_sources)"
	dkms_has $new
}

# one_kernel_fails [VERSION]
one_kernel_fails()
{
	install_old $new $other
	new_version "$@"
	touch "$work/new/broken"
	fails twheel dkms-install
	grep "^$new: it does not build; twheel $version stays$" "$work/said"
	grep "^$other: twheel $(in_tree_version) is installed$" "$work/said"
	of_sources "$old_sum"
	of_sources "$(sum_of_sources)" $other
	rm "$work/new/broken"
	twheel dkms-install other
	of_sources "$(sum_of_sources)"
	of_sources "$(sum_of_sources)" $other
	dkms_has $new $other
}

a_kernel_that_is_gone_is_forgotten()
{
	install_old $new $other
	rm -r "$root/lib/modules/$other"
	change
	twheel dkms-install
	dkms_has $new
}

# dkms_cannot_install NUMBER [VERSION]: the NUMBERth start of dkms fails.
dkms_cannot_install()
{
	install_old $new
	before=$(all_files "$root/lib")
	new_version "${@:2}"
	# dkms is started to build, to add a new version, and to install.
	at_step dkms "$1" fail
	fails twheel dkms-install
	no_step
	grep "^$new: dkms cannot install it; twheel $version stays$" "$work/said"
	[ "$(all_files "$root/lib")" = "$before" ]
	twheel dkms-install
	of_sources "$(sum_of_sources)"
	dkms_has $new
}

# Kill the run at each start of dkms and each rename: there must always be a module, the old one
# or the new one, and the next run must leave no half of anything.
a_run_that_is_killed_leaves_a_module_and_is_repaired_by_the_next()
{
	local what sum

	install_old $new
	for what in 'dkms 2' 'dkms 3' 'mv 2' 'mv 3' 'mv 4' 'mv 5'; do
		sum=$(sum_of_sources)
		new_version "9.${what//[^0-9]/}.${#what}"
		# shellcheck disable=SC2086 # two words
		at_step $what kill
		fails twheel dkms-install
		no_step
		of_sources "$sum" || of_sources "$(sum_of_sources)"
		twheel dkms-install
		of_sources "$(sum_of_sources)"
		dkms_has $new
	done
}

# If the kernel is not in the image, dkms builds the module now, and installs it when the kernel
# comes.
a_module_is_built_for_a_kernel_that_comes_later()
{
	rm -r "$root/lib/modules/$new"
	twheel dkms-install >"$work/said"
	grep "^$new: twheel $version is built; dkms installs it when" "$work/said"
	mkdir -p "$root/lib/modules/$new"
	in_dkms autoinstall -k $new
	of_sources "$(sum_of_sources)"
	dkms_has $new
	twheel dkms-remove
	nothing_is_left
}

cases=(
	a_kernel_that_is_gone_is_forgotten
	a_run_that_is_killed_leaves_a_module_and_is_repaired_by_the_next
	a_module_is_built_for_a_kernel_that_comes_later
)

echo "TAP version 13"
echo "1..$((6 + ${#cases[@]}))"
holds an_update_that_does_not_build_leaves_the_old_module update_that_does_not_build
holds a_new_version_that_does_not_build_leaves_the_old_module update_that_does_not_build 99.0
holds one_kernel_that_does_not_build_does_not_stop_the_others one_kernel_fails
holds one_kernel_keeps_its_version_if_a_new_one_does_not_build one_kernel_fails 99.0
holds dkms_install_puts_the_old_module_back_if_dkms_cannot_install \
	dkms_cannot_install 2
holds dkms_install_puts_the_old_version_back_if_dkms_cannot_install \
	dkms_cannot_install 3 99.0
for case in "${cases[@]}"; do
	holds "$case" "$case"
done
