//! The known name that a misspelt one was most likely meant to be.

/// None when nothing is close.
pub(super) fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 6)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["server.port", "server.host", "data_dir"];
        assert_eq!(nearest("server.prot", known.into_iter()), Some("server.port"));
        assert_eq!(nearest("datadir", known.into_iter()), Some("data_dir"));
        assert_eq!(nearest("colour", known.into_iter()), None);
    }
}
