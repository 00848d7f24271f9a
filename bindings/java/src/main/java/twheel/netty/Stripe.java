// SPDX-License-Identifier: MIT
package twheel.netty;

import java.util.concurrent.RejectedExecutionException;

/**
 * Changes that the table does not know yet, some free numbers, and some permits: each permit lets
 * one timeout pend. Threads are spread over the stripes of a timer, so that they seldom wait for
 * each other.
 *
 * <p>A timeout that is cancelled while its start is still here costs no call of the table. All
 * others share a call for {@link #CHANGES} changes. A number has at most one change in all
 * stripes, and is free only when it has none. So the order of changes does not matter.
 */
final class Stripe {
	/** A service that has about a thousand requests at a time then has most timeouts only here. */
	static final int CHANGES = 1024;
	/** Free numbers, and permits, that are kept here at most. */
	static final int KEPT = 512;

	final TableTimer timer;

	/** Guards all that follows. */
	private final SpinLock lock = new SpinLock();
	/** There is room for one stop more than for starts: a stop is never refused. */
	private final int[] numbers = new int[CHANGES + 1];
	/** The timeout to start; null to stop the number. */
	private final TwheelTimeout[] starts = new TwheelTimeout[CHANGES + 1];
	private final long[] delaysNs = new long[CHANGES + 1];
	private final int[] results = new int[CHANGES + 1];
	private int nr;
	private final int[] free = new int[KEPT];
	private int nrFree;
	private int permits;
	/** The table is not to be called any more. */
	private boolean closed;

	Stripe(TableTimer timer) {
		this.timer = timer;
	}

	/**
	 * Starts a timeout.
	 *
	 * @param more permits that come in addition
	 * @return whether there was a permit
	 */
	boolean start(TwheelTimeout timeout, int more) {
		lock.lock();
		try {
			permits += more;
			if (closed)
				throw new IllegalStateException("the timer has been stopped");
			if (permits == 0)
				permits = timer.takePermits(KEPT / 2);
			if (permits == 0)
				return false;
			if (nr >= CHANGES)
				apply();
			if (nr >= CHANGES)
				throw new RejectedExecutionException("the table has no memory left");
			if (nrFree == 0)
				nrFree = timer.slots.take(free, KEPT / 2);
			permits--;
			timeout.number = free[--nrFree];
			timer.slots.set(timeout.number, timeout);
			put(timeout.number, timeout);
			return true;
		} finally {
			lock.unlock();
		}
	}

	boolean cancel(TwheelTimeout timeout) {
		int number;

		lock.lock();
		try {
			if (!timeout.markCancelled())
				return false;
			permits++;
			if (closed)
				return true;
			if (permits > KEPT) {
				timer.givePermits(KEPT / 2);
				permits -= KEPT / 2;
			}
			number = timeout.number;
			if (timeout.index != TwheelTimeout.NONE) {
				takeOut(timeout.index);
				giveBack(number);
				return true;
			}
			timer.slots.set(number, this);
			put(number, null);
			if (nr > CHANGES)
				apply();
			return true;
		} finally {
			lock.unlock();
		}
	}

	/**
	 * A number was fetched whose timeout had been cancelled. Afterwards it is the caller's: the
	 * stop is not here any more, or it was made and found the number idle.
	 */
	void fetchedCancelled(int number) {
		lock.lock();
		try {
			for (int i = 0; i < nr; i++) {
				if (numbers[i] == number) {
					takeOut(i);
					return;
				}
			}
		} finally {
			lock.unlock();
		}
	}

	/**
	 * Makes all changes.
	 *
	 * @return when the first of the starts is due that the table has refused; {@link
	 *	Long#MAX_VALUE} if there is none
	 */
	long drain() {
		long firstNs = Long.MAX_VALUE;

		lock.lock();
		try {
			if (nr > 0 && !closed)
				apply();
			for (int i = 0; i < nr; i++) {
				if (starts[i] != null)
					firstNs = Math.min(firstNs, starts[i].deadlineNs);
			}
			return firstNs;
		} finally {
			lock.unlock();
		}
	}

	/** Takes out a start that is due; returns its number, which the caller expires, or 0. */
	int takeDue() {
		lock.lock();
		try {
			long timeNs = timer.timeNs();

			for (int i = 0; i < nr; i++) {
				if (starts[i] != null && starts[i].deadlineNs <= timeNs) {
					int number = numbers[i];

					takeOut(i);
					return number;
				}
			}
			return 0;
		} finally {
			lock.unlock();
		}
	}

	int takePermits() {
		lock.lock();
		try {
			int taken = permits;

			permits = 0;
			return taken;
		} finally {
			lock.unlock();
		}
	}

	int permits() {
		lock.lock();
		try {
			return permits;
		} finally {
			lock.unlock();
		}
	}

	void close() {
		lock.lock();
		closed = true;
		lock.unlock();
	}

	private void apply() {
		long timeNs = timer.timeNs();
		int made = nr;

		for (int i = 0; i < made; i++) {
			delaysNs[i] = starts[i] == null ? Table.STOP :
				Math.max(0, starts[i].deadlineNs - timeNs);
		}
		timer.table.apply(numbers, delaysNs, results, made);
		nr = 0;
		for (int i = 0; i < made; i++) {
			TwheelTimeout timeout = starts[i];

			starts[i] = null;
			if (timeout == null) {
				// An idle number has been fetched: the worker gives it back.
				if (results[i] > Table.IDLE)
					giveBack(numbers[i]);
			} else if (results[i] >= Table.IDLE) {
				timeout.index = TwheelTimeout.NONE;
			} else {
				put(numbers[i], timeout);
			}
		}
	}

	private void put(int number, TwheelTimeout start) {
		numbers[nr] = number;
		starts[nr] = start;
		if (start != null)
			start.index = nr;
		nr++;
	}

	/** The last one takes its place. */
	private void takeOut(int index) {
		if (starts[index] != null)
			starts[index].index = TwheelTimeout.NONE;
		nr--;
		if (index != nr) {
			numbers[index] = numbers[nr];
			starts[index] = starts[nr];
			if (starts[index] != null)
				starts[index].index = index;
		}
		starts[nr] = null;
	}

	private void giveBack(int number) {
		timer.slots.set(number, null);
		if (nrFree == KEPT) {
			nrFree = KEPT / 2;
			timer.slots.giveBack(free, nrFree, KEPT / 2);
		}
		free[nrFree++] = number;
	}
}
