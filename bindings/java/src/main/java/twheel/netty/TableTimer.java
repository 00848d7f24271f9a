// SPDX-License-Identifier: MIT
package twheel.netty;

import io.netty.util.Timeout;
import io.netty.util.Timer;
import io.netty.util.TimerTask;
import io.netty.util.internal.logging.InternalLogger;
import io.netty.util.internal.logging.InternalLoggerFactory;
import java.util.Collections;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A timer on a table. Starts and stops are collected in stripes, and reach the table many at a
 * time. The worker sleeps in the table.
 *
 * <p>A start that is still in a stripe must not be late. So there is an alarm, a number of the
 * table, and no start in a stripe is due before it:
 * <ul>
 * <li>Who starts a timeout puts it into a stripe. Then, if it is due before the alarm, he sets the
 *     alarm to its deadline.
 * <li>When the worker has fetched the alarm, it notes that there is none. Then it drains the
 *     stripes.
 * </ul>
 * So a start that comes too late to be drained sees that there is no alarm, and sets one. An alarm
 * that comes for nothing does no harm.
 */
abstract class TableTimer implements Timer {
	private static final InternalLogger logger = InternalLoggerFactory.getInstance(TableTimer.class);
	/** Numbers that the worker fetches at a time. */
	private static final int BATCH = 1024;
	private static final long FAR_NS = Long.MAX_VALUE / 2;

	private static final long TICK_MIN_NS = 1000;
	private static final long TICK_MAX_NS = 3_600_000_000_000L;

	private static final int NEW = 0;
	private static final int RUNNING = 1;
	private static final int STOPPED = 2;

	final Table table;
	final Slots slots;
	private final Stripe[] stripes;
	private final Thread worker;
	private final int maxPending;
	/** What is neither pending nor a permit of a stripe. */
	private final AtomicInteger permits;
	/** One at a time takes the permits of all stripes. */
	private final Object lastPermits = new Object();
	private final long originNs = System.nanoTime();

	private final Object alarmLock = new Object();
	/** Written under alarmLock. */
	private volatile long alarmNs = Long.MAX_VALUE;
	/** The alarm is for the worker's end. Guarded by alarmLock. */
	private boolean closed;

	/** Written under this. */
	private volatile int state = NEW;

	/** Numbers that are free again, of the worker. */
	private final int[] back = new int[BATCH];
	private int nrBack;

	/** Makes the table of a timer, with that many numbers. */
	interface Opener {
		Table open(int nr);
	}

	/** @param maxPendingTimeouts 0 or less for {@code greatest} */
	TableTimer(ThreadFactory threadFactory, long maxPendingTimeouts, int greatest, Opener opener) {
		if (maxPendingTimeouts > greatest)
			throw new IllegalArgumentException(maxPendingTimeouts + " is above " + greatest);
		maxPending = maxPendingTimeouts > 0 ? (int)maxPendingTimeouts : greatest;
		permits = new AtomicInteger(maxPending);
		stripes = new Stripe[stripesFor(Runtime.getRuntime().availableProcessors())];
		for (int i = 0; i < stripes.length; i++)
			stripes[i] = new Stripe(this);
		// Besides those that pend, a number may be on its way back.
		int capacity = 1 + maxPending + BATCH +
			stripes.length * (Stripe.KEPT + Stripe.CHANGES + 1);
		worker = Objects.requireNonNull(threadFactory.newThread(this::work), "thread");
		slots = new Slots(capacity);
		table = opener.open(capacity);
	}

	private static int stripesFor(int processors) {
		return Integer.highestOneBit(4 * Math.min(processors, 16));
	}

	static long tickNs(long tickDuration, TimeUnit unit) {
		long tickNs = unit.toNanos(tickDuration);

		if (tickNs < TICK_MIN_NS || tickNs > TICK_MAX_NS)
			throw new IllegalArgumentException("a tick of " + tickNs + " ns: not 1 us to 1 h");
		return tickNs;
	}

	/** The time since the timer was made. */
	final long timeNs() {
		return System.nanoTime() - originNs;
	}

	/** How many timeouts have neither expired nor been cancelled. */
	public final long pendingTimeouts() {
		long left = permits.get();

		for (Stripe stripe : stripes)
			left += stripe.permits();
		return Math.max(0, maxPending - left);
	}

	/**
	 * Starts the worker. {@link #newTimeout} does it as well.
	 *
	 * @throws IllegalStateException if the timer has been stopped
	 */
	public final void start() {
		if (state == RUNNING)
			return;
		synchronized (this) {
			if (state == STOPPED)
				throw new IllegalStateException("the timer has been stopped");
			if (state == NEW)
				worker.start();
			state = RUNNING;
		}
	}

