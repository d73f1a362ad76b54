//! Every documented route, from the document itself, so that none is forgotten.

use sandbank_test_support::Api;
use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) method: String,
    /// With its parameters' names.
    pub(crate) path: String,
    /// Of the JSON body, with its references resolved one level deep.
    pub(crate) body: Option<Value>,
    /// Names of the query's parameters.
    pub(crate) query: Vec<String>,
}

impl Route {
    pub(crate) fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path == path
    }

    /// With every parameter given.
    pub(crate) fn url(&self, id: &str, command: &str) -> String {
        // A session's id looks otherwise; this one names nothing.
        let id = if self.path.starts_with("/v1/sessions/") { "0123abcd-0ef" } else { id };
        self.path
            .replace("{id}", id)
            .replace("{commandId}", command)
            .replace("{port}", "3000")
            .replace("{name}", "nothing")
    }
}

pub(crate) async fn all(api: &Api) -> anyhow::Result<Vec<Route>> {
    let document = api.call("GET", "/openapi.json", None).await?;
    let schemas = &document["components"]["schemas"];
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let query = parameters.iter().filter(|each| each["in"] == "query");
            routes.push(Route {
                method: method.to_uppercase(),
                path: path.clone(),
                body: resolved(body, schemas),
                query: query.map(|each| each["name"].as_str().unwrap().to_owned()).collect(),
            });
        }
    }
    assert!(routes.len() > 52, "only {} routes are documented", routes.len());
    Ok(routes)
}

fn resolved(schema: &Value, schemas: &Value) -> Option<Value> {
    let name = schema["$ref"].as_str()?.rsplit('/').next()?;
    Some(schemas[name].clone())
}
