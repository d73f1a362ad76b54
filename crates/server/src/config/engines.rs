//! `engine` and `engines`: what makes sandboxes, and what makes those of callers who do not say.

use sandbank_engine::ImageName;

use super::Settings;
use super::error::ConfigError;
use super::resolve::Resolved;

const NATIVE: &str = "native";
const DOCKER: &str = "docker";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// Native where its controls can be enforced, else Docker.
    Auto,
    Native,
    Docker,
}

impl EngineKind {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            NATIVE => Some(Self::Native),
            DOCKER => Some(Self::Docker),
            _ => None,
        }
    }

    /// The engine's own name; none as long as it is open which it will be.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Native => Some(NATIVE),
            Self::Docker => Some(DOCKER),
        }
    }
}

/// The default one, and the others that callers may name. With others it is not left open.
pub(super) fn read(table: &Resolved) -> Result<(EngineKind, Vec<EngineKind>), ConfigError> {
    let default = table.text("engine").and_then(EngineKind::named);
    let words = table.list("engines");
    let refused = |reason| ConfigError::Engines { origin: table.origin("engines"), reason };
    let mut kinds = Vec::new();
    for word in &words {
        let kind = EngineKind::named(word).expect("checked by the table");
        if kinds.contains(&kind) {
            return Err(refused(format!("it names {word} twice")));
        }
        kinds.push(kind);
    }
    let default = match (default, kinds.first()) {
        (None, None) => EngineKind::Auto,
        (Some(default), None) => default,
        (None, Some(first)) => *first,
        (Some(default), Some(_)) if kinds.contains(&default) => default,
        (Some(default), Some(_)) => {
            let name = default.name().expect("it was named");
            return Err(refused(format!(
                "the default engine, {name}, is not among {}",
                words.join(", ")
            )));
        }
    };
    kinds.retain(|kind| *kind != default);
    Ok((default, kinds))
}

impl Settings {
    /// Whether callers may name it.
    pub fn has_engine(&self, kind: EngineKind) -> bool {
        self.engine == kind || self.other_engines.contains(&kind)
    }

    /// What sandboxes of an engine are made of when nobody says: there is no image of this machine
    /// in Docker.
    pub fn default_image(&self, engine: &str) -> &ImageName {
        let usual = &self.sandboxes.default_image;
        match &self.docker.default_image {
            Some(image) if engine == DOCKER && usual.is_host() => image,
            _ => usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigFlags, Sources, load};

    fn settings(flags: &[(&'static str, &str)]) -> Result<Settings, String> {
        let flags =
            flags.iter().fold(ConfigFlags::default(), |all, (key, value)| all.with(key, *value));
        load(&Sources { flags, is_root: true, ..Sources::default() })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_of_several_engines_or_the_named_one_is_the_default() {
        let (native, docker) = (EngineKind::Native, EngineKind::Docker);
        let read = |flags: &[(&'static str, &str)]| {
            let settings = settings(flags).unwrap();
            (settings.engine, settings.other_engines)
        };
        assert_eq!(read(&[]), (EngineKind::Auto, vec![]));
        assert_eq!(read(&[("engine", "docker")]), (docker, vec![]));
        assert_eq!(read(&[("engines", "docker")]), (docker, vec![]));
        assert_eq!(read(&[("engines", "docker, native")]), (docker, vec![native]));
        let both = ("engines", "native,docker");
        assert_eq!(read(&[both]), (native, vec![docker]));
        assert_eq!(read(&[both, ("engine", "auto")]), (native, vec![docker]));
        assert_eq!(read(&[both, ("engine", "docker")]), (docker, vec![native]));
    }

    #[test]
    fn engines_that_contradict_each_other_are_refused_in_words() {
        let twice = settings(&[("engines", "native,native")]).unwrap_err();
        assert!(twice.contains("native twice") && twice.contains("--engines"), "{twice}");
        let stranger = settings(&[("engine", "docker"), ("engines", "native")]).unwrap_err();
        assert!(stranger.contains("docker, is not among native"), "{stranger}");
        for bad in ["auto", "podman", "Native"] {
            let error = settings(&[("engines", bad)]).unwrap_err();
            assert!(error.contains("native or docker"), "{bad}: {error}");
        }
    }

    #[test]
    fn docker_has_a_default_image_of_its_own_where_the_usual_one_is_this_machine() {
        let image = |flags: &[(&'static str, &str)], engine| {
            settings(flags).unwrap().default_image(engine).to_string()
        };
        let docker = ("docker.default_image", "node24");
        assert_eq!(image(&[], "docker"), "host");
        assert_eq!(
            (image(&[docker], "native"), image(&[docker], "docker")),
            ("host".into(), "node24".into())
        );
        let usual = ("sandboxes.default_image", "python3.13");
        assert_eq!(image(&[docker, usual], "docker"), "python3.13");
    }
}
