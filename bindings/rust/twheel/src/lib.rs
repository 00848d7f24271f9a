// SPDX-License-Identifier: MIT
//! Timers on a wheel, for programs with many timeouts: libtwheel for Rust.
//!
//! | type | what it is | for whom |
//! |---|---|---|
//! | [`Wheel`] and [`Timer`] | timers in objects of yours, with callbacks | one thread with a loop |
//! | [`Sleep`], [`Timeout`] | futures on a wheel, without an executor | the same, with `async` |
//! | [`Table`] | timeouts by number, in the process or on the device | any threads and processes |
//! | [`Keyed`] | timeouts by key on the device, by a file | programs that share a wheel |
//!
//! Nothing of it needs `unsafe` in the program.  Times are nanoseconds on the clock of the wheel.
//!
//! ```
//! use std::cell::Cell;
//! use std::time::Duration;
//! use twheel::{Timer, Wheel};
//!
//! let expired = Cell::new(0);
//! let wheel = Wheel::new()?;
//! let timer = Box::pin(Timer::new(|_| expired.set(expired.get() + 1)));
//!
//! timer.as_ref().start(&wheel, Duration::from_millis(10));
//! wheel.wait(None)?;
//! assert_eq!(expired.get(), 1);
//! # Ok::<(), std::io::Error>(())
//! ```
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

mod keyed;
mod sleep;
mod table;
mod timer;
mod wheel;

pub use keyed::{Batch, Event, Keyed, KeyedOptions};
pub use sleep::{Sleep, Timeout};
pub use table::{Change, State, Table, TableOptions};
pub use timer::{Expiry, Timer};
pub use wheel::{Options, Stats, Wheel};

use std::io::{Error, Result};
use std::time::Duration;

/// The clock of a wheel or of a table.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Clock {
    /// `CLOCK_MONOTONIC`, which stands still while the machine sleeps.
    #[default]
    Monotonic = 0,
    /// `CLOCK_BOOTTIME`, which goes on while the machine sleeps.
    Boottime = 1,
    /// `CLOCK_REALTIME`, which can be set.
    Realtime = 2,
    /// `CLOCK_TAI`, which can be set.
    Tai = 3,
    /// A clock that begins at 0, and moves when the program advances it.
    Caller = 4,
}

/// Nanoseconds, as the library takes them; what is too long for 64 bits is "never".
fn nanoseconds(time: Duration) -> u64 {
    match time.as_secs().checked_mul(1_000_000_000) {
        Some(seconds) => seconds.saturating_add(u64::from(time.subsec_nanos())),
        None => u64::MAX,
    }
}

/// What a function of the library has returned: a number, or a negative errno.
fn check(result: i32) -> Result<u32> {
    u32::try_from(result).map_err(|_| Error::from_raw_os_error(-result))
}

/// The first program there is a test as well.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
