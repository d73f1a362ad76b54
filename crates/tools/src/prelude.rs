//! What comes before a model's command, and how the command is kept in its place.

use sandbank_protocol::WORKSPACE;

use crate::ToolError;
use crate::limits::MAX_SCRIPT_BYTES;

/// One script: it begins in the workspace, programs of the workspace's own come first in PATH, and
/// `python` is there where only `python3` is.
///
/// The command is one quoted word that is evaluated: whatever it holds (quotes, a heredoc without an
/// end, a comment or a backslash at its end) ends with it. All is on one line, so that the lines
/// bash names in its errors are the command's own.
pub(crate) fn wrapped(command: &str) -> Result<String, ToolError> {
    if command.contains('\0') {
        let message = "the command has a NUL character, which no program can be given";
        return Err(ToolError::InvalidInput(message.to_owned()));
    }
    // A shell begins in the workspace, unless a profile leads it elsewhere.
    let script = format!(
        "cd {WORKSPACE} 2>/dev/null; export PATH=\"$PWD/.remcochat/bin:$PATH\"; \
         if ! type -P python >/dev/null && type -P python3 >/dev/null; then \
         mkdir -p .remcochat/bin && ln -sf \"$(type -P python3)\" .remcochat/bin/python; \
         fi 2>/dev/null; eval -- {}",
        quoted(command)
    );
    if script.len() > MAX_SCRIPT_BYTES {
        let message = format!(
            "the command is too long ({} bytes with its quotes, at most {MAX_SCRIPT_BYTES}); write it \
             to a file with writeFile and run that",
            script.len()
        );
        return Err(ToolError::InvalidInput(message));
    }
    Ok(script)
}

/// As one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn bash(script: &str, dir: &std::path::Path) -> (String, i32) {
        let output = Command::new("bash").args(["-c", script]).current_dir(dir).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text, output.status.code().unwrap_or(-1))
    }

    /// What bash prints of a command in its wrapping, and its code.
    fn run(command: &str) -> (String, i32) {
        let dir = tempfile::tempdir().unwrap();
        bash(&wrapped(command).unwrap(), dir.path())
    }

    #[test]
    fn python_is_there_where_only_python3_is() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        for program in ["mkdir", "ln"] {
            let script = format!("ln -s \"$(type -P {program})\" bin/{program}");
            bash(&script, dir.path());
        }
        let python3 = bin.join("python3");
        std::fs::write(&python3, "#!/bin/sh\necho three\n").unwrap();
        bash("chmod +x bin/python3", dir.path());
        let path = format!("PATH={}; ", quoted(bin.to_str().unwrap()));
        let bash = bash(&format!("{path}{}", wrapped("python; echo $PATH").unwrap()), dir.path());
        let root = dir.path().canonicalize().unwrap();
        let first = format!("three\n{}/.remcochat/bin:", root.display());
        assert!(bash.0.starts_with(&first), "{bash:?}");
    }

    #[test]
    fn a_command_ends_where_it_ends() {
        assert_eq!(run("echo a; echo b"), ("a\nb\n".into(), 0));
        assert_eq!(run("echo \"it's\" 'q'"), ("it's q\n".into(), 0));
        assert_eq!(run("exit 7"), (String::new(), 7));
        assert_eq!(run("echo a # comment"), ("a\n".into(), 0));
        assert_eq!(run("echo a \\"), ("a \\\n".into(), 0));
        assert_eq!(run("cat <<X\nhi\nX"), ("hi\n".into(), 0));
        assert_eq!(run("cat <<X\nhi"), ("hi\n".into(), 0));
        assert_eq!(run("set -e; false; echo no"), (String::new(), 1));
        assert_eq!(run("echo $0 $#"), ("bash 0\n".into(), 0));
    }

    #[test]
    fn a_command_that_is_none_is_an_error_and_nothing_of_it_runs() {
        for command in
            ["echo a )", "if true", "echo 'open", "echo \"open", "}", "fi", "';' echo x '"]
        {
            let (text, code) = run(command);
            assert!(text.is_empty() && code != 0, "{command}: {text:?} {code}");
        }
    }

    #[test]
    fn what_no_program_can_be_given_is_refused() {
        assert!(wrapped("a\0b").is_err());
        assert!(wrapped(&"'".repeat(MAX_SCRIPT_BYTES / 4)).is_err());
        assert!(wrapped(&"x".repeat(100_000)).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_quoted_text_is_one_word(text in "[^\0]{0,60}") {
            let script = format!("printf %s {}", quoted(&text));
            let output = Command::new("bash").args(["-c", &script]).output().unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&output.stdout), text);
        }
    }
}
