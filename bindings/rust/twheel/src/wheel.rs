// SPDX-License-Identifier: MIT
//! A wheel of the process: see `<twheel.h>`.
use crate::{check, nanoseconds, Clock, Sleep, Timeout};
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io::Result;
use std::marker::PhantomData;
use std::mem::{size_of, ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::{null_mut, NonNull};
use std::time::Duration;
use twheel_sys as sys;

pub use sys::twheel_stats as Stats;

/// The panic of a callback, until `dispatch` has come back from C and goes on with it.
type Panic = Cell<Option<Box<dyn Any + Send>>>;

/// A wheel, which timers are started on.
///
/// A wheel and its timers stay on one thread.  A [`Table`](crate::Table) is for several threads.
///
/// `'w` is how long all that the callbacks borrow lives.  So the program declares what they
/// borrow before the wheel.  The wheel itself may be moved and dropped while timers pend: they
/// do not pend any more when it is gone.
pub struct Wheel<'w> {
    wheel: NonNull<sys::twheel>,
    /// Invariant: with a shorter `'w`, a callback could be started that does not live as long as
    /// the wheel does; with a longer one, a callback could be given what is gone.
    lifetime: PhantomData<Cell<&'w ()>>,
}

/// How a wheel is to be.
///
/// ```
/// use std::time::Duration;
/// use twheel::{Clock, Wheel};
///
/// let wheel = Wheel::options().clock(Clock::Caller).tick(Duration::from_micros(100)).open()?;
/// assert_eq!(wheel.now(), 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    clock: Clock,
    flags: u32,
    tick_ns: u64,
    slack_ns: u64,
}

impl Options {
    /// The clock, monotonic by default.
    pub fn clock(mut self, clock: Clock) -> Options {
        self.clock = clock;
        self
    }

    /// The tick, 1 us to 1 h, 1 ms by default: timers expire at its multiples.
    pub fn tick(mut self, tick: Duration) -> Options {
        self.tick_ns = nanoseconds(tick);
        self
    }

    /// How much later than its tick a timer may expire, so that many expire in one wake-up.
    pub fn slack(mut self, slack: Duration) -> Options {
        self.slack_ns = nanoseconds(slack);
        self
    }

    /// For a loop that has no hook before it sleeps: no [`flush`](Wheel::flush) is needed.  Each
    /// start reads the clock, and sets the descriptor at once.
    pub fn immediate(mut self) -> Options {
        self.flags |= sys::TWHEEL_IMMEDIATE;
        self
    }

    /// Measure callbacks, for `slowest_ns` of [`Stats`].
    pub fn measure(mut self) -> Options {
        self.flags |= sys::TWHEEL_MEASURE;
        self
    }

    /// Make the wheel.  Fails if an option is out of range, or if memory is short.
    pub fn open<'w>(&self) -> Result<Wheel<'w>> {
        let panic: *mut Panic = Box::into_raw(Box::default());
        let options = sys::twheel_options {
            size: size_of::<sys::twheel_options>() as u32,
            clock: self.clock as u32,
            flags: self.flags,
            reserved: 0,
            tick_ns: self.tick_ns,
            slack_ns: self.slack_ns,
            data: panic.cast(),
        };
        let mut wheel = null_mut();

        // SAFETY: both pointers are those of variables here.
        let result = check(unsafe { sys::twheel_open(&mut wheel, &options) });
        if let Err(error) = result {
            // SAFETY: no wheel has it.
            drop(unsafe { Box::from_raw(panic) });
            return Err(error);
        }
        Ok(Wheel {
            wheel: NonNull::new(wheel).expect("twheel_open() has made a wheel"),
            lifetime: PhantomData,
        })
    }
}

