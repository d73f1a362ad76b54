//! Query parameters of the routes that name files.
//!
//! Values are bytes: a file name need not be UTF-8. A parameter that is unknown, repeated or
//! wrongly encoded refuses the request instead of being ignored.

use sandbank_protocol::{Fault, FaultCode, InvalidFileTag};
use sandbank_rooted_fs::Expected;

#[derive(Debug)]
pub(crate) struct Query(Vec<(String, Vec<u8>)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let mut parameters: Vec<(String, Vec<u8>)> = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if parameters.iter().any(|(known, _)| known == name) {
                return Err(invalid(format!("the parameter {name:?} is repeated")));
            }
            let value = decode(value).ok_or_else(|| {
                invalid(format!("the parameter {name:?} is not percent-encoded text"))
            })?;
            parameters.push((name.to_owned(), value));
        }
        Ok(Self(parameters))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        let index = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(index).1)
    }

    /// A decimal number.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u64>, Fault> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let digits = value.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(&value).ok().filter(|_| digits);
        match number.and_then(|number| number.parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(invalid(format!("the parameter {name:?} is not a number"))),
        }
    }

    /// `true` or `false`; false when absent.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Fault> {
        self.flag_or(name, false)
    }

    /// `true` or `false`.
    pub(crate) fn flag_or(&mut self, name: &str, absent: bool) -> Result<bool, Fault> {
        match self.take(name).as_deref() {
            None => Ok(absent),
            Some(b"false") => Ok(false),
            Some(b"true") => Ok(true),
            Some(_) => Err(invalid(format!("the parameter {name:?} is neither true nor false"))),
        }
    }

    /// `if_tag`: what must be there for a change, as versions with commas between them, `any` or
    /// `none`.
    pub(crate) fn expected(&mut self) -> Result<Expected, Fault> {
        let Some(value) = self.take("if_tag") else { return Ok(Expected::Anything) };
        let text = std::str::from_utf8(&value).unwrap_or_default();
        match text {
            "any" => Ok(Expected::Something),
            "none" => Ok(Expected::Nothing),
            tags => match tags.split(',').map(str::parse).collect() {
                Ok(tags) => Ok(Expected::Version(tags)),
                Err(InvalidFileTag) => Err(invalid("if_tag is not a version of a file".into())),
            },
        }
    }

    /// To be called when every known parameter was taken.
    pub(crate) fn finish(self) -> Result<(), Fault> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(invalid(format!("the parameter {name:?} is unknown here"))),
        }
    }
}

fn invalid(message: String) -> Fault {
    Fault::new(FaultCode::Invalid, message)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digit = |byte: u8| (byte as char).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_once_into_bytes() {
        let mut query = Query::parse("path=a%20b%2Fc%252e+%FF&offset=12&recursive=true").unwrap();
        assert_eq!(query.take("path").unwrap(), b"a b/c%2e+\xff");
        assert_eq!(query.number("offset").unwrap(), Some(12));
        assert!(query.flag("recursive").unwrap());
        assert!(query.finish().is_ok());
    }

    #[test]
    fn what_must_be_there_is_named_by_version() {
        let expected = |text: &str| Query::parse(text).unwrap().expected();
        assert_eq!(expected("path=a"), Ok(Expected::Anything));
        assert_eq!(expected("if_tag=none"), Ok(Expected::Nothing));
        assert_eq!(expected("if_tag=any"), Ok(Expected::Something));
        let Ok(Expected::Version(tags)) = expected("if_tag=1-2-3-4-5,1-2-3-4-6") else { panic!() };
        assert_eq!(tags.len(), 2);
        for odd in ["if_tag=", "if_tag=*", "if_tag=1-2-3-4-5,", "if_tag=%ff"] {
            assert!(expected(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn the_committed_requests_are_handled() {
        sandbank_test_support::replay_corpus("requests", |data| {
            let _ = std::str::from_utf8(data).map(Query::parse);
        });
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in ["path=%", "path=%4", "path=%zz", "path=a&path=b"] {
            assert!(Query::parse(text).is_err(), "{text}");
        }
        for text in
            ["offset=", "offset=-1", "offset=+1", "offset=0x1", "offset=99999999999999999999"]
        {
            assert!(Query::parse(text).unwrap().number("offset").is_err(), "{text}");
        }
        assert!(Query::parse("recursive=yes").unwrap().flag("recursive").is_err());
        assert!(Query::parse("pth=a").unwrap().finish().is_err());
    }
}
