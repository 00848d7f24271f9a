// SPDX-License-Identifier: MIT
//! Timers with callbacks.
use crate::nanoseconds;
use crate::wheel::{Caller, Wheel};
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::{PhantomData, PhantomPinned};
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::{null, null_mut};
use std::time::Duration;
use twheel_sys as sys;

/// A timer as the library knows it, and the wheel that it was last started on.
///
/// While it pends, the wheel and its neighbours have pointers to it.  So it is pinned, and stops
/// when it is dropped.  If it does not pend, the wheel may be gone.
#[repr(C)]
pub(crate) struct Node {
    timer: UnsafeCell<sys::twheel_timer>,
    wheel: Cell<*mut sys::twheel>,
    _pinned: PhantomPinned,
}

impl Node {
    pub(crate) const fn new(callback: sys::twheel_callback) -> Node {
        Node {
            timer: UnsafeCell::new(sys::twheel_timer {
                next: null_mut(),
                callback: Some(callback),
                pprev: null_mut(),
                interval_ns: 0,
                deadline: 0,
            }),
            wheel: Cell::new(null_mut()),
            _pinned: PhantomPinned,
        }
    }

    /// What the functions of the library take to start it.
    ///
    /// It belongs to a type whose first member it is, and which the callback is for.  What the
    /// callback uses outlives the wheel's `'w`.
    pub(crate) fn on(
        self: Pin<&Self>,
        wheel: &Wheel,
    ) -> (*mut sys::twheel, *mut sys::twheel_timer) {
        let wheel = wheel.as_ptr();

        if self.wheel.get() != wheel {
            self.stop();
            self.wheel.set(wheel);
        }
        (wheel, self.timer.get())
    }

    pub(crate) fn start_at(self: Pin<&Self>, wheel: &Wheel, deadline_ns: u64) {
        let (wheel, timer) = self.on(wheel);

        // SAFETY: it is pinned, and pends in this wheel or not at all; so in all starts.
        unsafe { sys::twheel_start_at(wheel, timer, deadline_ns) }
    }

    pub(crate) fn stop(&self) -> bool {
        // SAFETY: the wheel is there if the timer pends, and is not looked at if it does not.
        unsafe { sys::twheel_stop(self.wheel.get(), self.timer.get()) }
    }

    pub(crate) fn is_pending(&self) -> bool {
        // SAFETY: the timer is ours, and no other thread has it.
        unsafe { sys::twheel_timer_pending(self.timer.get()) }
    }

