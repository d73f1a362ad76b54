//! What Git is started with.
//!
//! A repository's own settings can name programs: monitors, hooks, filters, converters, pagers,
//! transports. Whoever looks at a repository must not thereby run what its content chose, so for
//! reads each of these is overridden. Who changes it, as by a commit, does what the workload would
//! do by hand: its filters, hooks and signatures are part of it. Nothing here talks to a network.

use std::path::Path;

use crate::commands::environment::Environment;

/// What a run of Git is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Look,
    /// Paths are given, and Git runs no hooks that could be irritated by how they are read.
    Stage,
    Change,
}

/// Taken over from the workload's environment by whoever looks.
const NEEDED: [&str; 4] = ["PATH", "USER", "LOGNAME", "TMPDIR"];

/// Taken over by whoever changes something, too: of Git's own variables only who it is.
const IDENTITY: [&str; 4] =
    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];

const ALWAYS: [(&str, &str); 10] = [
    ("LC_ALL", "C"),
    ("TERM", "dumb"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ADVICE", "0"),
    // An object that is missing is fetched by whatever program the repository names, unless both
    // are said: the first is unknown to older versions, and no transport is in the second's list.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
];

const LOOKING: [(&str, &str); 7] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // For versions that do not know the variable above.
    ("HOME", "/dev/null"),
    ("XDG_CONFIG_HOME", "/dev/null"),
];

const SETTINGS: [&str; 8] = [
    // The workspace may be somebody else's; what runs is chosen here, not by who owns it.
    "safe.directory=*",
    "safe.bareRepository=explicit",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.quotePath=false",
    "credential.helper=",
    "color.ui=false",
    "protocol.allow=never",
];

const LOOKING_SETTINGS: [&str; 8] = [
    "core.fsmonitor=",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.askPass=false",
    "log.showSignature=false",
    "gpg.program=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=dirty",
];

/// Whatever a commit would leave running behind it.
const CHANGING_SETTINGS: [&str; 3] = ["gc.auto=0", "maintenance.auto=false", "core.askPass=false"];

/// `above` is the directory that holds the workspace: no repository is looked for there.
pub(super) fn variables(base: &Environment, above: Option<&Path>, purpose: Purpose) -> Environment {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut variables: Environment = match purpose {
        Purpose::Look => base
            .iter()
            .filter(|(name, _)| NEEDED.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        Purpose::Stage | Purpose::Change => base
            .iter()
            .filter(|(name, _)| !name.starts_with("GIT_") || IDENTITY.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    };
    variables.extend(ALWAYS.iter().map(own));
    match purpose {
        Purpose::Look => variables.extend(LOOKING.iter().map(own)),
        Purpose::Stage => drop(variables.insert("GIT_LITERAL_PATHSPECS".into(), "1".into())),
        Purpose::Change => {}
    }
    if let Some(above) = above.and_then(Path::to_str) {
        variables.insert("GIT_CEILING_DIRECTORIES".to_owned(), above.to_owned());
    }
    variables
}

/// The beginning of the command line. `filters` are the names of those that the settings have.
pub(super) fn words(base: &Environment, purpose: Purpose, filters: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = vec![b"git".to_vec(), b"--no-pager".to_vec()];
    let mut set = |setting: &[u8]| words.extend([b"-c".to_vec(), setting.to_vec()]);
    SETTINGS.iter().for_each(|setting| set(setting.as_bytes()));
    if purpose != Purpose::Look {
        CHANGING_SETTINGS.iter().for_each(|setting| set(setting.as_bytes()));
        return words;
    }
    LOOKING_SETTINGS.iter().for_each(|setting| set(setting.as_bytes()));
    // Runs nothing, and is how people keep their editors' files out of every status.
    let home = base.get("HOME").map(|home| format!("{home}/.config"));
    if let Some(config) = base.get("XDG_CONFIG_HOME").or(home.as_ref()) {
        set(format!("core.excludesFile={config}/git/ignore").as_bytes());
    }
    for filter in filters {
        for (key, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")]
        {
            set(&[b"filter.", &filter[..], format!(".{key}={value}").as_bytes()].concat());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Environment {
        [
            ("PATH", "/bin"),
            ("HOME", "/w"),
            ("GIT_DIR", "/x"),
            ("GIT_AUTHOR_NAME", "ann"),
            ("A", "b"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    #[test]
    fn who_looks_has_nothing_of_the_workloads_and_who_changes_has_no_variable_of_gits() {
        let above = Some(Path::new("/above"));
        let looking = variables(&base(), above, Purpose::Look);
        assert_eq!(looking["PATH"], "/bin");
        assert_eq!(looking["HOME"], "/dev/null");
        assert_eq!(looking["GIT_CEILING_DIRECTORIES"], "/above");
        let changing = variables(&base(), above, Purpose::Change);
        assert_eq!((&*changing["HOME"], &*changing["A"]), ("/w", "b"));
        assert_eq!(changing["GIT_AUTHOR_NAME"], "ann");
        assert!(!changing.contains_key("GIT_LITERAL_PATHSPECS"));
        for variables in [looking, changing] {
            assert!(!variables.contains_key("GIT_DIR"));
            assert_eq!(variables["GIT_ALLOW_PROTOCOL"], "");
        }
    }

    #[test]
    fn filters_are_overridden_by_name_for_who_looks() {
        let filters = [b"a b".to_vec()];
        let looking = words(&base(), Purpose::Look, &filters);
        assert!(looking.contains(&b"filter.a b.process=".to_vec()));
        assert!(looking.contains(&b"core.excludesFile=/w/.config/git/ignore".to_vec()));
        assert!(!words(&base(), Purpose::Change, &filters).concat().ends_with(b"required=false"));
    }
}
