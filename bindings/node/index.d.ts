// SPDX-License-Identifier: MIT

export interface WheelOptions {
	/** How many timeouts may pend at a time, 1 to 2^30; 1,048,576 by default. */
	size?: number;
	/** Timeouts expire at multiples of it, 0.001 to 3,600,000; 1 by default. */
	tickMs?: number;
	/** The table is on the device /dev/twheel. */
	device?: boolean;
}

/** A timeout, which may be started again and again. */
export declare class Timeout {
	private constructor();

	/** Whether its callback will be called, unless it is cancelled. */
	readonly pending: boolean;

	/** Starts it with another delay, or restarts it. */
	start(ms: number): this;

	/** Starts or restarts it with the delay that it had. */
	refresh(): this;

	/** Its callback is not called. Returns whether it was pending. */
	cancel(): boolean;

	/** The program stays as long as it pends; that is the default. */
	ref(): this;
	unref(): this;
	hasRef(): boolean;
}

/** Timeouts on a wheel, in the event loop of the thread that made it. */
export declare class Wheel {
	constructor(options?: WheelOptions);

	/**
	 * Starts a timeout.
	 * @param ms from the end of the turn at the latest; 0 if it is negative, Infinity for never
	 * @throws RangeError if as many pend as the wheel has room for
	 */
	setTimeout<Arguments extends unknown[]>(callback: (...args: Arguments) => void, ms?: number,
		...args: Arguments): Timeout;

	/** Cancels a timeout, or does nothing if it is none. */
	clearTimeout(timeout: Timeout | undefined): boolean;

	/** How many timeouts pend. */
	readonly pending: number;

	/** The descriptor of the table. */
	readonly fd: number;

	/** Ends the wheel: no callback is called any more. */
	close(): void;
}
