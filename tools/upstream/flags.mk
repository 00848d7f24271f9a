# SPDX-License-Identifier: GPL-2.0
#
# Shows the flags by which Kbuild says what the kernel in abs_srctree has.
include Kbuild
.DEFAULT_GOAL := flags
flags:
	@echo $(ccflags-y)
.PHONY: flags
