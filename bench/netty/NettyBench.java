// SPDX-License-Identifier: GPL-2.0
import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Netty's HashedWheelTimer under the workloads of twheel-bench: rows of CSV on
 * stdout, processor time of the whole process, the timer's thread included.
 *
 * The tick is 1 ms, the shortest there is, and the wheel covers a minute, so that
 * no timeout has to wait for rounds. It has no way to move a timeout: a refresh
 * cancels it and makes another.
 */
final class NettyBench {
	private static final long MS = 1000000L;
	private static final long FAR_NS = 60000 * MS;
	private static final int SLOTS = 65536;
	private static final int MEASURED = 3;

	private final int nr;
	private final HashedWheelTimer timer =
		new HashedWheelTimer(1, TimeUnit.MILLISECONDS, SLOTS);
	private final Timeout[] timeout;
	private final int[] order;
	private final long[] delayNs;
	private final TimerTask nothing = expired -> { };

	private NettyBench(int nr) {
		this.nr = nr;
		timeout = new Timeout[nr];
		order = new int[nr];
		delayNs = new long[nr];
		timer.start();
	}

	/** Of all threads, to the nanosecond; what the JVM tells is rounded to 10 ms. */
	private static long cpuNs() {
		long sum = 0;

		for (File task : new File("/proc/self/task").listFiles()) {
			try {
				sum += Long.parseLong(Files.readString(
					new File(task, "schedstat").toPath()).split(" ")[0]);
			} catch (IOException e) {
				/* A thread that has ended meanwhile. */
			}
		}
		return sum;
	}

	private static void result(int nr, String workload, String metric, double value) {
		System.out.printf(Locale.ROOT, "time,netty,%s,%d,%s,%.1f%n", workload, nr, metric, value);
	}

	/** What the timer's thread has put off is done within some ticks. */
	private void settle() throws InterruptedException {
		Thread.sleep(5 + nr / 20000);
	}

	private void shuffle(Random random) {
		for (int i = nr - 1; i > 0; i--) {
			int j = random.nextInt(i + 1);
			int k = order[i];

			order[i] = order[j];
			order[j] = k;
		}
	}

	private void arm() {
		for (int i : order)
			timeout[i] = timer.newTimeout(nothing, delayNs[i], TimeUnit.NANOSECONDS);
	}

	private void cancel() {
		for (int i : order)
			timeout[i].cancel();
	}

	private void refresh() {
		for (int i : order) {
			timeout[i].cancel();
			timeout[i] = timer.newTimeout(nothing, delayNs[i], TimeUnit.NANOSECONDS);
		}
	}

	private double each(Runnable work) throws InterruptedException {
		long before = cpuNs();

		work.run();
		settle();
		return (double)(cpuNs() - before) / nr;
	}

	private void operations(boolean tell) throws InterruptedException {
		Random random = new Random(1);
		double cost;

		for (int i = 0; i < nr; i++) {
			order[i] = i;
			delayNs[i] = FAR_NS + (long)(random.nextDouble() * FAR_NS);
		}
		cost = each(this::arm);
		if (tell)
			result(nr, "arm", "cost", cost);
		shuffle(random);
		cost = each(this::refresh);
		if (tell)
			result(nr, "refresh", "cost", cost);
		shuffle(random);
		cost = each(this::cancel);
		if (tell)
			result(nr, "cancel", "cost", cost);
	}

	/** All are due within a second; their lateness is noted by the timer's thread. */
	private void expire(boolean tell) throws InterruptedException {
		CountDownLatch left = new CountDownLatch(nr);
		long startNs = System.nanoTime() + 500 * MS + nr * 1000L;
		long[] lateNs = new long[nr];
		Random random = new Random(2);
		long before;

		for (int i = 0; i < nr; i++) {
			long dueNs = startNs + (long)(random.nextDouble() * 1000 * MS);
			int who = i;

			timer.newTimeout(expired -> {
				lateNs[who] = System.nanoTime() - dueNs;
				left.countDown();
			}, dueNs - System.nanoTime(), TimeUnit.NANOSECONDS);
		}
		while (System.nanoTime() < startNs)
			Thread.sleep(1);
		before = cpuNs();
		left.await();
		if (!tell)
			return;
		result(nr, "expire", "cost", (double)(cpuNs() - before) / nr);
		Arrays.sort(lateNs);
		for (double share : new double[] { 50, 90, 99, 99.9, 99.99 })
			result(nr, "late", "p" + (share == (int)share ? "" + (int)share : "" + share),
			       lateNs[(int)(share / 100 * (nr - 1))] / 1000.0);
		result(nr, "late", "max", lateNs[nr - 1] / 1000.0);
	}

	public static void main(String[] args) throws InterruptedException {
		for (String arg : args) {
			NettyBench bench = new NettyBench(Integer.parseInt(arg));

			/* The compiler of the JVM needs to have seen it. */
			for (int i = 1; i <= MEASURED; i++) {
				bench.operations(i == MEASURED);
				bench.expire(i == MEASURED);
			}
			bench.timer.stop();
		}
	}
}
