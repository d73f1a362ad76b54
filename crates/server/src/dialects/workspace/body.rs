//! JSON bodies as the original's framework checks them.

use axum::extract::{FromRequest, Request};
use serde_json::{Map, Value, json};

use super::error::unprocessable;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::extract::Whole;

/// A JSON object; fields that nobody asks for are left alone.
#[derive(Debug)]
pub(super) struct Fields(Map<String, Value>);

impl FromRequest<App> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let Whole(bytes) = Whole::from_request(request, app).await?;
        Self::read(&bytes)
    }
}

impl Fields {
    fn read(bytes: &[u8]) -> ApiResult<Self> {
        if bytes.is_empty() {
            return Err(unprocessable(json!({
                "type": "missing", "loc": ["body"], "msg": "Field required", "input": null,
            })));
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(other) => Err(unprocessable(json!({
                "type": "model_attributes_type",
                "loc": ["body"],
                "msg": "Input should be a valid dictionary or object to extract fields from",
                "input": other,
            }))),
            Err(error) => Err(unprocessable(json!({
                "type": "json_invalid",
                "loc": ["body", error.column()],
                "msg": "JSON decode error",
                "input": {},
                "ctx": { "error": error.to_string() },
            }))),
        }
    }

    pub(super) fn text(&self, name: &str) -> ApiResult<&str> {
        match self.0.get(name) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(not_a(name, "string", other)),
            None => Err(unprocessable(json!({
                "type": "missing", "loc": ["body", name], "msg": "Field required", "input": self.0,
            }))),
        }
    }

    pub(super) fn text_not_empty(&self, name: &str) -> ApiResult<&str> {
        match self.text(name)? {
            "" => Err(unprocessable(json!({
                "type": "string_too_short",
                "loc": ["body", name],
                "msg": "String should have at least 1 character",
                "input": "",
                "ctx": { "min_length": 1 },
            }))),
            text => Ok(text),
        }
    }

    pub(super) fn optional_text(&self, name: &str) -> ApiResult<Option<&str>> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.text(name).map(Some),
        }
    }

    pub(super) fn optional_object(&self, name: &str) -> ApiResult<Option<&Map<String, Value>>> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(other) => Err(not_a(name, "dictionary", other)),
        }
    }

    /// Empty where it is absent.
    pub(super) fn object(&self, name: &str) -> ApiResult<Map<String, Value>> {
        match self.0.get(name) {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object.clone()),
            Some(other) => Err(not_a(name, "dictionary", other)),
        }
    }

    /// The same, of strings only.
    pub(super) fn texts(&self, name: &str) -> ApiResult<Map<String, Value>> {
        let object = self.object(name)?;
        match object.iter().find(|(_, value)| !value.is_string()) {
            None => Ok(object),
            Some((key, other)) => Err(unprocessable(json!({
                "type": "string_type",
                "loc": ["body", name, key],
                "msg": "Input should be a valid string",
                "input": other,
            }))),
        }
    }
}

fn not_a(name: &str, kind: &str, input: &Value) -> ApiError {
    let code = if kind == "string" { "string_type" } else { "dict_type" };
    unprocessable(json!({
        "type": code,
        "loc": ["body", name],
        "msg": format!("Input should be a valid {kind}"),
        "input": input,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(error: ApiError) -> Value {
        error.details.expect("a list")[0].clone()
    }

    #[test]
    fn what_is_missing_or_of_another_kind_is_named_with_its_place() {
        let fields = Fields::read(br#"{"a":"x","b":1,"c":null}"#).unwrap();
        assert_eq!(fields.text("a").unwrap(), "x");
        assert_eq!(fields.optional_text("c").unwrap(), None);
        assert_eq!(problem(fields.text("b").unwrap_err())["type"], "string_type");
        let missing = problem(fields.text("d").unwrap_err());
        assert_eq!((&missing["type"], &missing["loc"]), (&json!("missing"), &json!(["body", "d"])));
        for (body, kind) in
            [("", "missing"), ("{", "json_invalid"), ("[]", "model_attributes_type")]
        {
            assert_eq!(problem(Fields::read(body.as_bytes()).unwrap_err())["type"], kind, "{body}");
        }
    }
}
