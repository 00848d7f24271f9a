// SPDX-License-Identifier: MIT
//! What a start and a stop cost, a restart, and an expiry, in nanoseconds: the best of fifteen
//! rounds, since others may use the processor, too.
//!
//!     cargo bench
#![forbid(unsafe_code)]
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake};
use std::time::{Duration, Instant};
use twheel::{Change, Clock, Expiry, Table, Timer, Wheel};

const ROUNDS: usize = 15;
const CALLS: usize = 200_000;
const SEC: u64 = 1_000_000_000;

/// Delays from 1 to 60 s, which no processor foresees.
fn delays() -> Vec<u64> {
    let mut state = 88172645463325252u64;

    (0..CALLS)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            SEC + state % (59 * SEC)
        })
        .collect()
}

/// Nanoseconds of one of `nr` calls.
fn measure(nr: usize, mut round: impl FnMut()) -> f64 {
    let mut one = || {
        let began = Instant::now();

        round();
        began.elapsed().as_nanos() as f64 / nr as f64
    };
    one();
    (0..ROUNDS).map(|_| one()).fold(f64::INFINITY, f64::min)
}

/// What is compared.  A place has one timeout; times are those of a clock that the bench moves.
trait Timers {
    fn start(&mut self, place: usize, deadline_ns: u64);
    fn stop(&mut self, place: usize);
    /// Let all expire that are due, and return how many.
    fn expire(&mut self, now_ns: u64) -> usize;
}

fn rows(name: &str, nr: usize, timers: &mut dyn Timers) {
    let delays = delays();
    let mut now = 0;

    for (place, delay) in delays[..nr].iter().enumerate() {
        timers.start(place, *delay);
    }
    let pair = measure(CALLS, || {
        for delay in &delays {
            timers.start(nr, *delay);
            timers.stop(nr);
        }
    });
    let restart = measure(CALLS, || {
        // Each is moved by some seconds, to a later time in most cases.
        for (i, delay) in delays.iter().enumerate() {
            timers.start(i * 7919 % nr, delay + i as u64 * 100_000);
        }
    });
    let expiry = measure(nr, || {
        now += 100 * SEC;
        for (place, delay) in delays[..nr].iter().enumerate() {
            timers.start(place, now + delay);
        }
        now += 100 * SEC;
        assert_eq!(timers.expire(now), nr);
    });
    println!("| {name} | {nr} | {pair:.1} | {restart:.1} | {expiry:.1} |");
}

#[derive(Default)]
struct Tree {
    tree: BTreeMap<(u64, usize), ()>,
    deadlines: Vec<u64>,
}

impl Timers for Tree {
    fn start(&mut self, place: usize, deadline_ns: u64) {
        self.stop(place);
        self.deadlines[place] = deadline_ns;
        self.tree.insert((deadline_ns, place), ());
    }

    fn stop(&mut self, place: usize) {
        if self.deadlines.len() <= place {
            self.deadlines.resize(place + 1, 0);
        }
        if self.deadlines[place] != 0 {
            self.tree.remove(&(self.deadlines[place], place));
            self.deadlines[place] = 0;
        }
    }

    fn expire(&mut self, now_ns: u64) -> usize {
        let mut nr = 0;

        while let Some(&(deadline_ns, place)) = self.tree.keys().next() {
            if deadline_ns > now_ns {
                break;
            }
            self.tree.remove(&(deadline_ns, place));
            self.deadlines[place] = 0;
            nr += 1;
        }
        nr
    }
}

/// A stop leaves its entry in the heap; when most entries are of this kind, they are removed.
#[derive(Default)]
struct Heap {
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    deadlines: Vec<u64>,
    pending: usize,
}

impl Timers for Heap {
    fn start(&mut self, place: usize, deadline_ns: u64) {
        self.stop(place);
        self.deadlines[place] = deadline_ns;
        self.heap.push(Reverse((deadline_ns, place)));
        self.pending += 1;
        if self.heap.len() > 2 * self.pending + 64 {
            let mut entries = std::mem::take(&mut self.heap).into_vec();

            entries.retain(|&Reverse((deadline_ns, place))| self.deadlines[place] == deadline_ns);
            self.heap = entries.into();
        }
    }

    fn stop(&mut self, place: usize) {
        if self.deadlines.len() <= place {
            self.deadlines.resize(place + 1, 0);
        }
        self.pending -= usize::from(self.deadlines[place] != 0);
        self.deadlines[place] = 0;
    }

