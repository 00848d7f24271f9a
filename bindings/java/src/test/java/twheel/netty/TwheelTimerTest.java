// SPDX-License-Identifier: MIT
package twheel.netty;

import static org.junit.Assert.assertThrows;

import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

/** The timer in the process. */
public final class TwheelTimerTest extends TimerContract {
	@Override
	TableTimer create(long maxPendingTimeouts, ThreadFactory factory) {
		return new TwheelTimer(factory, 1, TimeUnit.MILLISECONDS, maxPendingTimeouts);
	}

	@Test
	public void aTickOutsideItsRangeIsRefused() {
		for (long tickNs : new long[] { Long.MIN_VALUE, 0, 999, TimeUnit.HOURS.toNanos(1) + 1 }) {
			assertThrows(IllegalArgumentException.class, () -> new TwheelTimer(
				Executors.defaultThreadFactory(), tickNs, TimeUnit.NANOSECONDS, 0));
		}
	}

	@Test
	public void moreThanTheGreatestNumberIsRefused() {
		assertThrows(IllegalArgumentException.class,
			() -> create(TwheelTimer.MAX_PENDING + 1L, Executors.defaultThreadFactory()));
	}
}
