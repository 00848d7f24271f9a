// SPDX-License-Identifier: MIT
//! The device by records: a file of the standard library.  See `<linux/twheel.h>`.
use crate::{nanoseconds, Clock};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::mem::size_of;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;
use twheel_sys as sys;

const RECORD: usize = size_of::<sys::twheel_record>();
const EVENT: usize = size_of::<sys::twheel_event>();

#[cfg(any(target_arch = "mips", target_arch = "mips64"))]
const O_NONBLOCK: i32 = 0x80;
#[cfg(target_arch = "sparc64")]
const O_NONBLOCK: i32 = 0x4000;
#[cfg(not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64")))]
const O_NONBLOCK: i32 = 0o4000;

/// A wheel of the device, `/dev/twheel`, whose timeouts have keys: numbers of 64 bits, which the
/// program chooses.
///
/// Timeouts are changed by writing records to a file, and events are read from it.  Several threads
/// and processes may share it, and the timeouts live until its last descriptor is closed.
///
/// ```no_run
/// use std::time::Duration;
/// use twheel::{Batch, Event, Keyed};
///
/// let wheel = Keyed::options().open()?;
/// let mut batch = Batch::new();
/// batch.arm(17, Duration::from_secs(30)).arm(18, Duration::from_secs(5)).cancel(17);
/// wheel.write(&mut batch)?;
///
/// let mut events = [Event::default(); 64];
/// let nr = wheel.read(&mut events)?;
/// for event in &events[..nr] {
///     println!("{} has expired", event.key);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Keyed {
    file: File,
}

/// How a wheel of the device is to be.
#[derive(Clone, Debug, Default)]
pub struct KeyedOptions {
    clock: Clock,
    tick_ns: u64,
    slack_ns: u64,
    max_pending: u32,
    flags: i32,
}

impl KeyedOptions {
    /// The clock, monotonic by default.  [`Clock::Caller`] needs `ioctl`, and is refused.
    pub fn clock(mut self, clock: Clock) -> KeyedOptions {
        self.clock = clock;
        self
    }

    /// The tick, 1 us to 1 h, 1 ms by default.
    pub fn tick(mut self, tick: Duration) -> KeyedOptions {
        self.tick_ns = nanoseconds(tick);
        self
    }

    /// How much later than its tick the kernel may look at a timeout.
    pub fn slack(mut self, slack: Duration) -> KeyedOptions {
        self.slack_ns = nanoseconds(slack);
        self
    }

    /// How many timeouts may be in use at a time, 2^20 by default.
    pub fn max_pending(mut self, nr: u32) -> KeyedOptions {
        self.max_pending = nr;
        self
    }

    /// Let [`Keyed::read`] fail with [`WouldBlock`](ErrorKind::WouldBlock) if there is no event,
    /// instead of waiting.
    pub fn nonblocking(mut self) -> KeyedOptions {
        self.flags = O_NONBLOCK;
        self
    }

    /// Open the device, and set a new wheel up.
    pub fn open(&self) -> Result<Keyed> {
        if self.clock == Clock::Caller {
            return Err(ErrorKind::InvalidInput.into());
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(self.flags)
            .open("/dev/twheel")?;
        let mut setup = Batch::new();

        setup.words([
            sys::TWHEEL_OP_SETUP,
            sys::TWHEEL_SETUP_KEYED,
            sys::TWHEEL_CLOCK_MONOTONIC + self.clock as u32,
            EVENT as u32,
        ]);
        setup.longs([self.tick_ns, self.slack_ns]);
        setup.words([0, self.max_pending]);
        let wheel = Keyed { file };
        wheel.write(&mut setup)?;
        Ok(wheel)
    }
}

/// Records, to be written at a time.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
}

