//! What a tool takes. One table is both what a model is told and what is checked, so the two
//! cannot differ.

use serde_json::{Map, Value, json};

use crate::ToolError;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Characters, from and to.
    Text(usize, usize),
    Integer(u64, u64),
    Switch,
}

impl Field {
    pub(crate) const fn required(
        name: &'static str,
        kind: Kind,
        description: &'static str,
    ) -> Self {
        Self { name, description, kind, required: true }
    }

    pub(crate) const fn optional(
        name: &'static str,
        kind: Kind,
        description: &'static str,
    ) -> Self {
        Self { name, description, kind, required: false }
    }

    fn schema(&self) -> Value {
        let description = self.description;
        match self.kind {
            Kind::Text(min, max) => {
                json!({ "type": "string", "minLength": min, "maxLength": max, "description": description })
            }
            Kind::Integer(min, max) => {
                json!({ "type": "integer", "minimum": min, "maximum": max, "description": description })
            }
            Kind::Switch => json!({ "type": "boolean", "description": description }),
        }
    }

    /// What is wrong with a value, as the end of "it must be …".
    fn expected(&self, value: &Value) -> Option<String> {
        let (fits, words) = match self.kind {
            Kind::Text(min, max) => {
                let fits = value.as_str().is_some_and(|text| {
                    // The bytes say it for almost every text.
                    text.len() <= max && min == 0 || (min..=max).contains(&text.chars().count())
                });
                (fits, format!("a text of {min} to {max} characters"))
            }
            Kind::Integer(min, max) => {
                let fits = value.as_u64().is_some_and(|number| (min..=max).contains(&number));
                (fits, format!("a whole number from {min} to {max}"))
            }
            Kind::Switch => (value.is_boolean(), "true or false".to_owned()),
        };
        (!fits).then_some(words)
    }
}

/// JSON Schema of an object with these fields and no others.
pub(crate) fn schema(fields: &[Field]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
    let required: Vec<&str> =
        fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Input that fits its schema.
#[derive(Debug, Clone)]
pub(crate) struct Input(Value);

impl Input {
    pub(crate) fn check(tool: &str, fields: &[Field], input: Value) -> Result<Self, ToolError> {
        let Value::Object(map) = &input else {
            let message = format!("the input of {tool} must be an object");
            return Err(ToolError::InvalidInput(message));
        };
        let mut wrong = Vec::new();
        for field in fields {
            let said = match map.get(field.name) {
                None if field.required => Some(format!("{} is missing", field.name)),
                None => None,
                Some(value) => {
                    let expected = field.expected(value);
                    expected.map(|expected| format!("{} must be {expected}", field.name))
                }
            };
            wrong.extend(said);
        }
        let known = |name: &String| fields.iter().any(|field| field.name == name);
        let unknown = map.keys().filter(|name| !known(name));
        wrong.extend(unknown.map(|name| {
            let shown: String = name.chars().take(40).collect();
            format!("{shown:?} is not one of its fields")
        }));
        if wrong.is_empty() {
            return Ok(Self(input));
        }
        Err(ToolError::InvalidInput(format!("the input of {tool}: {}", wrong.join("; "))))
    }

    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    /// Of a field that is required, or the empty text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    pub(crate) fn integer(&self, name: &str) -> Option<u64> {
        self.0[name].as_u64()
    }

    pub(crate) fn switch(&self, name: &str) -> bool {
        self.0[name].as_bool().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[Field] = &[
        Field::required("name", Kind::Text(1, 3), "a name"),
        Field::optional("port", Kind::Integer(1, 9), "a port"),
        Field::optional("all", Kind::Switch, "all of them"),
    ];

    #[test]
    fn a_schema_allows_its_fields_and_no_others() {
        let schema = schema(FIELDS);
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["required"], json!(["name"]));
        assert_eq!(schema["properties"]["name"]["maxLength"], 3);
        assert_eq!(schema["properties"]["port"]["maximum"], 9);
    }

    #[test]
    fn what_the_schema_allows_is_accepted_and_nothing_else() {
        let check = |input: Value| Input::check("t", FIELDS, input);
        assert!(check(json!({ "name": "äöü", "port": 9, "all": true })).is_ok());
        assert_eq!(check(json!({ "name": "x" })).unwrap().integer("port"), None);
        for wrong in [
            json!(null),
            json!([]),
            json!("name"),
            json!({}),
            json!({ "name": "" }),
            json!({ "name": "four" }),
            json!({ "name": 1 }),
            json!({ "name": null }),
            json!({ "name": "x", "port": 0 }),
            json!({ "name": "x", "port": 10 }),
            json!({ "name": "x", "port": 1.5 }),
            json!({ "name": "x", "port": "1" }),
            json!({ "name": "x", "all": "yes" }),
            json!({ "name": "x", "other": 1 }),
        ] {
            let error = check(wrong.clone()).unwrap_err();
            assert_eq!(error.code(), "invalid_input", "{wrong}");
        }
    }
}
