// SPDX-License-Identifier: MIT
//! The first program: connections that are closed when they have been idle.
#![forbid(unsafe_code)]
use std::cell::RefCell;
use std::time::Duration;
use twheel::{Timer, Wheel};

fn main() -> std::io::Result<()> {
    const IDLE: Duration = Duration::from_millis(30);
    let closed = RefCell::new(Vec::new());
    let wheel = Wheel::new()?;
    let connections: Vec<_> = (0..3)
        .map(|i| {
            let closed = &closed;
            let idle = Box::pin(Timer::new(move |_| closed.borrow_mut().push(i)));

            idle.as_ref().start(&wheel, IDLE);
            idle
        })
        .collect();

    // Something has come on connection 0: it has as long again.
    connections[0].as_ref().start(&wheel, 2 * IDLE);
    // Connection 1 was closed by its peer.
    assert!(connections[1].stop());
    while closed.borrow().len() < 2 {
        wheel.wait(None)?;
    }
    println!("idle: {:?}", closed.borrow());
    assert_eq!(*closed.borrow(), [2, 0]);
    Ok(())
}