    fn expire(&mut self, now_ns: u64) -> usize {
        let mut nr = 0;

        while let Some(&Reverse((deadline_ns, place))) = self.heap.peek() {
            if deadline_ns > now_ns {
                break;
            }
            self.heap.pop();
            if self.deadlines[place] == deadline_ns {
                self.stop(place);
                nr += 1;
            }
        }
        nr
    }
}

/// Timers with closures, whose type has no name.
struct OnWheel<'a, 'w, F> {
    wheel: &'a Wheel<'w>,
    timers: Vec<Pin<Box<Timer<'w, F>>>>,
    calls: &'a Cell<usize>,
}

impl<'w, F: Fn(&Expiry<'_, 'w>) + 'w> Timers for OnWheel<'_, 'w, F> {
    fn start(&mut self, place: usize, deadline_ns: u64) {
        self.timers[place]
            .as_ref()
            .start_at(self.wheel, deadline_ns);
    }

    fn stop(&mut self, place: usize) {
        self.timers[place].stop();
    }

    fn expire(&mut self, now_ns: u64) -> usize {
        self.calls.set(0);
        self.wheel.advance(now_ns).unwrap();
        // A dispatch moves some thousand at most.
        while self
            .wheel
            .next_ns()
            .map_or(false, |next_ns| next_ns <= now_ns)
        {
            self.wheel.dispatch();
        }
        self.calls.get()
    }
}

fn wheel_rows(nr: usize) {
    let calls = Cell::new(0);
    let wheel = Wheel::options().clock(Clock::Caller).open().unwrap();
    let timer = |_| Box::pin(Timer::new(|_| calls.set(calls.get() + 1)));
    let timers = (0..=nr).map(timer).collect();

    rows(
        "`Timer`",
        nr,
        &mut OnWheel {
            wheel: &wheel,
            timers,
            calls: &calls,
        },
    );
}

struct OnTable(Table);

impl Timers for OnTable {
    fn start(&mut self, place: usize, deadline_ns: u64) {
        self.0.start(place as u32, deadline_ns).unwrap();
    }

    fn stop(&mut self, place: usize) {
        self.0.stop(place as u32).unwrap();
    }

    fn expire(&mut self, now_ns: u64) -> usize {
        fetch(&self.0, now_ns)
    }
}

fn fetch(table: &Table, now_ns: u64) -> usize {
    let mut numbers = [0; 256];
    let mut sum = 0;

    table.advance(now_ns).unwrap();
    loop {
        let nr = table.expired(&mut numbers, Some(Duration::ZERO)).unwrap();
        if nr == 0 {
            return sum;
        }
        sum += nr;
    }
}

/// Changes are collected, and made 256 at a time.
struct ByBatch {
    table: Table,
    changes: Vec<Change>,
}

impl ByBatch {
    #[inline]
    fn add(&mut self, change: Change) {
        self.changes.push(change);
        if self.changes.len() == 256 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        assert_eq!(
            self.table.apply(&mut self.changes).unwrap(),
            self.changes.len()
        );
        self.changes.clear();
    }
}

impl Timers for ByBatch {
    fn start(&mut self, place: usize, deadline_ns: u64) {
        self.add(Change::start(place as u32, deadline_ns));
    }

    fn stop(&mut self, place: usize) {
        self.add(Change::stop(place as u32));
    }

    fn expire(&mut self, now_ns: u64) -> usize {
        self.flush();
        fetch(&self.table, now_ns)
    }
}

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// A future that is made, polled once and dropped, as in a race that it loses.
fn sleep_row() {
    let wheel = Wheel::options().clock(Clock::Caller).open().unwrap();
    let waker = Arc::new(Nobody).into();
    let mut context = Context::from_waker(&waker);
    let delays = delays();
    let pair = measure(CALLS, || {
        for delay in &delays {
            let mut sleep = Box::pin(wheel.sleep(Duration::from_nanos(*delay)));
            assert!(sleep.as_mut().poll(&mut context).is_pending());
        }
    });
    println!("| `Sleep`, in a `Box` | 1 | {pair:.1} | | |");
}

fn main() {
    let table = |nr| {
        Table::options()
            .clock(Clock::Caller)
            .open(nr as u32 + 1)
            .unwrap()
    };

    println!("| timers | pending | start and stop | restart | start and expiry |");
    println!("|---|---|---|---|---|");
    for nr in [1_000, 100_000] {
        wheel_rows(nr);
        rows("`Table`", nr, &mut OnTable(table(nr)));
        let mut by_batch = ByBatch {
            table: table(nr),
            changes: Vec::with_capacity(256),
        };
        rows("`Table`, by 256", nr, &mut by_batch);
        rows("`BTreeMap`", nr, &mut Tree::default());
        rows("`BinaryHeap`", nr, &mut Heap::default());
    }
    sleep_row();
}
