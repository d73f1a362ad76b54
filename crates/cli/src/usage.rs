//! clap's refusals in our own words: one sentence, a hint, exit code 64.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;

/// Help and version are answers, not failures: they go to stdout with code 0.
pub(crate) fn is_answer(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

pub(crate) fn failure(error: &clap::Error) -> Failure {
    Failure::usage(sentence(error)).hint(hint(error))
}

/// The text before clap's usage block, on one line.
fn sentence(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing".to_owned();
    }
    let text = error.render().to_string();
    let head = text.split("\n\n").next().unwrap_or_default();
    let head = head.strip_prefix("error: ").unwrap_or(head);
    head.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn hint(error: &clap::Error) -> String {
    for kind in
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
    {
        let names = match error.get(kind) {
            Some(ContextValue::String(name)) => name.clone(),
            Some(ContextValue::Strings(names)) if !names.is_empty() => names.join(" or "),
            _ => continue,
        };
        return format!("did you mean {names}?");
    }
    "`sandbank --help` lists the commands, `sandbank COMMAND --help` explains one".to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn refused(line: &str) -> Failure {
        failure(&Cli::try_parse_from(line.split(' ')).unwrap_err())
    }

    #[test]
    fn a_refusal_is_one_sentence_and_a_next_step() {
        let unknown = refused("sandbank runn");
        assert_eq!(unknown.message, "unrecognized subcommand 'runn'");
        assert_eq!(unknown.hint.unwrap(), "did you mean run?");
        let flag = refused("sandbank ps --quite");
        assert_eq!(flag.hint.unwrap(), "did you mean --quiet?");
        let missing = refused("sandbank exec");
        assert!(!missing.message.contains('\n') && missing.message.contains("SANDBOX"));
        let value = refused("sandbank run --memory lots -- true");
        assert!(value.message.contains("--memory"), "{}", value.message);
    }
}
