//! Commands that the shell's own words begin. Each is read as a whole, or not at all.

use super::list::Until;
use super::word::is_function_name;
use super::{Lost, Part, Reader, Word, variables};

/// Tests of one word that only look at files and texts; `-v` evaluates a subscript.
const TESTS_OF_ONE: [&str; 20] = [
    "-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h", "-z", "-n", "-p", "-S", "-b", "-c", "-g",
    "-k", "-u", "-O", "-G",
];

/// Of two words; those of numbers evaluate what they compare.
const TESTS_OF_TWO: [&str; 6] = ["==", "!=", "=", "-nt", "-ot", "-ef"];

/// What was read of a comparison between `[[` and `]]`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Test {
    Nothing,
    /// Its first word, which may be all of it.
    Left,
    /// An operator: a word must follow, whatever it is.
    Operator,
    Whole,
}

impl Test {
    fn may_end(self) -> bool {
        matches!(self, Self::Left | Self::Whole)
    }
}

impl Reader<'_, '_> {
    /// At one of the shell's own words.
    pub(super) fn compound(&mut self, word: &'static str) -> Result<(), Lost> {
        self.at += word.len();
        match word {
            "!" => return self.after_prefix(),
            "time" => {
                self.skip_blanks();
                if self.begins("-p ") {
                    self.at += 2;
                }
                return self.after_prefix();
            }
            "function" => return self.named_function(),
            "{" => drop(self.list(Until::Words(&["}"]))?),
            "if" => self.branches()?,
            "while" | "until" => {
                self.list(Until::Words(&["do"]))?;
                self.list(Until::Words(&["done"]))?;
            }
            "for" | "select" => self.looped()?,
            "case" => self.case()?,
            "[[" => self.test()?,
            "coproc" => return self.lost("a coprocess"),
            _ => return self.lost("a word of the shell's own where none can be"),
        }
        self.redirections()
    }

    /// The command behind `!` or `time`.
    fn after_prefix(&mut self) -> Result<(), Lost> {
        self.skip_blanks();
        match self.peek() {
            Some(b'-') => self.lost("an option of time"),
            None | Some(b'\n' | b';' | b'&' | b'|' | b'#') => self.lost("a command is missing"),
            _ => self.deeper(Self::command),
        }
    }

    /// At an opening parenthesis where a command begins.
    pub(super) fn parenthesis(&mut self) -> Result<(), Lost> {
        if !self.arithmetic()? {
            self.operator(1)?;
            self.enclosed()?;
        }
        self.redirections()
    }

