//! What a command's ending means for our exit code, and what is said about it.

use sandbank_protocol::Ending;
use serde_json::json;

use crate::attach::Outcome;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::ui::text;

/// The process's exit code after an attachment.
pub(crate) fn report(
    context: &Context,
    sandbox: &str,
    command: &str,
    outcome: Outcome,
) -> Result<u8, Failure> {
    match outcome {
        Outcome::Ended(ending) => ended(context, sandbox, command, &ending),
        Outcome::Interrupted { exit_code } => Ok(exit_code),
        Outcome::Detached => {
            context.ui.note(&format!(
                "detached; come back with `sandbank shell {sandbox} --attach {command}`"
            ));
            Ok(0)
        }
    }
}

fn ended(context: &Context, sandbox: &str, command: &str, ending: &Ending) -> Result<u8, Failure> {
    if context.ui.json {
        context.ui.record(&json!({
            "type": "ended",
            "sandboxId": sandbox,
            "commandId": command,
            "ending": ending,
            "exitCode": ending.exit_code(),
        }))?;
    }
    match ending {
        Ending::TimedOut => context.ui.note("the command ran into its time limit and was killed"),
        Ending::OomKilled => {
            context.ui.note("the command was killed because the sandbox ran out of memory; --memory gives it more");
        }
        _ => {}
    }
    exit_code(ending)
}

/// An ending that nobody saw has no code to pass on.
pub(crate) fn exit_code(ending: &Ending) -> Result<u8, Failure> {
    match (ending, ending.exit_code()) {
        (_, Some(code)) => Ok(u8::try_from(code).unwrap_or(u8::MAX)),
        (Ending::Lost { reason }, None) => Err(Failure::new(
            Exit::Internal,
            format!("nobody can say how the command ended: {}", text::printable(reason)),
        )),
        (_, None) => Err(Failure::new(Exit::Internal, "the command's ending has no code")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_become_the_codes_a_shell_shows() {
        let signaled = Ending::Signaled { signal: 9 };
        assert_eq!(exit_code(&Ending::Exited { code: 7 }).unwrap(), 7);
        assert_eq!(exit_code(&signaled).unwrap(), 137);
        assert_eq!(exit_code(&Ending::TimedOut).unwrap(), 124);
        let lost = exit_code(&Ending::Lost { reason: "gone".into() }).unwrap_err();
        assert_eq!(lost.exit, Exit::Internal);
    }
}
