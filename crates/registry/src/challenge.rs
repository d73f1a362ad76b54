//! `WWW-Authenticate`: how a registry wants to be asked.

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    Basic,
    Bearer { realm: String, service: Option<String> },
}

/// The first challenge that we can meet.
pub(crate) fn parse(header: &str) -> Option<Challenge> {
    let (scheme, parameters) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service) = (None, None);
    for (name, value) in Parameters(parameters) {
        match name.to_ascii_lowercase().as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            _ => {}
        }
    }
    Some(Challenge::Bearer { realm: realm?, service })
}

/// `name="value", name=value`; ends at what is not like that.
struct Parameters<'a>(&'a str);

impl Iterator for Parameters<'_> {
    type Item = (String, String);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0.trim_start_matches([' ', '\t', ',']);
        let (name, rest) = rest.split_once('=')?;
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        self.0 = rest;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let hub = r#"Bearer realm="https://auth.example/token",service="registry.example",scope="a:b:pull,push""#;
        assert_eq!(
            parse(hub),
            Some(Challenge::Bearer {
                realm: "https://auth.example/token".to_owned(),
                service: Some("registry.example".to_owned()),
            })
        );
        assert_eq!(parse(r#"Basic realm="x""#), Some(Challenge::Basic));
        assert_eq!(parse("basic"), Some(Challenge::Basic));
        for nothing in
            ["", "Bearer", "Bearer service=a", "Digest realm=\"a\"", "Bearer realm=\"open"]
        {
            assert_eq!(parse(nothing), None, "{nothing:?}");
        }
    }
}
