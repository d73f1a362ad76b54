//! The way from this host's loopback to a port in a private Docker's network, which can be cut.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use anyhow::Context;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::PrivateDocker;

pub struct Cable {
    near: SocketAddr,
    cutter: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Those that somebody still copies between.
    pairs: Mutex<Vec<Weak<Pair>>>,
    leaving: AtomicBool,
}

struct Pair {
    near: TcpStream,
    far: TcpStream,
}

impl Cable {
    /// To `port` of the loopback address where that Docker is.
    pub fn lay(docker: &PrivateDocker, port: u16) -> anyhow::Result<Self> {
        let network = fs::File::open(format!("/proc/{}/ns/net", docker.first()))?;
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listen on loopback");
        let (listener, cutting) = (listen()?, listen()?);
        let (near, cutter) = (listener.local_addr()?, cutting.local_addr()?);
        let shared = Arc::new(Shared::default());
        let passing = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                // This thread's new sockets are there; the listener stays here.
                let network = network.as_fd();
                if let Err(error) =
                    move_into_link_name_space(network, Some(LinkNameSpaceType::Network))
                {
                    return eprintln!("the network of a private Docker: {error}");
                }
                for stream in shared.until_leaving(&listener) {
                    if let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                        shared.pass_on(Pair { near: stream, far });
                    }
                }
            })
        };
        let cutting = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                for asked in shared.until_leaving(&cutting) {
                    shared.cut();
                    drop(asked);
                }
            })
        };
        Ok(Self { near, cutter, shared, threads: vec![passing, cutting] })
    }

    pub fn near(&self) -> SocketAddr {
        self.near
    }

    /// Whoever connects there cuts all connections, and sees the end when that is done.
    pub fn cutter(&self) -> SocketAddr {
        self.cutter
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.shared.leaving.store(true, Ordering::SeqCst);
        self.shared.cut();
        for listener in [self.near, self.cutter] {
            let _ = TcpStream::connect(listener);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn until_leaving(&self, listener: &TcpListener) -> impl Iterator<Item = TcpStream> {
        listener
            .incoming()
            .take_while(|_| !self.leaving.load(Ordering::SeqCst))
            .filter_map(io::Result::ok)
    }

    fn pass_on(&self, pair: Pair) {
        let pair = Arc::new(pair);
        {
            let mut pairs = self.pairs();
            pairs.retain(|pair| pair.strong_count() > 0);
            pairs.push(Arc::downgrade(&pair));
        }
        let other = Arc::clone(&pair);
        std::thread::spawn(move || copy(&pair.near, &pair.far));
        std::thread::spawn(move || copy(&other.far, &other.near));
    }

    fn cut(&self) {
        for pair in self.pairs().drain(..).filter_map(|pair| pair.upgrade()) {
            let _ = pair.near.shutdown(Shutdown::Both);
            let _ = pair.far.shutdown(Shutdown::Both);
        }
    }

    fn pairs(&self) -> MutexGuard<'_, Vec<Weak<Pair>>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each way ends by itself, as on a wire.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
