/* SPDX-License-Identifier: GPL-2.0 */
/*
 * twheelctl check: the module that is installed, and an attempt to open the device
 */
#ifndef TWHEELCTL_CHECK_H
#define TWHEELCTL_CHECK_H

#include "twheelctl.h"

/* The node that programs open. */
#define DEVICE	"/dev/twheel"

/**
 * struct installed - the module that modprobe would load
 * @found: there is one for the running kernel
 * @is_signed: it has a signature
 * @version: its version
 * @srcversion: the checksum of its sources
 */
struct installed {
	bool found;
	bool is_signed;
	char version[64];
	char srcversion[64];
};

void installed_look(struct installed *installed);

/* The step that an attempt has reached. */
enum step {
	STEP_ENTER,	/* become the process */
	STEP_NODE,	/* find the node */
	STEP_OPEN,	/* open it */
	STEP_INFO,	/* ask the wheel for INFO */
	STEP_DONE,
};

/**
 * struct attempt - the result of opening the device in a process
 * @step: the step that failed, or STEP_DONE
 * @error: its errno
 * @null_error: errno of opening /dev/null in the same way, or 0
 * @signal: the signal that has killed the process, or 0
 * @mode: of the node
 * @gid: of the node
 * @device: of the node
 * @nodev: the node's file system is mounted so that its devices cannot be opened
 * @own_dev: /dev is the kernel's own, as it is on the machine itself and rarely in a container
 */
struct attempt {
	enum step step;
	int error;
	int null_error;
	int signal;
	mode_t mode;
	gid_t gid;
	dev_t device;
	bool nodev;
	bool own_dev;
};

void attempt_make(struct attempt *attempt, int pid);

void libraries_check(struct report *report);

#endif /* TWHEELCTL_CHECK_H */
