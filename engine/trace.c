// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints, of which trace.h has the code
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
