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
	private int[] free = new int[CHUNK_SIZE];
	private int nrFree;
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
		int taken = Math.min(nr, nrFree);

		nrFree -= taken;
		System.arraycopy(free, nrFree, numbers, 0, taken);
		for (; taken < nr && unused < capacity; unused++) {
			int chunk = unused >>> CHUNK_BITS;

			if (chunks[chunk] == null)
				CHUNK.setRelease(chunks, chunk, new Object[CHUNK_SIZE]);
			numbers[taken++] = unused;
		}
		return taken;
	}

	synchronized void giveBack(int[] numbers, int from, int nr) {
		if (nrFree + nr > free.length)
			free = Arrays.copyOf(free, 2 * free.length + nr);
		System.arraycopy(numbers, from, free, nrFree, nr);
		nrFree += nr;
	}

	/** From here on, {@link #get} may not be called. */
	synchronized int end() {
		return unused;
	}
}
