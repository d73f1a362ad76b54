//! `sandbank mcp`: the tools of a sandbox for a host that speaks MCP over its pipes.

use clap::Args;

use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::failure::Failure;
use crate::mcp::{self, Link};
use crate::options::fresh_name;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  claude mcp add sandbank -- sandbank mcp
  sandbank mcp --session my-project         the same sandbox the next time, while its lease lasts

In the configuration of a host such as Claude Desktop:
  {\"mcpServers\": {\"sandbank\": {\"command\": \"sandbank\", \"args\": [\"mcp\"]}}}

Speaks JSON-RPC on standard input and output with whoever starts it, and ends with its input. The
server is found as by every other command; start it with `sandbank serve`. Without --session the
sandbox is removed at the end. Hosts that speak HTTP can use the server's /mcp itself, with its token.")]
pub(crate) struct McpArgs {
    /// A name for the sandbox, by which it is found again; letters, digits, . _ and -
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
}

pub(crate) async fn run(context: &Context, args: McpArgs) -> Result<u8, Failure> {
    let connection = Connection::open(context, Reach::Running).await?;
    let keep = args.session.is_some();
    let name = args.session.unwrap_or_else(|| fresh_name("stdio"));
    mcp::serve(Link::new(connection.client.clone(), name, keep)).await
}
