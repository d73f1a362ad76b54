//! clap's refusals in our own words: one sentence, a hint, exit code 64.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::Cli;
use crate::failure::Failure;

/// Help and version are answers, not failures: they go to stdout with code 0.
pub(crate) fn is_answer(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// `words` are what was typed after the program's name.
pub(crate) fn failure(error: &clap::Error, words: &[String]) -> Failure {
    Failure::usage(sentence(error)).hint(hint(error, words))
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

fn hint(error: &clap::Error, words: &[String]) -> String {
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
    match typed_command(words) {
        Some(command) => format!("`sandbank {command} --help` explains it, with examples"),
        None => "`sandbank --help` lists the commands, `sandbank COMMAND --help` explains one"
            .to_owned(),
    }
}

/// The command that was typed, as far as there is such a one: `run`, `image rm`.
fn typed_command(words: &[String]) -> Option<String> {
    let mut level = Cli::command();
    let mut names = Vec::new();
    let mut words = words.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        if word == "--url" {
            words.next();
        } else if !word.starts_with('-') {
            let Some(command) = level.find_subcommand(word).cloned() else { break };
            names.push(command.get_name().to_owned());
            level = command;
        }
    }
    (!names.is_empty()).then(|| names.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn refused(line: &str) -> Failure {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        failure(&Cli::try_parse_from(&words).unwrap_err(), &words[1..])
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

    #[test]
    fn the_hint_names_the_help_of_the_command_that_was_typed() {
        for (line, command) in [
            ("sandbank run --memory lots -- true", "run"),
            ("sandbank --url http://x exec", "exec"),
            ("sandbank image rm", "image rm"),
        ] {
            let hint = refused(line).hint.unwrap();
            assert!(hint.contains(&format!("`sandbank {command} --help`")), "{line}: {hint}");
        }
    }
}
