//! What is said to a shell on its standard input: one line per command, and what it answers with.
//!
//! A script is never typed into the shell: it stands in a file that the shell reads by descriptor.
//! The line names numbers only, quotes every word that an alias could change, and keeps the
//! shell's own descriptors from whatever the script starts. It reads the script itself and not in a
//! function, where `declare` and `local` would mean something else.

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

/// Once, before the first script: what the lines below call.
///
/// Bash reads a function's words once, so no alias can change them later, and one that is read-only
/// stays as it is. Of the words in it, only `builtin` could be taken by a function of the user's; then
/// that is dropped, by `unset`, which no function hides while the shell follows POSIX. `DIRSTACK` is
/// where the shell is, whatever a script sets `PWD` to.
pub(super) fn beginning(kind: ShellKind) -> String {
    let [own, script, ..] = numbers(kind);
    match kind {
        ShellKind::Bash => format!(
            "unset HISTFILE MAILCHECK; set +o history
__sandbank() {{
if [[ ${{__sandbank_turn-}} != \"$1\" ]]; then __sandbank_turn=$1 __sandbank_code=$2; fi
builtin printf -v __sandbank %s \"$1\" && [[ ${{__sandbank-}} == \"$1\" ]] || if [[ -o posix ]]
then unset -f builtin enable; enable builtin printf export exit return
else POSIXLY_CORRECT=; unset -f builtin enable; unset POSIXLY_CORRECT
enable builtin printf export exit return; fi || [[ 1 ]]
{{ builtin printf '\\0%s\\0%s\\0%s\\0' \"$1${{3-}}\" \"$__sandbank_code\" \"${{DIRSTACK-${{PWD-}}}}\"
builtin export -p; builtin printf '\\0'; }} >&{own} || builtin exit \"$__sandbank_code\"; }}
__sandbank_status() {{ builtin return \"$1\"; }}
__sandbank_exit() {{ {{ builtin printf '%s\\0' '' {LAST_WORDS} \"${{DIRSTACK-${{PWD-}}}}\"; builtin export -p
builtin printf '\\0'; }} >|/proc/self/fd/{script}; }}
readonly -f __sandbank __sandbank_status __sandbank_exit
trap '\\__sandbank_exit' EXIT
"
        ),
        ShellKind::Sh => "unset MAILCHECK; __sandbank_status() { return $1; }\n".to_owned(),
    }
}

/// What a shell that ends by itself leaves in place of its last script begins with this between
/// two NULs; then come its directory and its exported variables, each ended by another.
pub(super) const LAST_WORDS: &str = "sandbank";

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
    // A failure on the left of `||` neither ends a shell that has `set -e` nor runs its trap.
    let before = match status {
        0 => String::new(),
        status => format!("\\__sandbank_status {status}||"),
    };
    let source = match kind {
        ShellKind::Bash => "\\builtin .",
        ShellKind::Sh => "\\.",
    };
    let hidden = format!("{own}>&- {terminal}<&- {stdout}>&- {stderr}>&-");
    let streams = format!("{input} 1>&{output} 2>&{errors} {hidden}");
    let answer = answer(kind, turn, "");
    format!("{before}{source} /proc/self/fd/{script} {streams};{answer}")
}

/// For a script that took the rest of its line along, as an interrupt does and some errors do. What
/// it ended with is what was said the first time, if that is lost.
pub(super) fn ask_again(kind: ShellKind, turn: u64) -> String {
    answer(kind, turn, "!")
}

/// Says nothing, but is only read by a shell that is done with what was said before.
pub(super) const PROBE: &str = " ";

/// Written to the terminal, it says that all before it has been read.
pub(super) fn mark(kind: ShellKind, mark: &str) -> String {
    let [_, _, terminal, ..] = numbers(kind);
    let printf = match kind {
        ShellKind::Bash => "\\builtin printf",
        ShellKind::Sh => "\\command printf",
    };
    format!("{printf} '%s' {mark} >&{terminal}\n")
}

/// Turn, status and directory, then the exported variables, each ended by a NUL. The variables come
/// last: nobody waits for them. A shell that cannot say it any more ends with the script's status.
fn answer(kind: ShellKind, turn: u64, again: &str) -> String {
    let [own, ..] = numbers(kind);
    match kind {
        ShellKind::Bash => format!("\\__sandbank {turn} \"$?\" {again}\n"),
        // No function of the user's can be called `unset` or `export`.
        ShellKind::Sh => format!(
            "__sandbank=$?; \\unset -f command printf; {{ \\command printf '\\0%s\\0%s\\0%s\\0' \
             {turn}{again} \"$__sandbank\" \"${{PWD-}}\"; \\export -p; \\command printf '\\0'; }} >&{own} || \
             \\exit \"$__sandbank\"\n"
        ),
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
        let source = "\\__sandbank_status 3||\\builtin . /proc/self/fd/252 0</dev/null 1>&254 2>&255 \
                      251>&- 253<&- 254>&- 255>&-;\\__sandbank 7 \"$?\" \n";
        assert_eq!(line, source);
        let merged = run(ShellKind::Sh, 1, 0, Streams { merged: true, stdin: true, ..streams });
        assert!(merged.contains("0<&7 1>&8 2>&8 5>&- 7<&- 8>&- 9>&-"), "{merged}");
        let terminal = run(ShellKind::Bash, 1, 0, Streams { terminal: true, ..streams });
        assert!(terminal.contains("0<&253 1>&253 2>&253"), "{terminal}");
    }
}
