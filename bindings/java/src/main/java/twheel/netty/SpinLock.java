// SPDX-License-Identifier: MIT
package twheel.netty;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/**
 * A lock that is seldom waited for, and held for nanoseconds, or for one call of the table. It
 * takes one atomic operation, where {@code synchronized} takes two.
 */
final class SpinLock {
	private static final VarHandle HELD;
	private static final int SPINS = 100;
	private static final int YIELDS = 200;
	private static final long PARK_NS = 50_000;

	private boolean held;

	static {
		try {
			HELD = MethodHandles.lookup().findVarHandle(SpinLock.class, "held", boolean.class);
		} catch (ReflectiveOperationException e) {
			throw new ExceptionInInitializerError(e);
		}
	}

	void lock() {
		if (!HELD.compareAndSet(this, false, true))
			await();
	}

	void unlock() {
		HELD.setRelease(this, false);
	}

	/** Its holder may have lost the processor: so this does not spin for long. */
	private void await() {
		for (int tries = 0; (boolean)HELD.getOpaque(this) ||
				!HELD.compareAndSet(this, false, true); tries++) {
			if (tries < SPINS)
				Thread.onSpinWait();
			else if (tries < YIELDS)
				Thread.yield();
			else
				LockSupport.parkNanos(this, PARK_NS);
		}
	}
}
