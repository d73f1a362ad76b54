//! What a Sandkasten daemon keeps ready: a switch, and a number for each image. Here it is one list.

use super::super::error::{ConfigError, Origin};
use super::Taken;
use super::names::{Meaning, Name};
use super::translate::invalid;

pub(super) const KEY: &str = "sessions.pool";

#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The first that is read counts, and the environment is read first.
    switch: Option<bool>,
    images: Vec<String>,
    origin: Option<Origin>,
}

impl Pool {
    /// Takes what concerns it, and says whether it did.
    pub(super) fn take(
        &mut self,
        name: &Name,
        key: &str,
        text: &str,
        origin: &Origin,
    ) -> Result<bool, ConfigError> {
        match name.meaning {
            Meaning::PoolSwitch => {
                let switch = match text.trim().to_ascii_lowercase().as_str() {
                    "true" | "1" | "yes" | "on" => true,
                    "" | "false" | "0" | "no" | "off" => false,
                    _ => return Err(invalid(origin, text, "true or false")),
                };
                self.switch.get_or_insert(switch);
            }
            Meaning::PoolImage => {
                let image = name.yaml.strip_suffix('*').and_then(|start| key.strip_prefix(start));
                let machines = text.trim().parse::<usize>();
                let machines = machines.map_err(|_| invalid(origin, text, "a number"))?;
                if machines > 0 {
                    self.images.push(format!("{}={machines}", image.unwrap_or_default()));
                }
                self.origin = Some(origin.clone());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Once everything is read.
    pub(super) fn give(self, taken: &mut Taken, notices: &mut Vec<String>) {
        match (self.switch, self.origin) {
            (Some(true), Some(origin)) => {
                taken.insert(KEY, (self.images.join(","), origin));
            }
            (Some(true), None) => notices.push(
                "pool.enabled is set, but pool.images names no image to keep ready".to_owned(),
            ),
            (_, Some(origin)) => {
                notices.push(format!("{origin} is set, but has no effect without pool.enabled"));
            }
            (_, None) => {}
        }
    }
}
