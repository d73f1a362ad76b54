//! Searches of the workspace, answered in lines.

use std::fmt::Write;

use http::Method;
use sandbank_protocol::{
    NamePattern, NameRecord, NameSearch, SearchCase, SearchOrder, TextRecord, TextSearch,
};

use crate::client::encode;
use crate::{ChannelError, RecordStream, RunnerClient, empty_body, full_body};

impl RunnerClient {
    /// Names of files and directories.
    pub async fn search_names(
        &self,
        search: &NameSearch,
    ) -> Result<RecordStream<NameRecord<'static>>, ChannelError> {
        self.records(Method::GET, &names_target(search), empty_body()).await
    }

    /// Lines of files.
    pub async fn search_text(
        &self,
        search: &TextSearch,
    ) -> Result<RecordStream<TextRecord<'static>>, ChannelError> {
        let body = serde_json::to_vec(search).expect("protocol types are plain data");
        self.records(Method::POST, "/search/text", full_body(body)).await
    }
}

fn names_target(search: &NameSearch) -> String {
    let kind = match search.kind {
        NamePattern::Text => "text",
        NamePattern::Glob => "glob",
        NamePattern::Regex => "regex",
    };
    let case = match search.case {
        SearchCase::Sensitive => "sensitive",
        SearchCase::Insensitive => "insensitive",
        SearchCase::Smart => "smart",
    };
    let sort = match search.sort {
        SearchOrder::Found => "found",
        SearchOrder::Path => "path",
    };
    let NameSearch { hidden, ignored, .. } = search;
    let mut target = format!(
        "/search/names?pattern={}&kind={kind}&case={case}&hidden={hidden}&ignored={ignored}&sort={sort}",
        encode(&search.pattern)
    );
    if !search.path.is_empty() {
        let _ = write!(target, "&path={}", encode(&search.path));
    }
    let numbers = [("depth", search.depth), ("limit", search.limit), ("time_ms", search.time_ms)];
    for (name, number) in numbers {
        if let Some(number) = number {
            let _ = write!(target, "&{name}={number}");
        }
    }
    target
}
