// SPDX-License-Identifier: GPL-2.0
/*
 * missing.c - stands for a library that is not installed
 *
 * MISSING is its name.
 */
#include "bench.h"

#define STRUCTURE_(lib)		lib##_structure
#define STRUCTURE(lib)		STRUCTURE_(lib)
#define COMMON_(lib)		lib##_common_structure
#define COMMON(lib)		COMMON_(lib)
#define STRING_(lib)		#lib
#define STRING(lib)		STRING_(lib)

const struct structure STRUCTURE(MISSING) = {
	.name		= STRING(MISSING),
	.why_missing	= "not installed",
};

const struct structure COMMON(MISSING) = {
	.name		= STRING(MISSING) ", common",
	.why_missing	= "not installed",
};
