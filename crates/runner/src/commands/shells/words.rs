//! What is said to a shell on its standard input: one line per command, and what it answers with.
//!
//! A script is never typed into the shell: it stands in a file that the shell reads by descriptor.
//! The line names numbers only, quotes every word that an alias could change, and keeps the
//! shell's own descriptors from whatever the script starts.

use sandbank_protocol::ShellKind;

/// Descriptors of a shell, from [`first`] on.
pub(super) const STATUS: usize = 0;
pub(super) const SCRIPT: usize = 1;
pub(super) const TERMINAL: usize = 2;
pub(super) const STDOUT: usize = 3;
pub(super) const STDERR: usize = 4;

/// High enough to be nobody else's. Only bash has numbers of more than one digit.
pub(super) fn first(kind: ShellKind) -> i32 {
    match kind {
        ShellKind::Bash => 251,
        ShellKind::Sh => 5,
    }
}

/// Interactive, so that an interrupt ends the script and not the shell; but without prompts'
/// editing, history and files of anybody's.
pub(super) fn program(kind: ShellKind) -> &'static [&'static str] {
    match kind {
        ShellKind::Bash => &["bash", "--norc", "--noprofile", "--noediting", "+H", "-i"],
        ShellKind::Sh => &["sh", "-i"],
    }
}

/// Where the streams of a script lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Streams {
    /// All three are the terminal.
    pub(super) terminal: bool,
    pub(super) merged: bool,
    pub(super) stdin: bool,
}

/// Once, before the first command. `__sandbank` gives a script the status of the one before it.
pub(super) fn beginning(kind: ShellKind) -> String {
    let own = match kind {
        ShellKind::Bash => "unset HISTFILE MAILCHECK; set +o history; ",
        ShellKind::Sh => "unset MAILCHECK; ",
    };
    format!("{own}__sandbank() {{ return $1; }}\n")
}

pub(super) fn run(kind: ShellKind, turn: u64, status: u8, streams: Streams) -> String {
    let [own, script, terminal, stdout, stderr] = numbers(kind);
    let input = match streams.terminal || streams.stdin {
        true => format!("0<&{terminal}"),
        false => "0</dev/null".to_owned(),
    };
    let (output, errors) = match streams {
        Streams { terminal: true, .. } => (terminal, terminal),
        Streams { merged: true, .. } => (stdout, stdout),
        _ => (stdout, stderr),
    };
    let hidden = format!("{own}>&- {terminal}<&- {stdout}>&- {stderr}>&-");
    let source = format!("\\. /proc/self/fd/{script} {input} 1>&{output} 2>&{errors} {hidden}");
    format!("__sandbank {status}; {source}; {}", answer(kind, &turn.to_string()))
}

/// For a script that was interrupted, which takes the rest of its line along.
pub(super) fn ask_again(kind: ShellKind, turn: u64) -> String {
    answer(kind, &format!("{turn}!"))
}

/// Written to the terminal, it says that all before it has been read.
pub(super) fn mark(kind: ShellKind, mark: &str) -> String {
    let [_, _, terminal, ..] = numbers(kind);
    format!("{} '%s' {mark} >&{terminal}\n", printf(kind))
}

/// Turn, status, directory and exported variables, each ended by a NUL.
fn answer(kind: ShellKind, turn: &str) -> String {
    let [own, ..] = numbers(kind);
    let (printf, export) = (printf(kind), export(kind));
    format!(
        "{printf} '%s\\0' {turn} \"$?\" \"$PWD\" >&{own}; {export} -p >&{own}; {printf} '\\0' >&{own}\n"
    )
}

/// Not what a script may have called so.
fn printf(kind: ShellKind) -> &'static str {
    match kind {
        ShellKind::Bash => "\\builtin printf",
        ShellKind::Sh => "\\command printf",
    }
}

fn export(kind: ShellKind) -> &'static str {
    match kind {
        ShellKind::Bash => "\\builtin export",
        ShellKind::Sh => "\\export",
    }
}

fn numbers(kind: ShellKind) -> [i32; 5] {
    let first = first(kind);
    [STATUS, SCRIPT, TERMINAL, STDOUT, STDERR].map(|place| first + place as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_gets_its_streams_and_none_of_the_shells_own() {
        let streams = Streams { terminal: false, merged: false, stdin: false };
        let line = run(ShellKind::Bash, 7, 3, streams);
        let source = "__sandbank 3; \\. /proc/self/fd/252 0</dev/null 1>&254 2>&255 \
                      251>&- 253<&- 254>&- 255>&-; ";
        assert!(line.starts_with(source), "{line}");
        assert!(line.contains("printf '%s\\0' 7 \"$?\" \"$PWD\" >&251"), "{line}");
        assert_eq!(line.matches('\n').count(), 1);
        let merged = run(ShellKind::Sh, 1, 0, Streams { merged: true, stdin: true, ..streams });
        assert!(merged.contains("0<&7 1>&8 2>&8 5>&- 7<&- 8>&- 9>&-"), "{merged}");
        let terminal = run(ShellKind::Bash, 1, 0, Streams { terminal: true, ..streams });
        assert!(terminal.contains("0<&253 1>&253 2>&253"), "{terminal}");
    }
}
