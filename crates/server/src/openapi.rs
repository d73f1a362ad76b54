//! The frame of the OpenAPI document; the routes fill it. `openapi/sandbank.json` is committed.

use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Components, OpenApi as Document};

use crate::routes::Routes;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sandbank",
        description = "Isolated Linux sandboxes for AI agents. A superset of sandboxd's API: \
            every successful answer is 200, and `:verb` paths take an empty POST. The routes \
            marked with an optional token need none while the daemon is bound to a loopback \
            address.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(crate::error::ErrorBody<'static>)),
    tags(
        (name = "sandboxes", description = "Machines with a workspace"),
        (name = "commands", description = "Programs run in a sandbox, with their output"),
        (name = "files", description = "The workspace's files"),
        (name = "git", description = "Repositories in the workspace"),
        (name = "ports", description = "Things listening in a sandbox"),
        (name = "images", description = "What sandboxes are made of"),
        (name = "tokens", description = "Who may call"),
        (name = "sessions", description = "Sessions as Sandkasten's clients call them"),
        (name = "workspaces", description = "Workspaces that are kept when their sessions end"),
        (name = "tools", description = "What a model is given: a shell, files and URLs of a sandbox"),
        (name = "mcp", description = "The tools for agents that speak the Model Context Protocol"),
        (name = "chat", description = "A conversation with a model that has the tools"),
        (name = "daemon", description = "Health, events, this document"),
    ),
)]
struct Frame;

/// No route yet.
pub(crate) fn base() -> Routes {
    let mut document: Document = Frame::openapi();
    let components = document.components.get_or_insert_with(Components::new);
    components
        .add_security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    let header = ApiKey::Header(ApiKeyValue::new("x-remcochat-admin-token"));
    components.add_security_scheme("adminHeader", SecurityScheme::ApiKey(header));
    Routes::new(document)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use crate::app::openapi_json;

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let document: Value = serde_json::from_slice(openapi_json()).unwrap();
        let paths = document["paths"].as_object().unwrap().values();
        let operations = paths.flat_map(|path| path.as_object().unwrap().values());
        let mut seen = HashSet::new();
        for operation in operations {
            let id = operation["operationId"].as_str().unwrap();
            assert!(seen.insert(id), "{id} stands twice");
        }
    }

    #[test]
    fn the_committed_document_matches_the_routes() {
        let document = std::str::from_utf8(openapi_json()).unwrap();
        crate::committed::check("openapi/sandbank.json", document);
    }
}
