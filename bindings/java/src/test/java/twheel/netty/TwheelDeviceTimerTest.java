// SPDX-License-Identifier: MIT
package twheel.netty;

import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

/** The timer on the device. */
public final class TwheelDeviceTimerTest extends TimerContract {
	@Override
	TableTimer create(long tickNs, long maxPendingTimeouts, ThreadFactory factory) {
		return new TwheelDeviceTimer(factory, tickNs, TimeUnit.NANOSECONDS, maxPendingTimeouts);
	}

	@Test
	public void noNativeLibraryIsLoaded() throws IOException {
		assertTrue(Files.lines(Path.of("/proc/self/maps"))
			.noneMatch(line -> line.contains("libtwheel")));
	}
}
