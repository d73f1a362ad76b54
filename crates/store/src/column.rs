//! Values between Rust and SQLite. What comes back is checked: a file can be edited by anybody
//! who may write it.

use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StoreError;

/// SQLite has no unsigned integers; times and counts stay far below the sign bit.
pub(crate) fn from_u64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A negative number can only come from a foreign hand; zero is the nearest sense.
pub(crate) fn to_u64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(crate) fn parsed<T>(text: &str, row: &str, column: &'static str) -> Result<T, StoreError>
where
    T: FromStr,
    T::Err: Display,
{
    text.parse().map_err(|error| bad(row, column, error))
}

pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("stored types are plain data")
}

pub(crate) fn from_json<T: DeserializeOwned>(
    text: &str,
    row: &str,
    column: &'static str,
) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| bad(row, column, error))
}

pub(crate) fn bad(row: &str, column: &'static str, reason: impl Display) -> StoreError {
    StoreError::BadValue { row: row.to_owned(), column, reason: reason.to_string() }
}
