// SPDX-License-Identifier: MIT
#![forbid(unsafe_code)]
use epoll::Epoll;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};
use twheel::{Clock, Expiry, Timer, Wheel};

const MS: u64 = 1_000_000;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A wheel whose clock the test moves.
fn wheel<'w>() -> Wheel<'w> {
    Wheel::options().clock(Clock::Caller).open().unwrap()
}

/// Move its clock to that many milliseconds, and dispatch.
fn at(wheel: &Wheel, ms: u64) -> usize {
    wheel.advance(ms * MS).unwrap();
    wheel.dispatch()
}

type Boxed<'w> = Box<dyn Fn(&Expiry<'_, 'w>) + 'w>;
type Slot<'w> = Rc<RefCell<Option<Pin<Box<Timer<'w, Boxed<'w>>>>>>>;

#[test]
fn a_timer_calls_its_callback_once_at_its_deadline() {
    let calls = Cell::new(0);
    let wheel = wheel();
    let timer = Box::pin(Timer::new(|_| calls.set(calls.get() + 1)));

    assert!(!timer.is_pending());
    timer.as_ref().start(&wheel, ms(10));
    assert!(timer.is_pending());
    assert_eq!(timer.deadline_ns(), Some(10 * MS));
    assert_eq!(at(&wheel, 9), 0);
    assert_eq!(at(&wheel, 10), 1);
    assert_eq!(at(&wheel, 1000), 0);
    assert_eq!(calls.get(), 1);
    assert_eq!(timer.deadline_ns(), None);
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_timer_takes_56_bytes_beside_its_callback() {
    let boxed: Timer<Boxed> = Timer::new(Box::new(|_: &Expiry| ()));

    assert_eq!(std::mem::size_of_val(&Timer::new(|_| ())), 56);
    assert_eq!(std::mem::size_of_val(&boxed), 56 + 16);
}

#[test]
fn a_restart_moves_a_timer_and_a_stop_ends_it() {
    let calls = Cell::new(0);
    let wheel = wheel();
    let timer = Box::pin(Timer::new(|_| calls.set(calls.get() + 1)));

    timer.as_ref().start(&wheel, ms(10));
    timer.as_ref().start(&wheel, ms(20));
    assert_eq!(at(&wheel, 19), 0);
    timer.as_ref().start_at(&wheel, 30 * MS);
    assert_eq!(at(&wheel, 29), 0);
    assert!(timer.stop());
    assert!(!timer.stop());
    assert_eq!(at(&wheel, 100), 0);
    assert_eq!(calls.get(), 0);
}

#[test]
fn a_delay_that_is_too_long_for_64_bits_never_expires() {
    let wheel = wheel();
    let timer = Box::pin(Timer::new(|_| unreachable!()));

    timer.as_ref().start(&wheel, Duration::MAX);
    assert!(timer.is_pending());
    assert_eq!(timer.deadline_ns(), None);
    assert_eq!(wheel.next_ns(), None);
    assert_eq!(wheel.left(), None);
    assert_eq!(at(&wheel, 1 << 40), 0);
}

#[test]
fn a_timer_that_is_dropped_is_not_called() {
    let wheel = wheel();
    let timers: Vec<_> = (0..100)
        .map(|i| {
            let timer = Box::pin(Timer::new(|_| unreachable!()));

            timer.as_ref().start(&wheel, ms(i % 7));
            timer
        })
        .collect();

    assert_eq!(wheel.stats().pending, 100);
    drop(timers);
    assert_eq!(wheel.stats().pending, 0);
    assert_eq!(at(&wheel, 10), 0);
}

#[test]
fn a_timer_may_outlive_its_wheel() {
    let old = wheel();
    let timer = Box::pin(Timer::new(|_| ()));

    timer.as_ref().start(&old, ms(1));
    drop(old);
    assert!(!timer.is_pending());
    assert!(!timer.stop());

    let new = wheel();
    timer.as_ref().start(&new, ms(1));
    assert_eq!(at(&new, 1), 1);
    timer.as_ref().start(&new, ms(1));
    drop(new);
    drop(timer);
}

#[test]
fn a_wheel_may_be_moved_while_timers_pend() {
    let wheel = wheel();
    let timer = Box::pin(Timer::new(|expiry| expiry.restart(ms(1))));

    timer.as_ref().start(&wheel, ms(1));
    let wheels = vec![Box::new(wheel)];
    assert_eq!(at(&wheels[0], 1), 1);
    let wheel = *wheels.into_iter().next().unwrap();
    assert_eq!(at(&wheel, 2), 1);
}

#[test]
fn a_wheel_that_is_forgotten_lets_its_timers_go() {
    let lost = wheel();
    let next = wheel();
    let timers: Vec<_> = (0..3).map(|_| Box::pin(Timer::new(|_| ()))).collect();

    for timer in &timers {
        timer.as_ref().start(&lost, ms(1));
    }
    std::mem::forget(lost);
    timers[1].as_ref().start(&next, ms(1));
    assert_eq!(at(&next, 1), 1);
    assert!(timers[0].stop());
}

#[test]
fn a_timer_that_is_forgotten_is_called() {
    let calls = Cell::new(0);
    let wheel = wheel();
    let timer = Box::pin(Timer::new(|_| calls.set(calls.get() + 1)));

    timer.as_ref().start(&wheel, ms(1));
    std::mem::forget(timer);
    assert_eq!(at(&wheel, 1), 1);
    assert_eq!(calls.get(), 1);
}

#[test]
fn a_timer_that_pends_in_one_wheel_is_stopped_there_when_another_starts_it() {
    let first = wheel();
    let second = wheel();
    let timer = Box::pin(Timer::new(|_| ()));

    timer.as_ref().start(&first, ms(1));
    timer.as_ref().start(&second, ms(2));
    assert_eq!(first.stats().pending, 0);
    assert_eq!(at(&first, 5), 0);
    assert_eq!(at(&second, 2), 1);
}

/// Says when it is dropped, and is poison afterwards.
struct Witness(Rc<Cell<u32>>);

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_callback_may_drop_its_own_timer_and_run_on() {
    let drops = Rc::new(Cell::new(0));
    let slot = Slot::default();
    let wheel = wheel();
    let (witness, own) = (Witness(drops.clone()), slot.clone());
    let filler = Box::new([1u8; 100]);

    *slot.borrow_mut() = Some(Box::pin(Timer::new(Box::new(move |expiry: &Expiry| {
        let timer = own.borrow_mut().take();
        drop(timer);
        // What it has captured is there until its end.
        assert_eq!(witness.0.get(), 0);
        assert_eq!(filler.iter().map(|&i| u32::from(i)).sum::<u32>(), 100);
        expiry.restart(ms(1));
        expiry.restart_at(0);
        assert!(!expiry.stop());
    }))));
    slot.borrow()
        .as_ref()
        .unwrap()
        .as_ref()
        .start(&wheel, ms(1));
    assert_eq!(at(&wheel, 1), 1);
    assert_eq!(drops.get(), 1);
    assert_eq!(at(&wheel, 10), 0);
    // No cycle is left.
    assert_eq!(Rc::strong_count(&slot), 1);
}

#[test]
fn a_callback_may_drop_its_own_periodic_timer() {
    for fixed_delay in [false, true] {
        let slot = Slot::default();
        let wheel = wheel();
        let own = slot.clone();
        let calls = Rc::new(Cell::new(0));
        let counter = calls.clone();

        *slot.borrow_mut() = Some(Box::pin(Timer::new(Box::new(move |_: &Expiry| {
            counter.set(counter.get() + 1);
            if counter.get() == 3 {
                own.borrow_mut().take();
            }
        }))));
        {
            let timer = slot.borrow();
            let timer = timer.as_ref().unwrap().as_ref();
            match fixed_delay {
                true => timer.start_with_fixed_delay(&wheel, MS, ms(1)),
                false => timer.start_every(&wheel, ms(1)),
            }
        }
        for i in 1..10 {
            at(&wheel, i);
        }
        assert_eq!(calls.get(), 3);
        assert_eq!(wheel.stats().pending, 0);
    }
}

#[test]
fn a_callback_may_put_another_timer_in_the_place_of_its_own() {
    let slot = Slot::default();
    let drops = Rc::new(Cell::new(0));
    let wheel = wheel();
    let (own, witness) = (slot.clone(), Witness(drops.clone()));

    *slot.borrow_mut() = Some(Box::pin(Timer::new(Box::new(move |expiry: &Expiry| {
        let mut place = own.borrow_mut();
        let mut timer = place.as_mut().unwrap().as_mut();

        timer.set(Timer::new(Box::new(|_: &Expiry| ())));
        timer.as_ref().start(expiry.wheel(), ms(1));
        assert_eq!(witness.0.get(), 0);
    }))));
    slot.borrow()
        .as_ref()
        .unwrap()
        .as_ref()
        .start(&wheel, ms(1));
    assert_eq!(at(&wheel, 1), 1);
    assert_eq!(drops.get(), 1);
    assert_eq!(at(&wheel, 2), 1);
    assert_eq!(at(&wheel, 3), 0);
}

#[test]
fn a_callback_may_drop_other_timers_that_are_due() {
    type Timers = RefCell<Vec<Pin<Box<Timer<'static, Boxed<'static>>>>>>;
    let timers: Rc<Timers> = Rc::default();
    let calls = Rc::new(Cell::new(0));
    let wheel = wheel();

    for _ in 0..10 {
        let (all, counter) = (timers.clone(), calls.clone());
        let timer = Box::pin(Timer::new(Box::new(move |_: &Expiry| {
            counter.set(counter.get() + 1);
            all.borrow_mut().clear();
        }) as Boxed));

        timer.as_ref().start(&wheel, ms(1));
        timers.borrow_mut().push(timer);
    }
    assert_eq!(at(&wheel, 1), 1);
    assert_eq!(calls.get(), 1);
    assert_eq!(wheel.stats().pending, 0);
}

#[test]
fn a_callback_may_start_another_timer_on_the_wheel() {
    let other = Rc::pin(Timer::new(|_| ()));
    let wheel = wheel();
    let started = other.clone();
    let timer = Box::pin(Timer::new(move |expiry| {
        started.as_ref().start(expiry.wheel(), ms(1))
    }));

    timer.as_ref().start(&wheel, ms(1));
    assert_eq!(at(&wheel, 1), 1);
    assert!(other.is_pending());
    assert_eq!(at(&wheel, 2), 1);
}

#[test]
fn a_callback_may_dispatch_and_be_called_again_meanwhile() {
    let depth = Cell::new(0);
    let wheel = wheel();
    let timer = Box::pin(Timer::new(|expiry| {
        depth.set(depth.get() + 1);
        if depth.get() < 5 {
            expiry.restart(ms(1));
            assert_eq!(at(expiry.wheel(), 1 + depth.get()), 1);
        }
    }));

    timer.as_ref().start(&wheel, ms(1));
    assert_eq!(at(&wheel, 1), 1);
    assert_eq!(depth.get(), 5);
    timer.as_ref().start(&wheel, ms(1));
    assert_eq!(at(&wheel, 20), 1);
    assert_eq!(depth.get(), 6);
}

#[test]
fn an_inner_call_of_a_callback_may_drop_the_timer() {
    let slot = Slot::default();
    let drops = Rc::new(Cell::new(0));
    let wheel = wheel();
    let (own, witness) = (slot.clone(), Witness(drops.clone()));
    let calls = Rc::new(Cell::new(0));
    let counter = calls.clone();

    *slot.borrow_mut() = Some(Box::pin(Timer::new(Box::new(move |expiry: &Expiry| {
        counter.set(counter.get() + 1);
        if counter.get() == 1 {
            expiry.restart(ms(1));
            assert_eq!(at(expiry.wheel(), 2), 1);
            assert!(own.borrow().is_none());
            expiry.restart(ms(1));
        } else {
            own.borrow_mut().take();
        }
        assert_eq!(witness.0.get(), 0);
    }))));
    slot.borrow()
        .as_ref()
        .unwrap()
        .as_ref()
        .start(&wheel, ms(1));
    assert_eq!(at(&wheel, 1), 1);
    assert_eq!(calls.get(), 2);
    assert_eq!(drops.get(), 1);
    assert_eq!(wheel.stats().pending, 0);
}

fn message(panic: Box<dyn std::any::Any + Send>) -> &'static str {
    panic.downcast_ref::<&str>().unwrap()
}

