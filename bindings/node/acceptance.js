// SPDX-License-Identifier: MIT
//
// acceptance.js [--device]: 10,000 timeouts in the event loop of Node; 5,000 are cancelled, and 2,500
// of the others are moved. Each of the others has to come once, and none early. The first one comes
// after 3 s: a slow machine has made all changes by then.
'use strict';
const { Wheel } = require('.');

const NR = 10000;
const wheel = new Wheel({ size: NR, device: process.argv.includes('--device') });
const nowMs = () => Number(process.hrtime.bigint()) / 1e6;
const requests = [];
const account = { called: 0, cancelled: 0, moved: 0, early: 0, twice: 0, afterCancel: 0, latestMs: 0 };

function onTimeout(request) {
	const late = nowMs() - request.deadline;

	account.called++;
	account.early += late < 0;
	account.twice += request.called++ > 0;
	account.afterCancel += request.cancelled;
	account.latestMs = Math.max(account.latestMs, late);
}

function start(ms, how) {
	const request = { called: 0, cancelled: false, deadline: nowMs() + ms };

	request.timeout = how(request, ms);
	return request;
}

for (let i = 0; i < NR; i++)
	requests.push(start(3000 + i * 7919 % 1000,
		(request, ms) => wheel.setTimeout(onTimeout, ms, request)));

// In a later turn, in two parts: numbers have been given to the library by then.
setImmediate(() => {
	for (let i = 0; i < NR; i += 4) {
		for (const j of [i, i + 1]) {
			requests[j].cancelled = true;
			account.cancelled += requests[j].timeout.cancel();
		}
		const ms = 3500 + i % 1000;
		requests[i + 2].deadline = nowMs() + ms;
		requests[i + 2].timeout.start(ms);
		account.moved++;
	}
});

process.on('exit', () => {
	const exact = account.called === NR / 2 && account.cancelled === NR / 2 && account.moved === NR / 4 &&
		!account.early && !account.twice && !account.afterCancel && !wheel.pending;

	console.log(`called ${account.called}, cancelled ${account.cancelled}, moved ${account.moved}, ` +
		`early ${account.early}, twice ${account.twice}, after cancel ${account.afterCancel}, ` +
		`the latest by ${account.latestMs.toFixed(1)} ms`);
	process.exitCode = exact ? 0 : 1;
});