	@Override
	public final Timeout newTimeout(TimerTask task, long delay, TimeUnit unit) {
		Objects.requireNonNull(task, "task");
		long delayNs = Math.min(Math.max(0, unit.toNanos(delay)), FAR_NS);
		long deadlineNs = timeNs() + delayNs;

		start();
		Stripe stripe = stripes[(int)Thread.currentThread().getId() & (stripes.length - 1)];
		TwheelTimeout timeout = new TwheelTimeout(stripe, task, deadlineNs);
		if (!stripe.start(timeout, 0))
			startByLastPermit(stripe, timeout);
		if (deadlineNs < alarmNs)
			setAlarm(deadlineNs);
		return timeout;
	}

	/**
	 * Stops the timer, waits for a task that runs, and cancels all timeouts that have not
	 * expired.
	 *
	 * @return the timeouts that it has cancelled; none if the timer had been stopped before
	 * @throws IllegalStateException if a task of this timer calls it
	 */
	@Override
	public final Set<Timeout> stop() {
		boolean running;

		if (Thread.currentThread() == worker)
			throw new IllegalStateException("a task may not stop its timer");
		synchronized (this) {
			if (state == STOPPED)
				return Collections.emptySet();
			running = state == RUNNING;
			state = STOPPED;
		}
		for (Stripe stripe : stripes)
			stripe.close();
		synchronized (alarmLock) {
			closed = true;
			if (running)
				table.alarm(0);
		}
		if (running)
			joinWorker();
		Set<Timeout> cancelled = cancelAll();
		table.close();
		return cancelled;
	}

	private void joinWorker() {
		boolean interrupted = false;

		for (;;) {
			try {
				worker.join();
				break;
			} catch (InterruptedException e) {
				interrupted = true;
			}
		}
		if (interrupted)
			Thread.currentThread().interrupt();
	}

	private Set<Timeout> cancelAll() {
		Set<Timeout> cancelled = new HashSet<>();
		int end = slots.end();

		for (int number = Table.ALARM + 1; number < end; number++) {
			Object owner = slots.get(number);

			if (owner instanceof TwheelTimeout && ((TwheelTimeout)owner).cancel())
				cancelled.add((TwheelTimeout)owner);
		}
		return cancelled;
	}

	/** Other stripes may have permits. */
	private void startByLastPermit(Stripe stripe, TwheelTimeout timeout) {
		synchronized (lastPermits) {
			int found = 0;

			for (Stripe other : stripes)
				found += other.takePermits();
			if (!stripe.start(timeout, found))
				throw new RejectedExecutionException(maxPending + " timeouts pend");
		}
	}

	/** Up to {@code nr}. */
	final int takePermits(int nr) {
		int left, taken;

		do {
			left = permits.get();
			taken = Math.min(left, nr);
		} while (taken > 0 && !permits.compareAndSet(left, left - taken));
		return taken;
	}

	final void givePermits(int nr) {
		permits.addAndGet(nr);
	}

	private void setAlarm(long deadlineNs) {
		synchronized (alarmLock) {
			if (deadlineNs >= alarmNs || closed)
				return;
			table.alarm(Math.max(0, deadlineNs - timeNs()));
			alarmNs = deadlineNs;
		}
	}

	private void work() {
		int[] numbers = new int[BATCH];

		while (state != STOPPED) {
			int nr = table.expired(numbers);

			for (int i = 0; i < nr && state != STOPPED; i++) {
				if (numbers[i] == Table.ALARM)
					drain();
				else
					expire(numbers[i]);
			}
			giveBack();
		}
	}

	private void drain() {
		synchronized (alarmLock) {
			alarmNs = Long.MAX_VALUE;
		}
		for (Stripe stripe : stripes) {
			if (stripe.drain() != Long.MAX_VALUE)
				expireRefused(stripe);
		}
	}

	/** The table refuses these, for want of memory: it is done without it. */
	private void expireRefused(Stripe stripe) {
		int number;

		while (state != STOPPED && (number = stripe.takeDue()) != 0)
			expire(number);
		setAlarm(stripe.drain());
	}

	private void expire(int number) {
		Object owner = slots.get(number);

		if (owner instanceof TwheelTimeout && ((TwheelTimeout)owner).markExpired()) {
			free(number);
			givePermits(1);
			run((TwheelTimeout)owner);
			return;
		}
		Stripe stripe = owner instanceof Stripe ? (Stripe)owner : ((TwheelTimeout)owner).stripe;
		stripe.fetchedCancelled(number);
		free(number);
	}

	private static void run(TwheelTimeout timeout) {
		try {
			timeout.task.run(timeout);
		} catch (Throwable t) {
			logger.warn("a task of a timer has thrown an exception", t);
		}
	}

	private void free(int number) {
		slots.set(number, null);
		if (nrBack == BATCH)
			giveBack();
		back[nrBack++] = number;
	}

	private void giveBack() {
		if (nrBack > 0)
			slots.giveBack(back, 0, nrBack);
		nrBack = 0;
	}
}
