// SPDX-License-Identifier: MIT
//! Timeouts by number: see `<twheel/table.h>`.
use crate::{check, nanoseconds, Clock};
use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::mem::size_of;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::{null_mut, NonNull};
use std::time::Duration;
use twheel_sys as sys;

/// A deadline above this one is none.
const TIME_LAST: u64 = i64::MAX as u64 - 1;

/// A table: it has the numbers 0 to `nr` - 1, and each number has one timeout.
///
/// It is in the process, or on the device, where several processes share it.  Any thread may use it
/// at any time.
///
/// A number is given back by whoever has ended its timeout: by who stopped it, if
/// [`stop`](Table::stop) says [`Pending`](State::Pending) or [`Unread`](State::Unread); otherwise by
/// who has fetched it.
///
/// ```
/// use std::time::Duration;
/// use twheel::{State, Table};
///
/// let table = Table::new(10_000)?;
/// table.start_after(17, Duration::from_millis(5))?;
/// table.start_after(18, Duration::from_secs(30))?;
/// assert_eq!(table.stop(18)?, State::Pending);
///
/// let mut numbers = [0; 256];
/// let nr = table.expired(&mut numbers, None)?;
/// assert_eq!(numbers[..nr], [17]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Table {
    table: NonNull<sys::twheel_table>,
}

// SAFETY: any thread may call any function, but for twheel_table_close(), which drop() calls.
unsafe impl Send for Table {}
// SAFETY: the same.
unsafe impl Sync for Table {}

/// What a number is, or was before a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// Not started, stopped, or fetched.
    Idle,
    /// Started.
    Pending,
    /// It has expired, and nobody has fetched it.
    Unread,
}

/// A change of a number, for [`Table::apply`].
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Change(sys::twheel_table_change);

impl Change {
    /// Start a number.  The deadline is on the table's clock, or counts from now for
    /// [`Table::apply_after`].
    #[inline]
    pub fn start(number: u32, deadline_ns: u64) -> Change {
        Change(sys::twheel_table_change {
            number,
            result: 0,
            deadline_ns,
        })
    }

    /// Stop a number.
    #[inline]
    pub fn stop(number: u32) -> Change {
        Change::start(number, sys::TWHEEL_TABLE_NEVER)
    }

    /// The number.
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Whether it stops the number.
    pub fn is_stop(&self) -> bool {
        self.0.deadline_ns > TIME_LAST
    }

