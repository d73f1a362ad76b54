//! `sandbank port`: makes a service in a sandbox reachable, and says where.

use clap::Args;
use serde_json::json;

use crate::client::description;
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::ui::Table;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  curl $(sandbank port sbx7 3000)
  sandbank port sbx7              what is published
  sandbank port sbx7 3000 --close

Only ports named when the sandbox was made can be published (`sandbank run --port 3000`).")]
pub(crate) struct PortArgs {
    /// Id, unique beginning of an id, or key
    pub(crate) sandbox: String,
    /// The port in the sandbox; published ones are listed when left out
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Take it back
    #[arg(long, requires = "port")]
    pub(crate) close: bool,
}

pub(crate) async fn run(context: &Context, args: PortArgs) -> Result<u8, Failure> {
    let connection = Connection::open(context, Reach::Running).await?;
    let client = &connection.client;
    let sandbox = client.resolve(&args.sandbox).await?;
    let ui = &context.ui;
    let Some(port) = args.port else {
        return list(context, &connection, &sandbox).await;
    };
    if args.close {
        client.unpublish_port(&sandbox, port).await?;
        if ui.json {
            ui.document(&json!({ "port": port, "published": false }))?;
        }
        return Ok(0);
    }
    let published = client.publish_port(&sandbox, port).await?.ok_or_else(|| {
        Failure::new(Exit::Refused, format!("port {port} is not in the allow-list of {sandbox}"))
            .hint(format!(
                "make the sandbox with `--port {port}`, or \"ports\": [{port}] in the API"
            ))
    })?;
    if ui.json {
        ui.document(&published)?
    } else {
        ui.line(&published.url)?
    }
    Ok(0)
}

async fn list(context: &Context, connection: &Connection, sandbox: &str) -> Result<u8, Failure> {
    let value = connection.client.sandbox(sandbox).await?;
    let sandbox = description(&value);
    if context.ui.json {
        context.ui.document(&json!({ "ports": sandbox.ports, "published": value["published"] }))?;
        return Ok(0);
    }
    let mut table = Table::new(&["PORT", "ON THIS MACHINE"]);
    for port in &sandbox.ports {
        let published = sandbox.published.iter().find(|published| published.port == *port);
        let place = match published {
            Some(published) => published.url.clone(),
            None => "not published".to_owned(),
        };
        table.row([(port.to_string(), None), (place, None)]);
    }
    table.print(&context.ui)?;
    Ok(0)
}
