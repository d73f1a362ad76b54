//! The last characters of a stream, and how many came before them.

/// Bounded: it never holds more than about twice what it shows.
#[derive(Debug)]
pub(crate) struct Tail {
    limit: usize,
    text: String,
    /// Where the kept part begins.
    start: usize,
    kept: usize,
    dropped: u64,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, text: String::new(), start: 0, kept: 0, dropped: 0 }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.kept += text.chars().count();
        let surplus = self.kept.saturating_sub(self.limit);
        if surplus > 0 {
            let skipped: usize =
                self.text[self.start..].chars().take(surplus).map(char::len_utf8).sum();
            self.start += skipped;
            self.kept -= surplus;
            self.dropped += surplus as u64;
        }
        if self.start > self.text.len() / 2 {
            self.text.drain(..self.start);
            self.start = 0;
        }
    }

    /// What comes next does not follow what is kept: so many are missing between them.
    pub(crate) fn gap(&mut self, missing: u64) {
        self.dropped += self.kept as u64 + missing;
        (self.start, self.kept) = (0, 0);
        self.text.clear();
    }

    pub(crate) fn text(&self) -> &str {
        &self.text[self.start..]
    }

    /// In characters.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_tail_has_the_last_characters_and_counts_the_others(pieces in prop::collection::vec(".{0,40}", 0..40), limit in 1usize..60) {
            let mut tail = Tail::new(limit);
            for piece in &pieces {
                tail.push(piece);
                prop_assert!(tail.text.len() <= 2 * (limit + 40) * 4);
            }
            let all: Vec<char> = pieces.concat().chars().collect();
            let from = all.len().saturating_sub(limit);
            prop_assert_eq!(tail.text(), all[from..].iter().collect::<String>());
            prop_assert_eq!(tail.dropped(), from as u64);
            prop_assert_eq!(tail.kept(), all.len() - from);
        }
    }

    #[test]
    fn after_a_gap_only_what_follows_it_is_shown() {
        let mut tail = Tail::new(10);
        tail.push("abc");
        tail.gap(7);
        tail.push("xyz");
        assert_eq!((tail.text(), tail.dropped()), ("xyz", 10));
    }
}
