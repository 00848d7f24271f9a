#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test a machine without high-resolution timers (highres=off). No timeout may be early, and the
# kernel's log must explain the consequence once each time the module is loaded. The programs are
# those of the other machines. twheelctl must name the cause. At the end it must also name the
# reason if the kernel refuses a module: in lockdown, and by module.sig_enforce, for a module
# without a signature and one with an unknown key. After that, the kernel accepts no module any
# more.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/build.sh"
. "$(dirname "$0")/../../tools/vm/lib/boot.sh"
. "$(dirname "$0")/../../tools/vm/lib/tap.sh"
. "$(dirname "$0")/../../tools/vm/lib/guest-tests.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/low_resolution
series=${kernels[-1]}
names=(twheel_device twheel_clocks)
warning='no high-resolution timers: each wake-up may be 4000 us late'

# Print the script that runs in the guest, after the programs.
ask_twheelctl()
{
	cat <<-'EOT'
	#!/bin/busybox sh
	# names CAUSE: twheelctl check finds a problem, which is this one.
	names()
	{
		twheelctl check --json >/tmp/said
		[ $? = 1 ] && grep -q "\"cause\": \"$1\"" /tmp/said &&
			[ "$(grep -c '"cause":' /tmp/said)" = 1 ] && return
		sed 's/^/# /' /tmp/said
		printf 'not '
		failed=1
	}
	# refuses MODULE NR WHY: to load it, and twheelctl names that. modprobe finds it, too.
	refuses()
	{
		mkdir -p $modules
		cp $1 $modules/twheel.ko
		/programs/depmod 2>/dev/null	# not the one of busybox
		! insmod $1 2>/dev/null && names refused && grep -q "$said" /tmp/said || failed=1
		[ $failed = 0 ] || printf 'not '
		echo "ok $2 twheelctl names a kernel that refuses a module $3"
	}
	failed=0
	echo 1..5
	insmod $TWHEEL_KO
	names low-resolution
	echo "ok 1 twheelctl names a kernel without high-resolution timers"
	rmmod twheel
	modules=/lib/modules/$(uname -r)
	mount -t securityfs security /sys/kernel/security
	echo integrity >/sys/kernel/security/lockdown
	said='has no signature'
	refuses $TWHEEL_KO 2 "without a signature in lockdown"
	said='has refused one'
	refuses /programs/signed.ko 3 "with a signature of an unknown key in lockdown"
	echo Y >/sys/module/module/parameters/sig_enforce
	refuses /programs/signed.ko 4 "with a signature of an unknown key by sig_enforce"
	said='has no signature'
	refuses $TWHEEL_KO 5 "without a signature by sig_enforce"
	exit $failed
	EOT
}

# sign_module MODULE: sign a copy as dkms does, with a key that no kernel knows. It is in
# $work/signed.ko.
sign_module()
{
	openssl req -new -x509 -newkey rsa:2048 -nodes -subj /CN=twheel -keyout "$work/key" -out "$work/cert"
	"$(kernel_headers "$series")/scripts/sign-file" sha256 "$work/key" "$work/cert" "$1" "$work/signed.ko"
}

build_guest()
{
	local dir=$work/programs
	local paths=("${names[@]/#/$dir/}")

	mkdir -p "$dir"
	quietly "$work/selftests.log" selftests_make usual OUTPUT="$dir" "${paths[@]}"
	ask_twheelctl >"$dir/ask_twheelctl_module.sh"
	build_twheelctl
	build_quickly "$series" "$work/module"
	quietly "$work/sign.log" sign_module "$work/module/twheel.ko"
	more_files=("$build/twheelctl/twheelctl" "$(type -P depmod)" "$(type -P modinfo)" "$work/signed.ko")
	make_initramfs "$work/initramfs" "$work/module/twheel.ko" "${paths[@]}" \
		"$dir/ask_twheelctl_module.sh"
}

# Print the results in `said', which are lines of tools/vm/guest/run-tests.
report_results()
{
	local line program=

	for line in "${said[@]}"; do
		case $line in
		'@begin '*) program=${line#@begin } ;;
		'@log '*"twheel: $warning"*) nr_warnings=$((nr_warnings + 1)) ;;
		'@end '*) check "$program exits as its results say" [ "$line" = '@end 0' ] ;;
		'@not ok '*) verdict 'not ok' "$program: ${line#@not ok }" ;;
		*'ok '[0-9]*)
			[[ $line =~ ^(ok|not\ ok)\ [0-9]+\ (.*)$ ]] || continue
			verdict "${BASH_REMATCH[1]}" "$program: ${BASH_REMATCH[2]}"
			;;
		@* | '') ;;
		*) echo "# ${line#\# }" ;;
		esac
	done
}

no_complaint()
{
	! find_complaints <"$work/console.log"
}

rm -rf "$work"
mkdir -p "$work"
build_guest
nr_warnings=0
ends=false

echo "TAP version 13"
if hear "$work/console.log" @done "$series" "$work/initramfs" \
	"highres=off vm_mode=test vm_timeout=$program_limit vm_tests=$(IFS=,; echo "${names[*]},ask_twheelctl_module.sh")"; then
	ends=true
else
	tail -n 60 "$work/console.log"
fi
report_results
check "the machine comes to its end" $ends
check "the kernel's log says once for each time the module is loaded that the resolution is low" \
	[ $nr_warnings = $((${#names[@]} + 1)) ]
check "the kernel does not complain" no_complaint
echo "1..$number"
