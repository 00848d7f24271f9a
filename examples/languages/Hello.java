// SPDX-License-Identifier: 0BSD
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The smallest program in Java: records and events by a FileChannel. */
class Hello {
	// Values of <linux/twheel.h>
	static final int OP_ARM = 1, OP_SETUP = 4;
	static final int CLOCK_MONOTONIC = 0x101;

	static ByteBuffer record() {
		return ByteBuffer.allocate(40).order(ByteOrder.nativeOrder());
	}

	public static void main(String[] arguments) throws IOException {
		try (FileChannel wheel = FileChannel.open(Path.of("/dev/twheel"),
				StandardOpenOption.READ, StandardOpenOption.WRITE)) {
			// op, flags, clock, event_size, tick_ns
			wheel.write(record().putInt(OP_SETUP).putInt(0).putInt(CLOCK_MONOTONIC).putInt(0)
				.putLong(1_000_000).rewind());
			// op, flags, key, expires_ns
			wheel.write(record().putInt(OP_ARM).putInt(0).putLong(42).putLong(100_000_000)
				.rewind());

			ByteBuffer event = record();
			wheel.read(event);
			long key = event.getLong(8), deadline_ns = event.getLong(16);
			long fired_ns = event.getLong(24);
			System.out.printf("timeout %d has expired, %d us after its deadline%n", key,
				(fired_ns - deadline_ns) / 1000);
		}
	}
}
