//! Random sequences of operations on paths through planted links: nothing outside ever changes.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use std::os::unix::fs::symlink;

use playground::{CANARY, Playground};
use proptest::prelude::*;
use sandbank_rooted_fs::{Batch, Links, Overwrite};

#[derive(Debug, Clone, Copy)]
enum Verb {
    Read,
    Write,
    WriteInPlace,
    WriteBatch,
    List,
    Mkdir,
    Rename,
    Remove,
    RemoveAll,
    /// What the sandbox itself may do at any time.
    Plant,
}

const VERBS: [Verb; 10] = [
    Verb::Read,
    Verb::Write,
    Verb::WriteInPlace,
    Verb::WriteBatch,
    Verb::List,
    Verb::Mkdir,
    Verb::Rename,
    Verb::Remove,
    Verb::RemoveAll,
    Verb::Plant,
];

const NAMES: [&str; 8] = ["a", "b", "canary", "out", "up", "round", "alias", "outside"];
const TARGETS: [&str; 7] =
    ["../outside", "../outside/canary", "..", "/", "a/../..", "/workspace/..", "/proc/self/cwd"];

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&NAMES[..]), 1..4).prop_map(|names| names.join("/"))
}

fn perform(play: &Playground, verb: Verb, one: &str, other: &str, target: &str) {
    let (path, to) = (play.path(one), play.path(other));
    match verb {
        Verb::Read => {
            if let Ok(file) = play.root.open_read(&path) {
                assert_ne!(file.read_at(0, 100).unwrap(), CANARY);
            }
            let _ = play.root.stat(&path, Links::Follow);
        }
        Verb::Write => {
            if let Ok(mut file) = play.root.create(&path, None) {
                file.write_all(b"inside").unwrap();
                let _ = file.commit();
            }
        }
        Verb::WriteInPlace => {
            let _ = play.root.open_write(&path).map(|file| file.write_all_at(0, b"XX"));
        }
        Verb::WriteBatch => {
            let mut batch = Batch::new(&play.root);
            for path in [&path, &to] {
                let _ = play.root.create(path, None).map(|file| batch.add(file));
            }
            let _ = batch.commit();
        }
        Verb::List => drop(play.root.list(&path, 10)),
        Verb::Mkdir => drop(play.root.mkdir_all(&path)),
        Verb::Rename => drop(play.root.rename(&path, &to, Overwrite::Yes)),
        Verb::Remove => drop(play.root.remove(&path)),
        Verb::RemoveAll => drop(play.root.remove_all(&path)),
        // Only directly in the root: the test itself must not follow its own links.
        Verb::Plant => drop(symlink(target, play.inside(&one.replace('/', "-")))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_operations_touches_the_outside(
        steps in prop::collection::vec(
            (
                prop::sample::select(&VERBS[..]),
                path(),
                path(),
                prop::sample::select(&TARGETS[..]),
            ),
            1..40,
        ),
    ) {
        let play = Playground::new();
        symlink("../outside", play.inside("out")).unwrap();
        symlink("..", play.inside("up")).unwrap();
        symlink("round", play.inside("round")).unwrap();
        symlink("/workspace/../outside", play.inside("alias")).unwrap();
        for (verb, one, other, target) in &steps {
            perform(&play, *verb, one, other, target);
        }
        play.assert_outside_untouched();
    }
}
