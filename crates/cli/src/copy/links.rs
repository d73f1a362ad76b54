//! Symbolic links in a sandbox. The file API has none on purpose, so the sandbox's own `ln`
//! makes them, with the workload's rights.

use crate::client::{Client, Follow, Record};
use crate::failure::{Exit, Failure};
use crate::options::{CommandOptions, fresh_name};

const SCRIPT: &str = r#"while [ $# -gt 1 ]; do ln -sfn -- "$1" "$2" || exit 1; shift 2; done"#;

/// Makes each link, replacing what has its name, or fails.
pub(super) async fn make(
    client: &Client,
    sandbox: &str,
    links: &[(String, String)],
) -> Result<(), Failure> {
    let mut argv = vec!["sh".to_owned(), "-c".to_owned(), SCRIPT.to_owned(), fresh_name("links")];
    for (target, place) in links {
        argv.push(target.clone());
        argv.push(place.clone());
    }
    let request = CommandOptions::plain(argv).request(false)?;
    client.start_command(sandbox, &request).await?;
    let mut follow = Follow::new(client, sandbox, &request.command_id, 0, true);
    while let Some(record) = follow.next().await? {
        if let Record::Ended { ending } = record {
            return match ending.exit_code() {
                Some(0) => Ok(()),
                _ => Err(Failure::new(Exit::Refused, "the link could not be made")),
            };
        }
    }
    Err(Failure::new(Exit::Internal, "nobody said whether the link was made"))
}
