//! The configuration of a Sandkasten daemon, understood: its YAML file and its environment become
//! settings of ours. What means nothing here is said in a notice, and what would weaken a sandbox is
//! refused or stays off, also in words.

mod names;
mod place;
mod pool;
mod translate;
mod yaml;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::{ConfigError, Origin};
use super::nearest::nearest;
use super::resolve::Sources;
pub(super) use names::NAMES;
pub(super) use place::file_path;

/// Texts of settings of ours by key, each with where it came from.
pub(super) type Taken = BTreeMap<&'static str, (String, Origin)>;

/// What a Sandkasten daemon would read.
#[derive(Debug, Default)]
pub(super) struct Sandkasten {
    pub(super) env: Taken,
    pub(super) file: Taken,
    pub(super) notices: Vec<String>,
    pool: pool::Pool,
}

impl Sandkasten {
    fn finish(mut self) -> Self {
        std::mem::take(&mut self.pool).give(&mut self.file, &mut self.notices);
        self
    }
}

pub(super) fn read(sources: &Sources) -> Result<Sandkasten, ConfigError> {
    let mut found = Sandkasten::default();
    for name in NAMES {
        let Some(env) = name.env else { continue };
        if let Some(text) = sources.env(env) {
            if found.pool.take(name, env, &text, &Origin::Env(env))? {
                continue;
            }
            translate::take(name, &text, Origin::Env(env), &mut found.env, &mut found.notices)?;
        }
    }
    found.notices.extend(misspelt(sources));
    if let Some(path) = file_path(sources, &mut found.notices) {
        let text = super::file::text(&path)?;
        let notice = format!("{} is read: settings of Sandkasten's are taken over", path.display());
        found.notices.push(notice);
        take_file(&path, &text, &mut found)?;
    }
    Ok(found.finish())
}

pub(super) fn take_file(
    path: &Path,
    text: &str,
    found: &mut Sandkasten,
) -> Result<(), ConfigError> {
    for (key, text) in yaml::flatten(path, text)? {
        match NAMES.iter().find(|name| name.is(&key)) {
            Some(name) => {
                let origin = Origin::SandkastenFile { path: path.to_owned(), key: name.yaml };
                if found.pool.take(name, &key, &text, &origin)? {
                    continue;
                }
                translate::take(name, &text, origin, &mut found.file, &mut found.notices)?;
            }
            None => found.notices.push(unknown_key(path, &key)),
        }
    }
    Ok(())
}

fn unknown_key(path: &Path, key: &str) -> String {
    let key: String = key.chars().take(80).collect();
    let path: PathBuf = path.to_owned();
    match nearest(&key, NAMES.iter().map(|name| name.yaml)) {
        Some(meant) => {
            format!("{} has an unknown key {key:?}; did you mean {meant:?}?", path.display())
        }
        None => format!("{} has an unknown key {key:?}, which has no effect", path.display()),
    }
}

fn misspelt(sources: &Sources) -> Vec<String> {
    let known = || NAMES.iter().filter_map(|name| name.env);
    let given = sources.env.keys().filter_map(|name| name.to_str());
    let slips = given
        .filter(|name| name.starts_with("SANDKASTEN_"))
        .filter(|name| !known().any(|other| other == *name));
    let words = slips.map(|name| match nearest(name, known()) {
        Some(meant) => format!("{name} is set, but is not a setting; did you mean {meant}?"),
        None => format!("{name} is set, but is not a setting and has no effect"),
    });
    words.collect()
}