impl<'w> Wheel<'w> {
    /// Make a wheel with the defaults.
    pub fn new() -> Result<Wheel<'w>> {
        Options::default().open()
    }

    /// Say how a wheel is to be.
    pub fn options() -> Options {
        Options::default()
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::twheel {
        self.wheel.as_ptr()
    }

    fn panic(&self) -> &Panic {
        // SAFETY: open() has put it there, and only drop() frees it.
        unsafe { &*sys::twheel_data(self.as_ptr()).cast() }
    }

    /// Call what calls callbacks.  A panic in one of them waits in the wheel until C has
    /// returned.  What waits already is an outer dispatch's, whose callback we are in.
    fn calls(&self, call: impl FnOnce(*mut sys::twheel) -> i32) -> Result<usize> {
        let outer = self.panic().take();
        let result = call(self.as_ptr());

        if let Some(panic) = self.panic().replace(outer) {
            resume_unwind(panic);
        }
        Ok(check(result)? as usize)
    }

    /// Call the callbacks of all timers that have expired, and return how many these were.  Each
    /// turn of a loop begins with it.
    ///
    /// # Panics
    ///
    /// If a callback panics, the others are called nevertheless; then `dispatch` panics with what
    /// the first one has panicked with.  The wheel may be used on.
    pub fn dispatch(&self) -> usize {
        self.dispatch_max(0)
    }

    /// The same, but call that many at most; 0 is no limit.
    pub fn dispatch_max(&self, max: u32) -> usize {
        // SAFETY: `self` is borrowed, so no callback ends the wheel.
        self.calls(|wheel| unsafe { sys::twheel_dispatch(wheel, max) })
            .expect("the wheel is for one thread")
    }

    /// Sleep until a timer expires, or time is up, and call what has expired: a loop for a
    /// program that has none.  Returns how many callbacks were called, or the error
    /// [`Interrupted`](std::io::ErrorKind::Interrupted) if a signal came.  Panics as
    /// [`dispatch`](Wheel::dispatch) does.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<usize> {
        let timeout_ns = timeout.map_or(sys::TWHEEL_NEVER, nanoseconds);

        // SAFETY: as in dispatch_max().
        self.calls(|wheel| unsafe { sys::twheel_wait(wheel, timeout_ns) })
    }

    /// End the turn, and say when the loop has to dispatch next, on the clock of the wheel: never
    /// too late, sometimes too early.  `None` if no timer will expire.
    pub fn next_ns(&self) -> Option<u64> {
        // SAFETY: the wheel is open as long as `self` is there; so in all functions below.
        let next_ns = unsafe { sys::twheel_next(self.as_ptr()) };

        (next_ns != sys::TWHEEL_NEVER).then_some(next_ns)
    }

    /// End the turn, and say for how long the loop may sleep; `None` for no limit.
    pub fn left(&self) -> Option<Duration> {
        let next_ns = self.next_ns()?;

        Some(Duration::from_nanos(next_ns.saturating_sub(self.now())))
    }

    /// End the turn, and set the descriptor.  A loop that watches the descriptor calls this last
    /// before it sleeps.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: see next_ns()
        check(unsafe { sys::twheel_flush(self.as_ptr()) })?;
        Ok(())
    }

    /// The descriptor, which is readable when [`dispatch`](Wheel::dispatch) has something to
    /// do.  The first call makes it, and may fail.
    pub fn fd(&self) -> Result<BorrowedFd<'_>> {
        // SAFETY: see next_ns()
        let fd = check(unsafe { sys::twheel_fd(self.as_ptr()) })?;

        // SAFETY: the wheel closes it when it is dropped, which the lifetime excludes.
        Ok(unsafe { BorrowedFd::borrow_raw(fd as RawFd) })
    }

    /// The time that delays count from: that of this turn of the loop.
    pub fn now(&self) -> u64 {
        // SAFETY: see next_ns()
        unsafe { sys::twheel_now(self.as_ptr()) }
    }

    /// Read the clock anew, in a turn that takes long.
    pub fn update(&self) -> u64 {
        // SAFETY: see next_ns()
        unsafe { sys::twheel_update(self.as_ptr()) }
    }

    /// Move the clock, which has to be [`Clock::Caller`].  What is due then is for the next
    /// [`dispatch`](Wheel::dispatch).
    pub fn advance(&self, to_ns: u64) -> Result<()> {
        // SAFETY: see next_ns()
        check(unsafe { sys::twheel_advance(self.as_ptr(), to_ns) })?;
        Ok(())
    }

    /// Stop all timers, and return how many have been pending.
    pub fn stop_all(&self) -> usize {
        // SAFETY: see next_ns(); there is no visitor.
        unsafe { sys::twheel_stop_all(self.as_ptr(), None, null_mut()) }
    }

    /// What the wheel holds and has done.  It counts the timers that pend one by one.
    pub fn stats(&self) -> Stats {
        let mut stats = MaybeUninit::uninit();

        // SAFETY: the library fills in all of it.
        unsafe {
            sys::twheel_get_stats(self.as_ptr(), stats.as_mut_ptr(), size_of::<Stats>());
            stats.assume_init()
        }
    }

    /// A future that is ready after `delay`.
    pub fn sleep(&self, delay: Duration) -> Sleep<'_, 'w> {
        Sleep::new(self, delay)
    }

    /// A future that is `Some` of what `future` gives, or `None` if that takes longer than
    /// `delay`.
    pub fn timeout<F: Future>(&self, delay: Duration, future: F) -> Timeout<'_, 'w, F> {
        Timeout::new(self.sleep(delay), future)
    }
}

impl Drop for Wheel<'_> {
    fn drop(&mut self) {
        // SAFETY: the timers that pend are still there: a timer is pinned, so its memory is there
        // until its drop() has stopped it.  open() has put the other one there, from a Box.
        unsafe {
            let panic: *mut Panic = sys::twheel_data(self.as_ptr()).cast();

            sys::twheel_close(self.as_ptr());
            drop(Box::from_raw(panic));
        }
    }
}

/// Panics if the descriptor cannot be made: call [`Wheel::fd`] before, which says why.
impl AsFd for Wheel<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd().expect("a descriptor of the wheel")
    }
}

/// As [`AsFd`].
impl AsRawFd for Wheel<'_> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for Wheel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wheel").field(&self.wheel).finish()
    }
}

/// The wheel that has called a callback.
pub(crate) struct Caller<'w>(ManuallyDrop<Wheel<'w>>);

impl Caller<'_> {
    /// # Safety
    ///
    /// `wheel` was made by [`Options::open`], with that lifetime, and is in dispatch.
    pub(crate) unsafe fn new(wheel: *mut sys::twheel) -> Self {
        Caller(ManuallyDrop::new(Wheel {
            // SAFETY: a wheel is at no null pointer.
            wheel: unsafe { NonNull::new_unchecked(wheel) },
            lifetime: PhantomData,
        }))
    }

    /// Call something that may panic, as C must not see that.
    pub(crate) fn catch(&self, call: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
            let first = self.panic().take();

            if first.is_some() {
                // It may panic when it is dropped.
                std::mem::forget(panic);
                self.panic().set(first);
            } else {
                self.panic().set(Some(panic));
            }
        }
    }
}

impl<'w> Deref for Caller<'w> {
    type Target = Wheel<'w>;

    fn deref(&self) -> &Wheel<'w> {
        &self.0
    }
}
