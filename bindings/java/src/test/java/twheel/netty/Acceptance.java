// SPDX-License-Identifier: MIT
package twheel.netty;

import io.netty.util.Timeout;
import io.netty.util.Timer;
import io.netty.util.concurrent.DefaultEventExecutor;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The acceptance program: 10,000 timeouts, of which 5,000 are cancelled and 2,500 moved, and all
 * others received by an event executor of Netty's.
 *
 * <pre>Acceptance [device]</pre>
 */
public final class Acceptance {
	private static final int NR = 10_000;
	private static final int CANCELLED = 5_000;
	private static final long SHORT_NS = 3_000_000_000L;
	private static final long LONG_NS = 3_500_000_000L;

	static final String WANTED =
		"5000 cancelled, 2500 moved, 5000 received, 0 wrong, 0 early, 0 left";

	private final Timer timer;
	private final DefaultEventExecutor loop = new DefaultEventExecutor();
	private final CountDownLatch left = new CountDownLatch(NR - CANCELLED);

	// Of the loop's thread alone.
	private final int[] received = new int[NR];
	private int early;

	private Acceptance(Timer timer) {
		this.timer = timer;
	}

	private Timeout start(int who, long delayNs) {
		long dueNs = System.nanoTime() + delayNs;

		return timer.newTimeout(timeout -> loop.execute(() -> {
			received[who]++;
			if (System.nanoTime() < dueNs)
				early++;
			left.countDown();
		}), delayNs, TimeUnit.NANOSECONDS);
	}

	/** Of four, two are cancelled, and one is moved. */
	private String account() throws InterruptedException {
		Timeout[] timeouts = new Timeout[NR];
		int cancelled = 0;
		int moved = 0;

		for (int i = 0; i < NR; i++)
			timeouts[i] = start(i, SHORT_NS);
		for (int i = 0; i < NR; i++) {
			if (i % 4 < 2) {
				cancelled += timeouts[i].cancel() ? 1 : 0;
			} else if (i % 4 == 2 && timeouts[i].cancel()) {
				timeouts[i] = start(i, LONG_NS);
				moved++;
			}
		}
		left.await(60, TimeUnit.SECONDS);
		int unprocessed = timer.stop().size();
		loop.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();

		int once = 0;
		int wrong = 0;
		for (int i = 0; i < NR; i++) {
			once += received[i] == 1 && i % 4 >= 2 ? 1 : 0;
			wrong += received[i] > 1 || (received[i] > 0 && i % 4 < 2) ? 1 : 0;
		}
		return String.format("%d cancelled, %d moved, %d received, %d wrong, %d early, %d left",
			cancelled, moved, once, wrong, early, unprocessed);
	}

	/** Stops the timer as well. */
	static String run(Timer timer) throws InterruptedException {
		return new Acceptance(timer).account();
	}

	public static void main(String[] arguments) throws InterruptedException {
		boolean device = arguments.length > 0 && arguments[0].equals("device");
		String got = run(device ? new TwheelDeviceTimer() : new TwheelTimer());

		System.out.println(got);
		System.exit(got.equals(WANTED) ? 0 : 1);
	}
}
