// SPDX-License-Identifier: MIT
package twheel.netty;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TestRule;

/** What {@code io.netty.util.Timer} promises, for each of our timers. */
public abstract class TimerContract {
	private static final TimerTask NOTHING = timeout -> { };
	private static final long HOUR = 3600;

	@Rule
	public final TestRule limit = org.junit.rules.Timeout.seconds(120);

	private TableTimer timer;

	abstract TableTimer create(long tickNs, long maxPendingTimeouts, ThreadFactory factory);

	private TableTimer create(long maxPendingTimeouts) {
		return create(1_000_000, maxPendingTimeouts, Executors.defaultThreadFactory());
	}

	@Before
	public void createTimer() {
		timer = create(0);
	}

	@After
	public void stopTimer() {
		timer.stop();
	}

	private void replaceTimer(long maxPendingTimeouts) {
		timer.stop();
		timer = create(maxPendingTimeouts);
	}

	/** A task that opens the latch. */
	private static TimerTask opening(CountDownLatch latch) {
		return timeout -> latch.countDown();
	}

	/** Waits until a timeout that is started now has expired. */
	private void waitForOne(long delayMs) throws InterruptedException {
		CountDownLatch latch = new CountDownLatch(1);

		timer.newTimeout(opening(latch), delayMs, TimeUnit.MILLISECONDS);
		latch.await();
	}

	@Test
	public void aTimeoutNeverExpiresEarly() throws InterruptedException {
		int nr = 2000;
		CountDownLatch left = new CountDownLatch(nr);
		AtomicInteger early = new AtomicInteger();
		Random random = new Random(1);

		for (int i = 0; i < nr; i++) {
			long delayNs = random.nextInt(200_000_000);
			long dueNs = System.nanoTime() + delayNs;
			timer.newTimeout(timeout -> {
				if (System.nanoTime() < dueNs)
					early.incrementAndGet();
				left.countDown();
			}, delayNs, TimeUnit.NANOSECONDS);
		}
		left.await();
		assertEquals(0, early.get());
	}

	@Test
	public void aShorterTimeoutThanAllBeforeComesFirst() throws InterruptedException {
		CountDownLatch latch = new CountDownLatch(1);
		long start = System.nanoTime();

		for (int i = 0; i < 10; i++)
			timer.newTimeout(NOTHING, 100 - i, TimeUnit.SECONDS);
		timer.newTimeout(opening(latch), 20, TimeUnit.MILLISECONDS);
		assertTrue(latch.await(60, TimeUnit.SECONDS));
		assertTrue(System.nanoTime() - start >= 20_000_000);
	}

	@Test
	public void delaysOfZeroAndBelowExpireAtOnce() throws InterruptedException {
		CountDownLatch latch = new CountDownLatch(3);

		timer.newTimeout(opening(latch), 0, TimeUnit.SECONDS);
		timer.newTimeout(opening(latch), -1, TimeUnit.SECONDS);
		timer.newTimeout(opening(latch), Long.MIN_VALUE, TimeUnit.DAYS);
		latch.await();
	}

	@Test
	public void theLongestDelayPendsAndStopReturnsIt() throws InterruptedException {
		Timeout longest = timer.newTimeout(NOTHING, Long.MAX_VALUE, TimeUnit.DAYS);

		waitForOne(20);
		assertFalse(longest.isExpired());
		assertEquals(Collections.singleton(longest), timer.stop());
	}

	@Test
	public void aTimeoutKnowsItsTimerAndItsTask() {
		Timeout timeout = timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS);

