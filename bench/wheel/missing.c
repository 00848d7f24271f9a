// SPDX-License-Identifier: GPL-2.0
/*
 * missing.c - stands for a library that is not installed
 *
 * MISSING is its name.
 */
#include "bench.h"

#define JOIN_(a, b)	a##b
#define JOIN(a, b)	JOIN_(a, b)
#define STRING_(a)	#a
#define STRING(a)	STRING_(a)

#define STRUCTURE	JOIN(MISSING, _structure)
#define COMMON		JOIN(MISSING, _common_structure)

const struct structure STRUCTURE = {
	.name		= STRING(MISSING),
	.why_missing	= "not installed",
};

const struct structure COMMON = {
	.name		= STRING(MISSING) ", common",
	.why_missing	= "not installed",
};
