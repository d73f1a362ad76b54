//! Whether a message is a plain order to run a command. Those are done, whatever a model thinks.
//!
//! Only what cannot be read otherwise counts: an order with conditions, several commands, or a
//! sentence about one is the model's to understand.

/// A command that a person ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explicit {
    pub command: String,
    /// Whether a model is to say something about what came of it: of an order in words.
    pub answer: bool,
}

/// Words that may stand around an order without changing it.
const BEFORE: [&str; 6] = ["please", "can you", "could you", "would you", "now", "just"];
const OBJECT: [&str; 8] = [
    "the following command",
    "this command",
    "the command",
    "the following",
    "command",
    "bash",
    "this",
    "shell command",
];
const AFTER: [&str; 12] = [
    "and show me the output",
    "and show the output",
    "and tell me the output",
    "in the sandbox",
    "in the workspace",
    "in the terminal",
    "with bash",
    "in bash",
    "for me",
    "please",
    "now",
    "again",
];

pub fn explicit(message: &str) -> Option<Explicit> {
    let message = message.trim();
    if let Some(rest) = after_word(message, "/bash").or_else(|| after_prefix(message, "bash:")) {
        let command = unquoted(rest).unwrap_or(rest).trim();
        return (!command.is_empty())
            .then(|| Explicit { command: command.to_owned(), answer: false });
    }
    let order = without_leading(message, &BEFORE);
    let rest = after_word(order, "run").or_else(|| after_word(order, "execute"))?;
    let rest = without_leading(rest.trim_start_matches([':', ' ']), &OBJECT);
    let rest = rest.trim_start_matches(|char: char| char == ':' || char.is_whitespace());
    let (command, tail) = code(rest)?;
    let command = command.trim();
    (!command.is_empty() && is_polite(tail))
        .then(|| Explicit { command: command.to_owned(), answer: true })
}

/// What follows the word, which ends there.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = after_prefix(text, word)?;
    rest.starts_with(|char: char| char.is_whitespace() || char == ':').then_some(rest)
}

fn after_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

fn without_leading<'a>(text: &'a str, words: &[&str]) -> &'a str {
    let mut text = text.trim_start();
    while let Some(rest) = words.iter().find_map(|word| after_word(text, word)) {
        text = rest.trim_start_matches(|char: char| char == ':' || char.is_whitespace());
    }
    text
}

fn is_polite(tail: &str) -> bool {
    let is_filler = |char: char| char.is_whitespace() || ".!?,:".contains(char);
    let mut tail = tail.trim_start_matches(is_filler);
    while let Some(rest) = AFTER.iter().find_map(|word| after_prefix(tail, word)) {
        tail = rest.trim_start_matches(is_filler);
    }
    tail.is_empty()
}

/// Text between equally long runs of backticks at the beginning, and what follows.
fn code(text: &str) -> Option<(&str, &str)> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    if ticks == 0 {
        return None;
    }
    let (fence, rest) = text.split_at(ticks);
    let end = rest.find(fence)?;
    let (inside, tail) = (&rest[..end], &rest[end + ticks..]);
    if tail.starts_with('`') || (ticks < 3 && inside.contains('\n')) {
        return None;
    }
    // The word after a fence names the language.
    let inside = match inside.split_once('\n') {
        Some((first, body)) if ticks >= 3 && first.chars().all(char::is_alphanumeric) => body,
        _ => inside,
    };
    Some((inside, tail))
}

/// The command of `/bash` and `bash:` may be quoted, too.
fn unquoted(rest: &str) -> Option<&str> {
    code(rest.trim()).filter(|(_, tail)| tail.trim().is_empty()).map(|(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(message: &str) -> Option<String> {
        explicit(message).map(|order| order.command)
    }

    #[test]
    fn plain_orders_are_done() {
        for (message, wanted) in [
            ("/bash ls -la", "ls -la"),
            ("/BASH\tls", "ls"),
            ("/bash for i in 1 2; do\n echo $i\ndone", "for i in 1 2; do\n echo $i\ndone"),
            ("bash: uname -a", "uname -a"),
            ("bash:uname", "uname"),
            ("bash: `uname -a`", "uname -a"),
            ("Run: `echo REMCOCHAT_BASH_E2E_OK`", "echo REMCOCHAT_BASH_E2E_OK"),
            ("run `npm test`", "npm test"),
            ("Run `npm test`.", "npm test"),
            ("execute `ls`", "ls"),
            ("Please execute the command `ls` in the sandbox, please!", "ls"),
            ("Can you run this command: `make`?", "make"),
            ("Run the following:\n```bash\necho a\necho b\n```", "echo a\necho b"),
            ("Run ``echo `date` ``", "echo `date`"),
            ("run `ls` and show me the output", "ls"),
        ] {
            assert_eq!(command(message).as_deref(), Some(wanted), "{message:?}");
        }
        assert!(!explicit("/bash ls").unwrap().answer && explicit("run `ls`").unwrap().answer);
    }

    #[test]
    fn what_needs_to_be_understood_is_left_to_the_model() {
        for message in [
            "",
            "run",
            "run ls",
            "Run the tests",
            "/bash",
            "/bash   ",
            "/bashful `ls`",
            "bash: ",
            "don't run `rm -rf x`",
            "What does `ls` do? run it",
            "run `make clean` if the tests fail",
            "run `a` and then `b`",
            "running `ls` is harmless",
            "run ``",
            "run `ls",
            "runs `ls`",
            "Never execute `ls`",
            "run `ls` but not yet",
        ] {
            assert_eq!(command(message), None, "{message:?}");
        }
    }

    #[test]
    fn no_message_makes_it_panic() {
        for message in
            ["é", "ru", "rün `x`", "/basé x", "run \u{1f600}`x`", "``````", "run ```````"]
        {
            explicit(message);
        }
    }
}