#[test]
fn a_panic_of_a_callback_comes_out_of_dispatch_after_the_others_were_called() {
    let calls = Cell::new(0);
    let wheel = wheel();
    let timers: Vec<_> = (0..5)
        .map(|i| {
            Box::pin(Timer::new({
                let calls = &calls;
                move |_| {
                    calls.set(calls.get() + 1);
                    match i {
                        1 => panic!("the first"),
                        2 => panic!("the second"),
                        _ => {}
                    }
                }
            }))
        })
        .collect();

    for round in 1..=2 {
        for (i, timer) in timers.iter().enumerate() {
            timer.as_ref().start(&wheel, ms(i as u64 + 1));
        }
        let panic = catch_unwind(AssertUnwindSafe(|| at(&wheel, 10 * round))).unwrap_err();
        assert_eq!(message(panic), "the first");
        // The wheel goes on, and each timer has its callback still.
        assert_eq!(calls.get(), 5 * round);
        assert_eq!(at(&wheel, 10 * round), 0);
    }
}

#[test]
fn a_panic_of_a_callback_comes_out_of_wait() {
    let wheel = Wheel::new().unwrap();
    let timer = Box::pin(Timer::new(|_| panic!("here")));

    timer.as_ref().start(&wheel, ms(1));
    let panic = catch_unwind(AssertUnwindSafe(|| wheel.wait(None))).unwrap_err();
    assert_eq!(message(panic), "here");
}

