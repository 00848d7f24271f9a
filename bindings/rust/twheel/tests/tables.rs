// SPDX-License-Identifier: MIT
#![forbid(unsafe_code)]
use epoll::Epoll;
use std::os::unix::io::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use twheel::{Change, Clock, State, Table};

const MS: u64 = 1_000_000;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn table(nr: u32) -> Table {
    Table::options().clock(Clock::Caller).open(nr).unwrap()
}

fn fetch(table: &Table) -> Vec<u32> {
    let mut numbers = [0; 256];
    let nr = table.expired(&mut numbers, Some(Duration::ZERO)).unwrap();

    numbers[..nr].to_vec()
}

#[test]
fn a_number_is_idle_pending_unread_and_idle_again() {
    let table = table(10);

    assert_eq!(table.nr(), 10);
    assert!(!table.is_on_device());
    assert_eq!(table.start(3, 5 * MS).unwrap(), State::Idle);
    assert_eq!(table.state(3).unwrap(), (State::Pending, Some(5 * MS)));
    assert_eq!(table.next_ns(), Some(5 * MS));
    table.advance(4 * MS).unwrap();
    assert_eq!(fetch(&table), []);
    table.advance(5 * MS).unwrap();
    assert_eq!(table.now(), 5 * MS);
    assert_eq!(table.state(3).unwrap(), (State::Unread, None));
    assert_eq!(fetch(&table), [3]);
    assert_eq!(table.state(3).unwrap(), (State::Idle, None));
    assert_eq!(table.next_ns(), None);
}

#[test]
fn a_stop_says_what_the_number_was() {
    let table = table(10);

    table.start_after(1, ms(5)).unwrap();
    table.start_after(2, ms(50)).unwrap();
    table.advance(10 * MS).unwrap();
    assert_eq!(table.stop(1).unwrap(), State::Unread);
    assert_eq!(table.stop(2).unwrap(), State::Pending);
    assert_eq!(table.stop(2).unwrap(), State::Idle);
    table.advance(100 * MS).unwrap();
    assert_eq!(fetch(&table), []);
}

#[test]
fn changes_are_made_in_their_order_and_each_has_a_result() {
    let table = table(10);
    let mut changes = [
        Change::start(1, 5 * MS),
        Change::start(10, 5 * MS),
        Change::stop(1),
        Change::start(2, 0),
    ];

    assert_eq!(table.apply(&mut changes).unwrap(), 3);
    assert_eq!(changes[0].result().unwrap(), State::Idle);
    // ERANGE
    assert_eq!(changes[1].result().unwrap_err().raw_os_error(), Some(34));
    assert_eq!(changes[2].result().unwrap(), State::Pending);
    assert_eq!(changes[3].number(), 2);
    assert_eq!(fetch(&table), [2]);
    assert_eq!(table.apply_after(&mut [Change::start(4, MS)]).unwrap(), 1);
    assert_eq!(table.state(4).unwrap().1, Some(MS));
}

#[test]
fn wrong_arguments_are_errors() {
    assert_eq!(Table::new(0).unwrap_err().raw_os_error(), Some(22));
    let table = Table::options().clock(Clock::Realtime).open(1).unwrap();
    assert_eq!(
        table.start_after(0, ms(1)).unwrap_err().raw_os_error(),
        Some(22)
    );
    assert_eq!(table.start(1, 0).unwrap_err().raw_os_error(), Some(34));
    assert_eq!(
        table.expired(&mut [], None).unwrap_err().raw_os_error(),
        Some(22)
    );
    assert_eq!(table.advance(1).unwrap_err().raw_os_error(), Some(95));
}

#[test]
fn a_descriptor_that_is_no_table_is_refused_and_closed() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let fd = file.as_raw_fd();
    let error = Table::options().take_over(file.into()).open(1).unwrap_err();

    // ENOTTY
    assert_eq!(error.raw_os_error(), Some(25));
    assert_ne!(
        std::fs::read_link(format!("/proc/self/fd/{fd}")).ok(),
        Some("/dev/null".into())
    );
}

#[test]
fn the_descriptor_is_readable_when_a_number_has_expired() {
    let table = Table::new(10).unwrap();
    let epoll = Epoll::new().unwrap();

    assert_eq!(table.fd().unwrap().as_raw_fd(), table.as_fd().as_raw_fd());
    epoll.watch(&table, 1).unwrap();
    table.start_after(5, ms(20)).unwrap();
    assert_eq!(epoll.wait(Some(ms(1))).unwrap(), None);
    assert_eq!(epoll.wait(None).unwrap(), Some(1));
    assert_eq!(fetch(&table), [5]);
}

#[test]
fn a_sleeping_thread_is_woken_in_time_whoever_starts_a_number() {
    let table = Arc::new(Table::new(10).unwrap());
    let fetching = table.clone();
    let began = Instant::now();
    let thread = thread::spawn(move || {
        let mut numbers = [0; 10];
        let nr = fetching.expired(&mut numbers, None).unwrap();

        (numbers[..nr].to_vec(), began.elapsed())
    });

    thread::sleep(ms(10));
    table.start_after(1, Duration::from_secs(60)).unwrap();
    table.start_after(2, ms(20)).unwrap();
    let (numbers, elapsed) = thread.join().unwrap();
    assert_eq!(numbers, [2]);
    assert!(
        elapsed >= ms(20) && elapsed < Duration::from_secs(30),
        "{elapsed:?}"
    );
}

#[test]
fn four_threads_start_and_stop_while_two_fetch_and_each_start_has_one_outcome() {
    const STARTS: u32 = 20_000;
    let table = Table::new(4 * 64).unwrap();
    let (stopped, fetched, left) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(4));

    thread::scope(|scope| {
        for first in [0, 64, 128, 192] {
            let (table, stopped, left) = (&table, &stopped, &left);
            scope.spawn(move || {
                for i in 0..STARTS {
                    let number = first + i % 64;
                    // A number that is taken is given back by who stops it.
                    if table.stop(number).unwrap() != State::Idle {
                        stopped.fetch_add(1, Ordering::Relaxed);
                    }
                    table
                        .start_after(number, Duration::from_micros(u64::from(i % 3000)))
                        .unwrap();
                }
                left.fetch_sub(1, Ordering::Release);
            });
        }
        for _ in 0..2 {
            let (table, fetched, left) = (&table, &fetched, &left);
            scope.spawn(move || loop {
                let ending = left.load(Ordering::Acquire) == 0;
                let nr = table.expired(&mut [0; 32], Some(ms(20))).unwrap();

                fetched.fetch_add(nr as u32, Ordering::Relaxed);
                if nr == 0 && ending {
                    break;
                }
            });
        }
    });
    assert_eq!(stopped.into_inner() + fetched.into_inner(), 4 * STARTS);
}
