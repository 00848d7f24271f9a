// SPDX-License-Identifier: MIT
package twheel.netty;

import io.netty.util.Timeout;
import io.netty.util.Timer;
import io.netty.util.TimerTask;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

final class TwheelTimeout implements Timeout {
	private static final AtomicIntegerFieldUpdater<TwheelTimeout> STATE =
		AtomicIntegerFieldUpdater.newUpdater(TwheelTimeout.class, "state");
	private static final int PENDING = 0;
	private static final int CANCELLED = 1;
	private static final int EXPIRED = 2;

	final Stripe stripe;
	final TimerTask task;
	/** By the clock of the timer. */
	final long deadlineNs;

	/** It leaves PENDING once, under the stripe's lock to CANCELLED, without it to EXPIRED. */
	private volatile int state = PENDING;

	// Guarded by the stripe's lock.
	int number;
	/** Where its start is among the changes of the stripe; NONE: the table has it. */
	int index;
	static final int NONE = -1;

	TwheelTimeout(Stripe stripe, TimerTask task, long deadlineNs) {
		this.stripe = stripe;
		this.task = task;
		this.deadlineNs = deadlineNs;
	}

	/** Under the stripe's lock. Nobody else can end a timeout that only the stripe knows. */
	boolean markCancelled() {
		if (index == NONE || state != PENDING)
			return STATE.compareAndSet(this, PENDING, CANCELLED);
		STATE.lazySet(this, CANCELLED);
		return true;
	}

	boolean markExpired() {
		return STATE.compareAndSet(this, PENDING, EXPIRED);
	}

	@Override
	public Timer timer() {
		return stripe.timer;
	}

	@Override
	public TimerTask task() {
		return task;
	}

	@Override
	public boolean isExpired() {
		return state == EXPIRED;
	}

	@Override
	public boolean isCancelled() {
		return state == CANCELLED;
	}

	@Override
	public boolean cancel() {
		return state == PENDING && stripe.cancel(this);
	}

	@Override
	public String toString() {
		long leftNs = deadlineNs - stripe.timer.timeNs();
		int now = state;

		return "TwheelTimeout(" + (now == CANCELLED ? "cancelled" : now == EXPIRED ? "expired" :
			leftNs > 0 ? "in " + leftNs + " ns" : "due") + ", task: " + task + ")";
	}
}
