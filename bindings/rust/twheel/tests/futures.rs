// SPDX-License-Identifier: MIT
#![forbid(unsafe_code)]
use std::future::{pending, ready, Future};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use twheel::{Clock, Timer, Wheel};

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Woken {
    fn new() -> (Arc<Woken>, Waker) {
        let woken = Arc::<Woken>::default();

        (woken.clone(), woken.into())
    }

    fn take(&self) -> u32 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

fn poll<F: Future>(future: &mut Pin<Box<F>>, waker: &Waker) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(waker))
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn wheel<'w>() -> Wheel<'w> {
    Wheel::options().clock(Clock::Caller).open().unwrap()
}

fn at(wheel: &Wheel, ms: u64) -> usize {
    wheel.advance(ms * 1_000_000).unwrap();
    wheel.dispatch()
}

#[test]
fn a_sleep_wakes_its_task_once_and_is_ready_then() {
    let (woken, waker) = Woken::new();
    let wheel = wheel();
    let mut sleep = Box::pin(wheel.sleep(ms(10)));

    assert_eq!(wheel.stats().pending, 0);
    assert_eq!(poll(&mut sleep, &waker), Poll::Pending);
    assert_eq!(poll(&mut sleep, &waker), Poll::Pending);
    assert_eq!(at(&wheel, 9), 0);
    assert_eq!(woken.take(), 0);
    assert_eq!(at(&wheel, 10), 1);
    assert_eq!(woken.take(), 1);
    assert_eq!(poll(&mut sleep, &waker), Poll::Ready(()));
    assert_eq!(poll(&mut sleep, &waker), Poll::Ready(()));
}

#[test]
fn a_sleep_counts_from_when_it_was_made() {
    let (_, waker) = Woken::new();
    let wheel = wheel();
    let mut sleep = Box::pin(wheel.sleep(ms(10)));

    at(&wheel, 30);
    assert_eq!(poll(&mut sleep, &waker), Poll::Pending);
    assert_eq!(wheel.dispatch(), 1);
    assert_eq!(poll(&mut sleep, &waker), Poll::Ready(()));
}

#[test]
fn a_sleep_wakes_the_task_that_has_polled_it_last() {
    let (first, first_waker) = Woken::new();
    let (second, second_waker) = Woken::new();
    let wheel = wheel();
    let mut sleep = Box::pin(wheel.sleep(ms(10)));

    assert!(poll(&mut sleep, &first_waker).is_pending());
    assert!(poll(&mut sleep, &second_waker).is_pending());
    at(&wheel, 10);
    assert_eq!((first.take(), second.take()), (0, 1));
    drop(sleep);
    drop((first_waker, second_waker));
    assert_eq!(
        (Arc::strong_count(&first), Arc::strong_count(&second)),
        (1, 1)
    );
}

#[test]
fn a_sleep_that_is_dropped_wakes_nobody() {
    let (woken, waker) = Woken::new();
    let wheel = wheel();
    let mut sleep = Box::pin(wheel.sleep(ms(10)));

    assert!(poll(&mut sleep, &waker).is_pending());
    drop(sleep);
    assert_eq!(at(&wheel, 10), 0);
    assert_eq!(woken.take(), 0);
}

#[test]
fn a_sleep_that_is_forgotten_wakes_its_task() {
    let (woken, waker) = Woken::new();
    let wheel = wheel();
    let mut sleep = Box::pin(wheel.sleep(ms(10)));

    assert!(poll(&mut sleep, &waker).is_pending());
    std::mem::forget(sleep);
    assert_eq!(at(&wheel, 10), 1);
    assert_eq!(woken.take(), 1);
}

#[test]
fn a_sleep_can_be_reset_before_and_after_its_time() {
    let (woken, waker) = Woken::new();
    let wheel = wheel();
    let mut sleep = Box::pin(wheel.sleep(ms(10)));

    assert!(poll(&mut sleep, &waker).is_pending());
    sleep.as_ref().reset(ms(20));
    assert_eq!(at(&wheel, 19), 0);
    assert_eq!(at(&wheel, 20), 1);
    assert!(poll(&mut sleep, &waker).is_ready());
    sleep.as_ref().reset(ms(5));
    assert!(poll(&mut sleep, &waker).is_pending());
    assert_eq!(at(&wheel, 25), 1);
    assert_eq!(woken.take(), 2);
}

#[test]
fn a_timeout_gives_what_its_future_gives_or_none() {
    let (woken, waker) = Woken::new();
    let wheel = wheel();
    let mut soon = Box::pin(wheel.timeout(ms(10), ready(7)));
    let mut never = Box::pin(wheel.timeout(ms(10), pending::<u32>()));

    assert_eq!(poll(&mut soon, &waker), Poll::Ready(Some(7)));
    assert_eq!(poll(&mut never, &waker), Poll::Pending);
    assert_eq!(at(&wheel, 10), 1);
    assert_eq!(woken.take(), 1);
    assert_eq!(poll(&mut never, &waker), Poll::Ready(None));
}

/// A waker that panics, as a wrong executor's may.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("no executor");
    }
}

#[test]
fn a_waker_that_panics_does_so_in_dispatch() {
    let calls = std::cell::Cell::new(0);
    let wheel = wheel();
    let mut sleep = Box::pin(wheel.sleep(ms(1)));
    let timer = Box::pin(Timer::new(|_| calls.set(calls.get() + 1)));

    assert!(poll(&mut sleep, &Arc::new(Panics).into()).is_pending());
    timer.as_ref().start(&wheel, ms(5));
    let at_10 = std::panic::AssertUnwindSafe(|| at(&wheel, 10));
    assert!(std::panic::catch_unwind(at_10).is_err());
    assert_eq!(calls.get(), 1);
}