    fn deadline_ns(&self) -> Option<u64> {
        // SAFETY: as in is_pending()
        let deadline_ns = unsafe { sys::twheel_timer_deadline(self.timer.get()) };

        (deadline_ns != sys::TWHEEL_NEVER).then_some(deadline_ns)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A callback that is running.  The timer may be dropped meanwhile, and the callback may be called
/// again, by a dispatch in it.
struct Running<F> {
    callback: UnsafeCell<ManuallyDrop<F>>,
    /// Whether the timer is still there, to take its callback back.
    alive: Cell<bool>,
}

/// A timer: it calls `callback` when it expires.
///
/// It is an object of the program's, in a `Box`, in a struct, or on the stack, and takes 56 bytes
/// beside the callback.  It must be pinned to be started.  A timer that is dropped stops.  It may
/// outlive the wheel: then it does not pend.
///
/// A callback may start, stop and drop any timer, its own as well.  It may dispatch the wheel.
///
/// ```
/// # use std::time::Duration;
/// # use twheel::{Timer, Wheel};
/// let wheel = Wheel::new()?;
/// let timer = Box::pin(Timer::new(|expiry| expiry.restart(Duration::from_secs(1))));
///
/// timer.as_ref().start(&wheel, Duration::from_millis(5));
/// wheel.wait(None)?;
/// assert!(timer.is_pending());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// What a callback borrows has to outlive the wheel:
///
/// ```compile_fail,E0597
/// # use std::cell::Cell;
/// # use twheel::{Timer, Wheel};
/// let wheel = Wheel::new().unwrap();
/// let count = Cell::new(0);
/// let timer = Box::pin(Timer::new(|_| count.set(1)));
/// timer.as_ref().start(&wheel, std::time::Duration::ZERO);
/// ```
///
/// A wheel for longer-lived callbacks does not take shorter-lived ones:
///
/// ```compile_fail
/// # use twheel::Wheel;
/// fn shorter<'a>(wheel: &'a Wheel<'static>) -> &'a Wheel<'a> {
///     wheel
/// }
/// ```
///
/// A timer that is not pinned cannot be started, and one that is pinned cannot be moved:
///
/// ```compile_fail,E0599
/// # use twheel::{Timer, Wheel};
/// let wheel = Wheel::new().unwrap();
/// Timer::new(|_| ()).start(&wheel, std::time::Duration::ZERO);
/// ```
///
/// ```compile_fail,E0277
/// # use twheel::Timer;
/// let timer = Box::pin(Timer::new(|_| ()));
/// let moved = *std::pin::Pin::into_inner(timer);
/// ```
///
/// Timers and wheels stay on their thread:
///
/// ```compile_fail,E0277
/// # use twheel::Wheel;
/// let wheel = Wheel::new().unwrap();
/// std::thread::spawn(move || wheel.dispatch());
/// ```
///
/// ```compile_fail,E0277
/// # use twheel::Timer;
/// let timer = Box::pin(Timer::new(|_| ()));
/// std::thread::spawn(move || drop(timer));
/// ```
#[repr(C)]
pub struct Timer<'w, F> {
    node: Node,
    /// The callback while it is called; then it is not in `callback`.
    running: Cell<*const Running<F>>,
    callback: UnsafeCell<ManuallyDrop<F>>,
    /// Invariant, as in the wheel.
    lifetime: PhantomData<Cell<&'w ()>>,
}

impl<'w, F: Fn(&Expiry<'_, 'w>) + 'w> Timer<'w, F> {
    /// Make a timer, which does not pend.
    pub fn new(callback: F) -> Timer<'w, F> {
        Timer {
            node: Node::new(expired::<F>),
            running: Cell::new(null()),
            callback: UnsafeCell::new(ManuallyDrop::new(callback)),
            lifetime: PhantomData,
        }
    }

    fn node(self: Pin<&Self>) -> Pin<&Node> {
        // SAFETY: the node is pinned if the timer is: nothing moves it, and drop() does not.
        unsafe { self.map_unchecked(|timer| &timer.node) }
    }

    /// Start the timer, or restart it: it expires once, after `delay`.  A timer that pends in
    /// another wheel is stopped there.
    #[inline]
    pub fn start(self: Pin<&Self>, wheel: &Wheel<'w>, delay: Duration) {
        let (wheel, timer) = self.node().on(wheel);

        // SAFETY: as in Node::start_at()
        unsafe { sys::twheel_start(wheel, timer, nanoseconds(delay)) }
    }

    /// The same, by the time on the clock of the wheel.
    #[inline]
    pub fn start_at(self: Pin<&Self>, wheel: &Wheel<'w>, deadline_ns: u64) {
        self.node().start_at(wheel, deadline_ns);
    }

    /// Start the timer: it expires again and again, at a fixed rate, until it is stopped.  Below a
    /// tick, `interval` is raised to one.
    pub fn start_every(self: Pin<&Self>, wheel: &Wheel<'w>, interval: Duration) {
        let (wheel, timer) = self.node().on(wheel);

        // SAFETY: as in Node::start_at()
        unsafe { sys::twheel_start_every(wheel, timer, nanoseconds(interval)) }
    }

    /// The same, but each period begins when the callback has returned; the first one at
    /// `deadline_ns`.
    pub fn start_with_fixed_delay(
        self: Pin<&Self>,
        wheel: &Wheel<'w>,
        deadline_ns: u64,
        delay: Duration,
    ) {
        let (wheel, timer) = self.node().on(wheel);
        let delay_ns = nanoseconds(delay);
        let flags = sys::TWHEEL_FIXED_DELAY;

        // SAFETY: as in Node::start_at()
        unsafe { sys::twheel_start_periodic(wheel, timer, deadline_ns, delay_ns, flags) }
    }
}

impl<F> Timer<'_, F> {
    /// Stop the timer, and return whether it was pending.  Its callback is not called any more.
    #[inline]
    pub fn stop(&self) -> bool {
        self.node.stop()
    }

    /// Whether the callback will be called, unless the timer is stopped.
    pub fn is_pending(&self) -> bool {
        self.node.is_pending()
    }

    /// The deadline of a timer that pends, as it was asked for; `None` if it does not pend, or
    /// never expires.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.node.deadline_ns()
    }
}

impl<F> Drop for Timer<'_, F> {
    fn drop(&mut self) {
        self.node.stop();
        // SAFETY: if the callback is running, it is on the stack of expired(), which is there, and
        // drops it; otherwise it is here.
        unsafe {
            match self.running.get().as_ref() {
                Some(running) => running.alive.set(false),
                None => ManuallyDrop::drop(self.callback.get_mut()),
            }
        }
    }
}

