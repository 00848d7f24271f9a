# SPDX-License-Identifier: GPL-2.0
#
# What the test programs of libtwheel are made of, on the host and in the virtual
# machine, beside the library. LIB_TESTS names this folder.

LIB_TESTS ?= .
lib-parts := $(addprefix $(LIB_TESTS)/,lib_oracle.c lib_calls.c)

# What the library calls, and that may fail or take long: lib_calls.c comes in between.
lib-wrapped := malloc calloc realloc posix_memalign mmap munmap madvise open close ioctl read \
	ppoll timerfd_create timerfd_settime clock_gettime
lib-wraps := $(lib-wrapped:%=-Wl,--wrap=%)

lib-parts-of-twheel_lib_random := $(LIB_TESTS)/lib_oracle.c
lib-parts-of-twheel_lib := $(LIB_TESTS)/lib_calls.c
lib-wraps-of-twheel_lib := $(lib-wraps)
lib-parts-of-twheel_lib_fails := $(lib-parts)
lib-wraps-of-twheel_lib_fails := $(lib-wraps)

# The calls of the client of the device, in place of which its test has others.
lib-client-calls := malloc calloc free mmap ioctl read fcntl
lib-wraps-of-twheel_lib_client := $(lib-client-calls:%=-Wl,--wrap=%)
