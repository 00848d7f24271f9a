# SPDX-License-Identifier: GPL-2.0
#
# What the test programs of libtwheel are made of, on the host and in the virtual
# machine, beside the library. LIB_TESTS names this folder.

LIB_TESTS ?= .

# What the library calls: lib_calls.c comes in between.
lib-wrapped := malloc calloc mmap mmap64 munmap close read ppoll timerfd_create timerfd_settime \
	clock_gettime clock_nanosleep
lib-wraps := $(lib-wrapped:%=-Wl,--wrap=%)

lib-parts-of-twheel_lib_random := $(addprefix $(LIB_TESTS)/,lib_oracle.c lib_plain.c)
lib-parts-of-twheel_lib_inputs := $(addprefix $(LIB_TESTS)/,lib_fuzz.c lib_oracle.c lib_plain.c)
lib-parts-of-twheel_lib_turns := $(LIB_TESTS)/lib_moved.c
lib-with-calls := twheel_lib twheel_lib_descriptor
$(foreach program,$(lib-with-calls),\
	$(eval lib-parts-of-$(program) := $(LIB_TESTS)/lib_calls.c) \
	$(eval lib-wraps-of-$(program) := $(lib-wraps)))
lib-wraps-of-twheel_lib_review := -Wl,--wrap=clock_gettime
lib-parts := $(sort $(foreach v,$(filter lib-parts-of-%,$(.VARIABLES)),$($v)))

# The calls of the client of the device, in place of which its test has others.
lib-client-calls := malloc calloc free mmap ioctl read fcntl
lib-wraps-of-twheel_lib_client := $(lib-client-calls:%=-Wl,--wrap=%) \
	$(foreach call,mmap fcntl,-Wl,--wrap=$(call)64,--defsym=__wrap_$(call)64=__wrap_$(call))