impl<F> fmt::Debug for Timer<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("deadline_ns", &self.deadline_ns())
            .finish_non_exhaustive()
    }
}

/// What the library calls.
///
/// # Safety
///
/// `timer` is the node of a `Timer<'w, F>`, which was started on `wheel`, a `Wheel<'w>`.
unsafe extern "C" fn expired<'w, F>(wheel: *mut sys::twheel, timer: *mut sys::twheel_timer)
where
    F: Fn(&Expiry<'_, 'w>) + 'w,
{
    let timer = timer as *const Timer<'w, F>;
    // SAFETY: as above.  The timer is there when it is called.
    let (caller, running) = unsafe { (Caller::<'w>::new(wheel), (*timer).running.get()) };

    caller.catch(|| {
        // SAFETY: if `running` is set, that call is under way further down on this stack.
        if let Some(running) = unsafe { running.as_ref() } {
            call(&caller, timer, running);
            return;
        }
        // The callback is moved here for the time of the call, so that it is there until the
        // end, whatever becomes of the timer.
        let running = Running {
            // SAFETY: the one in the timer is not used before it is put back.
            callback: UnsafeCell::new(unsafe { std::ptr::read((*timer).callback.get()) }),
            alive: Cell::new(true),
        };
        // SAFETY: the timer is there, and `running` until put_back has reset it.
        unsafe { (*timer).running.set(&running) };
        let _put_back = PutBack {
            timer,
            running: &running,
        };

        call(&caller, timer, &running);
    });
}

fn call<'w, F>(wheel: &Wheel<'w>, timer: *const Timer<'w, F>, running: &Running<F>)
where
    F: Fn(&Expiry<'_, 'w>) + 'w,
{
    // The node comes first.
    let expiry = Expiry {
        wheel,
        node: timer as *const Node,
        alive: &running.alive,
    };

    // SAFETY: nobody moves or drops it before all calls have returned.
    unsafe { (*running.callback.get())(&expiry) }
}

/// Puts the callback back into its timer, also after a panic.
struct PutBack<'a, 'w, F> {
    timer: *const Timer<'w, F>,
    running: &'a Running<F>,
}

impl<F> Drop for PutBack<'_, '_, F> {
    fn drop(&mut self) {
        // SAFETY: it is read once, here.  No call of it is under way, and if `alive` is set, the
        // timer is there.
        unsafe {
            let callback = std::ptr::read(self.running.callback.get());

            if self.running.alive.get() {
                std::ptr::write((*self.timer).callback.get(), callback);
                (*self.timer).running.set(null());
            } else {
                drop(ManuallyDrop::into_inner(callback));
            }
        }
    }
}

/// What a callback is given.
pub struct Expiry<'a, 'w> {
    wheel: &'a Wheel<'w>,
    /// The timer's, if `alive` is set.
    node: *const Node,
    alive: &'a Cell<bool>,
}

impl<'w> Expiry<'_, 'w> {
    /// The wheel.
    pub fn wheel(&self) -> &Wheel<'w> {
        self.wheel
    }

    /// The timer, if the callback has not dropped it.
    fn node(&self) -> Option<Pin<&Node>> {
        // SAFETY: if `alive` is set, it is there; it was started, so it is pinned.
        self.alive
            .get()
            .then(|| unsafe { Pin::new_unchecked(&*self.node) })
    }

    /// Start the timer again: it expires once, after `delay`.  If the callback has dropped the
    /// timer, this does nothing.
    pub fn restart(&self, delay: Duration) {
        if let Some((wheel, timer)) = self.node().map(|node| node.on(self.wheel)) {
            // SAFETY: as in Node::start_at()
            unsafe { sys::twheel_start(wheel, timer, nanoseconds(delay)) }
        }
    }

    /// The same, by the time on the clock of the wheel.
    pub fn restart_at(&self, deadline_ns: u64) {
        if let Some(node) = self.node() {
            node.start_at(self.wheel, deadline_ns);
        }
    }

    /// Stop the timer, if it is periodic or was restarted, and return whether it was pending.
    pub fn stop(&self) -> bool {
        self.node().map_or(false, |node| node.stop())
    }

    /// How many periods of a periodic timer this call is for; 1 for others.
    pub fn periods(&self) -> u64 {
        // SAFETY: the wheel is there.
        unsafe { sys::twheel_periods(self.wheel.as_ptr()) }
    }
}

impl fmt::Debug for Expiry<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expiry")
            .field("wheel", self.wheel)
            .finish_non_exhaustive()
    }
}
