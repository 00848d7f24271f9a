// SPDX-License-Identifier: MIT
//! An echo server with `async`, whose connections end when nothing has come for 60 ms.
//!
//! Its executor is a loop with epoll, in which the descriptor of the wheel is one among others.
//! An executor of a library does the same: it watches [`Wheel::fd`], dispatches when that is
//! readable, and flushes before it sleeps.
#![forbid(unsafe_code)]
use epoll::Epoll;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::io::AsRawFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use twheel::Wheel;

const WHEEL: u64 = u64::MAX;

/// Whether a task is to be polled.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

struct Executor {
    epoll: Epoll,
    /// By descriptor, who waits for it.
    waiting: RefCell<HashMap<u64, Waker>>,
    wheel: Wheel<'static>,
}

/// Ready when its descriptor has become readable.
struct Readable<'a> {
    executor: &'a Executor,
    fd: u64,
    polled: bool,
}

impl Future for Readable<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.polled && !self.executor.waiting.borrow().contains_key(&self.fd) {
            return Poll::Ready(());
        }
        self.polled = true;
        let waker = context.waker().clone();
        self.executor.waiting.borrow_mut().insert(self.fd, waker);
        Poll::Pending
    }
}

impl Executor {
    fn new() -> Result<Executor> {
        let (epoll, wheel) = (Epoll::new()?, Wheel::new()?);

        wheel.fd()?;
        epoll.watch(&wheel, WHEEL)?;
        Ok(Executor {
            epoll,
            waiting: RefCell::default(),
            wheel,
        })
    }

    async fn read(&self, mut stream: &TcpStream, bytes: &mut [u8]) -> Result<usize> {
        loop {
            match stream.read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let fd = stream.as_raw_fd() as u64;
                    Readable {
                        executor: self,
                        fd,
                        polled: false,
                    }
                    .await
                }
                result => return result,
            }
        }
    }

    fn run(&self, mut tasks: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>) -> Result<()> {
        let woken: Vec<_> = tasks
            .iter()
            .map(|_| Arc::new(Woken(AtomicBool::new(true))))
            .collect();
        let mut left = tasks.len();

        loop {
            for (task, woken) in tasks.iter_mut().zip(&woken) {
                let waker = Waker::from(woken.clone());
                if woken.0.swap(false, Ordering::Acquire)
                    && task
                        .as_mut()
                        .poll(&mut Context::from_waker(&waker))
                        .is_ready()
                {
                    left -= 1;
                }
            }
            if left == 0 {
                return Ok(());
            }
            self.wheel.flush()?;
            match self.epoll.wait(None)? {
                Some(WHEEL) => {
                    self.wheel.dispatch();
                }
                Some(fd) => {
                    if let Some(waker) = self.waiting.borrow_mut().remove(&fd) {
                        waker.wake();
                    }
                }
                None => {}
            }
        }
    }
}

/// Echo until the peer has closed, or nothing has come for a while.
async fn echo(executor: &Executor, mut stream: &TcpStream) -> Result<usize> {
    let mut bytes = [0; 1024];
    let mut sum = 0;

    loop {
        let read = executor.read(stream, &mut bytes);
        match executor
            .wheel
            .timeout(Duration::from_millis(60), read)
            .await
        {
            Some(Ok(0)) => return Ok(sum),
            Some(nr) => {
                let nr = nr?;
                stream.write_all(&bytes[..nr])?;
                sum += nr;
            }
            None => return Err(Error::from(ErrorKind::TimedOut)),
        }
    }
}

/// A client sends that many words, and may then stay and be silent until the server closes.
fn client(address: SocketAddr, words: u32, stays: bool) -> JoinHandle<bool> {
    let mut stream = TcpStream::connect(address).unwrap();

    thread::spawn(move || {
        for _ in 0..words {
            stream.write_all(b"word").unwrap();
            stream.read_exact(&mut [0; 4]).unwrap();
            thread::sleep(Duration::from_millis(5));
        }
        stays && stream.read(&mut [0; 4]).unwrap() == 0
    })
}

fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let clients = [client(address, 3, false), client(address, 2, true)];
    let results = RefCell::new(Vec::new());

    let executor = Executor::new()?;
    let mut tasks: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
    for _ in 0..2 {
        let (stream, _) = listener.accept()?;
        let (executor, results) = (&executor, &results);

        stream.set_nonblocking(true)?;
        executor
            .epoll
            .watch_edges(&stream, stream.as_raw_fd() as u64)?;
        tasks.push(Box::pin(async move {
            let result = echo(executor, &stream).await;
            results
                .borrow_mut()
                .push(result.map_err(|error| error.kind()));
        }));
    }
    executor.run(tasks)?;
    println!("{:?}", results.borrow());
    assert!(results.borrow().contains(&Ok(12)));
    assert!(results.borrow().contains(&Err(ErrorKind::TimedOut)));
    assert_eq!(clients.map(|client| client.join().unwrap()), [false, true]);
    Ok(())
}
