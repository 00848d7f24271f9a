// SPDX-License-Identifier: MIT
package twheel.netty;

import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

/** The timer on the device. */
public final class TwheelDeviceTimerTest extends TimerContract {
	@Override
	TableTimer create(long maxPendingTimeouts, ThreadFactory factory) {
		return new TwheelDeviceTimer(factory, 1, TimeUnit.MILLISECONDS, maxPendingTimeouts);
	}

	@Test
	public void aTickOutsideItsRangeIsRefused() {
		for (long tickNs : new long[] { -1, 0, 999, TimeUnit.HOURS.toNanos(1) + 1 }) {
			assertThrows(RuntimeException.class, () -> new TwheelDeviceTimer(
				Executors.defaultThreadFactory(), tickNs, TimeUnit.NANOSECONDS, 0));
		}
	}

	@Test
	public void noNativeLibraryIsLoaded() throws IOException {
		assertTrue(Files.lines(Path.of("/proc/self/maps"))
			.noneMatch(line -> line.contains("libtwheel")));
	}
}
