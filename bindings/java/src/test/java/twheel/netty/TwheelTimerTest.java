// SPDX-License-Identifier: MIT
package twheel.netty;

import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/** The timer in the process. */
public final class TwheelTimerTest extends TimerContract {
	@Override
	TableTimer create(long tickNs, long maxPendingTimeouts, ThreadFactory factory) {
		return new TwheelTimer(factory, tickNs, TimeUnit.NANOSECONDS, maxPendingTimeouts);
	}
}
