// SPDX-License-Identifier: 0BSD
//
// The smallest program in JavaScript, for Node: records by fs.writeSync, and events by fs.read,
// which waits in a thread of Node's own.
'use strict';
const fs = require('fs');

// Values of <linux/twheel.h>
const OP_ARM = 1, OP_SETUP = 4;
const CLOCK_MONOTONIC = 0x101;

const wheel = fs.openSync('/dev/twheel', 'r+');

// Typed arrays have the byte order of the machine, as records and events do.
const setup = new Uint32Array(10);
setup.set([OP_SETUP, 0, CLOCK_MONOTONIC]);
new BigUint64Array(setup.buffer)[2] = 1000000n;		// tick_ns
fs.writeSync(wheel, setup);

const arm = new Uint32Array(10);
arm[0] = OP_ARM;
new BigUint64Array(arm.buffer).set([42n, 100000000n], 1);	// key, expires_ns
fs.writeSync(wheel, arm);

fs.read(wheel, new BigUint64Array(5), (error, bytes, event) => {
	if (error)
		throw error;
	const [, key, deadline_ns, fired_ns] = event;
	console.log(`timeout ${key} has expired, ${(fired_ns - deadline_ns) / 1000n} us after its deadline`);
});
