// SPDX-License-Identifier: MIT
//! Declarations of libtwheel, as they are in C: `<twheel.h>`, `<twheel/table.h>`,
//! `<twheel/device.h>` and `<twheel/tcp.h>`; and those of the device, `<linux/twheel.h>`.
//!
//! The headers say what the functions do, and when they may be called.  Most programs want the
//! crate `twheel`, which has no `unsafe` in it for the caller.
//!
//! `tests/header.rs` compares all that is here with the headers.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_uint, c_void};

/* ---- <twheel.h> ---- */

pub const TWHEEL_VERSION_MAJOR: u32 = 0;
pub const TWHEEL_VERSION_MINOR: u32 = 1;
pub const TWHEEL_VERSION_PATCH: u32 = 0;

pub const TWHEEL_USEC: u64 = 1_000;
pub const TWHEEL_MSEC: u64 = 1_000_000;
pub const TWHEEL_SEC: u64 = 1_000_000_000;
pub const TWHEEL_NEVER: u64 = u64::MAX;

pub const TWHEEL_MONOTONIC: u32 = 0;
pub const TWHEEL_BOOTTIME: u32 = 1;
pub const TWHEEL_REALTIME: u32 = 2;
pub const TWHEEL_TAI: u32 = 3;
pub const TWHEEL_CALLER: u32 = 4;

pub const TWHEEL_SHARED: u32 = 1 << 0;
pub const TWHEEL_IMMEDIATE: u32 = 1 << 1;
pub const TWHEEL_MEASURE: u32 = 1 << 2;

pub const TWHEEL_FIXED_DELAY: u32 = 1 << 0;

pub const TWHEEL_LATE_BUCKETS: usize = 64;

/// A wheel.  Only the library knows what is in it.
#[repr(C)]
pub struct twheel {
    _private: [u8; 0],
}

pub type twheel_callback = unsafe extern "C" fn(w: *mut twheel, t: *mut twheel_timer);

pub type twheel_visitor =
    unsafe extern "C" fn(w: *mut twheel, t: *mut twheel_timer, arg: *mut c_void);

/// A timer.  All members are the library's.
#[repr(C)]
pub struct twheel_timer {
    pub next: *mut twheel_timer,
    pub callback: Option<twheel_callback>,
    pub pprev: *mut *mut twheel_timer,
    pub interval_ns: u64,
    pub deadline: u64,
}

