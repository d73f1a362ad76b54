//! What Git says when it fails, as the channel's faults.

use sandbank_protocol::{Fault, FaultCode};

use crate::commands::aside::Captured;
use crate::limits::GIT_TIMEOUT;

/// Of Git's words this much is passed on.
const MAX_CHARS: usize = 500;

/// As a shell has it; the runner's own words then tell it from a program that exits like this.
const NOT_FOUND: i32 = 127;
const CANNOT_RUN: &[u8] = b"sandbank: cannot run";

pub(super) fn of_run(fault: Fault) -> Fault {
    match fault.code {
        FaultCode::TimedOut => {
            let message = format!(
                "git did not end within {GIT_TIMEOUT:?}; everything it had started was killed"
            );
            Fault::new(FaultCode::TimedOut, message)
        }
        _ => fault,
    }
}

pub(super) fn if_missing(captured: &Captured) -> Result<(), Fault> {
    if captured.code == Some(NOT_FOUND) && captured.stderr.starts_with(CANNOT_RUN) {
        let message = "there is no git in the sandbox: use an image that has it, or install it";
        return Err(Fault::new(FaultCode::ProgramMissing, message));
    }
    Ok(())
}

pub(super) fn of(captured: &Captured) -> Fault {
    if captured.code.is_none() {
        return Fault::new(FaultCode::Internal, "git was killed by a signal");
    }
    let said = said(captured);
    if said.contains(".lock': File exists") {
        let message = format!(
            "another git works on the repository, or one that died has left its lock: {said}; \
             wait, or remove that file"
        );
        return Fault::new(FaultCode::Conflict, message);
    }
    Fault::new(FaultCode::Conflict, format!("git: {said}"))
}

/// Its first words of weight, on one line.
pub(super) fn said(captured: &Captured) -> String {
    let text = [&captured.stderr, &captured.stdout].into_iter().find(|text| !text.is_empty());
    let text = String::from_utf8_lossy(text.map_or(b"", |text| text));
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let weighty = lines.filter(|line| !["hint:", "warning:"].iter().any(|no| line.starts_with(no)));
    let words = weighty.map(|line| {
        let line = line.strip_prefix("fatal: ").unwrap_or(line);
        line.strip_prefix("error: ").unwrap_or(line)
    });
    let joined = words.take(5).collect::<Vec<_>>().join(" ");
    if joined.is_empty() {
        "it failed without a word".into()
    } else {
        joined.chars().take(MAX_CHARS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: i32, stdout: &str, stderr: &str) -> Captured {
        let (stdout, stderr) = (stdout.into(), stderr.into());
        Captured { code: Some(code), stdout, stderr, truncated: false }
    }

    #[test]
    fn faults_have_gits_words_and_say_what_to_do() {
        let lock = failed(
            128,
            "",
            "fatal: Unable to create '/w/.git/index.lock': File exists.\n\nAnother",
        );
        assert!(of(&lock).message.ends_with("remove that file"));
        let hinted = failed(1, "", "hint: use -f\nerror: it is ignored\nfatal: no\n");
        assert_eq!(of(&hinted).message, "git: it is ignored no");
        let nothing = failed(1, "nothing to commit\n", "");
        assert_eq!(of(&nothing).message, "git: nothing to commit");
        assert!(if_missing(&failed(127, "", "git: 'x' is not a git command")).is_ok());
        let missing = failed(127, "", "sandbank: cannot run \"git\": not found\n");
        assert_eq!(if_missing(&missing).unwrap_err().code, FaultCode::ProgramMissing);
    }
}
