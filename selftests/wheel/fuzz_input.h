/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The input of a fuzzer, as the numbers that an oracle asks for. Include this after an oracle.h.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

static const unsigned char *input;
static size_t input_left;

static u64 take(unsigned int bytes)
{
	u64 value = 0;

	for (; bytes && input_left; bytes--, input_left--)
		value = value << 8 | *input++;
	return value;
}

u64 rnd(void)
{
	return take(8);
}

#endif /* FUZZ_INPUT_H */
