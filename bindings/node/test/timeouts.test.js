// SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { Wheel } = require('..');

const device = process.env.TWHEEL_DEVICE === '1';

// A wheel for one test.
function open(t, options = {}) {
	const wheel = new Wheel({ size: 1000, device, ...options });

	t.after(() => wheel.close());
	return wheel;
}

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const expiry = (wheel, ms) => new Promise(resolve => wheel.setTimeout(resolve, ms));
const until = async condition => {
	while (!condition())
		await sleep(5);
};
const nowMs = () => Number(process.hrtime.bigint()) / 1e6;

// What a program prints that runs by itself, in which w is a wheel.
function output(...lines) {
	const program = `const { Wheel } = require(${JSON.stringify(path.join(__dirname, '..'))});
		const w = new Wheel({ size: 100, device: ${device} });\n${lines.join('\n')}`;
	const { stdout, stderr, status } = spawnSync(process.execPath, ['-e', program], { timeout: 300000 });

	assert.strictEqual(status, 0, stderr.toString());
	return stdout.toString();
}

test('timeout expires once, with its arguments, and not early', async t => {
	const wheel = open(t), begin = nowMs(), calls = [];

	await new Promise(resolve => {
		wheel.setTimeout((...args) => { calls.push(args); resolve(); }, 20.5, 1, 'two');
	});
	assert.ok(nowMs() - begin >= 20.5);
	await expiry(wheel, 30);
	assert.deepStrictEqual(calls, [[1, 'two']]);
	assert.strictEqual(wheel.pending, 0);
});

test('timeouts expire by their deadlines', async t => {
	const wheel = open(t), order = [];

	for (const ms of [30, 10, 20])
		wheel.setTimeout(() => order.push(ms), ms);
	await until(() => order.length === 3);
	assert.deepStrictEqual(order, [10, 20, 30]);
});

test('cancelled timeout never expires', async t => {
	const wheel = open(t);
	let called = 0;
	const timeout = wheel.setTimeout(() => called++, 10);

	assert.ok(timeout.pending);
	assert.strictEqual(timeout.cancel(), true);
	assert.strictEqual(timeout.cancel(), false);
	assert.strictEqual(wheel.clearTimeout(wheel.setTimeout(() => called++, 10)), true);
	assert.strictEqual(wheel.clearTimeout(undefined), false);
	assert.ok(!timeout.pending);
	await expiry(wheel, 30);
	assert.strictEqual(called, 0);
});

test('timeout that has expired and was not called yet can be cancelled', async t => {
	const wheel = open(t);
	let called = 0;
	const timeout = wheel.setTimeout(() => called++, 100);

	await new Promise(setImmediate);
	const until = nowMs() + 150;
	while (nowMs() < until)
		;
	if (called)
		return t.skip('the machine is too slow for this');
	assert.strictEqual(timeout.cancel(), true);
	await expiry(wheel, 10);
	assert.strictEqual(called, 0);
});

test('callback cancels and moves what is due in the same turn', async t => {
	const wheel = open(t);
	const calls = [];
	const timeouts = Array.from({ length: 10 }, (_, i) => wheel.setTimeout(() => {
		calls.push(i);
		if (calls.length > 1)
			return;
		for (const [other, timeout] of timeouts.entries()) {
			if (other === i)
				continue;
			if (other % 2)
				assert.strictEqual(timeout.cancel(), true);
			else
				timeout.start(20);
		}
		// It takes a number that was fetched with the others.
		wheel.setTimeout(() => calls.push('new'), 10);
	}, 5));

	await until(() => calls.length && !wheel.pending);
	assert.strictEqual(new Set(calls).size, calls.length);
	assert.strictEqual(calls[1], 'new');
	const others = timeouts.map((_, i) => i).filter(i => i % 2 === 0 && i !== calls[0]);
	assert.deepStrictEqual(calls.slice(2).sort(), others);
});

test('refresh moves a timeout, and starts one that has expired', async t => {
	const wheel = open(t);
	let called = 0;
	const begin = nowMs();
	const timeout = wheel.setTimeout(() => called++, 300);

	for (let i = 0; i < 5; i++) {
		await sleep(100);
		assert.strictEqual(timeout.refresh(), timeout);
	}
	await until(() => called);
	assert.ok(nowMs() - begin >= 800);
	timeout.refresh();
	await until(() => called > 1);
	timeout.start(5);
	await until(() => called > 2);
	await expiry(wheel, 10);
	assert.strictEqual(called, 3);
	assert.ok(!timeout.pending);
});

test('callback starts its own timeout again, and the loop has its turns', async t => {
	const wheel = open(t);
	let called = 0, turns = 0;
	const timeout = wheel.setTimeout(() => {
		called++;
		timeout.refresh();
	}, 0);

	while (turns < 100) {
		await new Promise(setImmediate);
		turns++;
	}
	await until(() => called > 1);
	timeout.cancel();
});

