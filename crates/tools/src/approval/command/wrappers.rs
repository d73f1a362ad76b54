//! Programs that run the program behind them, and what of their words is not that program.

use super::Word;
use super::variables::{is_name, runs_later};
use super::word::Shape;

pub(super) struct Wrapper {
    name: &'static str,
    /// Options without a value, letters and long ones.
    flags: (&'static str, &'static [&'static str]),
    /// Options with one.
    valued: (&'static str, &'static [&'static str]),
    /// Words before the program.
    operands: usize,
    assigns: bool,
}

const fn plain(name: &'static str, flags: &'static str) -> Wrapper {
    Wrapper { name, flags: (flags, &[]), valued: ("", &[]), operands: 0, assigns: false }
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "env",
        flags: ("i0v", &["ignore-environment", "null", "debug"]),
        valued: ("uC", &["unset", "chdir"]),
        operands: 0,
        assigns: true,
    },
    Wrapper {
        name: "sudo",
        flags: ("AbEHkKnPSVvl", &["preserve-env", "non-interactive", "stdin"]),
        valued: ("CDghpRrTtUu", &["user", "group", "host", "prompt", "chdir", "chroot"]),
        operands: 0,
        assigns: true,
    },
    Wrapper { valued: ("uC", &[]), ..plain("doas", "Ln") },
    Wrapper { valued: ("n", &["adjustment"]), ..plain("nice", "0123456789") },
    Wrapper { valued: ("cn", &["class", "classdata"]), ..plain("ionice", "t") },
    Wrapper { flags: ("cfw", &["ctty", "fork", "wait"]), ..plain("setsid", "") },
    Wrapper { valued: ("a", &[]), ..plain("exec", "cl") },
    Wrapper { valued: ("fo", &["format", "output"]), ..plain("time", "apqvV") },
    Wrapper { valued: ("ioe", &["input", "output", "error"]), ..plain("stdbuf", "") },
    Wrapper {
        name: "timeout",
        flags: ("v", &["foreground", "preserve-status", "verbose"]),
        valued: ("ks", &["kill-after", "signal"]),
        operands: 1,
        assigns: false,
    },
    Wrapper { operands: 1, ..plain("taskset", "ac") },
    Wrapper {
        flags: ("0rtpxo", &["null", "no-run-if-empty", "verbose", "interactive", "exit"]),
        valued: ("IndLEsPa", &["max-args", "max-procs", "delimiter", "arg-file", "max-chars"]),
        ..plain("xargs", "")
    },
    plain("nohup", ""),
    plain("command", "pvV"),
    plain("builtin", ""),
    plain("busybox", ""),
    plain("unbuffer", "p"),
    plain("chronic", "ve"),
];

/// These run what is not in their words, or not as it stands there.
const OPAQUE: &[&str] = &[
    ".",
    "alias",
    "at",
    "batch",
    "bind",
    "bwrap",
    "catchsegv",
    "choom",
    "chroot",
    "chrt",
    "compgen",
    "complete",
    "compopt",
    "coreutils",
    "crontab",
    "dbus-run-session",
    "dumb-init",
    "enable",
    "entr",
    "expect",
    "fakeroot",
    "faketime",
    "fc",
    "firejail",
    "flock",
    "gdb",
    "gosu",
    "hash",
    "history",
    "hyperfine",
    "ifne",
    "let",
    "linux32",
    "linux64",
    "ltrace",
    "mapfile",
    "newgrp",
    "nsenter",
    "numactl",
    "parallel",
    "pee",
    "perf",
    "pkexec",
    "prlimit",
    "proot",
    "readarray",
    "rlwrap",
    "run-parts",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "sg",
    "source",
    "ssh",
    "start-stop-daemon",
    "strace",
    "su",
    "su-exec",
    "systemd-run",
    "tini",
    "tmux",
    "toybox",
    "unshare",
    "valgrind",
    "watch",
];

pub(super) fn is_opaque(program: &str) -> bool {
    // The loader runs what it is given.
    OPAQUE.contains(&program) || program.starts_with("ld-") || program.starts_with("ld.so")
}

pub(super) fn find(program: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.name == program)
}

/// Where the program behind a wrapper is.
pub(super) enum Inner {
    At {
        at: usize,
        /// A variable is set that is more than a text.
        odd: bool,
    },
    /// It runs none, or one that its words do not name.
    Nothing,
    /// An option is not known, or computed.
    Unsure,
}

impl Wrapper {
    pub(super) fn inner(&self, words: &[Word]) -> Inner {
        let (mut at, mut operands) = (1, self.operands);
        let (mut options, mut odd) = (true, false);
        while let Some(word) = words.get(at) {
            let may_set = self.assigns && (!options || !word.text.starts_with('-'));
            if let Some(name) = name_set(word).filter(|_| may_set) {
                odd |= !is_name(name) || runs_later(name);
                // sudo goes on with its options behind a variable.
                options &= self.name == "sudo";
                at += 1;
                continue;
            }
            if !word.fixed() {
                return Inner::Unsure;
            }
            match word.text.as_str() {
                "--" if options => options = false,
                "-" if options && self.assigns => {}
                text if options && text.len() > 1 && text.starts_with('-') => {
                    let Some(values) = self.takes(text) else { return Inner::Unsure };
                    // A value that is no word, or several, is followed by another program.
                    if !words.iter().skip(at + 1).take(values).all(Word::fixed) {
                        return Inner::Unsure;
                    }
                    at += values;
                }
                _ if operands > 0 => {
                    operands -= 1;
                    options = false;
                }
                _ => return Inner::At { at, odd },
            }
            at += 1;
        }
        Inner::Nothing
    }

    /// How many words behind an option are its own; none if the option is not known.
    fn takes(&self, option: &str) -> Option<usize> {
        if let Some(long) = option.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let valued = self.valued.1.contains(&name);
            let known = valued || self.flags.1.contains(&name);
            return known.then_some(usize::from(valued && value.is_none()));
        }
        let letters = &option[1..];
        for (index, letter) in letters.char_indices() {
            if self.valued.0.contains(letter) {
                return Some(usize::from(index + letter.len_utf8() == letters.len()));
            }
            if !self.flags.0.contains(letter) {
                return None;
            }
        }
        Some(0)
    }
}

/// Such a wrapper takes whatever has the sign for an assignment.
fn name_set(word: &Word) -> Option<&str> {
    let sign = word.text.find('=').filter(|sign| *sign < word.head)?;
    (word.shape <= Shape::One).then(|| &word.text[..sign])
}