    /// After the change: what the number was before, or why the change failed.
    pub fn result(&self) -> Result<State> {
        state(self.0.result)
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a table is to be.
#[derive(Debug, Default)]
pub struct TableOptions {
    options: sys::twheel_table_options,
    fd: Option<OwnedFd>,
}

impl TableOptions {
    /// The clock, monotonic by default.
    pub fn clock(mut self, clock: Clock) -> TableOptions {
        self.options.clock = clock as u32;
        self
    }

    /// The tick, 1 us to 1 h, 1 ms by default: numbers expire at its multiples.
    pub fn tick(mut self, tick: Duration) -> TableOptions {
        self.options.tick_ns = nanoseconds(tick);
        self
    }

    /// Have the table on the device, `/dev/twheel`.
    pub fn device(mut self) -> TableOptions {
        self.options.backend = sys::TWHEEL_TABLE_DEVICE;
        self
    }

    /// Take over the table on the device that has this descriptor, inherited or received over a
    /// socket, with all that pends in it.
    pub fn take_over(mut self, fd: OwnedFd) -> TableOptions {
        self.fd = Some(fd);
        self
    }

    /// Make a table of `nr` numbers, or take one over that has as many.
    pub fn open(mut self, nr: u32) -> Result<Table> {
        let mut table = null_mut();

        self.options.size = size_of::<sys::twheel_table_options>() as u32;
        if let Some(fd) = &self.fd {
            // To the library, 0 is none.
            if fd.as_raw_fd() <= 2 {
                return Err(ErrorKind::InvalidInput.into());
            }
            self.options.fd = fd.as_raw_fd();
        }
        // SAFETY: both pointers are those of variables here.
        check(unsafe { sys::twheel_table_open(&mut table, nr, &self.options) })?;
        // It belongs to the table now.
        self.fd.map(IntoRawFd::into_raw_fd);
        Ok(Table {
            table: NonNull::new(table).expect("twheel_table_open() has made a table"),
        })
    }
}

fn state(result: i32) -> Result<State> {
    match result {
        sys::TWHEEL_TABLE_IDLE => Ok(State::Idle),
        sys::TWHEEL_TABLE_PENDING => Ok(State::Pending),
        sys::TWHEEL_TABLE_UNREAD => Ok(State::Unread),
        _ => Err(Error::from_raw_os_error(-result)),
    }
}

// SAFETY of all calls: the table is open as long as `self` is there.
impl Table {
    /// Make a table of `nr` numbers in the process, with the defaults.
    pub fn new(nr: u32) -> Result<Table> {
        Table::options().open(nr)
    }

    /// Say how a table is to be.
    pub fn options() -> TableOptions {
        TableOptions::default()
    }

    fn as_ptr(&self) -> *mut sys::twheel_table {
        self.table.as_ptr()
    }

    /// How many numbers it has.
    pub fn nr(&self) -> u32 {
        // SAFETY: see above
        unsafe { sys::twheel_table_nr(self.as_ptr()) }
    }

    /// Whether it is on the device.
    pub fn is_on_device(&self) -> bool {
        // SAFETY: see above
        unsafe { sys::twheel_table_backend(self.as_ptr()) == sys::TWHEEL_TABLE_DEVICE }
    }

    /// Start a number, or restart it, by the time on the table's clock.
    #[inline]
    pub fn start(&self, number: u32, deadline_ns: u64) -> Result<State> {
        // SAFETY: see above
        state(unsafe { sys::twheel_table_start(self.as_ptr(), number, deadline_ns) })
    }

    /// The same, counted from now.  Not for a clock that can be set.
    #[inline]
    pub fn start_after(&self, number: u32, delay: Duration) -> Result<State> {
        let delay_ns = nanoseconds(delay);

        // SAFETY: see above
        state(unsafe { sys::twheel_table_start_after(self.as_ptr(), number, delay_ns) })
    }

    /// Stop a number.  Nobody fetches it afterwards.
    #[inline]
    pub fn stop(&self, number: u32) -> Result<State> {
        // SAFETY: see above
        state(unsafe { sys::twheel_table_stop(self.as_ptr(), number) })
    }

    fn changes(&self, changes: &mut [Change], flags: u32) -> Result<usize> {
        let nr = u32::try_from(changes.len()).unwrap_or(u32::MAX);
        let changes = changes.as_mut_ptr().cast();

        // SAFETY: see above; a `Change` is what it has in it.
        Ok(check(unsafe { sys::twheel_table_apply(self.as_ptr(), changes, nr, flags) })? as usize)
    }

    /// Make changes, in their order, by one call, and return how many were made: each has a
    /// [`result`](Change::result).  The cost of a call is shared by all of them: some 256 at a time
    /// are best.
    pub fn apply(&self, changes: &mut [Change]) -> Result<usize> {
        self.changes(changes, 0)
    }

    /// The same, with deadlines that count from now.  Not for a clock that can be set.
    pub fn apply_after(&self, changes: &mut [Change]) -> Result<usize> {
        self.changes(changes, sys::TWHEEL_TABLE_AFTER)
    }

    /// Fetch numbers that have expired into `numbers`, and return how many these are.  If there is
    /// none, sleep for `timeout`, real time; `None` for no limit.
    ///
    /// The error is [`Interrupted`](ErrorKind::Interrupted) if a signal came while it slept.
    pub fn expired(&self, numbers: &mut [u32], timeout: Option<Duration>) -> Result<usize> {
        let nr = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let timeout_ns = timeout.map_or(sys::TWHEEL_TABLE_NEVER, nanoseconds);
        let numbers = numbers.as_mut_ptr();

        // SAFETY: see above
        let nr = unsafe { sys::twheel_table_expired(self.as_ptr(), numbers, nr, timeout_ns) };
        Ok(check(nr)? as usize)
    }

    /// What a number is, and its deadline if it pends.
    pub fn state(&self, number: u32) -> Result<(State, Option<u64>)> {
        let mut deadline_ns = 0;

        // SAFETY: see above
        let now = unsafe { sys::twheel_table_state(self.as_ptr(), number, &mut deadline_ns) };
        let now = state(now)?;
        Ok((now, (now == State::Pending).then_some(deadline_ns)))
    }

    /// The descriptor, which is readable when [`expired`](Table::expired) has something to
    /// fetch.  In the process the first call makes it, and may fail.
    pub fn fd(&self) -> Result<BorrowedFd<'_>> {
        // SAFETY: see above
        let fd = check(unsafe { sys::twheel_table_fd(self.as_ptr()) })?;

        // SAFETY: the table closes it when it is dropped, which the lifetime excludes.
        Ok(unsafe { BorrowedFd::borrow_raw(fd as RawFd) })
    }

    /// Until when a loop may sleep, on the table's clock; `None` if nothing will expire.
    pub fn next_ns(&self) -> Option<u64> {
        // SAFETY: see above
        let next_ns = unsafe { sys::twheel_table_next(self.as_ptr()) };

        (next_ns != sys::TWHEEL_TABLE_NEVER).then_some(next_ns)
    }

    /// The time of the table, in nanoseconds.
    pub fn now(&self) -> u64 {
        // SAFETY: see above
        unsafe { sys::twheel_table_now(self.as_ptr()) }
    }

    /// Move the clock, which has to be [`Clock::Caller`].  What is due then can be fetched when it
    /// returns.
    pub fn advance(&self, to_ns: u64) -> Result<()> {
        // SAFETY: see above
        check(unsafe { sys::twheel_table_advance(self.as_ptr(), to_ns) })?;
        Ok(())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: it is the last call.
        unsafe { sys::twheel_table_close(self.as_ptr()) }
    }
}

/// Panics if the descriptor cannot be made: call [`Table::fd`] before, which says why.
impl AsFd for Table {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd().expect("a descriptor of the table")
    }
}

/// As [`AsFd`].
impl AsRawFd for Table {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("nr", &self.nr())
            .field("is_on_device", &self.is_on_device())
            .finish()
    }
}
