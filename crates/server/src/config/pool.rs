//! `sandboxes.pool`: which machines are kept ready, as `image=machines`, `image@none=machines` or
//! `image@engine=machines`.

use sandbank_engine::{ImageName, NetworkMode};
use sandbank_orchestrator::{MAX_POOL, PoolEntry, Recipe};

use super::error::ConfigError;
use super::resolve::Resolved;
use super::{EngineKind, SandboxSettings, Settings};

const KEY: &str = "sandboxes.pool";

/// Machines of one image, with everything else as callers get it who do not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyMachines {
    pub image: ImageName,
    pub network: NetworkMode,
    /// If not the default one.
    pub engine: Option<EngineKind>,
    pub machines: usize,
}

/// `@` never stands in an image's name, unlike `:` and `/`.
pub(super) fn parse(text: &str) -> Option<ReadyMachines> {
    let (what, machines) = text.split_once('=')?;
    let mut words = what.trim().split('@');
    let image = words.next()?.parse().ok()?;
    let (mut network, mut engine) = (NetworkMode::Default, None);
    for word in words {
        match (word, EngineKind::named(word)) {
            ("none", _) if network == NetworkMode::Default => network = NetworkMode::None,
            (_, Some(kind)) if engine.is_none() => engine = Some(kind),
            _ => return None,
        }
    }
    let machines = machines.trim().parse().ok().filter(|n| (1..=MAX_POOL).contains(n))?;
    Some(ReadyMachines { image, network, engine, machines })
}

pub(super) fn read(
    table: &Resolved,
    default: EngineKind,
    others: &[EngineKind],
) -> Result<Vec<ReadyMachines>, ConfigError> {
    let refused = |reason| ConfigError::Pool { origin: table.origin(KEY), reason };
    let words = table.list(KEY);
    let mut entries: Vec<_> =
        words.iter().map(|word| parse(word).expect("checked by the table")).collect();
    for (entry, word) in entries.iter_mut().zip(&words) {
        let is_default = entry.engine == Some(default);
        entry.engine = entry.engine.filter(|_| !is_default);
        if entry.engine.is_some_and(|engine| !others.contains(&engine)) {
            return Err(refused(format!("the engine of {word} is not among the setting engines")));
        }
    }
    for (place, entry) in entries.iter().enumerate() {
        let what = |ready: &ReadyMachines| (ready.image.clone(), ready.network, ready.engine);
        let same = |other: &&ReadyMachines| what(other) == what(entry);
        if entries[..place].iter().any(|other| same(&other)) {
            return Err(refused(format!("it names {} twice", words[place])));
        }
    }
    let sum: usize = entries.iter().map(|entry| entry.machines).sum();
    if sum > MAX_POOL {
        return Err(refused(format!(
            "it asks for {sum} machines, and at most {MAX_POOL} are kept"
        )));
    }
    Ok(entries)
}

pub(super) fn for_sessions(table: &Resolved) -> Vec<(String, usize)> {
    let entries = table.list("sessions.pool").into_iter().filter_map(|word| parse(&word));
    entries.map(|ready| (ready.image.into(), ready.machines)).collect()
}

impl Settings {
    /// Both pools in the orchestrator's words, each recipe once; `there` are the images that the
    /// default engine has. Whether an engine holds workspaces to their quotas is asked by its name,
    /// which the default one has not.
    pub fn pool_entries(
        &self,
        there: &[ImageName],
        enforces_quota: impl Fn(Option<&str>) -> bool,
    ) -> Vec<PoolEntry> {
        let mut entries = self.sandboxes.pool_entries(&enforces_quota);
        for more in crate::dialects::session_pool(self, there, enforces_quota(None)) {
            match entries.iter_mut().find(|entry| entry.recipe == more.recipe) {
                Some(entry) => entry.size += more.size,
                None => entries.push(more),
            }
        }
        entries
    }
}

impl SandboxSettings {
    fn pool_entries(&self, enforces_quota: impl Fn(Option<&str>) -> bool) -> Vec<PoolEntry> {
        let entry = |ready: &ReadyMachines| {
            let engine = ready.engine.and_then(EngineKind::name);
            let recipe = Recipe {
                engine: engine.map(str::to_owned),
                image: ready.image.clone(),
                network: ready.network,
                limits: self.default_limits(enforces_quota(engine)),
            };
            PoolEntry { recipe, size: ready.machines }
        };
        self.pool.iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigFlags, Sources, load};

    fn pool(text: &str) -> Result<Vec<ReadyMachines>, String> {
        let flags = ConfigFlags::default().with(KEY, text);
        let settings = load(&Sources { flags, is_root: true, ..Sources::default() });
        settings.map(|settings| settings.sandboxes.pool).map_err(|error| error.to_string())
    }

    #[test]
    fn a_pool_names_images_networks_and_numbers() {
        assert_eq!(pool(""), Ok(Vec::new()));
        let read = pool("host=4, host@none=2,library/python:3.13=1").unwrap();
        let seen: Vec<_> = read.iter().map(|e| (e.image.as_str(), e.network, e.machines)).collect();
        let expected = [
            ("host", NetworkMode::Default, 4),
            ("host", NetworkMode::None, 2),
            ("library/python:3.13", NetworkMode::Default, 1),
        ];
        assert_eq!(seen, expected);
        for bad in ["host", "host=", "host=0", "host=-1", "host=257", "HOST=1", "host@wide=1"] {
            let error = pool(bad).unwrap_err();
            assert!(error.contains("image=machines"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_pool_that_is_too_large_or_names_something_twice_is_refused_in_words() {
        assert!(pool("host=255,host@none=1").is_ok());
        let large = pool("host=255,host@none=2").unwrap_err();
        assert!(large.contains("257 machines") && large.contains("--pool"), "{large}");
        let twice = pool("host=1,host@none=1,host=2").unwrap_err();
        assert!(twice.contains("twice"), "{twice}");
    }

    #[test]
    fn a_pool_may_be_of_an_engine_that_is_configured() {
        let both = ConfigFlags::default().with("engines", "native,docker");
        let pool = |text: &str| {
            let flags = both.clone().with(KEY, text);
            let settings = load(&Sources { flags, is_root: true, ..Sources::default() });
            settings.map_err(|error| error.to_string())
        };
        let settings = pool("host=1,node24@docker@none=2,host@native@none=3").unwrap();
        let entries = settings.pool_entries(&[], |engine| engine.is_none());
        let seen: Vec<_> = entries
            .iter()
            .map(|PoolEntry { recipe, size }| {
                (
                    recipe.engine.as_deref(),
                    recipe.network,
                    recipe.limits.disk_bytes.is_some(),
                    *size,
                )
            })
            .collect();
        let (none, open) = (NetworkMode::None, NetworkMode::Default);
        let expected =
            [(None, open, true, 1), (Some("docker"), none, false, 2), (None, none, true, 3)];
        assert_eq!(seen, expected);
        let twice = pool("host=1,host@native=2").unwrap_err();
        assert!(twice.contains("twice"), "{twice}");
        let stranger = super::tests::pool("host@docker=1").unwrap_err();
        assert!(stranger.contains("is not among the setting engines"), "{stranger}");
        for bad in ["host@docker@native=1", "host@none@none=1", "host@docker@docker=1", "host@=1"] {
            assert!(pool(bad).is_err(), "{bad}");
        }
    }
}
