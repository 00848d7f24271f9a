#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# If a device test hangs, it is ended and reported by its name before its program is killed from
# outside, whatever limit the test asks for.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"

program=$build/test_limits
limit_s=6

compile()
{
	gcc -x c -std=gnu11 -O2 -Wall -Wextra -I"$top/uapi" -I"$top/lib" -I"$top/selftests" \
		-isystem "$ksft" -pthread -o "$program" - <<-'EOT'
	#include "twheel_test.h"

	FIXTURE(hanging) {};
	FIXTURE_SETUP(hanging) {}
	FIXTURE_TEARDOWN(hanging) {}
	TEST_F_TIMEOUT(hanging, for_ever, 100)
	{
		tw_sleep(20 * TW_SEC);
	}
	TEST_F_TIMEOUT(hanging, for_a_second, 100)
	{
		tw_sleep(TW_SEC / 2);
	}
	TEST_HARNESS_MAIN
	EOT
}

mkdir -p "$build"
echo "TAP version 13"
echo "1..2"
status=0
log=$program.log
# Do not use a pipe: children of a killed program would keep it open.
{ compile && vm_timeout=$limit_s timeout -s KILL $limit_s "$program"; } >"$log" 2>&1 || status=$?
said=$(<"$log")
verdict='not ok'
[[ $status = 1 && $said = *'not ok 1 hanging.for_ever'* && $said = *'terminated by timeout'* ]] &&
	verdict=ok
echo "$verdict 1 a test that hangs ends before its program would be killed"
verdict='not ok'
[[ $said = *$'\nok 2 hanging.for_a_second'* ]] && verdict=ok
echo "$verdict 2 the tests after one that hangs still run"
[[ $verdict = ok ]] || printf '# %s\n' "${said//$'\n'/$'\n'# }"
