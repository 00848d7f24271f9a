#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# If a race does not happen, its test must fail in good time and name the missing outcome. If each
# outcome has come, the test must pass, however late that was.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"

program=$build/race_outcomes
# A race waits for a missing outcome for a quarter of this.
limit_s=16

compile()
{
	gcc -x c -std=gnu11 -O2 -Wall -Wextra -I"$top/uapi" -I"$top/lib" -I"$top/selftests" \
		-isystem "$ksft" -pthread -o "$program" - <<-'EOT'
	#include "twheel_outcomes.h"

	static struct tw_outcome outcomes[] = {
		TW_OUTCOME("comes late", TW_A_FEW),
		TW_OUTCOME("never comes", TW_A_FEW),
	};

	static void run(struct __test_metadata *_metadata, int nr)
	{
		struct tw_race race = TW_RACE(outcomes, 0.5);

		race.nr = nr;
		while (tw_race_goes_on(&race)) {
			tw_sleep(TW_SEC / 10);
			tw_saw(&outcomes[0], race.rounds > 10);
		}
		EXPECT_RACE(&race);
	}

	TEST(race_that_happened)
	{
		run(_metadata, 1);
	}
	TEST(race_that_did_not)
	{
		run(_metadata, 2);
	}
	TEST_HARNESS_MAIN
	EOT
}

mkdir -p "$build"
echo "TAP version 13"
if [ "$(nproc)" = 1 ]; then
	echo "1..0 # SKIP on one processor no outcome is required"
	exit
fi
echo "1..2"
status=0
said=$({ compile && vm_timeout=$limit_s timeout -s KILL $limit_s "$program"; } 2>&1) || status=$?
verdict='not ok'
[[ $said = *$'\nok 1 '*'race_that_happened'* ]] && verdict=ok
echo "$verdict 1 a race is run until its outcomes have come"
verdict='not ok'
[[ $status = 1 && $said = *'"never comes" has to come 3 times, and came 0 times'* &&
	$said = *$'\nnot ok 2 '*'race_that_did_not'* ]] && verdict=ok
echo "$verdict 2 a race that did not happen fails, and says what never came"
[[ $verdict = ok ]] || printf '# %s\n' "${said//$'\n'/$'\n'# }"
