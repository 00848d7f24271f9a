// SPDX-License-Identifier: MIT
//! 10,000 timeouts: 5,000 are cancelled, 2,500 are moved, and all others are received by a loop
//! with epoll.  The accounts are exact.
#![forbid(unsafe_code)]
use epoll::Epoll;
use std::cell::RefCell;
use std::io::{ErrorKind, Result};
use std::os::unix::io::AsFd;
use std::time::{Duration, Instant};
use twheel::{Batch, Change, Event, Keyed, State, Table, Timer, Wheel};

const NR: u32 = 10_000;

#[derive(Clone, Copy)]
enum What {
    /// Start, or move; the delay is in milliseconds.
    Start(u32, u64),
    Cancel(u32),
}
use What::{Cancel, Start};

/// What a loop does with timeouts of some kind.
trait Loop {
    /// Make changes, and return how many timeouts these have cancelled, if it learns that.
    fn change(&self, changes: &[What]) -> Result<Option<usize>>;
    /// Fetch what has expired, and prepare for the next sleep.
    fn fetch(&self, numbers: &mut Vec<u32>) -> Result<()>;
}

struct Account {
    deadlines: Vec<Option<Instant>>,
}

impl Account {
    fn change(&mut self, timeouts: &dyn Loop, changes: &[What]) -> Result<()> {
        // A delay counts from then or later.
        let now = Instant::now();
        let mut cancelled = 0;

        for &change in changes {
            match change {
                Start(i, delay) => {
                    self.deadlines[i as usize] = Some(now + Duration::from_millis(delay))
                }
                Cancel(i) => {
                    assert!(self.deadlines[i as usize].take().is_some());
                    cancelled += 1;
                }
            }
        }
        for changes in changes.chunks(256) {
            if let Some(nr) = timeouts.change(changes)? {
                cancelled -= nr;
            } else {
                cancelled = 0;
            }
        }
        assert_eq!(cancelled, 0, "timeouts that could not be cancelled");
        Ok(())
    }

    fn receive(&mut self, numbers: &mut Vec<u32>) -> usize {
        let now = Instant::now();
        let nr = numbers.len();

        for i in numbers.drain(..) {
            let deadline = self.deadlines[i as usize].take();
            let deadline = deadline.unwrap_or_else(|| panic!("nobody waits for {i}"));
            assert!(now >= deadline, "{i} is early");
        }
        nr
    }
}

fn accept(timeouts: &dyn Loop, fd: &impl AsFd) -> Result<()> {
    let mut account = Account {
        deadlines: vec![None; NR as usize],
    };
    let mut numbers = Vec::new();
    let mut received = 0;
    let epoll = Epoll::new()?;
    let all = 0..NR;
    let delay = |i: u32| 50 + u64::from(i * 7919 % 500);

    epoll.watch(fd, 0)?;
    let starts: Vec<_> = all.clone().map(|i| Start(i, delay(i))).collect();
    account.change(timeouts, &starts)?;
    let cancels: Vec<_> = all.clone().filter(|i| i % 2 == 0).map(Cancel).collect();
    account.change(timeouts, &cancels)?;
    let moves: Vec<_> = all
        .filter(|i| i % 4 == 1)
        .map(|i| Start(i, delay(i) / 2 + 300))
        .collect();
    account.change(timeouts, &moves)?;
    assert_eq!(
        (starts.len(), cancels.len(), moves.len()),
        (10_000, 5_000, 2_500)
    );

    while received < NR as usize - cancels.len() {
        timeouts.fetch(&mut numbers)?;
        received += account.receive(&mut numbers);
        epoll.wait(Some(Duration::from_millis(100)))?;
    }
    assert!(account.deadlines.iter().all(Option::is_none));
    // And nothing more comes.
    epoll.wait(Some(Duration::from_millis(600)))?;
    timeouts.fetch(&mut numbers)?;
    assert_eq!(account.receive(&mut numbers), 0);
    Ok(())
}

