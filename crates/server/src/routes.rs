//! The route table: each route is added once, with its handler, its documentation and who may
//! call it. Router, OpenAPI document and access decisions all come from here.

use std::collections::HashMap;

use axum::Router;
use http::Method;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Components, OpenApi};
use utoipa_axum::router::UtoipaMethodRouter;

use crate::app::App;
use crate::auth::{Access, Scope};
use crate::dialects::Dialect;
use crate::verb_path;

pub(crate) struct Routes {
    pub(crate) router: Router<App>,
    pub(crate) api: OpenApi,
    pub(crate) access: AccessTable,
}

/// Who may call what, by the router's own path.
#[derive(Debug, Default)]
pub(crate) struct AccessTable(HashMap<String, Vec<(Method, Access)>>);

impl Routes {
    pub(crate) fn new(api: OpenApi) -> Self {
        Self { router: Router::new(), api, access: AccessTable::default() }
    }

    #[must_use]
    pub(crate) fn add(mut self, access: Access, route: UtoipaMethodRouter<App>) -> Self {
        let (schemas, paths, handlers) = route;
        for (path, mut item) in paths.paths {
            let inner = verb_path::split(&path).unwrap_or_else(|| path.clone());
            self.router = self.router.route(&inner, handlers.clone());
            for (method, operation) in operations(&mut item) {
                operation.security = Some(requirements(access));
                operation.operation_id = operation_id(operation);
                self.access.0.entry(inner.clone()).or_default().push((method, access));
            }
            match self.api.paths.paths.get_mut(&path) {
                Some(known) => known.merge_operations(item),
                None => drop(self.api.paths.paths.insert(path, item)),
            }
        }
        let known = &mut self.api.components.get_or_insert_with(Components::new).schemas;
        for (name, schema) in schemas {
            match known.get(&name) {
                // Clients would be made for one of the two, and fail on the other.
                Some(other) if *other != schema => panic!(
                    "two schemas are called {name}: give one another name with #[schema(as = …)]"
                ),
                _ => drop(known.insert(name, schema)),
            }
        }
        self
    }
}

impl AccessTable {
    /// Unknown routes need what their dialect's would, so that they tell nothing: the sessions' a
    /// token, sandboxd's one off loopback, the workspace's one where it is not opened.
    pub(crate) fn of(&self, method: &Method, route: Option<&str>, path: &str) -> Access {
        let known = route.and_then(|route| self.0.get(route));
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let find = |method: &Method| {
            known?.iter().find(|(known, _)| known == method).map(|(_, access)| *access)
        };
        find(method).or_else(|| find(wanted)).unwrap_or_else(|| match Dialect::of(path) {
            Dialect::Own => Access::Sandboxd(Scope::ReadOnly),
            Dialect::Sessions => Access::Sessions(Scope::ReadOnly),
            Dialect::Workspace => Access::Workspace(Scope::ReadOnly),
            Dialect::Tools => Access::Tools(Scope::Sandbox),
        })
    }
}

/// `sandboxes_list`: handlers of different resources share their names.
fn operation_id(operation: &Operation) -> Option<String> {
    let tag = operation.tags.as_ref()?.first()?;
    Some(format!("{tag}_{}", operation.operation_id.as_ref()?))
}

fn operations(item: &mut PathItem) -> Vec<(Method, &mut Operation)> {
    let slots = [
        (Method::GET, &mut item.get),
        (Method::PUT, &mut item.put),
        (Method::POST, &mut item.post),
        (Method::DELETE, &mut item.delete),
        (Method::HEAD, &mut item.head),
        (Method::PATCH, &mut item.patch),
    ];
    let used = slots.into_iter().filter_map(|(method, slot)| Some((method, slot.as_mut()?)));
    used.collect()
}

fn requirements(access: Access) -> Vec<SecurityRequirement> {
    let none: [&str; 0] = [];
    let token =
        [SecurityRequirement::new("bearer", none), SecurityRequirement::new("adminHeader", none)];
    match access {
        Access::Public => Vec::new(),
        Access::Sandboxd(_) | Access::Chat(_) => {
            [SecurityRequirement::default()].into_iter().chain(token).collect()
        }
        Access::Token(_) | Access::Sessions(_) | Access::Workspace(_) | Access::Tools(_) => {
            token.to_vec()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::MethodRouter;
    use utoipa::openapi::path::Paths;
    use utoipa::openapi::schema::{ObjectBuilder, Type};
    use utoipa::openapi::{RefOr, Schema};

    use super::*;

    fn with(routes: Routes, name: &str, kind: Type) -> Routes {
        let schema: RefOr<Schema> = ObjectBuilder::new().schema_type(kind).build().into();
        routes.add(
            Access::Public,
            (vec![(name.to_owned(), schema)], Paths::new(), MethodRouter::new()),
        )
    }

    #[test]
    fn the_same_schema_may_be_used_by_many_routes() {
        let routes = with(crate::openapi::base(), "Same", Type::String);
        let routes = with(with(routes, "Same", Type::String), "Other", Type::Integer);
        let known = routes.api.components.unwrap().schemas;
        assert!(known.contains_key("Same") && known.contains_key("Other"));
    }

    #[test]
    #[should_panic(expected = "two schemas are called Same")]
    fn two_schemas_of_one_name_are_refused() {
        let routes = with(crate::openapi::base(), "Same", Type::String);
        let _ = with(routes, "Same", Type::Integer);
    }
}
