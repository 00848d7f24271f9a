/* SPDX-License-Identifier: GPL-2.0 */
/* The functions that a fuzzing engine calls. */
#ifndef LIB_FUZZ_H
#define LIB_FUZZ_H

#include <stddef.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#endif /* LIB_FUZZ_H */
