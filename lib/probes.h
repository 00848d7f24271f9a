/* SPDX-License-Identifier: MIT */
/*
 * probes.h - USDT probes, which bpftrace, perf and SystemTap find by notes in the library
 *
 * They have the names of the module's tracepoints.  Each is a nop, and is there if USDT is
 * defined.  Starts and stops of timers have none: most of them are inline in programs.
 *
 *	arm, move	table, number, deadline_ns
 *	cancel		table, number
 *	read		table, number
 *	expire		wheel, timer, deadline_ns, late_ns
 *	pass		wheel, called
 */
#ifndef _TWHEEL_PROBES_H
#define _TWHEEL_PROBES_H

#ifdef USDT
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define PROBE(name, ...)	STAP_PROBEV(twheel, name, __VA_ARGS__)
#else
#define PROBE(...)		do { } while (0)
#endif

#endif /* _TWHEEL_PROBES_H */
