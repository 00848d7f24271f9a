// SPDX-License-Identifier: MIT
package twheel.netty;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * A table on the device, by {@code read} and {@code write} alone: a keyed wheel, and the records
 * of {@code <linux/twheel.h>}.
 *
 * <p>{@code write} does not say what a timeout was before. So each number has a word here, which is
 * odd while the number is started, and counts its starts. The word is the upper half of the key.
 * Who stops the number, and who fetches it, makes the word even, and only one of them can. An event
 * whose key has another word is dropped.
 *
 * <p>A {@code RandomAccessFile} has no lock: a {@code FileChannel} would keep each {@code write}
 * waiting for the {@code read} that sleeps, and an interrupt would close it.
 */
final class DeviceTable implements Table {
	// Values of <linux/twheel.h>
	private static final int OP_ARM = 1;
	private static final int OP_CANCEL = 3;
	private static final int OP_SETUP = 4;
	private static final int SETUP_KEYED = 2;
	private static final int CLOCK_MONOTONIC = 0x101;
	private static final int RECORD_ABSENT_OK = 0x10000;
	private static final long TIME_NEVER = Long.MAX_VALUE;
	private static final int RECORD_SIZE = 40;
	private static final int EVENT_SIZE = 40;
	private static final int EVENT_USER_DATA = 8;

	/** As much as a read of the JVM copies without memory of its own. */
	private static final int EVENTS = 8192 / EVENT_SIZE;
	/** The kernel counts a timeout that has ended a moment longer than its key is taken. */
	private static final int SPARE = 65536;

	private final RandomAccessFile device;
	private final AtomicIntegerArray words;
	private final byte[] events = new byte[EVENTS * EVENT_SIZE];
	private final ByteBuffer event = ByteBuffer.wrap(events).order(ByteOrder.nativeOrder());

	DeviceTable(Path path, int nr, long tickNs) {
		words = new AtomicIntegerArray(nr);
		try {
			// A RandomAccessFile would make a file where there is no device.
			FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE).close();
			device = new RandomAccessFile(path.toString(), "rw");
			try {
				device.write(record().putInt(OP_SETUP).putInt(SETUP_KEYED)
					.putInt(CLOCK_MONOTONIC).putInt(EVENT_SIZE).putLong(tickNs)
					.putLong(0).putInt(0).putInt(nr + SPARE).array());
				alarm(TIME_NEVER);
			} catch (IOException | UncheckedIOException e) {
				device.close();
				throw e;
			}
		} catch (IOException e) {
			throw new UncheckedIOException(e);
		}
	}

	private static ByteBuffer record() {
		return ByteBuffer.allocate(RECORD_SIZE).order(ByteOrder.nativeOrder());
	}

	private static long key(int number, int word) {
		return (long)word << 32 | number;
	}

	@Override
	public void apply(int[] numbers, long[] delaysNs, int[] results, int nr) {
		ByteBuffer records = ByteBuffer.allocate(nr * RECORD_SIZE).order(ByteOrder.nativeOrder());
		int[] changes = new int[nr];
		int nrRecords = 0;

		for (int i = 0; i < nr; i++) {
			int number = numbers[i];
			int word = words.get(number);

			records.position(nrRecords * RECORD_SIZE);
			results[i] = IDLE;
			if (delaysNs[i] != STOP) {
				words.set(number, ++word);
				records.putInt(OP_ARM).putInt(0).putLong(key(number, word))
					.putLong(delaysNs[i]);
			} else if ((word & 1) != 0 && words.compareAndSet(number, word, word + 1)) {
				results[i] = PENDING;
				records.putInt(OP_CANCEL).putInt(RECORD_ABSENT_OK)
					.putLong(key(number, word));
			} else {
				continue;
			}
			changes[nrRecords++] = i;
		}
		write(records.array(), nrRecords, numbers, changes, results);
	}

	private void write(byte[] records, int nr, int[] numbers, int[] changes, int[] results) {
		try {
			if (nr > 0)
				device.write(records, 0, nr * RECORD_SIZE);
			return;
		} catch (IOException e) {
			// One was refused, and nobody says which.  Those before it may be written again.
		}
		for (int i = 0; i < nr; i++) {
			try {
				device.write(records, i * RECORD_SIZE, RECORD_SIZE);
			} catch (IOException e) {
				refuse(numbers[changes[i]], results, changes[i]);
			}
		}
	}

	/** A start only: the device does not refuse to cancel. One that was fetched is none. */
	private void refuse(int number, int[] results, int change) {
		int word = words.get(number);

		if (results[change] == IDLE && (word & 1) != 0 &&
				words.compareAndSet(number, word, word + 1))
			results[change] = -1;
	}

	/**
	 * The alarm is periodic, with a period that does not end: so it keeps its place in the wheel
	 * when it has been read, and moving it takes no memory.
	 */
	@Override
	public void alarm(long delayNs) {
		try {
			device.write(record().putInt(OP_ARM).putInt(0).putLong(ALARM).putLong(delayNs)
				.putLong(TIME_NEVER).array());
		} catch (IOException e) {
			throw new UncheckedIOException(e);
		}
	}

	@Override
	public int expired(int[] numbers) {
		int room = Math.min(numbers.length, EVENTS) * EVENT_SIZE;
		int nr = 0;

		while (nr == 0) {
			int length;
			try {
				length = device.read(events, 0, room);
			} catch (IOException e) {
				throw new UncheckedIOException(e);
			}
			if (length < 0)
				throw new IllegalStateException("the device has been drained");
			for (int at = 0; at < length; at += EVENT_SIZE) {
				long key = event.getLong(at + EVENT_USER_DATA);
				int number = (int)key;
				int word = (int)(key >>> 32);

				if (number == ALARM || words.compareAndSet(number, word, word + 1))
					numbers[nr++] = number;
			}
		}
		return nr;
	}

	@Override
	public void close() {
		try {
			device.close();
		} catch (IOException e) {
			throw new UncheckedIOException(e);
		}
	}
}
