//! The id under which one request is found in every log on its way.

pub(crate) use sandbank_protocol::REQUEST_ID_HEADER;
use sandbank_protocol::plain_request_id;

/// The one that is there, if it may stand in a log.
pub(crate) fn accepted(id: Option<&str>) -> String {
    id.and_then(plain_request_id).map_or_else(fresh, str::to_owned)
}

fn fresh() -> String {
    format!("{:032x}", random())
}

/// Never the same twice.
pub(crate) fn random() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the kernel's random source answers");
    u128::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_id_is_replaced() {
        assert_eq!(accepted(Some("abc-1")), "abc-1");
        for strange in [None, Some(""), Some("a b"), Some("a\"b"), Some(&*"x".repeat(10_000))] {
            assert_eq!(accepted(strange).len(), 32, "{strange:?} was taken");
        }
    }
}
