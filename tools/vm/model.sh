#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make model: run spin on the model of the state word, and on the mistakes that it must find. See
# selftests/model.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/tap.sh"
. "$(dirname "$0")/lib/names.sh"

expect_tests model
lock_cache
bash "$top/tools/vm/setup.sh" model

echo "TAP version 13"
host_test model make -C "$top/selftests/model" OUTPUT="$build/model" run
tap_summary
