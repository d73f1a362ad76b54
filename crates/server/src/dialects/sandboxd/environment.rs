//! Environment variables from a request: names the kernel's exec can carry, values never logged.

use std::collections::BTreeMap;

use crate::error::{ApiError, ApiResult};
use crate::limits::MAX_WORDS_PER_COMMAND;

pub(super) fn check(env: &BTreeMap<String, String>) -> ApiResult<()> {
    if env.len() > MAX_WORDS_PER_COMMAND {
        let message = format!("env has at most {MAX_WORDS_PER_COMMAND} variables");
        return Err(ApiError::bad_request("bad_env", message));
    }
    let usable = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    match env.iter().find(|(name, value)| !usable(name) || value.contains('\0')) {
        None => Ok(()),
        Some((name, _)) => Err(ApiError::bad_request(
            "bad_env",
            format!(
                "the environment variable {name:?} has a name or a value that no program can receive"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_must_fit_through_exec() {
        let env = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert!(check(&env("PATH", "a=b\nc")).is_ok());
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
            let error = check(&env(name, value)).unwrap_err();
            assert!(!error.message.contains('x'), "the value is shown: {}", error.message);
        }
    }
}
