// SPDX-License-Identifier: MIT
//
// Timeouts on a timing wheel, in the event loop of Node: see README.md and index.d.ts.
//
// A timeout that pends has a number of the table. Changes are written into arrays that the native
// part reads before the loop sleeps. A number that was stopped may be used again at once: its changes
// are made in their order, and before what has expired is fetched. One that was fetched is given
// back by _take(), before the first function is called.
'use strict';
const native = require('./build/Release/twheel.node');

const IDLE = -1, DUE = -2;
const NR_CHANGES = 0, NR_REFS = 1;

function checkDelay(ms) {
	if (typeof ms !== 'number' || Number.isNaN(ms))
		throw new TypeError(`a delay is a number of milliseconds, and not ${String(ms)}`);
	return ms;
}

class Timeout {
	constructor(wheel, callback, delay, args) {
		this._wheel = wheel;
		this._callback = callback;
		this._delay = delay;
		this._args = args;
		this._number = IDLE;
		this._ref = true;
	}

	get pending() {
		return this._number !== IDLE;
	}

	start(ms) {
		this._delay = checkDelay(ms);
		return this.refresh();
	}

	refresh() {
		const wheel = this._wheel;

		if (this._number < 0)
			wheel._enter(this);
		wheel._change(this._number, this._delay);
		return this;
	}

	cancel() {
		const number = this._number, wheel = this._wheel;

		if (number === IDLE)
			return false;
		this._number = IDLE;
		if (number === DUE) {
			wheel._release(this);
			return true;
		}
		wheel._change(number, Infinity);
		wheel._leave(this, number);
		return true;
	}

	hasRef() {
		return this._ref;
	}

	ref() {
		if (!this._ref) {
			this._ref = true;
			if (this._number !== IDLE)
				this._wheel._retain(this);
		}
		return this;
	}

	unref() {
		if (this._ref) {
			if (this._number !== IDLE)
				this._wheel._release(this);
			this._ref = false;
		}
		return this;
	}
}

if (Symbol.dispose)
	Timeout.prototype[Symbol.dispose] = Timeout.prototype.cancel;

class Wheel {
	constructor({ size = 1 << 20, tickMs = 1, device = false } = {}) {
		if (!Number.isInteger(size) || size < 1 || size > 2 ** 30)
			throw new RangeError('size is a whole number from 1 to 2^30');
		if (!(tickMs >= 0.001 && tickMs <= 3600000))
			throw new RangeError('tickMs is a number from 0.001 to 3,600,000');
		this._size = size;
		this._timeouts = [];	// those that pend, by their numbers
		this._free = [];	// numbers that were used and are not now
		this._due = [];		// those that were fetched
		this._native = native.open(this, size, Math.round(tickMs * 1e6), device);
	}

	setTimeout(callback, ms = 0, ...args) {
		if (typeof callback !== 'function')
			throw new TypeError('the callback is a function');
		return new Timeout(this, callback, checkDelay(ms), args.length ? args : null).refresh();
	}

	clearTimeout(timeout) {
		return timeout instanceof Timeout && timeout.cancel();
	}

	get pending() {
		return this._timeouts.length - this._free.length;
	}

	get fd() {
		return this._open() && native.fd(this._native);
	}

	close() {
		if (!this._native)
			return;
		for (const timeout of this._timeouts.concat(this._due))
			if (timeout)
				timeout._number = IDLE;
		native.close(this._native);
		this._native = null;
		this._timeouts = [];
		this._free = [];
		this._due = [];
	}

	_open() {
		if (!this._native)
			throw new Error('the wheel is closed');
		return true;
	}

	// Gives a number to a timeout that has none; one that is due has its reference already.
	_enter(timeout) {
		const free = this._free;
		let number;

		this._open();
		if (free.length)
			number = free.pop();
		else if ((number = this._timeouts.length) === this._size)
			throw new RangeError(`the wheel has ${this._size} timeouts, and no room for another`);
		this._timeouts[number] = timeout;
		if (timeout._number === IDLE)
			this._retain(timeout);
		timeout._number = number;
	}

	_leave(timeout, number) {
		this._timeouts[number] = null;
		this._free.push(number);
		this._release(timeout);
	}

	_change(number, ms) {
		const head = this._head;
		let i = head[NR_CHANGES];

		if (i === native.CHANGES) {
			native.flush(this._native);
			i = 0;
		}
		this._numbers[i] = number;
		this._delays[i] = ms;
		head[NR_CHANGES] = i + 1;
	}

	_retain(timeout) {
		if (timeout._ref && ++this._head[NR_REFS] === 1)
			native.ref(this._native);
	}

	_release(timeout) {
		if (timeout._ref)
			this._head[NR_REFS]--;
	}

	// Numbers have been fetched. What is due may still be cancelled or moved by what is called first.
	_take(nr) {
		for (let i = 0; i < nr; i++) {
			const number = this._expired[i], timeout = this._timeouts[number];

			timeout._number = DUE;
			this._due[i] = timeout;
			this._timeouts[number] = null;
			this._free.push(number);
		}
	}

	_run(i) {
		const timeout = this._due[i];

		this._due[i] = null;
		if (timeout === null || timeout._number !== DUE)
			return;
		timeout._number = IDLE;
		this._release(timeout);
		if (timeout._args)
			timeout._callback(...timeout._args);
		else
			timeout._callback();
	}
}

module.exports = { Wheel, Timeout };