    /// What follows the end of such a command.
    fn redirections(&mut self) -> Result<(), Lost> {
        let mut part = Part::default();
        loop {
            self.skip_blanks();
            let digits = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit());
            let digits = digits.take(4).count();
            let follows = self.bytes.get(self.at + digits);
            match follows {
                Some(b'<' | b'>') => self.at += digits,
                Some(b'&') if digits == 0 && self.next_is(1, b'>') => {}
                _ => break,
            }
            self.redirection(&mut part)?;
        }
        if part.is_empty() { Ok(()) } else { self.add(part) }
    }

    fn named_function(&mut self) -> Result<(), Lost> {
        let name = self.expect_word()?;
        if !name.bare || !is_function_name(&name.text) {
            return self.lost("a function of no kind");
        }
        self.skip_blanks();
        if self.begins("()") {
            self.at += 2;
        }
        self.body()
    }

    fn branches(&mut self) -> Result<(), Lost> {
        self.list(Until::Words(&["then"]))?;
        loop {
            match self.list(Until::Words(&["elif", "else", "fi"]))? {
                "elif" => drop(self.list(Until::Words(&["then"]))?),
                "else" => return self.list(Until::Words(&["fi"])).map(drop),
                _ => return Ok(()),
            }
        }
    }

    fn looped(&mut self) -> Result<(), Lost> {
        self.skip_blanks();
        if self.peek() == Some(b'(') {
            if !self.arithmetic()? {
                return self.lost("a for of no kind");
            }
        } else {
            self.loop_over_words()?;
        }
        self.skip_blanks();
        if self.peek() == Some(b';') {
            self.operator(1)?;
        }
        self.skip_lines()?;
        if self.reserved() != Some("do") {
            return self.lost("a loop without its do");
        }
        self.at += 2;
        self.list(Until::Words(&["done"])).map(drop)
    }

    fn loop_over_words(&mut self) -> Result<(), Lost> {
        let name = self.expect_word()?;
        let mut part = Part::default();
        match name.bare {
            true if variables::is_ordinary(&name.text) => {}
            true if variables::is_name(&name.text) => {
                part.assigns = true;
                if variables::runs_later(&name.text) {
                    self.unknown("a variable that is run later");
                }
            }
            _ => return self.lost("a for of no kind"),
        }
        self.skip_lines()?;
        if self.begins("in")
            && self.bytes.get(self.at + 2).is_none_or(|byte| super::list::ends_word(*byte))
        {
            self.at += 2;
            self.words_of_loop(&mut part)?;
        }
        if part.is_empty() { Ok(()) } else { self.add(part) }
    }

    /// What a program in the loop gets is computed from these: they are seen as its paths would be.
    fn words_of_loop(&mut self, part: &mut Part) -> Result<(), Lost> {
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'#') => return Ok(()),
                Some(b'&' | b'|' | b'(' | b')') => return self.lost("a for of no kind"),
                Some(b'<' | b'>') if !self.next_is(1, b'(') => {
                    return self.lost("a for of no kind");
                }
                Some(_) => part.reads.push(self.word()?),
            }
        }
    }

    fn case(&mut self) -> Result<(), Lost> {
        if self.parentheses > 0 {
            self.unknown("a case within parentheses");
        }
        self.expect_word()?;
        self.skip_lines()?;
        let into = self.expect_word()?;
        if !into.bare || into.text != "in" {
            return self.lost("a case without its in");
        }
        loop {
            self.skip_lines()?;
            if self.reserved() == Some("esac") {
                self.at += 4;
                return Ok(());
            }
            self.patterns()?;
            if self.list(Until::Clause)? == "esac" {
                return Ok(());
            }
        }
    }

    /// Up to the parenthesis behind them.
    fn patterns(&mut self) -> Result<(), Lost> {
        if self.peek() == Some(b'(') {
            self.operator(1)?;
        }
        loop {
            self.expect_word()?;
            self.skip_blanks();
            match self.peek() {
                Some(b'|') => self.operator(1)?,
                Some(b')') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.lost("a case of no kind"),
            }
        }
    }

    /// `[[ … ]]`, behind its beginning.
    fn test(&mut self) -> Result<(), Lost> {
        let (mut open, mut test) = (0_usize, Test::Nothing);
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'(') if test == Test::Nothing => {
                    self.operator(1)?;
                    open += 1;
                }
                Some(b')') if test.may_end() && open > 0 => {
                    self.at += 1;
                    open -= 1;
                    test = Test::Whole;
                }
                Some(b'<' | b'>') if test == Test::Left && !self.next_is(1, b'(') => {
                    self.operator(1)?;
                    test = Test::Operator;
                }
                Some(b'&' | b'|') if test.may_end() && (self.begins("&&") || self.begins("||")) => {
                    self.at += 2;
                    self.skip_lines()?;
                    test = Test::Nothing;
                }
                None | Some(b'\n' | b';' | b'#' | b'<' | b'>' | b'&' | b'|' | b'(' | b')') => {
                    return self.lost("a test of no kind");
                }
                Some(_) => {
                    let word = self.expect_word()?;
                    if word.bare && word.text == "]]" {
                        return match open == 0 && test.may_end() {
                            true => Ok(()),
                            false => self.lost("a test that is not complete"),
                        };
                    }
                    test = self.word_of_test(test, &word)?;
                }
            }
        }
    }

    /// What a word makes of a test: bash takes it for an operator only where one can be.
    fn word_of_test(&mut self, test: Test, word: &Word) -> Result<Test, Lost> {
        let text = word.text.as_str();
        match test {
            Test::Operator => Ok(Test::Whole),
            Test::Nothing if word.bare && text == "!" => Ok(Test::Nothing),
            Test::Nothing if word.bare && TESTS_OF_ONE.contains(&text) => Ok(Test::Operator),
            Test::Nothing if word.bare && text.starts_with('-') => {
                self.unknown("a test that evaluates what it looks at");
                Ok(if text.len() == 2 { Test::Operator } else { Test::Left })
            }
            Test::Nothing => Ok(Test::Left),
            Test::Left if word.bare && text == "=~" => {
                self.regular_expression()?;
                Ok(Test::Whole)
            }
            Test::Left if word.bare && TESTS_OF_TWO.contains(&text) => Ok(Test::Operator),
            Test::Left if word.bare && text.starts_with('-') => {
                self.unknown("a test that evaluates what it compares");
                Ok(Test::Operator)
            }
            Test::Left | Test::Whole => self.lost("a test of no kind"),
        }
    }

    pub(super) fn expect_word(&mut self) -> Result<Word, Lost> {
        self.skip_blanks();
        let before = self.at;
        let word = self.word()?;
        if self.at == before { self.lost("a word is missing") } else { Ok(word) }
    }
}
