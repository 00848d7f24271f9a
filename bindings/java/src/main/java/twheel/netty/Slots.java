// SPDX-License-Identifier: MIT
package twheel.netty;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;

/**
 * The numbers of a table: which are free, and what each of the others stands for. That is the
 * timeout, or, if the timeout was cancelled and the table does not know yet, its stripe. So a
 * task can be collected as soon as its timeout is cancelled.
 */
final class Slots {
	private static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(Object[].class);
	private static final VarHandle CHUNK = MethodHandles.arrayElementVarHandle(Object[][].class);
	private static final int CHUNK_BITS = 12;
	private static final int CHUNK_SIZE = 1 << CHUNK_BITS;

	private final int capacity;
	private final Object[][] chunks;

	// Guarded by this.
	/**
	 * A bit for each free number. So those that are taken together are neighbours, and those that
	 * expire together are often in the same lines of the cache.
	 */
	private long[] free = new long[CHUNK_SIZE / Long.SIZE];
	private int nrFree;
	/** The word of it where the search goes on. */
	private int at;
	/** From here on, numbers have never been used. */
	private int unused = Table.ALARM + 1;

	Slots(int capacity) {
		this.capacity = capacity;
		chunks = new Object[(capacity + CHUNK_SIZE - 1) >>> CHUNK_BITS][];
	}

	Object get(int number) {
		return SLOT.getAcquire(chunk(number), number & (CHUNK_SIZE - 1));
	}

	void set(int number, Object owner) {
		SLOT.setRelease(chunk(number), number & (CHUNK_SIZE - 1), owner);
	}

	private Object[] chunk(int number) {
		return (Object[])CHUNK.getAcquire(chunks, number >>> CHUNK_BITS);
	}

	/** Puts up to {@code nr} free numbers there, and returns how many. */
	synchronized int take(int[] numbers, int nr) {
		int taken = 0;

		for (; taken < nr && nrFree > 0; at = (at + 1) % free.length) {
			while (taken < nr && free[at] != 0) {
				numbers[taken++] = at * Long.SIZE + Long.numberOfTrailingZeros(free[at]);
				free[at] &= free[at] - 1;
				nrFree--;
			}
		}
		for (; taken < nr && unused < capacity; unused++) {
			int chunk = unused >>> CHUNK_BITS;

			if (chunks[chunk] == null)
				CHUNK.setRelease(chunks, chunk, new Object[CHUNK_SIZE]);
			numbers[taken++] = unused;
		}
		return taken;
	}

	synchronized void giveBack(int[] numbers, int from, int nr) {
		if (unused > free.length * Long.SIZE)
			free = Arrays.copyOf(free, Math.max(2 * free.length, unused / Long.SIZE + 1));
		for (int i = from; i < from + nr; i++)
			free[numbers[i] / Long.SIZE] |= 1L << numbers[i];
		nrFree += nr;
	}

	/** From here on, {@link #get} may not be called. */
	synchronized int end() {
		return unused;
	}
}
