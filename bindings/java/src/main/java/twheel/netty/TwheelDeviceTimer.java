// SPDX-License-Identifier: MIT
package twheel.netty;

import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * A timer on the device {@code /dev/twheel}, in Java alone: for a program that may load no native
 * code. It needs the kernel module, and a user who may open the device.
 *
 * <p>In all else it is a {@link TwheelTimer}. If there is no device, or it may not be opened, its
 * constructors throw an {@link java.io.UncheckedIOException}.
 */
public final class TwheelDeviceTimer extends TableTimer {
	/** The device. */
	public static final Path DEVICE = Path.of("/dev/twheel");
	/** How many timeouts may pend if nobody says less. */
	public static final int MAX_PENDING = 1 << 20;

	/** A tick of 1 ms. */
	public TwheelDeviceTimer() {
		this(Executors.defaultThreadFactory());
	}

	/** A tick of 1 ms. */
	public TwheelDeviceTimer(ThreadFactory threadFactory) {
		this(threadFactory, 1, TimeUnit.MILLISECONDS, 0);
	}

	/**
	 * @param threadFactory makes the thread that runs the tasks
	 * @param tickDuration from 1 microsecond to 1 hour
	 * @param maxPendingTimeouts beyond this number {@code newTimeout} throws a {@code
	 *	RejectedExecutionException}; 0 or less for {@link #MAX_PENDING}
	 */
	public TwheelDeviceTimer(ThreadFactory threadFactory, long tickDuration, TimeUnit unit,
			long maxPendingTimeouts) {
		super(threadFactory, maxPendingTimeouts, MAX_PENDING,
			nr -> new DeviceTable(DEVICE, nr, tickNs(tickDuration, unit)));
	}
}
