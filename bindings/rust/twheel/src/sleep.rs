// SPDX-License-Identifier: MIT
//! Futures on a wheel.  They need no executor of a certain kind: whoever dispatches the wheel
//! wakes the tasks.
use crate::nanoseconds;
use crate::timer::Node;
use crate::wheel::{Caller, Wheel};
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use twheel_sys as sys;

/// A future that is ready when its time has come, by [`Wheel::sleep`].
///
/// It starts when it is polled first, but its time counts from when it was made.  It wakes the task
/// that has polled it last.
#[must_use = "futures do nothing unless they are polled"]
#[repr(C)]
pub struct Sleep<'a, 'w> {
    node: Node,
    wheel: &'a Wheel<'w>,
    deadline_ns: Cell<u64>,
    expired: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

impl<'a, 'w> Sleep<'a, 'w> {
    pub(crate) fn new(wheel: &'a Wheel<'w>, delay: Duration) -> Sleep<'a, 'w> {
        Sleep {
            node: Node::new(expired),
            wheel,
            deadline_ns: Cell::new(deadline_ns(wheel, delay)),
            expired: Cell::new(false),
            waker: Cell::new(None),
        }
    }

    fn node(self: Pin<&Self>) -> Pin<&Node> {
        // SAFETY: the node is pinned if the future is.
        unsafe { self.map_unchecked(|sleep| &sleep.node) }
    }

    /// Let it be ready after `delay` from now on, whether it has been ready or not.  The task is
    /// woken as before.
    pub fn reset(self: Pin<&Self>, delay: Duration) {
        self.deadline_ns.set(deadline_ns(self.wheel, delay));
        self.expired.set(false);
        if self.node.is_pending() {
            self.node().start_at(self.wheel, self.deadline_ns.get());
        }
    }
}

fn deadline_ns(wheel: &Wheel, delay: Duration) -> u64 {
    wheel.now().saturating_add(nanoseconds(delay))
}

/// What the library calls.
///
/// # Safety
///
/// `timer` is the node of a `Sleep`, and `wheel` its wheel.
unsafe extern "C" fn expired(wheel: *mut sys::twheel, timer: *mut sys::twheel_timer) {
    // SAFETY: as above.
    let (caller, sleep) = unsafe { (Caller::new(wheel), &*(timer as *const Sleep)) };

    sleep.expired.set(true);
    if let Some(waker) = sleep.waker.take() {
        // It may drop the future.
        caller.catch(|| waker.wake());
    }
}

impl Future for Sleep<'_, '_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.into_ref();

        if sleep.expired.get() {
            return Poll::Ready(());
        }
        match sleep.waker.take() {
            Some(waker) if waker.will_wake(context.waker()) => sleep.waker.set(Some(waker)),
            _ => sleep.waker.set(Some(context.waker().clone())),
        }
        if !sleep.node.is_pending() {
            sleep.node().start_at(sleep.wheel, sleep.deadline_ns.get());
        }
        Poll::Pending
    }
}

impl fmt::Debug for Sleep<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline_ns", &self.deadline_ns)
            .field("expired", &self.expired)
            .finish_non_exhaustive()
    }
}

/// A future with a limit of time, by [`Wheel::timeout`].
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Timeout<'a, 'w, F> {
    sleep: Sleep<'a, 'w>,
    future: F,
}

impl<'a, 'w, F> Timeout<'a, 'w, F> {
    pub(crate) fn new(sleep: Sleep<'a, 'w>, future: F) -> Timeout<'a, 'w, F> {
        Timeout { sleep, future }
    }
}

impl<F: Future> Future for Timeout<'_, '_, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        // SAFETY: both are pinned if this is: nothing moves them, and there is no drop() of ours.
        let (sleep, future) = unsafe {
            let timeout = self.get_unchecked_mut();

            (
                Pin::new_unchecked(&mut timeout.sleep),
                Pin::new_unchecked(&mut timeout.future),
            )
        };
        match future.poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => sleep.poll(context).map(|()| None),
        }
    }
}