#[test]
fn a_panic_comes_out_of_the_dispatch_that_it_was_in() {
    let inner = Box::pin(Timer::new(|_| panic!("of the inner one")));
    let caught = Rc::new(Cell::new(0));
    let counter = caught.clone();
    let wheel = wheel();
    let first = Box::pin(Timer::new(|_| panic!("of the outer one")));
    let second = Box::pin(Timer::new(move |expiry| {
        let wheel = expiry.wheel();

        inner.as_ref().start(wheel, ms(1));
        let panic = catch_unwind(AssertUnwindSafe(|| at(wheel, 20))).unwrap_err();
        assert_eq!(message(panic), "of the inner one");
        counter.set(counter.get() + 1);
    }));

    first.as_ref().start(&wheel, ms(1));
    second.as_ref().start(&wheel, ms(3));
    let panic = catch_unwind(AssertUnwindSafe(|| at(&wheel, 10))).unwrap_err();
    assert_eq!(message(panic), "of the outer one");
    assert_eq!(caught.get(), 1);
}

#[test]
fn a_callback_that_panics_may_have_dropped_its_timer() {
    let slot = Slot::default();
    let drops = Rc::new(Cell::new(0));
    let wheel = wheel();
    let (own, witness) = (slot.clone(), Witness(drops.clone()));

    *slot.borrow_mut() = Some(Box::pin(Timer::new(Box::new(move |_: &Expiry| {
        let _captured = &witness;

        own.borrow_mut().take();
        panic!("gone");
    }))));
    slot.borrow()
        .as_ref()
        .unwrap()
        .as_ref()
        .start(&wheel, ms(1));
    assert!(catch_unwind(AssertUnwindSafe(|| at(&wheel, 1))).is_err());
    assert_eq!(drops.get(), 1);
}

