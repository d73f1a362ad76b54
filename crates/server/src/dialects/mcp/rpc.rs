//! JSON-RPC 2.0, as much of it as MCP uses.

use serde_json::{Map, Value, json};

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
/// Of a call that somebody ended, and of what this server cannot do now.
pub(super) const CANCELLED: i64 = -32800;
pub(super) const UNAVAILABLE: i64 = -32000;

/// One message of a client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request(Request),
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// We ask clients nothing, so there is nothing to do about it.
    Response,
}

#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// A text or a number.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// The answer to a request; `id` is null where none can be told.
pub(super) fn answer(id: &Value, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(RpcError { code, message }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    }
}

pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// The message in a value, or the answer that refuses it.
pub(super) fn read(value: Value) -> Result<Message, Value> {
    let Value::Object(mut fields) = value else {
        return Err(refusal(&Value::Null, "a message is a JSON object"));
    };
    let id = fields.remove("id");
    let told = id.clone().filter(is_id).unwrap_or(Value::Null);
    if fields.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(refusal(&told, "a message has \"jsonrpc\": \"2.0\""));
    }
    let is_response = fields.contains_key("result") || fields.contains_key("error");
    let method = match fields.remove("method") {
        Some(Value::String(method)) => method,
        None if is_response => return Ok(Message::Response),
        _ => return Err(refusal(&told, "a message has a method, which is a text")),
    };
    let params = match fields.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => {
            let error = RpcError::new(INVALID_PARAMS, "params is an object");
            return Err(answer(&told, Err(error)));
        }
    };
    match id {
        None => Ok(Message::Notification { method, params }),
        Some(id) if is_id(&id) => Ok(Message::Request(Request { id, method, params })),
        Some(_) => Err(refusal(&Value::Null, "an id is a text or a number")),
    }
}

pub(super) fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_number()
}

fn refusal(id: &Value, why: &str) -> Value {
    answer(id, Err(RpcError::new(INVALID_REQUEST, why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_and_what_is_none_is_refused_by_code() {
        let request = read(json!({ "jsonrpc": "2.0", "id": 0, "method": "ping" })).unwrap();
        assert!(matches!(request, Message::Request(Request { id, .. }) if id == json!(0)));
        let silent = read(json!({ "jsonrpc": "2.0", "method": "notifications/x" })).unwrap();
        assert!(matches!(silent, Message::Notification { .. }));
        let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
        assert_eq!(read(response).unwrap(), Message::Response);
        for (bad, code, id) in [
            (json!(1), INVALID_REQUEST, Value::Null),
            (json!([]), INVALID_REQUEST, Value::Null),
            (json!({ "id": 7, "method": "ping" }), INVALID_REQUEST, json!(7)),
            (json!({ "jsonrpc": "1.0", "id": 7, "method": "ping" }), INVALID_REQUEST, json!(7)),
            (json!({ "jsonrpc": "2.0", "id": 7 }), INVALID_REQUEST, json!(7)),
            (json!({ "jsonrpc": "2.0", "id": null, "method": "x" }), INVALID_REQUEST, Value::Null),
            (json!({ "jsonrpc": "2.0", "id": [1], "method": "x" }), INVALID_REQUEST, Value::Null),
            (json!({ "jsonrpc": "2.0", "id": 7, "method": 1 }), INVALID_REQUEST, json!(7)),
            (
                json!({ "jsonrpc": "2.0", "id": 7, "method": "x", "params": [] }),
                INVALID_PARAMS,
                json!(7),
            ),
        ] {
            let refused = read(bad.clone()).unwrap_err();
            assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(code), &id), "{bad}");
        }
    }
}
