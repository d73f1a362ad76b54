//! `sandbank token`: the server's admin token, for other clients.

use clap::Args;
use sandbank_server::TokenFile;
use serde_json::json;

use crate::context::Context;
use crate::daemon::bad_token_file;
use crate::failure::{Exit, Failure};
use crate::locate;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  curl -H \"Authorization: Bearer $(sandbank token)\" http://127.0.0.1:8080/v1/sandboxes
  sandbank token --path

The file is made when the server first starts, and only its owner can read it.")]
pub(crate) struct TokenArgs {
    /// Print where the token is instead of the token
    #[arg(long)]
    pub(crate) path: bool,
}

pub(crate) fn run(context: &Context, args: &TokenArgs) -> Result<u8, Failure> {
    let settings = locate::settings()?;
    let path = settings.data_dir.join("token");
    if !path.try_exists().unwrap_or(true) {
        let message = format!("there is no token yet in {}", settings.data_dir.display());
        return Err(Failure::new(Exit::NotPermitted, message)
            .hint("start the server once with `sandbank serve`, or set SANDBANK_DATA_DIR"));
    }
    let file = TokenFile::open(&settings.data_dir).map_err(|error| bad_token_file(&error))?;
    match (context.ui.json, args.path) {
        (true, true) => context.ui.document(&json!({ "path": file.path }))?,
        (true, false) => {
            context.ui.document(&json!({ "path": file.path, "token": file.token.expose() }))?;
        }
        (false, true) => context.ui.line(&file.path.display().to_string())?,
        (false, false) => context.ui.line(file.token.expose())?,
    }
    Ok(0)
}
