// SPDX-License-Identifier: MIT
package twheel.netty;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.Test;

/** Who gives a number back, when a timeout is cancelled that the worker has just fetched. */
public final class NumbersTest {
	/** Nothing expires by itself: the test says what does, and when the worker sees it. */
	private static final class ScriptedTable implements Table {
		final Set<Integer> started = new HashSet<>();
		final BlockingQueue<Integer> fetched = new LinkedBlockingQueue<>();
		int startedTwice;

		@Override
		public void apply(int[] numbers, long[] delaysNs, int[] results, int nr) {
			for (int i = 0; i < nr; i++) {
				results[i] = IDLE;
				if (delaysNs[i] == STOP)
					results[i] = started.remove(numbers[i]) ? PENDING : IDLE;
				else if (!started.add(numbers[i]))
					startedTwice++;
			}
		}

		@Override
		public void alarm(long delayNs) {
			if (delayNs == 0)
				fetched.add(ALARM);
		}

		@Override
		public int expired(int[] numbers) {
			try {
				numbers[0] = fetched.take();
				return 1;
			} catch (InterruptedException e) {
				throw new IllegalStateException(e);
			}
		}

		@Override
		public void close() {
		}
	}

	private final ScriptedTable table = new ScriptedTable();
	private final TableTimer timer = new TableTimer(Executors.defaultThreadFactory(), 0, 100_000,
		nr -> table) { };
	private final List<TwheelTimeout> timeouts = new ArrayList<>();

	@After
	public void stopTimer() {
		timer.stop();
	}

	private TwheelTimeout start() {
		TwheelTimeout timeout =
			(TwheelTimeout)timer.newTimeout(own -> { }, 1, TimeUnit.HOURS);

		timeouts.add(timeout);
		return timeout;
	}

	private void start(int nr) {
		for (int i = 0; i < nr; i++)
			start();
	}

	/** The worker sees that the number has expired. */
	private void deliver(int number) throws InterruptedException {
		table.fetched.add(number);
		while (timer.slots.get(number) != null)
			Thread.sleep(1);
	}

	/** Each timeout has a number of its own, and is started in the table or yet to be started. */
	private void checkNumbers() {
		Set<Integer> numbers = new HashSet<>();

		start(2 * Stripe.CHANGES);
		assertEquals(0, table.startedTwice);
		for (TwheelTimeout timeout : timeouts) {
			assertTrue(numbers.add(timeout.number));
			assertEquals(timeout.index == TwheelTimeout.NONE, table.started.contains(timeout.number));
		}
	}

	@Test
	public void theWorkerGivesBackWhatWasStoppedIdle() throws InterruptedException {
		start(Stripe.CHANGES + 1);
		TwheelTimeout victim = timeouts.remove(0);

		table.started.remove(victim.number);
		assertTrue(victim.cancel());
		start(2 * Stripe.CHANGES);
		deliver(victim.number);
		start(3 * Stripe.CHANGES);
		checkNumbers();
	}

	@Test
	public void noStopIsLeftWhenTheWorkerGivesANumberBack() throws InterruptedException {
		start(Stripe.CHANGES);
		TwheelTimeout first = start();
		TwheelTimeout victim = timeouts.remove(0);
		timeouts.remove(first);

		table.started.remove(victim.number);
		assertTrue(victim.cancel());
		deliver(victim.number);
		for (int i = 0; i < Stripe.CHANGES / 2; i++) {
			if (start().number == victim.number)
				break;
		}
		assertEquals(victim.number, timeouts.get(timeouts.size() - 1).number);
		// The last start takes the place of the first one, ahead of a stop if there is one.
		assertTrue(first.cancel());
		checkNumbers();
	}
}
