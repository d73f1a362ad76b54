//! The same operations, drawn by chance, in several places at once: every answer is the same in
//! each.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::Workspace;
use crate::Seeded;

const OPERATIONS: usize = 200;

/// Names that meet each other: files where directories are wanted, and the other way round.
const PATHS: [&str; 14] = [
    "a",
    "b",
    "d",
    "d/a",
    "d/e",
    "d/e/f",
    "a/x",
    ".hidden",
    "gr\u{fc}n \u{2603}",
    "-rf",
    "./d/../b",
    "../out",
    "/etc/hostname",
    "",
];

const INIT: &[&str] = &["git", "init", "-q"];

#[derive(Debug)]
enum Operation {
    Http {
        method: &'static str,
        path: &'static str,
        query: Vec<(&'static str, String)>,
        body: Option<Value>,
    },
    Git(&'static [&'static str]),
}

fn one_of<T: Copy>(seeded: &mut Seeded, choices: &[T]) -> T {
    choices[seeded.below(choices.len() as u64) as usize]
}

fn draw(seeded: &mut Seeded) -> Operation {
    let get = |path, query| Operation::Http { method: "GET", path, query, body: None };
    let at = |path: &str| vec![("path", path.to_owned())];
    let post =
        |path, body| Operation::Http { method: "POST", path, query: vec![], body: Some(body) };
    let kind = seeded.below(20);
    let path = one_of(seeded, &PATHS);
    match kind {
        0..=5 => {
            let content = one_of(seeded, &["", "one\n", "two\nthree\n", "gr\u{fc}\u{df}e"]);
            let body = Some(json!({ "content": content }));
            Operation::Http { method: "PUT", path: "/api/file", query: at(path), body }
        }
        6 | 7 => get("/api/file", at(path)),
        8 => Operation::Http { method: "DELETE", path: "/api/file", query: at(path), body: None },
        9 | 10 => {
            let to = one_of(seeded, &PATHS);
            post("/api/file/rename", json!({ "old_path": path, "new_path": to }))
        }
        11 | 12 => {
            let to = one_of(seeded, &PATHS);
            post("/api/file/move", json!({ "src_path": path, "dest_dir": to }))
        }
        13 | 14 => get("/api/tree", at(path)),
        15 => {
            let pattern = one_of(seeded, &["a", "*", "?", "[", "E*", "gr\u{fc}n"]);
            get("/api/search", vec![("q", pattern.to_owned()), ("path", path.to_owned())])
        }
        16 => get("/api/git/status", vec![]),
        17 => get("/api/git/diff", at(path)),
        18 => get("/api/git/show", at(path)),
        _ => Operation::Git(one_of(seeded, &[INIT, &["git", "add", "-A", "."]])),
    }
}

async fn perform(workspace: &Workspace, operation: &Operation) -> anyhow::Result<(u16, Value)> {
    match operation {
        Operation::Http { method, path, query, body } => {
            let request = workspace.api.request(method, path).query(query);
            let request = body.iter().fold(request, |request, body| request.json(body));
            let response = request.send().await?;
            Ok((response.status().as_u16(), response.json().await?))
        }
        Operation::Git(argv) => {
            workspace.run(argv).await?;
            Ok((0, Value::Null))
        }
    }
}

pub async fn the_same_answers(places: &[Workspace], seed: u64) -> anyhow::Result<()> {
    let mut seeded = Seeded::new(seed);
    let mut seen = BTreeMap::<u16, usize>::new();
    let begin = [Operation::Git(INIT)];
    let drawn = (0..OPERATIONS).map(|_| draw(&mut seeded));
    for (number, operation) in begin.into_iter().chain(drawn).enumerate() {
        let mut answers = Vec::new();
        for place in places {
            let answer = perform(place, &operation).await;
            answers.push((place.mode, answer.with_context(|| format!("{operation:?}"))?));
        }
        let (first, rest) = answers.split_first().context("no place")?;
        *seen.entry(first.1.0).or_default() += 1;
        ensure!(first.1.0 < 500, "{operation:?}: {first:?}");
        for other in rest {
            ensure!(
                first.1 == other.1,
                "seed {seed}, {number}: {operation:?}: {first:?}, {other:?}"
            );
        }
    }
    // A sequence in which everything was refused would prove nothing.
    ensure!(seen.get(&200).is_some_and(|count| *count > OPERATIONS / 4), "{seen:?}");
    ensure!(seen.contains_key(&404) && seen.contains_key(&400), "{seen:?}");
    Ok(())
}
