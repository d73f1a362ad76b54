//! What this dialect reads from bodies and heads.

use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};

use super::conditions::condition;
use super::file_batch::Batch;
use super::number::number;
use super::range::{Grant, Wanted, is_known, range_applies};
use super::{command_start, path_rule};

pub(crate) fn bodies(data: &[u8]) {
    let _ = Batch::read(data);
    if let Ok(body) = serde_json::from_slice::<Map<String, Value>>(data) {
        if let Ok(spec) = command_start::read(&body) {
            assert!(spec.argv.first().is_some_and(|program| !program.is_empty()));
            assert!(spec.argv.iter().all(|word| !word.contains('\0')));
        }
        body.values().for_each(|value| _ = number(value));
    }
    if let Ok(path) = std::str::from_utf8(data)
        && path_rule::any(path).is_ok()
    {
        assert!(!path.split('/').any(|name| name == "..") && !path.contains('\0'));
    }
}

pub(crate) fn ranges(headers: &HeaderMap) {
    let etag = HeaderValue::from_static("\"a-b\"");
    let _ =
        (range_applies(headers, Some(&etag)), is_known(headers, &etag), condition(headers).is_ok());
    for size in [0, 1, 10, u64::MAX] {
        if let Grant::Part { offset, length } = Wanted::read(headers).grant(size) {
            assert!(length > 0 && offset < size && length <= size - offset);
        }
    }
}