#[test]
fn what_a_callback_has_captured_is_dropped_once_with_its_timer() {
    let drops = Rc::new(Cell::new(0));
    let wheel = wheel();

    for expires in [false, true] {
        drops.set(0);
        let witness = Witness(drops.clone());
        let timer = Box::pin(Timer::new(move |_| assert_eq!(witness.0.get(), 0)));

        for _ in 0..3 {
            timer.as_ref().start(&wheel, ms(0));
            assert_eq!(if expires { wheel.dispatch() } else { 1 }, 1);
        }
        assert_eq!(drops.get(), 0);
        drop(timer);
        assert_eq!(drops.get(), 1);
    }
}

/// Dispatches when it is dropped.
struct Dispatches(Rc<Wheel<'static>>);

impl Drop for Dispatches {
    fn drop(&mut self) {
        assert_eq!(at(&self.0, 1), 0);
    }
}

#[test]
fn a_timer_has_stopped_when_what_its_callback_has_captured_is_dropped() {
    let wheel = Rc::new(wheel());
    let last = Dispatches(wheel.clone());
    let timer = Box::pin(Timer::new(move |_| unreachable!("{}", last.0.now())));

    timer.as_ref().start(&wheel, ms(1));
    drop(timer);
}

#[test]
fn a_periodic_timer_counts_the_periods_that_have_passed() {
    let periods = RefCell::new(Vec::new());
    let wheel = wheel();
    let timer = Box::pin(Timer::new(|expiry| {
        periods.borrow_mut().push(expiry.periods());
        if periods.borrow().len() == 3 {
            assert!(expiry.stop());
        }
    }));

    timer.as_ref().start_every(&wheel, ms(10));
    for time in [10, 20, 57, 100] {
        at(&wheel, time);
    }
    assert_eq!(*periods.borrow(), [1, 1, 3]);
}

#[test]
fn a_fixed_delay_begins_when_the_callback_has_returned() {
    let calls = Cell::new(0);
    let wheel = wheel();
    let timer = Box::pin(Timer::new(|expiry| {
        calls.set(calls.get() + 1);
        expiry
            .wheel()
            .advance(expiry.wheel().now() + 5 * MS)
            .unwrap();
    }));

    timer
        .as_ref()
        .start_with_fixed_delay(&wheel, 10 * MS, ms(10));
    assert_eq!(at(&wheel, 10), 1);
    assert_eq!(timer.deadline_ns(), Some(25 * MS));
    assert_eq!(calls.get(), 1);
}

#[test]
fn stop_all_stops_all() {
    let wheel = wheel();
    let timers: Vec<_> = (0..5).map(|_| Box::pin(Timer::new(|_| ()))).collect();

    for timer in &timers {
        timer.as_ref().start(&wheel, ms(1));
    }
    assert_eq!(wheel.stop_all(), 5);
    assert!(timers.iter().all(|timer| !timer.is_pending()));
    assert_eq!(at(&wheel, 1), 0);
}

#[test]
fn a_wheel_that_dies_in_a_callback_of_another_wheel_stops_its_timers() {
    let victim = Rc::new(RefCell::new(Some(wheel())));
    let timer = Rc::pin(Timer::new(|_| ()));
    let killer = wheel();
    let pending = timer.clone();
    let last = victim.clone();
    let end = Box::pin(Timer::new(move |_| {
        last.borrow_mut().take();
        assert!(!pending.is_pending());
    }));

    timer
        .as_ref()
        .start(victim.borrow().as_ref().unwrap(), ms(1));
    end.as_ref().start(&killer, ms(1));
    assert_eq!(at(&killer, 1), 1);
}

#[test]
fn an_option_out_of_range_is_refused() {
    let error = Wheel::options()
        .tick(Duration::from_nanos(1))
        .open()
        .unwrap_err();

    assert_eq!(error.raw_os_error(), Some(22));
    let wheel = Wheel::new().unwrap();
    assert_eq!(wheel.advance(1).unwrap_err().raw_os_error(), Some(95));
}

#[test]
fn wait_sleeps_until_a_timer_expires_and_not_longer_than_its_timeout() {
    let wheel = Wheel::new().unwrap();
    let timer = Box::pin(Timer::new(|_| ()));
    let began = Instant::now();

    timer.as_ref().start(&wheel, ms(20));
    assert_eq!(wheel.wait(Some(ms(1))).unwrap(), 0);
    assert_eq!(wheel.wait(None).unwrap(), 1);
    assert!(began.elapsed() >= ms(20));
}

#[test]
fn the_descriptor_is_readable_when_a_timer_has_expired() {
    for options in [Wheel::options(), Wheel::options().immediate()] {
        let wheel = options.open().unwrap();
        let epoll = Epoll::new().unwrap();
        let timer = Box::pin(Timer::new(|_| ()));
        let began = Instant::now();

        wheel.fd().unwrap();
        epoll.watch(&wheel, 7).unwrap();
        timer.as_ref().start(&wheel, ms(20));
        wheel.flush().unwrap();
        assert_eq!(epoll.wait(Some(ms(1))).unwrap(), None);
        assert_eq!(epoll.wait(None).unwrap(), Some(7));
        assert!(began.elapsed() >= ms(20));
        assert_eq!(wheel.dispatch(), 1);
        wheel.flush().unwrap();
        assert_eq!(epoll.wait(Some(ms(0))).unwrap(), None);
    }
}

/// A small generator of numbers, by a shift register.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

#[test]
fn random_starts_stops_and_drops_agree_with_a_map() {
    const NR: u64 = 200;
    let expired = RefCell::new(Vec::new());
    let wheel = wheel();
    let make = |i| {
        let expired = &expired;
        Box::pin(Timer::new(move |_| expired.borrow_mut().push(i)))
    };
    let mut timers: Vec<_> = (0..NR).map(make).collect();
    let mut model = BTreeMap::new();
    let mut numbers = Numbers(88172645463325252);
    let mut now = 0;

    for _ in 0..50_000 {
        let i = numbers.next(NR);
        let timer = &mut timers[i as usize];
        match numbers.next(8) {
            0 => assert_eq!(timer.stop(), model.remove(&i).is_some()),
            1 => {
                *timer = make(i);
                model.remove(&i);
            }
            2 => {
                now += 1 + numbers.next(30);
                let due: Vec<_> = model
                    .iter()
                    .filter(|&(_, &at)| at <= now)
                    .map(|(&i, _)| i)
                    .collect();
                model.retain(|_, at| *at > now);
                assert_eq!(at(&wheel, now), due.len());
                let mut got = expired.take();
                got.sort_unstable();
                assert_eq!(got, due);
            }
            _ => {
                let longest = [10, 300, 10_000][numbers.next(3) as usize];
                let delay = 1 + numbers.next(longest);
                timer.as_ref().start_at(&wheel, (now + delay) * MS);
                model.insert(i, now + delay);
            }
        }
        assert_eq!(
            timers[i as usize].deadline_ns(),
            model.get(&i).map(|at| at * MS)
        );
    }
    assert_eq!(wheel.stats().pending, model.len() as u64);
}
