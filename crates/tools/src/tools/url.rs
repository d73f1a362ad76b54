//! Where a server in the sandbox is reached.

use serde_json::{Value, json};

use super::schema::Input;
use crate::{Sandbox, ToolError};

/// `host` is the one by which the caller reaches this server.
pub(super) async fn of_port(
    sandbox: &dyn Sandbox,
    input: &Input,
    host: Option<&str>,
) -> Result<Value, ToolError> {
    let port = input.integer("port").and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
    let url = sandbox.url(port).await?;
    Ok(json!({ "url": with_host(&url, host) }))
}

/// Ports that are published on every address of the server are reached by its name.
fn with_host(url: &str, host: Option<&str>) -> String {
    let host = host.unwrap_or("localhost").trim_matches(['[', ']']);
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    for anywhere in ["://0.0.0.0:", "://[::]:"] {
        if let Some((proto, port)) = url.split_once(anywhere) {
            return format!("{proto}://{host}:{port}");
        }
    }
    url.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_port_on_every_address_is_reached_by_the_callers_name_for_the_server() {
        let certain = "http://127.0.0.1:4000";
        assert_eq!(with_host(certain, Some("x.example")), certain);
        assert_eq!(with_host("http://0.0.0.0:4", Some("x.example")), "http://x.example:4");
        assert_eq!(with_host("https://[::]:4", Some("fd00::1")), "https://[fd00::1]:4");
        assert_eq!(with_host("http://0.0.0.0:4", None), "http://localhost:4");
    }
}
