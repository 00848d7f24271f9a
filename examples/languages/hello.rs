// SPDX-License-Identifier: 0BSD
//! The smallest program in Rust: the device by ioctl, with the standard library alone.
use std::fs::OpenOptions;
use std::io::{Error, Read, Result};
use std::mem::size_of;
use std::os::raw::{c_int, c_ulong};
use std::os::unix::io::AsRawFd;

// Values and structures of <linux/twheel.h>
const IOC_SETUP: c_ulong = 0xf701;
const IOC_ARM: c_ulong = 0xf702;
const CLOCK_MONOTONIC: u32 = 0x101;

#[repr(C)]
#[derive(Default)]
struct Setup {
    size: u32,
    clock: u32,
    tick_ns: u64,
    slots: u32,
    max_pending: u32,
    flags: u32,
    event_size: u32,
    slack_ns: u64,
    name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct Vector {
    size: u32,
    entry_size: u32,
    nr: u32,
    flags: u32,
    entries: u64,
    nr_done: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Default)]
struct Arm {
    expires_ns: u64,
    interval_ns: u64,
    user_data: u64,
    flags: u32,
    repeats: u32,
    id: u64,
    result: i32,
    slack_ticks: u32,
    was_deadline_ns: u64,
}

extern "C" {
    fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
}

fn call<T>(wheel: &impl AsRawFd, request: c_ulong, argument: &mut T) -> Result<c_int> {
    // Each structure begins with its size, which the kernel goes by.
    let ret = unsafe { ioctl(wheel.as_raw_fd(), request, argument as *mut T) };
    if ret < 0 { Err(Error::last_os_error()) } else { Ok(ret) }
}

fn main() -> Result<()> {
    let mut wheel = OpenOptions::new().read(true).write(true).open("/dev/twheel")?;
    let mut setup = Setup {
        size: size_of::<Setup>() as u32,
        clock: CLOCK_MONOTONIC,
        ..Default::default()
    };
    call(&wheel, IOC_SETUP, &mut setup)?;

    let mut arm = Arm { user_data: 42, expires_ns: 100_000_000, ..Default::default() };
    let mut vector = Vector {
        size: size_of::<Vector>() as u32,
        entry_size: size_of::<Arm>() as u32,
        nr: 1,
        entries: &mut arm as *mut Arm as u64,
        ..Default::default()
    };
    if call(&wheel, IOC_ARM, &mut vector)? != 1 {
        return Err(Error::from_raw_os_error(-arm.result));
    }

    // struct twheel_event: id, user_data, deadline_ns, fired_ns, count and flags
    let mut event = [0u8; 40];
    wheel.read_exact(&mut event)?;
    let word = |i: usize| u64::from_ne_bytes(event[8 * i..8 * i + 8].try_into().unwrap());
    let late_us = (word(3) - word(2)) / 1000;
    println!("timeout {} has expired, {} us after its deadline", word(1), late_us);
    Ok(())
}