#[repr(C)]
pub struct twheel_options {
    pub size: u32,
    pub clock: u32,
    pub flags: u32,
    pub reserved: u32,
    pub tick_ns: u64,
    pub slack_ns: u64,
    pub data: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct twheel_stats {
    pub pending: u64,
    pub called: u64,
    pub dispatches: u64,
    pub vain: u64,
    pub settings: u64,
    pub moved: u64,
    pub slowest_ns: u64,
    pub late: [u64; TWHEEL_LATE_BUCKETS],
}

extern "C" {
    pub fn twheel_version() -> *const c_char;
    pub fn twheel_open(w: *mut *mut twheel, options: *const twheel_options) -> c_int;
    pub fn twheel_close(w: *mut twheel);
    pub fn twheel_data(w: *const twheel) -> *mut c_void;
    pub fn twheel_timer_init(t: *mut twheel_timer, its_callback: Option<twheel_callback>);
    pub fn twheel_timer_size() -> usize;
    pub fn twheel_start(w: *mut twheel, t: *mut twheel_timer, delay_ns: u64);
    pub fn twheel_start_at(w: *mut twheel, t: *mut twheel_timer, deadline_ns: u64);
    pub fn twheel_start_every(w: *mut twheel, t: *mut twheel_timer, interval_ns: u64);
    pub fn twheel_start_periodic(
        w: *mut twheel,
        t: *mut twheel_timer,
        deadline_ns: u64,
        interval_ns: u64,
        flags: c_uint,
    );
    pub fn twheel_periods(w: *const twheel) -> u64;
    pub fn twheel_stop(w: *mut twheel, t: *mut twheel_timer) -> bool;
    pub fn twheel_stop_sync(w: *mut twheel, t: *mut twheel_timer) -> bool;
    pub fn twheel_stop_all(w: *mut twheel, f: Option<twheel_visitor>, arg: *mut c_void) -> usize;
    pub fn twheel_each(w: *mut twheel, f: Option<twheel_visitor>, arg: *mut c_void);
    pub fn twheel_timer_pending(t: *const twheel_timer) -> bool;
    pub fn twheel_timer_deadline(t: *const twheel_timer) -> u64;
    pub fn twheel_timer_move(w: *mut twheel, to: *mut twheel_timer, from: *mut twheel_timer);
    pub fn twheel_dispatch(w: *mut twheel, max: c_uint) -> c_int;
    pub fn twheel_next(w: *mut twheel) -> u64;
    pub fn twheel_fd(w: *mut twheel) -> c_int;
    pub fn twheel_flush(w: *mut twheel) -> c_int;
    pub fn twheel_wait(w: *mut twheel, timeout_ns: u64) -> c_int;
    pub fn twheel_wake(w: *mut twheel);
    pub fn twheel_now(w: *mut twheel) -> u64;
    pub fn twheel_update(w: *mut twheel) -> u64;
    pub fn twheel_advance(w: *mut twheel, to_ns: u64) -> c_int;
    pub fn twheel_from_ms(ms: u64) -> u64;
    pub fn twheel_left_ms(until_ns: u64, now_ns: u64) -> c_int;
    pub fn twheel_after_fork(w: *mut twheel);
    pub fn twheel_get_stats(w: *mut twheel, stats: *mut twheel_stats, size: usize);
}

/* ---- <twheel/table.h> ---- */

pub const TWHEEL_TABLE_NEVER: u64 = u64::MAX;

pub const TWHEEL_TABLE_AUTO: u32 = 0;
pub const TWHEEL_TABLE_PROCESS: u32 = 1;
pub const TWHEEL_TABLE_DEVICE: u32 = 2;

pub const TWHEEL_TABLE_MONOTONIC: u32 = 0;
pub const TWHEEL_TABLE_BOOTTIME: u32 = 1;
pub const TWHEEL_TABLE_REALTIME: u32 = 2;
pub const TWHEEL_TABLE_TAI: u32 = 3;
pub const TWHEEL_TABLE_VIRTUAL: u32 = 4;

pub const TWHEEL_TABLE_PROCESSES: u32 = 1 << 0;

pub const TWHEEL_TABLE_IDLE: i32 = 0;
pub const TWHEEL_TABLE_PENDING: i32 = 1;
pub const TWHEEL_TABLE_UNREAD: i32 = 2;

pub const TWHEEL_TABLE_AFTER: u32 = 1 << 0;

/// A table.  Only the library knows what is in it.
#[repr(C)]
pub struct twheel_table {
    _private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_table_options {
    pub size: u32,
    pub backend: u32,
    pub flags: u32,
    pub clock: u32,
    pub tick_ns: u64,
    pub fd: i32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_table_change {
    pub number: u32,
    pub result: i32,
    pub deadline_ns: u64,
}

extern "C" {
    pub fn twheel_table_open(
        table: *mut *mut twheel_table,
        nr: u32,
        options: *const twheel_table_options,
    ) -> i32;
    pub fn twheel_table_close(table: *mut twheel_table);
    pub fn twheel_table_nr(table: *const twheel_table) -> u32;
    pub fn twheel_table_backend(table: *const twheel_table) -> u32;
    pub fn twheel_table_start(table: *mut twheel_table, number: u32, deadline_ns: u64) -> i32;
    pub fn twheel_table_start_after(table: *mut twheel_table, number: u32, delay_ns: u64) -> i32;
    pub fn twheel_table_stop(table: *mut twheel_table, number: u32) -> i32;
    pub fn twheel_table_apply(
        table: *mut twheel_table,
        changes: *mut twheel_table_change,
        nr: u32,
        flags: u32,
    ) -> i32;
    pub fn twheel_table_expired(
        table: *mut twheel_table,
        numbers: *mut u32,
        nr: u32,
        timeout_ns: u64,
    ) -> i32;
    pub fn twheel_table_state(table: *mut twheel_table, number: u32, deadline_ns: *mut u64) -> i32;
    pub fn twheel_table_fd(table: *mut twheel_table) -> i32;
    pub fn twheel_table_next(table: *mut twheel_table) -> u64;
    pub fn twheel_table_now(table: *mut twheel_table) -> u64;
    pub fn twheel_table_advance(table: *mut twheel_table, to_ns: u64) -> i32;
}

/* ---- <linux/twheel.h> ---- */

pub const TWHEEL_IOC_MAGIC: u32 = 0xf7;
pub const TWHEEL_IOC_INFO: u32 = 0xf700;
pub const TWHEEL_IOC_SETUP: u32 = 0xf701;
pub const TWHEEL_IOC_ARM: u32 = 0xf702;
pub const TWHEEL_IOC_REARM: u32 = 0xf703;
pub const TWHEEL_IOC_CANCEL: u32 = 0xf704;
pub const TWHEEL_IOC_QUERY: u32 = 0xf705;
pub const TWHEEL_IOC_LIST: u32 = 0xf706;
pub const TWHEEL_IOC_DRAIN: u32 = 0xf707;
pub const TWHEEL_IOC_ADVANCE: u32 = 0xf708;
pub const TWHEEL_IOC_REOPEN: u32 = 0xf709;

pub const TWHEEL_CLOCK_MONOTONIC: u32 = 0x101;
pub const TWHEEL_CLOCK_BOOTTIME: u32 = 0x102;
pub const TWHEEL_CLOCK_REALTIME: u32 = 0x103;
pub const TWHEEL_CLOCK_TAI: u32 = 0x104;
pub const TWHEEL_CLOCK_VIRTUAL: u32 = 0x105;

pub const TWHEEL_SETUP_ONE_LEVEL: u32 = 1;
pub const TWHEEL_SETUP_KEYED: u32 = 2;

pub const TWHEEL_FEATURE_URING_CMD: u64 = 1;
pub const TWHEEL_INFO_WALK: u32 = 1;
pub const TWHEEL_WHEEL_NEW: u32 = 0;
pub const TWHEEL_WHEEL_RUNNING: u32 = 1;
pub const TWHEEL_WHEEL_DRAINING: u32 = 2;
pub const TWHEEL_WHEEL_DRAINED: u32 = 3;

pub const TWHEEL_VECTOR_BY_KEY: u32 = 1;

pub const TWHEEL_ARM_ABSOLUTE: u32 = 1;
pub const TWHEEL_ARM_FIXED_DELAY: u32 = 2;
pub const TWHEEL_ARM_IF_ABSENT: u32 = 4;
pub const TWHEEL_ARM_IF_PRESENT: u32 = 8;
pub const TWHEEL_ARM_ONLY_LATER: u32 = 16;
pub const TWHEEL_ARM_ONLY_EARLIER: u32 = 32;

pub const TWHEEL_CREATED: i32 = 1;
pub const TWHEEL_WAS_PENDING: i32 = 2;
pub const TWHEEL_WAS_UNREAD: i32 = 3;

pub const TWHEEL_STATE_PENDING: u32 = 1;
pub const TWHEEL_STATE_EXPIRED: u32 = 2;
pub const TWHEEL_STATE_DRAINED: u32 = 3;
pub const TWHEEL_STATUS_LAST_EVENT: u32 = 0x10000;

pub const TWHEEL_EVENT_DRAINED: u32 = 1;
pub const TWHEEL_EVENT_ENDED: u32 = 2;

pub const TWHEEL_OP_ARM: u32 = 1;
pub const TWHEEL_OP_REARM: u32 = 2;
pub const TWHEEL_OP_CANCEL: u32 = 3;
pub const TWHEEL_OP_SETUP: u32 = 4;
pub const TWHEEL_RECORD_ABSENT_OK: u32 = 0x10000;

pub const TWHEEL_TIME_NEVER: u64 = 0x7fff_ffff_ffff_ffff;
pub const TWHEEL_SIZE_MAX: u32 = 4096;
pub const TWHEEL_TICK_MIN_NS: u64 = 1000;
pub const TWHEEL_TICK_MAX_NS: u64 = 3_600_000_000_000;
pub const TWHEEL_TICK_DEFAULT_NS: u64 = 1_000_000;
pub const TWHEEL_SLOTS_MIN: u32 = 4;
pub const TWHEEL_SLOTS_MAX: u32 = 1_048_576;
pub const TWHEEL_ROUND_MIN_NS: u64 = 100_000_000;
pub const TWHEEL_EVENT_SIZE_MIN: u32 = 40;
pub const TWHEEL_EVENT_SIZE_MAX: u32 = 4096;
pub const TWHEEL_SLACK_MAX_NS: u64 = 3_600_000_000_000;
pub const TWHEEL_SLACK_TICKS_MAX: u32 = 32_767;
pub const TWHEEL_NAME_SIZE: usize = 16;
pub const TWHEEL_LATE_TICKS: usize = 32;
pub const TWHEEL_REFRESH_GEN_BITS: u32 = 28;
pub const TWHEEL_REFRESH_GEN_MASK: u32 = 0xfffffff;

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_setup {
    pub size: u32,
    pub clock: u32,
    pub tick_ns: u64,
    pub slots: u32,
    pub max_pending: u32,
    pub flags: u32,
    pub event_size: u32,
    pub slack_ns: u64,
    pub name: [c_char; TWHEEL_NAME_SIZE],
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub struct twheel_info {
    pub size: u32,
    pub flags: u32,
    pub clock: u32,
    pub setup_flags: u32,
    pub tick_ns: u64,
    pub slots: u32,
    pub state: u32,
    pub max_pending: u32,
    pub max_pending_limit: u32,
    pub max_vector: u32,
    pub event_size: u32,
    pub slack_ns: u64,
    pub features: u64,
    pub refresh_size: u64,
    pub refresh_shift: u32,
    pub reserved: u32,
    pub now_ns: u64,
    pub next_expiry_ns: u64,
    pub armed: u64,
    pub pending: u64,
    pub unread: u64,
    pub live: u64,
    pub expirations: u64,
    pub delivered: u64,
    pub completed: u64,
    pub cancelled: u64,
    pub revoked: u64,
    pub drained: u64,
    pub rearmed: u64,
    pub changes: u64,
    pub late: u64,
    pub last_late_ns: u64,
    pub last_late_at_ns: u64,
    pub late_ticks: [u64; TWHEEL_LATE_TICKS],
    pub unread_ticks: [u64; TWHEEL_LATE_TICKS],
    pub longest_unread_at_ns: u64,
    pub alarm_ns: u64,
    pub name: [c_char; TWHEEL_NAME_SIZE],
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_vector {
    pub size: u32,
    pub entry_size: u32,
    pub nr: u32,
    pub flags: u32,
    pub entries: u64,
    pub nr_done: u32,
    pub reserved: u32,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_arm {
    pub expires_ns: u64,
    pub interval_ns: u64,
    pub user_data: u64,
    pub flags: u32,
    pub repeats: u32,
    pub id: u64,
    pub result: i32,
    pub slack_ticks: u32,
    pub was_deadline_ns: u64,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_cancel {
    pub id: u64,
    pub result: i32,
    pub reserved: u32,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_status {
    pub id: u64,
    pub result: i32,
    pub state: u32,
    pub user_data: u64,
    pub deadline_ns: u64,
    pub left_ns: u64,
    pub interval_ns: u64,
    pub flags: u32,
    pub repeats_left: u32,
    pub count: u32,
    pub deliveries: u32,
    pub slack_ticks: u32,
    pub reserved: u32,
    pub fired_ns: u64,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_list {
    pub size: u32,
    pub entry_size: u32,
    pub nr: u32,
    pub flags: u32,
    pub cursor: u64,
    pub entries: u64,
    pub changes: u64,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_advance {
    pub size: u32,
    pub reserved: u32,
    pub to_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_reopen {
    pub size: u32,
    pub flags: u32,
    pub event_size: u32,
    pub reserved: u32,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_event {
    pub id: u64,
    pub user_data: u64,
    pub deadline_ns: u64,
    pub fired_ns: u64,
    pub count: u32,
    pub flags: u32,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_record {
    pub op: u32,
    pub flags: u32,
    pub key: u64,
    pub expires_ns: u64,
    pub interval_ns: u64,
    pub repeats: u32,
    pub slack_ticks: u32,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct twheel_setup_record {
    pub op: u32,
    pub flags: u32,
    pub clock: u32,
    pub event_size: u32,
    pub tick_ns: u64,
    pub slack_ns: u64,
    pub slots: u32,
    pub max_pending: u32,
}

/* ---- <twheel/device.h> ---- */

/// A device.  Only the library knows what is in it.
#[repr(C)]
pub struct twheel_device {
    _private: [u8; 0],
}

/// A batch of changes.  Only the library knows what is in it.
#[repr(C)]
pub struct twheel_batch {
    _private: [u8; 0],
}

/// A reader of events.  Only the library knows what is in it.
#[repr(C)]
pub struct twheel_reader {
    _private: [u8; 0],
}

/// A word of the refresh table, at a multiple of 8.
pub type twheel_word_t = u64;

extern "C" {
    pub fn twheel_device_open(
        d: *mut *mut twheel_device,
        path: *const c_char,
        flags: c_int,
        setup: *const twheel_setup,
    ) -> c_int;
    pub fn twheel_device_adopt(
        d: *mut *mut twheel_device,
        fd: c_int,
        setup: *const twheel_setup,
    ) -> c_int;
    pub fn twheel_device_close(d: *mut twheel_device);
    pub fn twheel_device_fd(d: *const twheel_device) -> c_int;
    pub fn twheel_device_reopen(d: *const twheel_device, flags: c_int) -> c_int;
    pub fn twheel_device_info(d: *const twheel_device, info: *mut twheel_info, flags: u32)
        -> c_int;
    pub fn twheel_device_now(d: *const twheel_device, now_ns: *mut u64) -> c_int;
    pub fn twheel_device_list(
        d: *const twheel_device,
        cursor: *mut u64,
        rows: *mut twheel_status,
        nr: u32,
    ) -> c_int;
    pub fn twheel_device_drain(d: *const twheel_device) -> c_int;
    pub fn twheel_device_advance(d: *const twheel_device, to_ns: u64) -> c_int;
    pub fn twheel_device_arm(d: *const twheel_device, arm: *mut twheel_arm) -> c_int;
    pub fn twheel_device_rearm(d: *const twheel_device, arm: *mut twheel_arm) -> c_int;
    pub fn twheel_device_rearm_key(d: *const twheel_device, arm: *mut twheel_arm) -> c_int;
    pub fn twheel_device_cancel(d: *const twheel_device, id: u64) -> c_int;
    pub fn twheel_device_cancel_key(d: *const twheel_device, key: u64) -> c_int;
    pub fn twheel_device_query(d: *const twheel_device, status: *mut twheel_status) -> c_int;
    pub fn twheel_device_query_key(d: *const twheel_device, status: *mut twheel_status) -> c_int;
    pub fn twheel_device_arm_many(d: *const twheel_device, arms: *mut twheel_arm, nr: u32) -> u32;
    pub fn twheel_device_rearm_many(d: *const twheel_device, arms: *mut twheel_arm, nr: u32)
        -> u32;
    pub fn twheel_device_rearm_key_many(
        d: *const twheel_device,
        arms: *mut twheel_arm,
        nr: u32,
    ) -> u32;
    pub fn twheel_device_cancel_many(
        d: *const twheel_device,
        cancels: *mut twheel_cancel,
        nr: u32,
    ) -> u32;
    pub fn twheel_device_cancel_key_many(
        d: *const twheel_device,
        cancels: *mut twheel_cancel,
        nr: u32,
    ) -> u32;
    pub fn twheel_batch_open(
        b: *mut *mut twheel_batch,
        d: *const twheel_device,
        capacity: u32,
    ) -> c_int;
    pub fn twheel_batch_close(b: *mut twheel_batch);
    pub fn twheel_batch_arm(
        b: *mut twheel_batch,
        user_data: u64,
        expires_ns: u64,
    ) -> *mut twheel_arm;
    pub fn twheel_batch_rearm(b: *mut twheel_batch, id: u64, expires_ns: u64) -> *mut twheel_arm;
    pub fn twheel_batch_rearm_key(
        b: *mut twheel_batch,
        key: u64,
        expires_ns: u64,
    ) -> *mut twheel_arm;
    pub fn twheel_batch_cancel(b: *mut twheel_batch, id: u64) -> *mut twheel_cancel;
    pub fn twheel_batch_cancel_key(b: *mut twheel_batch, key: u64) -> *mut twheel_cancel;
    pub fn twheel_batch_submit(b: *mut twheel_batch) -> u32;
    pub fn twheel_batch_reset(b: *mut twheel_batch);
    pub fn twheel_batch_nr(b: *const twheel_batch) -> u32;
    pub fn twheel_batch_result(b: *mut twheel_batch, index: u32) -> c_int;
    pub fn twheel_batch_id(b: *mut twheel_batch, index: u32) -> u64;
    pub fn twheel_device_read(d: *const twheel_device, events: *mut twheel_event, nr: u32)
        -> c_int;
    pub fn twheel_reader_open(
        r: *mut *mut twheel_reader,
        d: *const twheel_device,
        nr: u32,
    ) -> c_int;
    pub fn twheel_reader_close(r: *mut twheel_reader);
    pub fn twheel_reader_next(r: *mut twheel_reader, event: *mut twheel_event) -> c_int;
    pub fn twheel_reader_left(r: *const twheel_reader) -> u32;
    pub fn twheel_device_map(
        d: *mut twheel_device,
        table: *mut *mut twheel_word_t,
        shift: *mut u32,
    ) -> c_int;
    pub fn twheel_device_refresh(d: *mut twheel_device, id: u64, deadline_ns: u64) -> c_int;
    pub fn twheel_refresh_deadline(deadline_ns: u64, shift: u32) -> u64;
    pub fn twheel_refresh(table: *mut twheel_word_t, id: u64, deadline: u64) -> c_int;
    pub fn twheel_refresh_blind(table: *mut twheel_word_t, id: u64, deadline: u64);
}

/* ---- <twheel/tcp.h> ---- */

pub const TWHEEL_TCP_RECEIVED: u32 = 1 << 0;
pub const TWHEEL_TCP_SENT: u32 = 1 << 1;
pub const TWHEEL_TCP_ANSWERED: u32 = 1 << 2;

extern "C" {
    pub fn twheel_tcp_silence_ns(fd: c_int, what: u32) -> i64;
}
