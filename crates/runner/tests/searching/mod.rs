//! Searches through the daemon's own client, read to their end.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::PathBuf;

use sandbank_channel::{ChannelError, RecordStream, RunnerClient};
use sandbank_protocol::{
    Fault, FileKind, FoundLine, NameRecord, NameSearch, NameSearchTally, SearchOrder, TextRecord,
    TextSearch, TextSearchTally,
};

/// What a text search answered.
#[derive(Debug)]
pub(crate) struct FoundText {
    pub(crate) records: Vec<TextRecord<'static>>,
    pub(crate) end: TextSearchTally,
}

impl FoundText {
    pub(crate) fn matches(&self) -> impl Iterator<Item = &FoundLine<'static>> {
        self.records.iter().filter_map(|record| match record {
            TextRecord::Match(line) => Some(line),
            _ => None,
        })
    }

    /// `path:line:text` of each match, sorted.
    pub(crate) fn lines(&self) -> Vec<String> {
        let shown = |line: &FoundLine<'_>| format!("{}:{}:{}", line.path, line.line, line.text);
        let mut lines: Vec<String> = self.matches().map(shown).collect();
        lines.sort();
        lines
    }

    /// Paths in the order of their first record; a file whose records are apart is there twice.
    pub(crate) fn runs(&self) -> Vec<String> {
        let mut runs: Vec<String> = self.records.iter().filter_map(path).collect();
        runs.dedup();
        runs
    }
}

fn path(record: &TextRecord<'_>) -> Option<String> {
    match record {
        TextRecord::Match(line) | TextRecord::Context(line) => Some(line.path.to_string()),
        TextRecord::End(_) => None,
    }
}

pub(crate) fn text(pattern: &str) -> TextSearch {
    TextSearch { pattern: pattern.into(), ..TextSearch::default() }
}

pub(crate) fn names(pattern: &str) -> NameSearch {
    NameSearch { pattern: pattern.into(), sort: SearchOrder::Path, ..NameSearch::default() }
}

pub(crate) async fn search(client: &RunnerClient, search: &TextSearch) -> FoundText {
    read(client.search_text(search).await.unwrap()).await
}

pub(crate) async fn read(mut stream: RecordStream<TextRecord<'static>>) -> FoundText {
    let mut records = Vec::new();
    while let Some(some) = stream.next().await.unwrap() {
        records.extend(some.records);
    }
    let Some(TextRecord::End(end)) = records.pop() else { panic!("there is no end") };
    FoundText { records, end }
}

pub(crate) async fn find(
    client: &RunnerClient,
    search: &NameSearch,
) -> (Vec<(String, FileKind)>, NameSearchTally) {
    let mut stream = client.search_names(search).await.unwrap();
    let mut found = Vec::new();
    let mut end = None;
    while let Some(some) = stream.next().await.unwrap() {
        for record in some.records {
            assert!(end.is_none(), "the end is the last record");
            match record {
                NameRecord::Entry(entry) => {
                    found.push((entry.path_hex.unwrap_or(entry.path.into()), entry.kind));
                }
                NameRecord::End(last) => end = Some(last.end),
            }
        }
    }
    (found, end.expect("there is an end"))
}

pub(crate) async fn found_paths(client: &RunnerClient, search: &NameSearch) -> Vec<String> {
    find(client, search).await.0.into_iter().map(|(path, _)| path).collect()
}

pub(crate) fn refused<T>(answer: Result<T, ChannelError>) -> Fault {
    match answer {
        Err(ChannelError::Refused(fault)) => fault,
        Err(other) => panic!("expected a refusal, not {other:?}"),
        Ok(_) => panic!("expected a refusal"),
    }
}

/// The real ripgrep, if it is here.
pub(crate) fn ripgrep() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&path).map(|directory| directory.join("rg")).find(|rg| rg.is_file());
    if found.is_none() {
        println!("skipped: there is no rg here; see scripts/setup.sh --test");
    }
    found
}