		assertSame(timer, timeout.timer());
		assertSame(NOTHING, timeout.task());
		assertTrue(timeout.toString().contains("in "));
	}

	@Test
	public void aTaskGetsItsTimeoutWhichHasExpired() throws InterruptedException {
		AtomicReference<Timeout> got = new AtomicReference<>();
		AtomicInteger states = new AtomicInteger();
		CountDownLatch latch = new CountDownLatch(1);
		Timeout timeout = timer.newTimeout(own -> {
			got.set(own);
			states.set((own.isExpired() ? 1 : 0) + (own.isCancelled() ? 2 : 0));
			latch.countDown();
		}, 30, TimeUnit.MILLISECONDS);

		assertFalse(timeout.isExpired());
		latch.await();
		assertSame(timeout, got.get());
		assertEquals(1, states.get());
		assertTrue(timeout.isExpired());
		assertFalse(timeout.isCancelled());
		assertTrue(timeout.toString().contains("expired"));
	}

	@Test
	public void aCancelledTimeoutDoesNotExpire() throws InterruptedException {
		AtomicInteger ran = new AtomicInteger();
		Timeout timeout = timer.newTimeout(own -> ran.incrementAndGet(), 20, TimeUnit.MILLISECONDS);

		assertTrue(timeout.cancel());
		assertTrue(timeout.isCancelled());
		assertFalse(timeout.isExpired());
		assertTrue(timeout.toString().contains("cancelled"));
		waitForOne(60);
		assertEquals(0, ran.get());
		assertFalse(timeout.isExpired());
	}

	@Test
	public void theSecondCancelSaysFalse() {
		Timeout timeout = timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS);

		assertTrue(timeout.cancel());
		assertFalse(timeout.cancel());
		assertTrue(timeout.isCancelled());
	}

	@Test
	public void aTimeoutThatTheTableHasIsCancelledAsWell() throws InterruptedException {
		AtomicInteger ran = new AtomicInteger();
		List<Timeout> timeouts = new ArrayList<>();

		// So many that their starts do not stay in the stripe.
		for (int i = 0; i < 3000; i++)
			timeouts.add(timer.newTimeout(own -> ran.incrementAndGet(), 5, TimeUnit.SECONDS));
		for (Timeout timeout : timeouts)
			assertTrue(timeout.cancel());
		assertEquals(0, timer.pendingTimeouts());
		waitForOne(5100);
		assertEquals(0, ran.get());
	}

	@Test
	public void aTimeoutIsNotCancelledByItsOwnTask() throws InterruptedException {
		AtomicReference<Boolean> said = new AtomicReference<>();
		CountDownLatch latch = new CountDownLatch(1);
		Timeout timeout = timer.newTimeout(own -> {
			said.set(own.cancel());
			latch.countDown();
		}, 1, TimeUnit.MILLISECONDS);

		latch.await();
		assertEquals(false, said.get());
		assertTrue(timeout.isExpired());
		assertFalse(timeout.isCancelled());
		assertFalse(timeout.cancel());
	}

	@Test
	public void aTaskCancelsAnotherThatIsDueAtTheSameTime() throws InterruptedException {
		int nr = 100;
		Timeout[] timeouts = new Timeout[nr];
		AtomicInteger ran = new AtomicInteger();
		CountDownLatch started = new CountDownLatch(1);

		for (int i = 0; i < nr; i++) {
			timeouts[i] = timer.newTimeout(own -> {
				started.await();
				ran.incrementAndGet();
				for (Timeout other : timeouts)
					other.cancel();
			}, 5, TimeUnit.MILLISECONDS);
		}
		Thread.sleep(20);
		started.countDown();
		waitForOne(20);
		assertEquals(1, ran.get());
		assertEquals(0, timer.pendingTimeouts());
	}

	@Test
	public void aTaskStartsTheNextTimeout() throws InterruptedException {
		CountDownLatch latch = new CountDownLatch(20);
		TimerTask again = new TimerTask() {
			@Override
			public void run(Timeout timeout) {
				latch.countDown();
				if (latch.getCount() > 0)
					timeout.timer().newTimeout(this, 1, TimeUnit.MILLISECONDS);
			}
		};

		timer.newTimeout(again, 1, TimeUnit.MILLISECONDS);
		latch.await();
	}

	@Test
	public void aTaskThatThrowsDoesNotEndTheWorker() throws InterruptedException {
		TimerTask[] throwing = {
			timeout -> { throw new IllegalStateException("of a test"); },
			timeout -> { throw new Exception("of a test"); },
			timeout -> { throw new AssertionError("of a test"); },
		};

		for (TimerTask task : throwing)
			timer.newTimeout(task, 1, TimeUnit.MILLISECONDS);
		waitForOne(20);
		waitForOne(1);
	}

	@Test
	public void equalTasksMakeDifferentTimeouts() {
		Timeout one = timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS);
		Timeout other = timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS);

		assertEquals(one, one);
		assertNotEquals(one, other);
		assertEquals(System.identityHashCode(one), one.hashCode());
	}

	@Test
	public void noTaskAndNoUnitAreRefused() {
		assertThrows(NullPointerException.class,
			() -> timer.newTimeout(null, 1, TimeUnit.SECONDS));
		assertThrows(NullPointerException.class, () -> timer.newTimeout(NOTHING, 1, null));
		assertEquals(0, timer.pendingTimeouts());
	}

	@Test
	public void stopReturnsWhatHasNotExpiredAndCancelsIt() throws InterruptedException {
		Set<Timeout> pending = new HashSet<>();

		for (int i = 0; i < 1000; i++)
			pending.add(timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS));
		Timeout cancelled = timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS);
		cancelled.cancel();
		waitForOne(5);
		assertEquals(pending, timer.stop());
		for (Timeout timeout : pending) {
			assertTrue(timeout.isCancelled());
			assertFalse(timeout.isExpired());
			assertFalse(timeout.cancel());
		}
		assertEquals(0, timer.pendingTimeouts());
	}

	@Test
	public void theSecondStopReturnsNothing() {
		timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS);
		assertEquals(1, timer.stop().size());
		assertEquals(Collections.emptySet(), timer.stop());
	}

	@Test
	public void aTimerThatNeverStartedIsStopped() {
		assertEquals(Collections.emptySet(), timer.stop());
	}

	@Test
	public void nothingStartsAfterStop() {
		timer.stop();
		assertThrows(IllegalStateException.class,
			() -> timer.newTimeout(NOTHING, 1, TimeUnit.SECONDS));
		assertThrows(IllegalStateException.class, () -> timer.start());
		assertEquals(0, timer.pendingTimeouts());
	}

	@Test
	public void aTaskMayNotStopItsTimer() throws InterruptedException {
		AtomicReference<Throwable> thrown = new AtomicReference<>();
		CountDownLatch latch = new CountDownLatch(1);

		timer.newTimeout(timeout -> {
			try {
				timeout.timer().stop();
			} catch (Throwable t) {
				thrown.set(t);
			}
			latch.countDown();
		}, 1, TimeUnit.MILLISECONDS);
		latch.await();
		assertEquals(IllegalStateException.class, thrown.get().getClass());
		waitForOne(1);
	}

	@Test
	public void stopWaitsForTheTaskThatRuns() throws InterruptedException {
		CountDownLatch runs = new CountDownLatch(1);
		AtomicInteger ended = new AtomicInteger();

		timer.newTimeout(timeout -> {
			runs.countDown();
			Thread.sleep(50);
			ended.set(1);
		}, 0, TimeUnit.MILLISECONDS);
		runs.await();
		timer.stop();
		assertEquals(1, ended.get());
	}

	@Test
	public void stopKeepsAnInterruptOfItsCaller() {
		timer.start();
		Thread.currentThread().interrupt();
		timer.stop();
		assertTrue(Thread.interrupted());
	}

	@Test
	public void anInterruptedThreadStartsAndCancels() throws InterruptedException {
		Thread.currentThread().interrupt();
		for (int i = 0; i < 1000; i++)
			timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS);
		assertTrue(timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS).cancel());
		assertTrue(Thread.interrupted());
		waitForOne(1);
	}

	@Test
	public void theGreatestNumberThatPendsIsExact() throws InterruptedException {
		int nr = 3;
		List<Timeout> timeouts = new ArrayList<>();

		replaceTimer(nr);
		for (int round = 0; round < 1000; round++) {
			for (int i = 0; i < nr; i++)
				timeouts.add(timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS));
			assertThrows(RejectedExecutionException.class,
				() -> timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS));
			assertEquals(nr, timer.pendingTimeouts());
			assertTrue(timeouts.remove(0).cancel());
			timeouts.add(timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS));
			assertThrows(RejectedExecutionException.class,
				() -> timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS));
			for (Timeout timeout : timeouts)
				assertTrue(timeout.cancel());
			timeouts.clear();
		}
		assertEquals(0, timer.pendingTimeouts());
	}

	@Test
	public void aTimeoutThatExpiresMakesRoomForItsTask() throws InterruptedException {
		AtomicReference<Object> got = new AtomicReference<>();
		CountDownLatch latch = new CountDownLatch(1);

		replaceTimer(1);
		timer.newTimeout(timeout -> {
			try {
				got.set(timeout.timer().newTimeout(NOTHING, HOUR, TimeUnit.SECONDS));
			} catch (RuntimeException e) {
				got.set(e);
			}
			latch.countDown();
		}, 1, TimeUnit.MILLISECONDS);
		latch.await();
		assertEquals(Collections.singleton(got.get()), timer.stop());
	}

	@Test
	public void threadsShareTheGreatestNumber() throws InterruptedException {
		int nr = 5000;
		AtomicInteger started = new AtomicInteger();
		AtomicInteger rejected = new AtomicInteger();

		replaceTimer(nr);
		inThreads(4, who -> {
			for (int i = 0; i < 2000; i++) {
				try {
					timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS);
					started.incrementAndGet();
				} catch (RejectedExecutionException e) {
					rejected.incrementAndGet();
				}
			}
		});
		assertEquals(nr, started.get());
		assertEquals(8000 - nr, rejected.get());
		assertEquals(nr, timer.stop().size());
	}

	@Test
	public void aTickOutsideItsRangeIsRefused() {
		for (long tickNs : new long[] { Long.MIN_VALUE, 0, 999, HOUR * 1_000_000_000 + 1 }) {
			assertThrows(IllegalArgumentException.class,
				() -> create(tickNs, 0, Executors.defaultThreadFactory()));
		}
		create(1000, 0, Executors.defaultThreadFactory()).stop();
		create(HOUR * 1_000_000_000, 0, Executors.defaultThreadFactory()).stop();
	}

	@Test
	public void moreThanTheGreatestNumberIsRefused() {
		assertThrows(IllegalArgumentException.class, () -> create(1L << 30));
		create(1 << 20).stop();
	}

	private interface Work {
		void run(int who) throws Exception;
	}

	private static void inThreads(int nr, Work work) throws InterruptedException {
		Thread[] threads = new Thread[nr];
		AtomicReference<Throwable> failed = new AtomicReference<>();

		for (int i = 0; i < nr; i++) {
			int who = i;
			threads[i] = new Thread(() -> {
				try {
					work.run(who);
				} catch (Throwable t) {
					failed.set(t);
				}
			});
			threads[i].start();
		}
		for (Thread thread : threads)
			thread.join();
		if (failed.get() != null)
			throw new AssertionError(failed.get());
	}

	@Test
	public void eachTimeoutHasOneOutcomeBesideThreadsThatCancel() throws InterruptedException {
		int nrThreads = 4;
		int nr = 20_000;
		AtomicInteger ran = new AtomicInteger();
		AtomicInteger cancelled = new AtomicInteger();
		AtomicInteger wrong = new AtomicInteger();

		inThreads(nrThreads, who -> {
			Random random = new Random(who);
			Timeout[] ring = new Timeout[300];
			for (int i = 0; i < nr; i++) {
				int at = random.nextInt(ring.length);
				if (ring[at] != null && ring[at].cancel())
					cancelled.incrementAndGet();
				ring[at] = timer.newTimeout(timeout -> {
					ran.incrementAndGet();
					if (!timeout.isExpired() || timeout.isCancelled())
						wrong.incrementAndGet();
				}, random.nextInt(6_000_000), TimeUnit.NANOSECONDS);
			}
		});
		waitForOne(50);
		assertEquals(0, wrong.get());
		assertEquals(nrThreads * nr, ran.get() + cancelled.get());
		assertEquals(0, timer.pendingTimeouts());
		assertEquals(Collections.emptySet(), timer.stop());
	}

	@Test
	public void oneThreadCancelsWhatAnotherHasStarted() throws InterruptedException {
		int nr = 20_000;
		Timeout[] timeouts = new Timeout[nr];
		AtomicInteger ran = new AtomicInteger();
		AtomicInteger cancelled = new AtomicInteger();

		for (int i = 0; i < nr; i++)
			timeouts[i] = timer.newTimeout(own -> ran.incrementAndGet(), 1 + i / 200,
				TimeUnit.MILLISECONDS);
		inThreads(4, who -> {
			for (int i = who; i < nr; i += 2) {
				if (timeouts[i].cancel())
					cancelled.incrementAndGet();
			}
		});
		waitForOne(200);
		assertEquals(nr, ran.get() + cancelled.get());
		assertEquals(0, timer.pendingTimeouts());
	}

	@Test
	public void stopBesideThreadsThatStartLosesNothing() throws InterruptedException {
		for (int round = 0; round < 20; round++) {
			Set<Timeout> started = ConcurrentHashMap.newKeySet();
			Set<Timeout> ran = ConcurrentHashMap.newKeySet();
			Set<Timeout> left = new HashSet<>();

			inThreads(4, who -> {
				if (who == 0) {
					Thread.sleep(2);
					left.addAll(timer.stop());
					return;
				}
				try {
					for (int i = 0; ; i++)
						started.add(timer.newTimeout(ran::add, i % 3 * 1000, TimeUnit.MICROSECONDS));
				} catch (IllegalStateException e) {
					// The timer has been stopped.
				}
			});
			left.addAll(ran);
			assertEquals(started, left);
			replaceTimer(0);
		}
	}

	@Test
	public void theAcceptanceProgramAccountsForAll() throws InterruptedException {
		assertEquals(Acceptance.WANTED, Acceptance.run(timer));
	}

	@Test
	public void numbersAreUsedAgain() {
		Timeout[] ring = new Timeout[3000];

		// Far more than there are numbers, and most are known to the table.
		replaceTimer(ring.length);
		for (int i = 0; i < 100_000; i++) {
			int at = i % ring.length;
			if (ring[at] != null)
				assertTrue(ring[at].cancel());
			ring[at] = timer.newTimeout(NOTHING, HOUR, TimeUnit.SECONDS);
		}
		assertEquals(ring.length, timer.stop().size());
	}

	@Test
	public void aTimeoutThatWasCancelledIsForgotten() throws InterruptedException {
		List<WeakReference<TimerTask>> tasks = new ArrayList<>();
		List<Timeout> timeouts = new ArrayList<>();

		for (int i = 0; i < 3000; i++) {
			TimerTask task = new TimerTask() {
				@Override
				public void run(Timeout timeout) {
				}
			};
			tasks.add(new WeakReference<>(task));
			timeouts.add(timer.newTimeout(task, HOUR, TimeUnit.SECONDS));
		}
		for (Timeout timeout : timeouts)
			timeout.cancel();
		timeouts.clear();
		for (int i = 0; i < 50 && tasks.stream().anyMatch(task -> task.get() != null); i++) {
			System.gc();
			Thread.sleep(20);
		}
		assertEquals(0, tasks.stream().filter(task -> task.get() != null).count());
	}

	@Test
	public void tasksRunInTheThreadOfTheFactory() throws InterruptedException {
		AtomicReference<Thread> made = new AtomicReference<>();
		AtomicReference<Thread> ran = new AtomicReference<>();
		CountDownLatch latch = new CountDownLatch(1);

		timer.stop();
		timer = create(1_000_000, 0, work -> {
			made.set(Executors.defaultThreadFactory().newThread(work));
			return made.get();
		});
		timer.newTimeout(timeout -> {
			ran.set(Thread.currentThread());
			latch.countDown();
		}, 1, TimeUnit.MILLISECONDS);
		latch.await();
		assertSame(made.get(), ran.get());
		timer.stop();
		assertFalse(made.get().isAlive());
	}
}
