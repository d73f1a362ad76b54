//! Which host port a published port gets: any that is free, or one of a range, where only a range
//! is passed through to the daemon, as in a container.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;

/// The host ports that may be listened on.
pub(crate) struct HostPorts {
    /// None: whatever the kernel gives.
    places: Option<Places>,
}

struct Places {
    range: RangeInclusive<u16>,
    free: Free,
}

/// The next one first. A port goes back to the end, so that an old URL does not lead to another
/// sandbox at once.
#[derive(Clone)]
struct Free(Arc<Mutex<VecDeque<u16>>>);

/// A host port that is listened on.
pub(super) struct HostPort {
    // Before the place: whoever gets the port next must be able to listen on it.
    pub(super) listener: TcpListener,
    _place: Option<Place>,
}

struct Place {
    port: u16,
    free: Free,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Unbound {
    #[error("none of the host ports {} is free", shown(.0))]
    Exhausted(RangeInclusive<u16>),
    #[error("host port {0} is not one of {range}, or is taken", range = shown(.1))]
    NotFree(u16, RangeInclusive<u16>),
    #[error("{address}:{port}: {error}")]
    Io { address: IpAddr, port: u16, error: io::Error },
}

/// As the setting is written.
pub(super) fn shown(range: &RangeInclusive<u16>) -> String {
    format!("{}-{}", range.start(), range.end())
}

impl HostPorts {
    pub(crate) fn new(range: Option<RangeInclusive<u16>>) -> Self {
        let places = range.map(|range| {
            let free = Free(Arc::new(Mutex::new(range.clone().collect())));
            Places { range, free }
        });
        Self { places }
    }

    /// These are given out after all others: they are to be listened on again.
    pub(crate) fn put_last(&self, ports: &[u16]) {
        let Some(places) = &self.places else { return };
        let mut free = places.free.lock();
        let (last, first): (Vec<u16>, Vec<u16>) =
            free.iter().partition(|port| ports.contains(port));
        *free = first.into_iter().chain(last).collect();
    }

    pub(super) async fn any(&self, address: IpAddr) -> Result<HostPort, Unbound> {
        let Some(places) = &self.places else { return bind(address, 0, None).await };
        for _ in places.range.clone() {
            let Some(place) = places.free.first() else { break };
            match bind(address, place.port, Some(place)).await {
                // Another program's; the place has gone back to the end.
                Err(Unbound::Io { error, .. }) if error.kind() == io::ErrorKind::AddrInUse => {}
                bound => return bound,
            }
        }
        Err(Unbound::Exhausted(places.range.clone()))
    }

    pub(super) async fn exactly(&self, address: IpAddr, port: u16) -> Result<HostPort, Unbound> {
        let Some(places) = &self.places else { return bind(address, port, None).await };
        match places.free.take(port) {
            Some(place) => bind(address, port, Some(place)).await,
            None => Err(Unbound::NotFree(port, places.range.clone())),
        }
    }
}

async fn bind(address: IpAddr, port: u16, place: Option<Place>) -> Result<HostPort, Unbound> {
    match TcpListener::bind((address, port)).await {
        Ok(listener) => Ok(HostPort { listener, _place: place }),
        Err(error) => Err(Unbound::Io { address, port, error }),
    }
}

impl Free {
    fn lock(&self) -> MutexGuard<'_, VecDeque<u16>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first(&self) -> Option<Place> {
        let port = self.lock().pop_front()?;
        Some(Place { port, free: self.clone() })
    }

    fn take(&self, port: u16) -> Option<Place> {
        let mut free = self.lock();
        let position = free.iter().position(|other| *other == port)?;
        free.remove(position);
        Some(Place { port, free: self.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.free.lock().push_back(self.port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// Three that are free right now.
    async fn three() -> RangeInclusive<u16> {
        for first in (21_000..32_000).step_by(7) {
            let range = first..=first + 2;
            let binds = range.clone().map(|port| TcpListener::bind((LOCAL, port)));
            if futures_util::future::try_join_all(binds).await.is_ok() {
                return range;
            }
        }
        panic!("no three free ports in a row");
    }

    fn number(port: &HostPort) -> u16 {
        port.listener.local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn a_freed_port_is_the_last_to_be_given_again() {
        let range = three().await;
        let first = *range.start();
        let ports = HostPorts::new(Some(range));
        let one = ports.any(LOCAL).await.unwrap();
        assert_eq!(number(&one), first);
        drop(one);
        let kept = [ports.any(LOCAL).await.unwrap(), ports.any(LOCAL).await.unwrap()];
        assert_eq!(kept.each_ref().map(number), [first + 1, first + 2]);
        let again = ports.any(LOCAL).await.unwrap();
        assert_eq!(number(&again), first);
        assert!(matches!(ports.any(LOCAL).await, Err(Unbound::Exhausted(_))));
        drop(kept);
        assert!(ports.any(LOCAL).await.is_ok());
    }

    #[tokio::test]
    async fn other_programs_ports_are_passed_over_and_kept_ones_are_taken_last() {
        let range = three().await;
        let (first, last) = (*range.start(), *range.end());
        let ports = HostPorts::new(Some(range));
        ports.put_last(&[first, 1]);
        let other = TcpListener::bind((LOCAL, first + 1)).await.unwrap();
        let one = ports.any(LOCAL).await.unwrap();
        assert_eq!(number(&one), last);
        assert_eq!(number(&ports.exactly(LOCAL, first).await.unwrap()), first);
        for (not_free, why) in [(last, "taken"), (last + 1, "outside")] {
            let refused = ports.exactly(LOCAL, not_free).await;
            assert!(matches!(refused, Err(Unbound::NotFree(..))), "{why}");
        }
        drop(other);
    }
}
