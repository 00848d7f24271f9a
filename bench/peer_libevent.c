// SPDX-License-Identifier: GPL-2.0
#include "bench.h"

ABSENT_PEER(peer_libevent, "libevent", "not written");
