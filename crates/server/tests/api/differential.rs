//! The same operations, drawn by chance, in every place of a workspace at once: every answer is the
//! same everywhere.

use serde_json::{Value, json};

use crate::everywhere::{Everywhere, everywhere};

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

struct Chance(u64);

impl Chance {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }

    fn path(&mut self) -> &'static str {
        PATHS[self.next(PATHS.len())]
    }
}

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

fn draw(chance: &mut Chance) -> Operation {
    let get = |path, query| Operation::Http { method: "GET", path, query, body: None };
    let at = |path: &str| vec![("path", path.to_owned())];
    let post =
        |path, body| Operation::Http { method: "POST", path, query: vec![], body: Some(body) };
    match chance.next(20) {
        0..=5 => {
            let content = ["", "one\n", "two\nthree\n", "gr\u{fc}\u{df}e"][chance.next(4)];
            let body = Some(json!({ "content": content }));
            Operation::Http { method: "PUT", path: "/api/file", query: at(chance.path()), body }
        }
        6 | 7 => get("/api/file", at(chance.path())),
        8 => Operation::Http {
            method: "DELETE",
            path: "/api/file",
            query: at(chance.path()),
            body: None,
        },
        9 | 10 => post(
            "/api/file/rename",
            json!({ "old_path": chance.path(), "new_path": chance.path() }),
        ),
        11 | 12 => {
            post("/api/file/move", json!({ "src_path": chance.path(), "dest_dir": chance.path() }))
        }
        13 | 14 => get("/api/tree", at(chance.path())),
        15 => {
            let pattern = ["a", "*", "?", "[", "E*", "gr\u{fc}n"][chance.next(6)];
            get("/api/search", vec![("q", pattern.to_owned()), ("path", chance.path().to_owned())])
        }
        16 => get("/api/git/status", vec![]),
        17 => get("/api/git/diff", at(chance.path())),
        18 => get("/api/git/show", at(chance.path())),
        _ => Operation::Git([&["init", "-q"][..], &["add", "-A", "."]][chance.next(2)]),
    }
}

async fn perform(place: &Everywhere, operation: &Operation) -> (u16, Value) {
    match operation {
        Operation::Http { method, path, query, body } => {
            let request = place.world.api.request(method, path).query(query);
            let request = match body {
                Some(body) => request.json(body),
                None => request,
            };
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.json().await.unwrap())
        }
        Operation::Git(arguments) => {
            place.git(arguments).await;
            (0, Value::Null)
        }
    }
}

#[tokio::test]
async fn operations_drawn_by_chance_have_the_same_answers_in_every_place() {
    let seed = std::env::var("SANDBANK_SEED").ok().and_then(|text| text.parse().ok());
    for seed in seed.map_or(vec![1, 2, 3], |seed| vec![seed]) {
        let places = everywhere(&[]).await;
        let mut chance = Chance(seed);
        let mut seen = std::collections::BTreeMap::<u16, usize>::new();
        let begin = [
            Operation::Http {
                method: "PUT",
                path: "/api/file",
                query: vec![("path", "first".to_owned())],
                body: Some(json!({ "content": "" })),
            },
            Operation::Git(&["init", "-q"]),
        ];
        let drawn = (0..OPERATIONS).map(|_| draw(&mut chance));
        for (number, operation) in begin.into_iter().chain(drawn).enumerate() {
            let mut answers = Vec::new();
            for place in &places {
                answers.push((place.mode, perform(place, &operation).await));
            }
            let (first, rest) = answers.split_first().unwrap();
            *seen.entry(first.1.0).or_default() += 1;
            assert!(first.1.0 < 500, "{operation:?}: {first:?}");
            for other in rest {
                assert_eq!(
                    first.1, other.1,
                    "seed {seed}, {number}: {operation:?} in {} and {}",
                    first.0, other.0
                );
            }
        }
        // A sequence in which everything was refused would prove nothing.
        assert!(seen.get(&200).is_some_and(|count| *count > OPERATIONS / 4), "{seen:?}");
        assert!(seen.contains_key(&404) && seen.contains_key(&400), "{seen:?}");
        for place in places {
            place.end().await;
        }
    }
}
