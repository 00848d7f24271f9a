// SPDX-License-Identifier: MIT
//! Three calls of epoll, which the standard library lacks: for tests and examples of `twheel`,
//! which have no `unsafe` themselves.  A program has mio, polling or tokio in its place.
use std::io::{Error, Result};
use std::os::raw::c_int;
use std::os::unix::io::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

const CLOEXEC: c_int = 0o2000000;
const CTL_ADD: c_int = 1;
const IN: u32 = 1;
const EDGE: u32 = 1 << 31;

#[repr(C)]
#[cfg_attr(target_arch = "x86_64", repr(packed))]
#[derive(Clone, Copy)]
struct Event {
    events: u32,
    token: u64,
}

extern "C" {
    fn epoll_create1(flags: c_int) -> c_int;
    fn epoll_ctl(epoll: c_int, op: c_int, fd: c_int, event: *mut Event) -> c_int;
    fn epoll_wait(epoll: c_int, events: *mut Event, nr: c_int, timeout_ms: c_int) -> c_int;
}

fn check(result: c_int) -> Result<c_int> {
    if result < 0 {
        return Err(Error::last_os_error());
    }
    Ok(result)
}

pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> Result<Epoll> {
        // SAFETY: the descriptor is new, so nobody else owns it.
        unsafe { Ok(Epoll(OwnedFd::from_raw_fd(check(epoll_create1(CLOEXEC))?))) }
    }

    fn add(&self, fd: &impl AsFd, token: u64, events: u32) -> Result<()> {
        let mut event = Event { events, token };
        let fd = fd.as_fd().as_raw_fd();
        // SAFETY: the event is there until the call returns.
        check(unsafe { epoll_ctl(self.0.as_raw_fd(), CTL_ADD, fd, &mut event) })?;
        Ok(())
    }

    /// Watch a descriptor until it can be read, level-triggered.
    pub fn watch(&self, fd: &impl AsFd, token: u64) -> Result<()> {
        self.add(fd, token, IN)
    }

    /// The same, edge-triggered, as tokio and mio do.
    pub fn watch_edges(&self, fd: &impl AsFd, token: u64) -> Result<()> {
        self.add(fd, token, IN | EDGE)
    }

    /// Sleep until a descriptor can be read, and give its token; `None` if time is up.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<u64>> {
        let mut event = Event {
            events: 0,
            token: 0,
        };
        // Rounded up: a loop that wakes up too early spins.
        let timeout_ms = timeout.map_or(-1, |timeout| {
            c_int::try_from(timeout.as_nanos().saturating_add(999_999) / 1_000_000)
                .unwrap_or(c_int::MAX)
        });
        // SAFETY: there is room for one event, and that is what is asked for.
        let nr = check(unsafe { epoll_wait(self.0.as_raw_fd(), &mut event, 1, timeout_ms) })?;
        Ok((nr == 1).then_some(event.token))
    }
}
