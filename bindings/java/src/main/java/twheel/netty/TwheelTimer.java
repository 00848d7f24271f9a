// SPDX-License-Identifier: MIT
package twheel.netty;

import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * A timer in the process, for programs that have a {@code HashedWheelTimer}. Its thread wakes up
 * when a timeout is due, and sleeps otherwise, however many timeouts pend.
 *
 * <p>A timeout never expires early, and expires at the first tick at or after its deadline. A
 * timer takes a thread and memory until {@link #stop}: make few of them.
 */
public final class TwheelTimer extends TableTimer {
	/** How many timeouts may pend if nobody says less. */
	public static final int MAX_PENDING = 1 << 24;

	/** A tick of 1 ms. */
	public TwheelTimer() {
		this(Executors.defaultThreadFactory());
	}

	/** A tick of 1 ms. */
	public TwheelTimer(ThreadFactory threadFactory) {
		this(threadFactory, 1, TimeUnit.MILLISECONDS, 0);
	}

	/**
	 * @param threadFactory makes the thread that runs the tasks
	 * @param tickDuration from 1 microsecond to 1 hour
	 * @param maxPendingTimeouts beyond this number {@code newTimeout} throws a {@code
	 *	RejectedExecutionException}; 0 or less for {@link #MAX_PENDING}
	 */
	public TwheelTimer(ThreadFactory threadFactory, long tickDuration, TimeUnit unit,
			long maxPendingTimeouts) {
		super(threadFactory, maxPendingTimeouts, MAX_PENDING,
			nr -> new NativeTable(nr, tickNs(tickDuration, unit)));
	}
}
