// SPDX-License-Identifier: MIT
//
// bench.js: what timeouts cost, beside setTimeout() of Node. Medians of 7 rounds, in which the two
// take turns.
'use strict';
const { Wheel } = require('.');

const ROUNDS = 7, OPERATIONS = 200000, PENDING = 100000;
const wheel = new Wheel();
const nothing = () => {};

const ways = {
	setTimeout: { start: setTimeout, stop: clearTimeout },
	twheel: { start: (fn, ms) => wheel.setTimeout(fn, ms), stop: timeout => timeout.cancel() },
};
const lengths = { one: () => 60000, many: i => 60000 + i * 7919 % 10000 };

const turn = () => new Promise(setImmediate);
const cpuNs = () => {
	const { user, system } = process.cpuUsage();

	return (user + system) * 1000;
};

// In turns of 1,000, as a server has them, so that the loop has its part.
async function measure(operation) {
	const begin = cpuNs();

	for (let i = 0; i < OPERATIONS;) {
		for (const end = i + 1000; i < end; i++)
			operation(i);
		await turn();
	}
	return (cpuNs() - begin) / OPERATIONS;
}

async function pair(way, length) {
	return measure(i => way.stop(way.start(nothing, length(i))));
}

// Timeouts that pend for a while before they are stopped.
async function replies(way, length) {
	const requests = Array(10000).fill(null).map((_, i) => way.start(nothing, length(i)));
	const ns = await measure(i => {
		const at = i % requests.length;

		way.stop(requests[at]);
		requests[at] = way.start(nothing, length(i));
	});

	requests.forEach(way.stop);
	return ns;
}

async function refresh(way, length) {
	const timeouts = Array(PENDING).fill(null).map((_, i) => way.start(nothing, length(i)));
	const ns = await measure(i => timeouts[i * 7919 % PENDING].refresh());

	timeouts.forEach(way.stop);
	return ns;
}

// 100,000 timeouts expire in a second.
function expire(way) {
	return new Promise(resolve => {
		const begin = cpuNs();
		let left = PENDING;

		for (let i = 0; i < PENDING; i++)
			way.start(() => {
				if (!--left)
					resolve((cpuNs() - begin) / PENDING);
			}, 100 + i * 7919 % 1000);
	});
}

async function main() {
	const rows = [
		['start and stop, one length', pair, lengths.one],
		['start and stop, 10,000 lengths', pair, lengths.many],
		['10,000 requests, one length', replies, lengths.one],
		['10,000 requests, 10,000 lengths', replies, lengths.many],
		['refresh, 100,000 pend, one length', refresh, lengths.one],
		['refresh, 100,000 pend, 10,000 lengths', refresh, lengths.many],
		['start and expire, 100,000 in a second', expire],
	];

	console.log(`Node ${process.version}, nanoseconds of processor time`.padEnd(50), ...Object.keys(ways));
	for (const [name, what, length] of rows) {
		const ns = Object.fromEntries(Object.keys(ways).map(way => [way, []]));

		for (let round = 0; round < ROUNDS; round++)
			for (const way of Object.keys(ways))
				ns[way].push(await what(ways[way], length));
		console.log(name.padEnd(50), ...Object.keys(ways).map(way =>
			ns[way].sort((a, b) => a - b)[ROUNDS >> 1].toFixed(0).padStart(way.length)));
	}
	wheel.close();
}

main();
