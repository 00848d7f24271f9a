// SPDX-License-Identifier: MIT
package twheel.netty;

import io.netty.util.internal.NativeLibraryLoader;
import io.netty.util.internal.PlatformDependent;

/** A table in the process: libtwheel, by JNI. */
final class NativeTable implements Table {
	static {
		NativeLibraryLoader.load("twheel_netty_" + PlatformDependent.normalizedArch(),
			NativeTable.class.getClassLoader());
	}

	private final long table;

	NativeTable(int nr, long tickNs) {
		table = open(nr, tickNs);
		if (table < 0)
			throw new IllegalStateException("no table: errno " + -table);
	}

	@Override
	public void apply(int[] numbers, long[] delaysNs, int[] results, int nr) {
		check(apply(table, numbers, delaysNs, results, nr));
	}

	@Override
	public void alarm(long delayNs) {
		check(start(table, ALARM, delayNs));
	}

	@Override
	public int expired(int[] numbers) {
		return check(expired(table, numbers));
	}

	@Override
	public void close() {
		close(table);
	}

	/** In the process nothing fails, unless somebody has closed the table's descriptor. */
	private static int check(int result) {
		if (result < 0)
			throw new IllegalStateException("the table has failed: errno " + -result);
		return result;
	}

	private static native long open(int nr, long tickNs);
	private static native int apply(long table, int[] numbers, long[] delaysNs, int[] results,
		int nr);
	private static native int start(long table, int number, long delayNs);
	private static native int expired(long table, int[] numbers);
	private static native void close(long table);
}
