// SPDX-License-Identifier: MIT
import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.Timer;
import io.netty.util.TimerTask;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import twheel.netty.TwheelDeviceTimer;
import twheel.netty.TwheelTimer;

/**
 * TwheelTimer beside HashedWheelTimer and ScheduledThreadPoolExecutor. Times of the processor are
 * those of the whole process, but for the JVM's compilers.
 *
 * <pre>TimerBench [NAME...]</pre>
 */
final class TimerBench {
	private static final long MS = 1_000_000;
	private static final int ROUNDS = 60;
	private static final ExecutorService[] threads = new ExecutorService[4];
	private static final TimerTask NOTHING = timeout -> { };

	/** What the three have in common. */
	private interface Subject {
		Object start(TimerTask task, long delayNs);

		void cancel(Object timeout);

		void stop();
	}

	private static final class NettySubject implements Subject {
		private final Timer timer;

		NettySubject(Timer timer) {
			this.timer = timer;
		}

		@Override
		public Object start(TimerTask task, long delayNs) {
			return timer.newTimeout(task, delayNs, TimeUnit.NANOSECONDS);
		}

		@Override
		public void cancel(Object timeout) {
			((Timeout)timeout).cancel();
		}

		@Override
		public void stop() {
			timer.stop();
		}
	}

	private static final class PoolSubject implements Subject {
		private final ScheduledThreadPoolExecutor pool = new ScheduledThreadPoolExecutor(1);

		PoolSubject() {
			pool.setRemoveOnCancelPolicy(true);
		}

		@Override
		public Object start(TimerTask task, long delayNs) {
			return pool.schedule(() -> {
				task.run(null);
				return null;
			}, delayNs, TimeUnit.NANOSECONDS);
		}

		@Override
		public void cancel(Object timeout) {
			((Future<?>)timeout).cancel(false);
		}

		@Override
		public void stop() {
			pool.shutdownNow();
		}
	}

	private static Subject subject(String name) {
		switch (name) {
		case "twheel":
			return new NettySubject(new TwheelTimer());
		case "twheel-device":
			return new NettySubject(new TwheelDeviceTimer());
		case "netty-1ms":
			return new NettySubject(new HashedWheelTimer(Executors.defaultThreadFactory(), 1,
				TimeUnit.MILLISECONDS, 65536, false));
		case "netty-100ms":
			return new NettySubject(new HashedWheelTimer());
		case "pool":
			return new PoolSubject();
		default:
			throw new IllegalArgumentException(name);
		}
	}

	/** A number from a file of each thread, added up: of all but the JVM's compilers. */
	private static long ofThreads(String file, String[] words) {
		long sum = 0;

		for (File task : new File("/proc/self/task").listFiles()) {
			try {
				if (Files.readString(new File(task, "comm").toPath()).matches("C[12] (?s).*"))
					continue;
				for (String line : Files.readAllLines(new File(task, file).toPath())) {
					String[] fields = line.split("\\s+");
					if (words.length == 0)
						sum += Long.parseLong(fields[0]);
					else if (Arrays.asList(words).contains(fields[0]))
						sum += Long.parseLong(fields[1]);
				}
			} catch (IOException e) {
				// A thread that has ended.
			}
		}
		return sum;
	}

	private static long cpuNs() {
		return ofThreads("schedstat", new String[0]);
	}

	private static long switches() {
		return ofThreads("status",
			new String[] { "voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:" });
	}

	/** 10,000 pend for 5 s, and nothing else happens. */
	private static void idle(Subject s, double[] figures) throws InterruptedException {
		Object[] timeouts = new Object[10_000];

		for (int i = 0; i < timeouts.length; i++)
			timeouts[i] = s.start(NOTHING, 60_000 * MS + i * MS);
		System.gc();
		Thread.sleep(2000);
		long cpu = cpuNs();
		long switched = switches();
		Thread.sleep(5000);
		figures[0] = (cpuNs() - cpu) / 1e6;
		figures[1] = switches() - switched;
		for (Object timeout : timeouts)
			s.cancel(timeout);
	}

	/** Each is cancelled when so many more have been started. */
	private static void pairs(Subject s, int nr, Object[] ring) {
		for (int i = 0; i < nr; i++) {
			int at = i % ring.length;
			if (ring[at] != null)
				s.cancel(ring[at]);
			ring[at] = s.start(NOTHING, 30_000 * MS);
		}
		for (int i = 0; i < ring.length; i++) {
			if (ring[i] != null)
				s.cancel(ring[i]);
			ring[i] = null;
		}
	}