impl Batch {
    /// Make an empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    fn words<const N: usize>(&mut self, words: [u32; N]) {
        for word in words {
            self.bytes.extend_from_slice(&word.to_ne_bytes());
        }
    }

    fn longs<const N: usize>(&mut self, longs: [u64; N]) {
        for long in longs {
            self.bytes.extend_from_slice(&long.to_ne_bytes());
        }
    }

    fn record(&mut self, op: u32, flags: u32, longs: [u64; 3]) -> &mut Batch {
        self.bytes.reserve(RECORD);
        self.words([op, flags]);
        self.longs(longs);
        self.words([0, 0]);
        self
    }

    /// Arm a timeout, counted from the write on, or move the one that has this key.  Not for a
    /// clock that can be set.
    pub fn arm(&mut self, key: u64, delay: Duration) -> &mut Batch {
        self.record(
            sys::TWHEEL_OP_ARM,
            0,
            [key, nanoseconds(delay).min(sys::TWHEEL_TIME_NEVER), 0],
        )
    }

    /// The same, by the time on the wheel's clock.
    pub fn arm_at(&mut self, key: u64, deadline_ns: u64) -> &mut Batch {
        self.record(
            sys::TWHEEL_OP_ARM,
            sys::TWHEEL_ARM_ABSOLUTE,
            [key, deadline_ns.min(sys::TWHEEL_TIME_NEVER), 0],
        )
    }

    /// Arm a timeout that expires again and again, at a fixed rate.
    pub fn arm_every(&mut self, key: u64, interval: Duration) -> &mut Batch {
        let interval_ns = nanoseconds(interval).min(sys::TWHEEL_TIME_NEVER);

        self.record(sys::TWHEEL_OP_ARM, 0, [key, interval_ns, interval_ns])
    }

    /// Cancel a timeout.  If it has ended already, nothing is done.
    pub fn cancel(&mut self, key: u64) -> &mut Batch {
        self.record(
            sys::TWHEEL_OP_CANCEL,
            sys::TWHEEL_RECORD_ABSENT_OK,
            [key, 0, 0],
        )
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / RECORD
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forget all records, or those that were not written.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// A timeout that has expired.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Event {
    /// The kernel's name of the timeout.
    pub id: u64,
    /// The key.
    pub key: u64,
    /// The deadline, as it was asked for.
    pub deadline_ns: u64,
    /// When the kernel found it expired: how much later is the lateness.
    pub fired_ns: u64,
    /// How often it has expired since the last event.
    pub count: u32,
    flags: u32,
}

impl Event {
    /// Whether the wheel was drained before the timeout had expired.
    pub fn is_drained(&self) -> bool {
        self.flags & sys::TWHEEL_EVENT_DRAINED != 0
    }

    /// Whether this was the last event of the timeout.
    pub fn is_last(&self) -> bool {
        self.flags & sys::TWHEEL_EVENT_ENDED != 0
    }

    fn from_bytes(bytes: &[u8]) -> Event {
        let word = |at| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let long = |at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());

        Event {
            id: long(0),
            key: long(8),
            deadline_ns: long(16),
            fired_ns: long(24),
            count: word(32),
            flags: word(36),
        }
    }
}

impl Keyed {
    /// Say how a wheel is to be.
    pub fn options() -> KeyedOptions {
        KeyedOptions::default()
    }

    /// Take over a descriptor of a keyed wheel, with all that pends there.
    pub fn take_over(fd: OwnedFd) -> Keyed {
        Keyed { file: fd.into() }
    }

    /// Write records, in their order.
    ///
    /// On success the batch is empty.  If a record is refused, the error says why, and the batch
    /// begins with it: those before it are done.
    pub fn write(&self, batch: &mut Batch) -> Result<()> {
        let mut done = 0;
        let result = loop {
            if done == batch.bytes.len() {
                break Ok(());
            }
            match (&self.file).write(&batch.bytes[done..]) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(nr) => done += nr,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        batch.bytes.drain(..done);
        result
    }

    /// Read events, and return how many: 0 if the wheel was drained and none is left.
    ///
    /// If there is none, wait, or fail with [`WouldBlock`](ErrorKind::WouldBlock) if the wheel is
    /// [`nonblocking`](KeyedOptions::nonblocking).
    pub fn read(&self, events: &mut [Event]) -> Result<usize> {
        let mut bytes = [0; 64 * EVENT];
        let room = events.len().min(64) * EVENT;

        // The kernel says EINVAL to that, the file 0: the end.
        if room == 0 {
            return Err(Error::from(ErrorKind::InvalidInput));
        }
        let nr = (&self.file).read(&mut bytes[..room])?;
        for (event, bytes) in events.iter_mut().zip(bytes[..nr].chunks_exact(EVENT)) {
            *event = Event::from_bytes(bytes);
        }
        Ok(nr / EVENT)
    }
}

impl AsFd for Keyed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Keyed {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}
