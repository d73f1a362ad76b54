//! Rules, and what they say about a call.
//!
//! Every part of a call is judged by itself, and the strictest of all is what the call gets. Of the
//! rules that match a part the strictest counts, wherever it stands; an `allow` only matters against
//! the default. What cannot be told is asked about as soon as a strict rule could be meant by it.

use globset::GlobMatcher;
use serde_json::Value;

use super::command::{self, Part, Word};
use super::limits::MAX_RULES;
use super::path::PathPattern;
use super::pattern::{CommandPattern, Match, glob};
use super::settings::{ApprovalConfig, RuleConfig};
use super::{Judgement, Verdict, words};

#[derive(Debug)]
pub struct Rules {
    default: Verdict,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    action: Verdict,
    tool: Option<GlobMatcher>,
    subject: Subject,
    /// For people.
    name: String,
}

#[derive(Debug)]
enum Subject {
    Any,
    Command(CommandPattern),
    Path(PathPattern),
}

/// A part of a call that is judged by itself.
enum Unit<'c> {
    Command(&'c Part),
    Read(&'c Word),
    Write(&'c Word),
    Path(&'c str),
    /// All that is below it.
    Tree(&'c str),
    Unknown(&'static str),
    Whole,
}

impl Rules {
    pub fn new(config: &ApprovalConfig) -> Result<Self, String> {
        if config.rules.len() > MAX_RULES {
            return Err(format!("there are more than {MAX_RULES} rules"));
        }
        let rules = config.rules.iter().enumerate().map(|(index, rule)| {
            Rule::new(index + 1, rule).map_err(|error| format!("rule {}: {error}", index + 1))
        });
        Ok(Self { default: config.default, rules: rules.collect::<Result<_, _>>()? })
    }

    /// Nothing is ever asked or denied.
    pub fn allow_everything(&self) -> bool {
        self.default == Verdict::Allow
            && self.rules.iter().all(|rule| rule.action == Verdict::Allow)
    }

    pub fn judge(&self, tool: &str, input: &Value) -> Judgement {
        let rules: Vec<&Rule> = self.rules.iter().filter(|rule| rule.is_about(tool)).collect();
        if self.default == Verdict::Allow && rules.iter().all(|rule| rule.action == Verdict::Allow)
        {
            return self.by_default();
        }
        let of_text = |name: &str| input.get(name).and_then(Value::as_str);
        if let Some(script) = of_text("command") {
            return self.judge_script(&rules, script);
        }
        let unit = match (tool, of_text("path")) {
            ("listFiles" | "search", path) => Unit::Tree(path.unwrap_or(".")),
            (_, Some(path)) => Unit::Path(path),
            (_, None) => Unit::Whole,
        };
        self.judge_unit(&rules, &unit, false)
    }

    fn judge_script(&self, rules: &[&Rule], script: &str) -> Judgement {
        let script = command::read(script);
        let moves = script.parts.iter().any(Part::moves);
        let mut units: Vec<Unit<'_>> = Vec::new();
        for part in &script.parts {
            if !part.words.is_empty() || part.assigns {
                units.push(Unit::Command(part));
            }
            units.extend(part.reads.iter().map(Unit::Read));
            units.extend(part.writes.iter().filter(|word| !is_nowhere(word)).map(Unit::Write));
        }
        units.extend(script.unknown.iter().map(|why| Unit::Unknown(why)));
        if units.is_empty() {
            units.push(Unit::Whole);
        }
        let judged = units.iter().map(|unit| self.judge_unit(rules, unit, moves));
        let strictest =
            judged.reduce(|one, other| if other.verdict > one.verdict { other } else { one });
        strictest.unwrap_or_else(|| self.by_default())
    }

    fn judge_unit(&self, rules: &[&Rule], unit: &Unit<'_>, moves: bool) -> Judgement {
        let mut strictest: Option<Judgement> = None;
        for rule in rules {
            let Some(found) = rule.judge(unit, moves) else { continue };
            if strictest.as_ref().is_none_or(|known| found.verdict > known.verdict) {
                strictest = Some(found);
            }
        }
        match (strictest, unit) {
            // What is only read is the command's business, unless a rule says more.
            (None, Unit::Read(_)) => Judgement { verdict: Verdict::Allow, because: String::new() },
            (None, Unit::Unknown(why)) => {
                Judgement { verdict: self.default, because: format!("by default: {why}") }
            }
            (Some(found), Unit::Unknown(_)) if found.verdict < self.default => self.by_default(),
            (Some(found), _) => found,
            (None, _) => self.by_default(),
        }
    }

    fn by_default(&self) -> Judgement {
        Judgement { verdict: self.default, because: "by default".to_owned() }
    }
}

impl Rule {
    fn new(number: usize, config: &RuleConfig) -> Result<Self, String> {
        let (subject, about) = match (&config.command, &config.path) {
            (Some(_), Some(_)) => return Err("command and path belong in two rules".to_owned()),
            (Some(pattern), None) => (Subject::Command(CommandPattern::new(pattern)?), pattern),
            (None, Some(pattern)) => (Subject::Path(PathPattern::new(pattern)?), pattern),
            (None, None) if config.tool.is_none() => {
                return Err("it needs a tool, a command or a path".to_owned());
            }
            (None, None) => (Subject::Any, config.tool.as_ref().expect("it was looked at")),
        };
        let mut name = format!("rule {number}: {} {about}", config.action.as_str());
        if let Some(reason) = &config.reason {
            name = format!("{name} ({reason})");
        }
        let tool = config.tool.as_deref().map(|tool| glob(tool, false)).transpose()?;
        Ok(Self { action: config.action, tool, subject, name })
    }

    fn is_about(&self, tool: &str) -> bool {
        self.tool.as_ref().is_none_or(|glob| glob.is_match(tool))
    }

    /// None when the rule does not speak about it.
    fn judge(&self, unit: &Unit<'_>, moves: bool) -> Option<Judgement> {
        let found = match self.action {
            Verdict::Allow => Match::from(self.allows(unit, moves)),
            _ => self.touches(unit, moves),
        };
        match found {
            Match::No => None,
            Match::Yes => Some(Judgement { verdict: self.action, because: self.name.clone() }),
            Match::Maybe => {
                let why = match unit {
                    Unit::Unknown(why) => why,
                    _ => "what it is about is computed",
                };
                let because = format!("{why}, and may be meant by {}", self.name);
                Some(Judgement { verdict: Verdict::Ask, because })
            }
        }
    }

    fn allows(&self, unit: &Unit<'_>, moves: bool) -> bool {
        match (&self.subject, unit) {
            (Subject::Any, _) => true,
            // Variables make another program of it.
            (Subject::Command(pattern), Unit::Command(part)) => {
                !part.assigns && pattern.begins(&part.words)
            }
            (Subject::Path(pattern), Unit::Path(path)) => pattern.is_match(path),
            (Subject::Path(pattern), Unit::Write(word) | Unit::Read(word)) => {
                let placed = !moves || word.text.starts_with('/');
                word.fixed() && placed && pattern.is_match(&word.text)
            }
            _ => false,
        }
    }

    fn touches(&self, unit: &Unit<'_>, moves: bool) -> Match {
        match (&self.subject, unit) {
            (Subject::Any, _) => Match::Yes,
            (_, Unit::Unknown(_)) => Match::Maybe,
            (Subject::Command(pattern), Unit::Command(part)) => pattern.touches(&part.words),
            (Subject::Path(pattern), Unit::Path(path)) => pattern.touches(path),
            (Subject::Path(pattern), Unit::Tree(path)) => pattern.reaches(path),
            (Subject::Path(pattern), Unit::Write(word) | Unit::Read(word)) => {
                words::touches(pattern, word, moves)
            }
            (Subject::Path(pattern), Unit::Command(part)) => words::of_part(pattern, part, moves),
            _ => Match::No,
        }
    }
}

fn is_nowhere(word: &Word) -> bool {
    word.fixed() && matches!(word.text.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr")
}