test('numbers are used again', async t => {
	const wheel = open(t, { size: 3 });

	for (let i = 0; i < 1000; i++) {
		const timeouts = [1, 2, 3].map(ms => wheel.setTimeout(assert.fail, 1000 * ms));

		assert.strictEqual(wheel.pending, 3);
		assert.throws(() => wheel.setTimeout(assert.fail, 1), RangeError);
		timeouts.forEach(timeout => timeout.cancel());
	}
	assert.strictEqual(wheel.pending, 0);
	await expiry(wheel, 5);
});

test('delays that are no numbers are refused, and Infinity never comes', async t => {
	const wheel = open(t);

	for (const delay of [NaN, '5', null, 5n, {}])
		assert.throws(() => wheel.setTimeout(assert.fail, delay), TypeError);
	assert.throws(() => wheel.setTimeout(undefined, 1), TypeError);
	for (const options of [{ size: 0 }, { size: 1.5 }, { size: 2 ** 31 }, { tickMs: 0 }, { tickMs: 4e6 }])
		assert.throws(() => new Wheel(options), RangeError);
	const never = wheel.setTimeout(assert.fail, Infinity), late = wheel.setTimeout(assert.fail, 1e300);

	await expiry(wheel, -5);
	await expiry(wheel, undefined);
	assert.ok(never.pending && late.pending);
	assert.ok(never.cancel() && late.cancel());
});

test('promises and process.nextTick run after each callback', async t => {
	const wheel = open(t), order = [];

	for (let i = 0; i < 3; i++)
		wheel.setTimeout(() => {
			order.push('callback');
			Promise.resolve().then(() => order.push('promise'));
			process.nextTick(() => order.push('tick'));
		}, 5);
	await until(() => !wheel.pending);
	await sleep(5);
	assert.deepStrictEqual(order, Array(3).fill(['callback', 'tick', 'promise']).flat());
});

test('exception of a callback is an uncaught one, and the others are called', () => {
	const said = output(
		"process.on('uncaughtException', error => console.log(error.message));",
		"for (let i = 0; i < 4; i++)",
		"	w.setTimeout(() => { if (i % 2) throw new Error('thrown'); console.log('called'); }, 5);");

	assert.deepStrictEqual(said.trim().split('\n').sort(), ['called', 'called', 'thrown', 'thrown']);
});

test('program ends when no timeout holds it', () => {
	assert.strictEqual(output(
		"w.setTimeout(() => console.log('never'), 3600000).unref();",
		"w.setTimeout(() => console.log('called'), 20);",
		"const t = w.setTimeout(() => console.log('never'), 3600000); t.cancel();"), 'called\n');
	assert.strictEqual(output('w.setTimeout(() => {}, 3600000).unref();'), '');
});

test('ref holds the program again', () => {
	assert.strictEqual(output(
		"const t = w.setTimeout(() => console.log('called', t.hasRef()), 20).unref();",
		"console.log(t.hasRef()); t.ref().ref();"), 'false\ncalled true\n');
	// One that has expired holds nothing, and does after refresh().
	assert.strictEqual(output(
		"let calls = 0;",
		"const t = w.setTimeout(() => { if (++calls < 3) t.refresh(); else console.log(calls); }, 5);"),
		'3\n');
});

test('closed wheel calls nothing, and refuses timeouts', async t => {
	const wheel = open(t);
	const timeout = wheel.setTimeout(assert.fail, 5);

	wheel.close();
	wheel.close();
	await sleep(20);
	assert.ok(!timeout.pending && !timeout.cancel());
	assert.throws(() => timeout.refresh(), /closed/);
	assert.throws(() => wheel.setTimeout(assert.fail, 5), /closed/);
});

test('callback closes its wheel', async t => {
	const wheel = open(t);
	let called = 0;

	for (let i = 0; i < 10; i++)
		wheel.setTimeout(() => {
			called++;
			wheel.close();
		}, 5);
	await until(() => called);
	await sleep(20);
	assert.strictEqual(called, 1);
});

test('worker that ends closes its wheel', async () => {
	const worker = new Worker(`const { Wheel } = require(${JSON.stringify(path.join(__dirname, '..'))});
		const w = new Wheel({ size: 100, device: ${device} });
		w.setTimeout(() => {}, 3600000);
		w.setTimeout(() => require('node:worker_threads').parentPort.postMessage('called'), 5);`, { eval: true });

	assert.strictEqual(await new Promise(resolve => worker.once('message', resolve)), 'called');
	await worker.terminate();
});

test('descriptor that is closed by somebody else is an uncaught exception', () => {
	assert.match(output(
		"process.on('uncaughtException', error => { console.log(error.code); process.exit(); });",
		"w.setTimeout(() => {}, 50);",
		"require('node:fs').closeSync(w.fd);",
		"setTimeout(() => {}, 1000);"), /^(EBADF|EIO)\n$/);
});

test('many timeouts of many lengths come once each', async t => {
	const wheel = open(t, { size: 20000 });
	let called = 0, early = 0;

	await new Promise(resolve => {
		for (let i = 0; i < 20000; i++) {
			const ms = 1 + i % 200, begin = nowMs();

			wheel.setTimeout(() => {
				early += nowMs() < begin + ms;
				if (++called === 20000)
					resolve();
			}, ms);
		}
	});
	assert.strictEqual(early, 0);
	assert.strictEqual(wheel.pending, 0);
});