impl Loop for Table {
    fn change(&self, changes: &[What]) -> Result<Option<usize>> {
        let mut changes: Vec<_> = changes
            .iter()
            .map(|change| match *change {
                Start(i, delay) => Change::start(i, delay * 1_000_000),
                Cancel(i) => Change::stop(i),
            })
            .collect();
        let ends = changes.iter().filter(|change| change.is_stop()).count();

        assert_eq!(self.apply_after(&mut changes)?, changes.len());
        let idle = |change: &&Change| matches!(change.result(), Ok(State::Idle));
        let vain = changes
            .iter()
            .filter(|change| change.is_stop())
            .filter(idle)
            .count();
        Ok(Some(ends - vain))
    }

    fn fetch(&self, numbers: &mut Vec<u32>) -> Result<()> {
        let mut some = [0; 256];

        loop {
            let nr = self.expired(&mut some, Some(Duration::ZERO))?;
            if nr == 0 {
                return Ok(());
            }
            numbers.extend(&some[..nr]);
        }
    }
}

#[test]
fn timeouts_of_a_table_in_the_process_have_exact_accounts() -> Result<()> {
    let table = Table::new(NR)?;

    table.fd()?;
    accept(&table, &table)
}

#[test]
#[ignore = "needs /dev/twheel"]
fn timeouts_of_a_table_on_the_device_have_exact_accounts() -> Result<()> {
    let table = Table::options().device().open(NR)?;

    assert!(table.is_on_device());
    accept(&table, &table)
}

impl Loop for Keyed {
    fn change(&self, changes: &[What]) -> Result<Option<usize>> {
        let mut batch = Batch::new();

        for change in changes {
            match *change {
                Start(i, delay) => batch.arm(i.into(), Duration::from_millis(delay)),
                Cancel(i) => batch.cancel(i.into()),
            };
        }
        self.write(&mut batch)?;
        Ok(None)
    }

    fn fetch(&self, numbers: &mut Vec<u32>) -> Result<()> {
        let mut events = [Event::default(); 64];

        loop {
            match self.read(&mut events) {
                Ok(nr) => numbers.extend(events[..nr].iter().map(|event| event.key as u32)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

#[test]
#[ignore = "needs /dev/twheel"]
fn timeouts_by_records_have_exact_accounts() -> Result<()> {
    let wheel = Keyed::options().nonblocking().open()?;

    accept(&wheel, &wheel)
}

#[test]
fn timers_of_a_wheel_have_exact_accounts() -> Result<()> {
    let expired = RefCell::new(Vec::new());
    let wheel = Wheel::new()?;
    let timers: Vec<_> = (0..NR)
        .map(|i| {
            let expired = &expired;
            Box::pin(Timer::new(move |_| expired.borrow_mut().push(i)))
        })
        .collect();

    struct Timers<C, F>(C, F);

    impl<C, F> Loop for Timers<C, F>
    where
        C: Fn(&[What]) -> usize,
        F: Fn(&mut Vec<u32>) -> Result<()>,
    {
        fn change(&self, changes: &[What]) -> Result<Option<usize>> {
            Ok(Some(self.0(changes)))
        }
        fn fetch(&self, numbers: &mut Vec<u32>) -> Result<()> {
            self.1(numbers)
        }
    }

    let change = |changes: &[What]| {
        let mut cancelled = 0;

        wheel.update();
        for change in changes {
            match *change {
                Start(i, delay) => timers[i as usize]
                    .as_ref()
                    .start(&wheel, Duration::from_millis(delay)),
                Cancel(i) => cancelled += usize::from(timers[i as usize].stop()),
            }
        }
        cancelled
    };
    let fetch = |numbers: &mut Vec<u32>| {
        wheel.dispatch();
        numbers.append(&mut expired.borrow_mut());
        wheel.flush()
    };

    wheel.fd()?;
    accept(&Timers(change, fetch), &wheel)
}
