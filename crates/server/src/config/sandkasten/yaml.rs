//! The YAML file as flat keys and texts. Only what such a file needs is taken: one document of
//! mappings, texts and lists of texts. Aliases are refused, so that a short file cannot grow.

use std::collections::BTreeSet;
use std::path::Path;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::super::error::ConfigError;
use crate::limits::MAX_YAML_DEPTH;

/// Lists are joined by commas, as the environment writes them; a null counts as unset.
pub(super) fn flatten(path: &Path, text: &str) -> Result<Vec<(String, String)>, ConfigError> {
    let wrong = |detail: String| ConfigError::Yaml { path: path.to_owned(), detail };
    let mut flat = Flat::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| wrong(error.to_string()))?;
        let line = span.start.line();
        flat.event(event).map_err(|what| wrong(format!("{what} in line {line}")))?;
    }
    Ok(flat.found)
}

#[derive(Default)]
struct Flat {
    found: Vec<(String, String)>,
    /// Every key there was, also of mappings and nulls.
    keys: BTreeSet<String>,
    open: Vec<Place>,
    documents: usize,
}

enum Place {
    Mapping { key: Option<String> },
    List { texts: Vec<String> },
}

impl Flat {
    fn event(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 { Err("a second document".to_owned()) } else { Ok(()) }
            }
            Event::Alias(_) => Err("an alias, which is not taken,".to_owned()),
            Event::MappingStart(..) => self.open(Place::Mapping { key: None }),
            Event::SequenceStart(..) => self.open(Place::List { texts: Vec::new() }),
            Event::Scalar(text, style, ..) => self.scalar(&text, style),
            Event::MappingEnd => {
                self.open.pop();
                self.value_is_over();
                Ok(())
            }
            Event::SequenceEnd => {
                if let Some(Place::List { texts }) = self.open.pop() {
                    self.found.push((self.path(), texts.join(",")));
                }
                self.value_is_over();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, place: Place) -> Result<(), String> {
        match (self.open.last(), &place) {
            _ if self.open.len() >= MAX_YAML_DEPTH => return Err("too many levels".to_owned()),
            (None, Place::Mapping { .. }) | (Some(Place::Mapping { key: Some(_) }), _) => {}
            _ => return Err("something that is no key or text".to_owned()),
        }
        self.open.push(place);
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle) -> Result<(), String> {
        let is_null =
            style == ScalarStyle::Plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
        match self.open.last_mut() {
            // An empty file is one null.
            None if is_null => {}
            None => return Err("a text instead of keys".to_owned()),
            Some(Place::List { .. }) if is_null => {}
            Some(Place::List { texts }) => texts.push(text.to_owned()),
            Some(Place::Mapping { key: key @ None }) => {
                *key = Some(text.to_owned());
                // Which of two would count is nobody's guess.
                let path = self.path();
                let shown: String = path.chars().take(80).collect();
                if !self.keys.insert(path) {
                    return Err(format!("the key {shown:?} a second time"));
                }
            }
            Some(Place::Mapping { .. }) => {
                if !is_null {
                    self.found.push((self.path(), text.to_owned()));
                }
                self.value_is_over();
            }
        }
        Ok(())
    }

    fn value_is_over(&mut self) {
        if let Some(Place::Mapping { key }) = self.open.last_mut() {
            *key = None;
        }
    }

    fn path(&self) -> String {
        let keys = self.open.iter().filter_map(|place| match place {
            Place::Mapping { key } => key.as_deref(),
            Place::List { .. } => None,
        });
        keys.collect::<Vec<_>>().join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &str) -> Vec<(String, String)> {
        flatten(Path::new("x.yaml"), text).unwrap()
    }

    fn pair(key: &str, text: &str) -> (String, String) {
        (key.to_owned(), text.to_owned())
    }

    #[test]
    fn mappings_become_dotted_keys_and_lists_one_text() {
        let text = "listen: 127.0.0.1:8080\napi_key: \"a: b\"\ndefaults:\n  cpu_limit: 1.0\n  \
                    deep: {x: 'y'}\nallowed_images: [base, python]\nnone: ~\nlog: info # words\n";
        assert_eq!(
            flat(text),
            [
                pair("listen", "127.0.0.1:8080"),
                pair("api_key", "a: b"),
                pair("defaults.cpu_limit", "1.0"),
                pair("defaults.deep.x", "y"),
                pair("allowed_images", "base,python"),
                pair("log", "info"),
            ]
        );
        assert!(flat("").is_empty() && flat("# nothing\n").is_empty());
    }

    #[test]
    fn every_way_to_write_nothing_is_unset_and_words_in_quotes_are_not() {
        for null in ["~", "null", "Null", "NULL", ""] {
            let text = format!("a: {null}\nb: [{null}, x]\nc: '{null}'\nd: {{a: 1}}\n");
            let expected = [pair("b", "x"), pair("c", null), pair("d.a", "1")];
            assert_eq!(flat(&text.replace("[, ", "[")), expected, "{null:?}");
        }
    }

    #[test]
    fn what_such_a_file_does_not_need_is_refused_with_the_line() {
        for bad in [
            "a: &x 1\nb: *x",
            "- a\n- b",
            "just text",
            "a: 1\n---\nb: 2",
            "a: [[1]]",
            "a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}",
            "a: [1",
            "a: 1\na: 2",
            "a: ~\na: 2",
            "d: {x: 1}\nd: {y: 2}",
            "d: {x: 1, x: 1}",
            "d: {x: 1}\nd.x: 2",
        ] {
            let error = flatten(Path::new("x.yaml"), bad).unwrap_err().to_string();
            assert!(error.contains("x.yaml") && error.contains("line"), "{bad}: {error}");
        }
    }
}
