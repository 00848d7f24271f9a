// SPDX-License-Identifier: MIT
package twheel.netty;

/**
 * Timeouts by number, with the rules of {@code <twheel/table.h>}. {@link #start} is for the
 * alarm, which is number 0; all other numbers come by {@link #apply}.
 */
interface Table {
	int ALARM = 0;

	/** A delay that stops a number. */
	long STOP = -1;

	/** What a number was before a change: not started, or stopped, or fetched. */
	int IDLE = 0;

	/** It pended, or had expired unread. */
	int PENDING = 1;

	/**
	 * Starts and stops numbers. Any thread may call this.
	 *
	 * @param delaysNs from now on, or {@link #STOP}
	 * @param results out: {@link #IDLE}, or {@link #PENDING} or more; less if the change was
	 *	refused, as only a start may be
	 */
	void apply(int[] numbers, long[] delaysNs, int[] results, int nr);

	/** Starts or moves the alarm, which is never refused. */
	void alarm(long delayNs);

	/** Sleeps until numbers have expired, and fetches them: as many as there is room for. */
	int expired(int[] numbers);

	/** The last call. */
	void close();
}
