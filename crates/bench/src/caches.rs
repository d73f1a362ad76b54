//! Forgetting what the kernel remembers of files, so that everybody finds them cold.

use std::fs;

use anyhow::Context;

use crate::peers::blocking;

const DROP: &str = "/proc/sys/vm/drop_caches";

/// Contents, names and attributes, of the whole machine.
const EVERYTHING: &str = "3";

/// Whether this machine lets its caches be emptied, or why not.
pub(crate) fn can_be_emptied() -> Result<(), String> {
    let opened = fs::File::options().write(true).open(DROP);
    opened.map(drop).map_err(|error| format!("{DROP}: {error}"))
}

pub(crate) async fn empty() -> anyhow::Result<()> {
    blocking(|| {
        // What is not written yet stays.
        rustix::fs::sync();
        fs::write(DROP, EVERYTHING).context("empty the machine's caches")
    })
    .await
}
