// SPDX-License-Identifier: MIT
//! These need the module, and access to /dev/twheel.
#![forbid(unsafe_code)]
use epoll::Epoll;
use std::io::ErrorKind;
use std::os::unix::io::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use twheel::{Batch, Change, Clock, Event, Keyed, State, Table};

const MS: u64 = 1_000_000;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn read(wheel: &Keyed) -> Vec<Event> {
    let mut events = [Event::default(); 64];
    let nr = wheel.read(&mut events).unwrap();

    events[..nr].to_vec()
}

#[test]
#[ignore = "needs /dev/twheel"]
fn a_key_expires_once_and_not_before_its_deadline() {
    let wheel = Keyed::options().open().unwrap();
    let began = Instant::now();

    wheel.write(Batch::new().arm(u64::MAX, ms(30))).unwrap();
    let events = read(&wheel);
    assert!(began.elapsed() >= ms(30));
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].key, events[0].count), (u64::MAX, 1));
    assert!(events[0].fired_ns >= events[0].deadline_ns);
    assert!(events[0].is_last() && !events[0].is_drained());
}

#[test]
#[ignore = "needs /dev/twheel"]
fn a_key_that_is_armed_again_moves_and_one_that_is_cancelled_does_not_come() {
    let wheel = Keyed::options().open().unwrap();
    let mut batch = Batch::new();

    batch
        .arm(1, ms(10))
        .arm(2, ms(20))
        .arm(3, ms(30))
        .arm(1, ms(40))
        .cancel(2)
        .cancel(99);
    assert_eq!(batch.len(), 6);
    wheel.write(&mut batch).unwrap();
    assert!(batch.is_empty());
    let keys: Vec<_> = (0..2)
        .flat_map(|_| read(&wheel))
        .map(|event| event.key)
        .collect();
    assert_eq!(keys, [3, 1]);
}

