//! Names of variables, and which of them are more than a text.

/// Bash runs or evaluates what these are set to, or reads what follows by them.
const RUN_LATER: [&str; 20] = [
    "ENV",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "SHELLOPTS",
    "POSIXLY_CORRECT",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "HISTCMD",
    "OPTIND",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "FUNCNAME",
    "DIRSTACK",
    "histchars",
];

pub(super) fn runs_later(name: &str) -> bool {
    name.starts_with("BASH") || name.starts_with("COMP_") || RUN_LATER.contains(&name)
}

pub(super) fn name_length(text: &str) -> usize {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let name = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if first { name.count() } else { 0 }
}

pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && name_length(text) == text.len()
}

/// Nothing but the script itself looks at it: the others are written in capitals, but for a few.
pub(super) fn is_ordinary(text: &str) -> bool {
    let capitals = text.len() > 1 && !text.bytes().any(|byte| byte.is_ascii_lowercase());
    is_name(text) && !capitals && !runs_later(text) && !text.ends_with("_proxy")
}
