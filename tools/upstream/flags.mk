# SPDX-License-Identifier: GPL-2.0
#
# Print the flags by which Kbuild describes the kernel in abs_srctree.
include Kbuild
.DEFAULT_GOAL := flags
flags:
	@echo $(ccflags-y)
.PHONY: flags