	/** A round on some of the threads, which stay for the next one. */
	private static void round(Subject s, int nr, Object[][] rings) throws InterruptedException {
		CountDownLatch done = new CountDownLatch(rings.length);

		for (int i = 0; i < rings.length; i++) {
			Object[] ring = rings[i];
			threads[i].execute(() -> {
				pairs(s, nr, ring);
				done.countDown();
			});
		}
		done.await();
	}

	/**
	 * For a pair of one thread: the time on the clock, the best of many rounds, and that of all
	 * processors, of all rounds, with what the timer puts off.
	 */
	private static double[] pairs(Subject s, int nrThreads, int among)
			throws InterruptedException {
		int nr = 40_000;
		Object[][] rings = new Object[nrThreads][among];
		double best = Double.MAX_VALUE;

		for (int i = 0; i < ROUNDS; i++)
			round(s, nr, rings);
		Thread.sleep(200);
		long cpu = cpuNs();
		for (int i = 0; i < ROUNDS; i++) {
			long start = System.nanoTime();
			round(s, nr, rings);
			best = Math.min(best, (double)(System.nanoTime() - start) / nr);
		}
		Thread.sleep(200);
		return new double[] { best, (double)(cpuNs() - cpu) / nr / nrThreads / ROUNDS };
	}

	/** 100,000 expire in a second: in any order, or in that in which they were started. */
	private static double[] expire(Subject s, int seed, boolean inOrder)
			throws InterruptedException {
		int nr = 100_000;
		CountDownLatch left = new CountDownLatch(nr);
		long from = System.nanoTime() + 500 * MS;
		long[] lateNs = new long[nr];
		Random random = new Random(seed);

		for (int i = 0; i < nr; i++) {
			double when = inOrder ? (double)i / nr : random.nextDouble();
			long due = from + (long)(when * 1000 * MS);
			int who = i;
			s.start(timeout -> {
				lateNs[who] = System.nanoTime() - due;
				left.countDown();
			}, due - System.nanoTime());
		}
		while (System.nanoTime() < from)
			Thread.sleep(1);
		long cpu = cpuNs();
		left.await();
		double each = (double)(cpuNs() - cpu) / nr;
		Arrays.sort(lateNs);
		return new double[] { each, lateNs[nr / 2] / 1e6 };
	}

	/** The middle of some rounds, when the JVM has compiled it. */
	private static double[] expire(Subject s, boolean inOrder) throws InterruptedException {
		double[] each = new double[5];
		double[] late = new double[each.length];

		for (int i = -3; i < each.length; i++) {
			double[] figures = expire(s, i, inOrder);
			if (i >= 0) {
				each[i] = figures[0];
				late[i] = figures[1];
			}
		}
		Arrays.sort(each);
		Arrays.sort(late);
		return new double[] { each[each.length / 2], late[each.length / 2] };
	}

	/** @param format of two figures */
	private static void print(String name, String what, String format, double[] figures) {
		System.out.printf(Locale.ROOT, "%-13s %-28s " + format + "%n", name, what, figures[0],
			figures[1]);
	}

	private static void measure(String name) throws InterruptedException {
		Subject s = subject(name);
		double[] idle = new double[2];

		for (int among : new int[] { 1, 1000, 10_000 }) {
			for (int nrThreads : new int[] { 1, 4 })
				print(name, "pair among " + among + ", " + nrThreads + " thr.",
					"%5.0f ns, %5.0f ns of CPU", pairs(s, nrThreads, among));
		}
		for (boolean inOrder : new boolean[] { false, true })
			print(name, inOrder ? "expiry, in order" : "expiry, in any order",
				"%5.0f ns of CPU, median lateness %.2f ms", expire(s, inOrder));
		idle(s, idle);
		print(name, "10,000 pend for 5 s", "%5.1f ms of CPU, %.0f context switches", idle);
		s.stop();
	}

	public static void main(String[] names) throws InterruptedException {
		for (int i = 0; i < threads.length; i++)
			threads[i] = Executors.newSingleThreadExecutor();
		for (String name : names.length > 0 ? names :
				new String[] { "twheel", "netty-1ms", "netty-100ms", "pool" })
			measure(name);
		for (ExecutorService thread : threads)
			thread.shutdown();
	}
}
