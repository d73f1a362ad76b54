//! The one fault that the environment asks for.

use std::io;
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

use super::Point;

const VARIABLE: &str = "SANDBANK_FAULT";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Kill,
    Error,
}

#[derive(Debug)]
struct Fault {
    point: Point,
    action: Action,
    nth: u64,
    reached: AtomicU64,
}

static ARMED: AtomicBool = AtomicBool::new(false);

static FAULT: LazyLock<Option<Fault>> = LazyLock::new(|| {
    let text = std::env::var(VARIABLE).ok()?;
    // A slip in a test must not look like a fault that was survived.
    Some(text.parse().unwrap_or_else(|why| panic!("{VARIABLE}={text}: {why}")))
});

impl FromStr for Fault {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let point = Point::ALL.iter().copied().find(|point| point.name() == name);
        let action = match words.next() {
            Some("kill") => Action::Kill,
            Some("error") => Action::Error,
            _ => return Err("say kill or error after the point"),
        };
        let nth = match words.next() {
            None => 1,
            Some(number) => number.parse().map_err(|_| "which time is a number")?,
        };
        Ok(Self { point: point.ok_or("no such point")?, action, nth, reached: AtomicU64::new(0) })
    }
}

pub(super) fn arm() {
    ARMED.store(true, Ordering::SeqCst);
}

pub(super) fn reach(point: Point) -> io::Result<()> {
    if !ARMED.load(Ordering::SeqCst) {
        return Ok(());
    }
    let Some(fault) = FAULT.as_ref().filter(|fault| fault.point == point) else { return Ok(()) };
    if fault.reached.fetch_add(1, Ordering::SeqCst) + 1 != fault.nth {
        return Ok(());
    }
    eprintln!("fault at {}: {:?}", point.name(), fault.action);
    if fault.action == Action::Kill {
        let _ = kill_process(getpid(), Signal::KILL);
        loop {
            std::thread::park();
        }
    }
    Err(io::Error::other(format!("a test asked for a fault at {}", point.name())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_a_point_an_action_and_a_time() {
        let fault: Fault = "machine.cloned:error:3".parse().expect("it is well-formed");
        assert_eq!((fault.point, fault.action, fault.nth), (Point::Cloned, Action::Error, 3));
        for wrong in ["", "machine.cloned", "nowhere:kill", "machine.cloned:kill:x"] {
            assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_point_has_a_name_of_its_own() {
        let mut names: Vec<_> = Point::ALL.iter().map(|point| point.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Point::ALL.len());
    }
}
