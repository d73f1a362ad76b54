//! The first characters of a stream without the white space at its end, and a word on what is missing.

/// Bounded: what comes after the first characters is only counted.
#[derive(Debug)]
pub(crate) struct Head {
    limit: usize,
    text: String,
    kept: usize,
    total: u64,
    /// White space that nothing has followed yet.
    blank: u64,
}

impl Head {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, text: String::new(), kept: 0, total: 0, blank: 0 }
    }

    pub(crate) fn push(&mut self, text: &str) {
        for character in text.chars() {
            self.total += 1;
            self.blank = if character.is_whitespace() { self.blank + 1 } else { 0 };
            if self.kept < self.limit {
                self.text.push(character);
                self.kept += 1;
            }
        }
    }

    pub(crate) fn gap(&mut self, missing: u64) {
        self.total += missing;
        // What follows would not follow what is shown.
        self.limit = self.kept;
    }

    /// With the notice, where something was removed.
    pub(crate) fn finish(self, stream: &str) -> String {
        let removed = (self.total - self.blank).saturating_sub(self.kept as u64);
        let mut text = self.text;
        if removed == 0 {
            text.truncate(text.trim_end().len());
            return text;
        }
        text.push_str(&format!("\n\n[{stream} truncated: {removed} characters removed]"));
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(text: &str, limit: usize) -> String {
        let mut head = Head::new(limit);
        head.push(text);
        head.finish("stdout")
    }

    #[test]
    fn short_output_is_only_trimmed_on_the_right() {
        assert_eq!(head("  a\n\tb \n\n", 100), "  a\n\tb");
        assert_eq!(head(" \n ", 100), "");
        assert_eq!(head("abc   ", 3), "abc");
    }

    #[test]
    fn long_output_says_how_many_characters_are_missing() {
        assert_eq!(head("äöüß\n", 3), "äöü\n\n[stdout truncated: 1 characters removed]");
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(pieces in prop::collection::vec("[a ü\n]{0,9}", 0..20), limit in 1usize..40) {
            let mut in_pieces = Head::new(limit);
            pieces.iter().for_each(|piece| in_pieces.push(piece));
            let trimmed: Vec<char> = pieces.concat().trim_end().chars().collect();
            let shown = in_pieces.finish("stderr");
            if trimmed.len() <= limit {
                prop_assert_eq!(shown, trimmed.iter().collect::<String>());
            } else {
                let kept: String = trimmed[..limit].iter().collect();
                let removed = trimmed.len() - limit;
                let wanted = format!("{kept}\n\n[stderr truncated: {removed} characters removed]");
                prop_assert_eq!(shown, wanted);
            }
        }
    }
}
