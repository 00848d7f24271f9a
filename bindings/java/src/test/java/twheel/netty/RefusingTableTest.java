// SPDX-License-Identifier: MIT
package twheel.netty;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import io.netty.util.Timeout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.After;
import org.junit.Test;

/** A table without memory, as the device may be: it refuses each start but the alarm's. */
public final class RefusingTableTest {
	private static final class RefusingTable implements Table {
		/** By System.nanoTime(). */
		private Long alarmNs;

		@Override
		public void apply(int[] numbers, long[] delaysNs, int[] results, int nr) {
			for (int i = 0; i < nr; i++)
				results[i] = delaysNs[i] == STOP ? PENDING : -1;
		}

		@Override
		public synchronized void alarm(long delayNs) {
			alarmNs = System.nanoTime() + delayNs;
			notifyAll();
		}

		@Override
		public synchronized int expired(int[] numbers) {
			while (alarmNs == null || alarmNs - System.nanoTime() > 0) {
				try {
					if (alarmNs == null)
						wait();
					else
						TimeUnit.NANOSECONDS.timedWait(this, alarmNs - System.nanoTime());
				} catch (InterruptedException e) {
					throw new IllegalStateException(e);
				}
			}
			alarmNs = null;
			numbers[0] = ALARM;
			return 1;
		}

		@Override
		public void close() {
		}
	}

	private final TableTimer timer = new TableTimer(Executors.defaultThreadFactory(), 0, 10_000,
		nr -> new RefusingTable()) { };

	@After
	public void stopTimer() {
		timer.stop();
	}

	@Test
	public void whatWasAcceptedExpiresNevertheless() throws InterruptedException {
		CountDownLatch left = new CountDownLatch(200);
		AtomicInteger early = new AtomicInteger();

		for (int i = 0; i < 200; i++) {
			long due = System.nanoTime() + i * 500_000L;
			timer.newTimeout(timeout -> {
				if (System.nanoTime() < due)
					early.incrementAndGet();
				left.countDown();
			}, due - System.nanoTime(), TimeUnit.NANOSECONDS);
		}
		assertTrue(left.await(60, TimeUnit.SECONDS));
		assertEquals(0, early.get());
		assertEquals(0, timer.pendingTimeouts());
	}

	@Test
	public void whatFindsNoPlaceIsRejected() {
		List<Timeout> timeouts = new ArrayList<>();

		assertThrows(RejectedExecutionException.class, () -> {
			for (;;)
				timeouts.add(timer.newTimeout(timeout -> { }, 1, TimeUnit.HOURS));
		});
		assertEquals(Stripe.CHANGES, timeouts.size());
		assertEquals(Stripe.CHANGES, timer.pendingTimeouts());
		assertTrue(timeouts.get(7).cancel());
		timer.newTimeout(timeout -> { }, 1, TimeUnit.HOURS);
		assertEquals(Stripe.CHANGES, timer.stop().size());
	}
}