#[test]
#[ignore = "needs /dev/twheel"]
fn a_record_that_is_refused_stays_first_in_its_batch() {
    let wheel = Keyed::options().max_pending(2).open().unwrap();
    let mut batch = Batch::new();

    batch
        .arm(1, ms(1))
        .arm(2, ms(1))
        .arm(3, ms(1))
        .arm(4, ms(1));
    // EAGAIN: two places are in use.
    assert_eq!(
        wheel.write(&mut batch).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    assert_eq!(batch.len(), 2);
    let mut keys = Vec::new();
    while keys.len() < 2 {
        keys.extend(read(&wheel).iter().map(|event| event.key));
    }
    wheel.write(&mut batch).unwrap();
    while keys.len() < 4 {
        keys.extend(read(&wheel).iter().map(|event| event.key));
    }
    keys.sort_unstable();
    assert_eq!(keys, [1, 2, 3, 4]);
}

#[test]
#[ignore = "needs /dev/twheel"]
fn a_wheel_that_does_not_block_is_for_epoll() {
    let wheel = Keyed::options().nonblocking().open().unwrap();
    let epoll = Epoll::new().unwrap();
    let mut events = [Event::default(); 1];

    epoll.watch_edges(&wheel, 9).unwrap();
    assert_eq!(
        wheel.read(&mut events).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    wheel.write(Batch::new().arm(5, ms(20))).unwrap();
    assert_eq!(epoll.wait(None).unwrap(), Some(9));
    assert_eq!(wheel.read(&mut events).unwrap(), 1);
    assert_eq!(events[0].key, 5);
    assert_eq!(
        wheel.read(&mut events).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
}

#[test]
#[ignore = "needs /dev/twheel"]
fn a_periodic_key_counts_its_periods() {
    let wheel = Keyed::options().open().unwrap();
    let mut count = 0;

    wheel.write(Batch::new().arm_every(1, ms(5))).unwrap();
    while count < 10 {
        for event in read(&wheel) {
            count += event.count;
            assert!(!event.is_last());
        }
    }
    wheel.write(Batch::new().cancel(1)).unwrap();
}

#[test]
#[ignore = "needs /dev/twheel"]
fn a_clock_that_can_be_set_takes_deadlines_only() {
    let wheel = Keyed::options().clock(Clock::Realtime).open().unwrap();
    let mut batch = Batch::new();

    assert_eq!(
        wheel.write(batch.arm(1, ms(1))).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    batch.clear();
    wheel.write(batch.arm_at(1, 5)).unwrap();
    assert_eq!(read(&wheel)[0].deadline_ns, 5);
}

#[test]
#[ignore = "needs /dev/twheel"]
fn options_out_of_range_and_empty_arrays_are_refused() {
    let error = Keyed::options()
        .tick(Duration::from_nanos(1))
        .open()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = Keyed::options().clock(Clock::Caller).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let wheel = Keyed::options().open().unwrap();
    assert_eq!(
        wheel.read(&mut []).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
#[ignore = "needs /dev/twheel"]
fn threads_that_share_a_wheel_read_each_event_once() {
    const NR: u32 = 2000;
    let wheel = Keyed::options().open().unwrap();
    let received: Vec<_> = (0..NR).map(|_| AtomicU32::new(0)).collect();

    thread::scope(|scope| {
        for first in [0, NR / 2] {
            let wheel = &wheel;
            scope.spawn(move || {
                for i in (first..first + NR / 2).step_by(100) {
                    let mut batch = Batch::new();
                    for key in i..i + 100 {
                        batch.arm(
                            key.into(),
                            Duration::from_micros(u64::from(key * 37 % 50_000)),
                        );
                    }
                    wheel.write(&mut batch).unwrap();
                }
            });
        }
        for _ in 0..3 {
            scope.spawn(|| loop {
                for event in read(&wheel) {
                    if event.key == u64::MAX {
                        // The end, for the next reader as well.
                        wheel.write(Batch::new().arm(u64::MAX, ms(0))).unwrap();
                        return;
                    }
                    received[event.key as usize].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        wheel
            .write(Batch::new().arm(u64::MAX, Duration::from_secs(2)))
            .unwrap();
    });
    assert!(received.into_iter().all(|nr| nr.into_inner() == 1));
}

#[test]
#[ignore = "needs /dev/twheel"]
fn a_duplicate_of_the_descriptor_is_the_same_wheel() {
    let wheel = Keyed::options().open().unwrap();
    let other = Keyed::take_over(wheel.as_fd().try_clone_to_owned().unwrap());

    wheel.write(Batch::new().arm(7, ms(10))).unwrap();
    drop(wheel);
    assert_eq!(read(&other)[0].key, 7);
}

#[test]
#[ignore = "needs /dev/twheel"]
fn a_table_on_the_device_is_taken_over_with_all_that_pends() {
    let table = Table::options().device().open(10).unwrap();
    let fd = table.fd().unwrap().try_clone_to_owned().unwrap();

    assert_eq!(table.start_after(3, ms(20)).unwrap(), State::Idle);
    let other = Table::options().take_over(fd).open(10).unwrap();
    assert!(other.is_on_device());
    assert_eq!(other.state(3).unwrap().0, State::Pending);
    drop(table);
    let mut numbers = [0; 10];
    assert_eq!(other.expired(&mut numbers, None).unwrap(), 1);
    assert_eq!(numbers[0], 3);
}

#[test]
#[ignore = "needs /dev/twheel"]
fn a_table_on_the_device_follows_the_rules_of_one_in_the_process() {
    let table = Table::options()
        .device()
        .clock(Clock::Caller)
        .open(10)
        .unwrap();
    let mut changes = [
        Change::start(1, 5 * MS),
        Change::start(10, 5 * MS),
        Change::stop(1),
    ];

    assert_eq!(table.apply(&mut changes).unwrap(), 2);
    assert_eq!(changes[0].result().unwrap(), State::Idle);
    assert_eq!(changes[1].result().unwrap_err().raw_os_error(), Some(34));
    assert_eq!(changes[2].result().unwrap(), State::Pending);
    table.start(2, 7 * MS).unwrap();
    table.start(4, 7 * MS).unwrap();
    assert_eq!(table.next_ns(), Some(7 * MS));
    table.advance(7 * MS).unwrap();
    assert_eq!(table.stop(2).unwrap(), State::Unread);
    let mut numbers = [0; 10];
    assert_eq!(
        table.expired(&mut numbers, Some(Duration::ZERO)).unwrap(),
        1
    );
    assert_eq!(numbers[0], 4);
    assert_eq!(table.stop(4).unwrap(), State::Idle);
}
