//! Which image a session's word for one stands for.

use std::collections::BTreeSet;

use sandbank_engine::ImageName;
use sandbank_orchestrator::{PoolEntry, Recipe};

use crate::app::App;
use crate::config::{SessionSettings, Settings};
use crate::error::{ApiError, ApiResult};

/// Known to every client; the default image stands in for those that were not imported.
const RUNTIMES: [&str; 3] = ["base", "python", "node"];
/// How the first version's documents write them.
const RUNTIME_PREFIX: &str = "sandbox-runtime:";

/// The image, and the name as the caller wrote it.
pub(super) async fn resolve(app: &App, asked: Option<&str>) -> ApiResult<(ImageName, String)> {
    let settings = &app.settings().sessions;
    let name = asked.map_or(&*settings.default_image, str::trim);
    let engine = app.orchestrator().engine();
    let there = app.images().names(&**engine).await?;
    let default = app.settings().default_image(engine.name());
    let found = find(name, |name| name == default || there.contains(name), default);
    match found.filter(|_| is_allowed(settings, name)) {
        Some(image) => Ok((image, name.to_owned())),
        None => {
            let there = there.iter().map(|name| name.as_str().to_owned());
            let mut known: BTreeSet<String> = there.collect();
            known.extend(RUNTIMES.map(str::to_owned));
            known.retain(|name| is_allowed(settings, name));
            Err(unknown(name, &known))
        }
    }
}

/// What sessions' pool keeps ready, in the orchestrator's words. A word that stands for no image
/// that is there yet is passed on as it is: it may be imported later.
pub(crate) fn pool_entries(
    settings: &Settings,
    there: &[ImageName],
    enforces_quota: bool,
) -> Vec<PoolEntry> {
    let default = settings.default_image(settings.engine.name().unwrap_or_default());
    let is_there = |name: &ImageName| name == default || there.contains(name);
    let ready = settings.sessions.pool.iter().filter_map(|(name, size)| {
        let image = find(name, is_there, default).or_else(|| name.parse().ok())?;
        let network = settings.sessions.network;
        let limits = settings.sandboxes.default_limits(enforces_quota);
        Some(PoolEntry { recipe: Recipe { engine: None, image, network, limits }, size: *size })
    });
    ready.collect()
}

fn find(
    name: &str,
    is_there: impl Fn(&ImageName) -> bool,
    default: &ImageName,
) -> Option<ImageName> {
    let short = short(name);
    let imported = [name, short].into_iter().filter_map(|name| name.parse().ok()).find(is_there);
    imported.or_else(|| RUNTIMES.contains(&short).then(|| default.clone()))
}

fn short(name: &str) -> &str {
    name.strip_prefix(RUNTIME_PREFIX).unwrap_or(name)
}

fn is_allowed(settings: &SessionSettings, name: &str) -> bool {
    let allowed = &settings.allowed_images;
    allowed.is_empty() || allowed.iter().any(|known| short(known) == short(name))
}

fn unknown(name: &str, known: &BTreeSet<String>) -> ApiError {
    let name: String = name.chars().take(80).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let message = format!("invalid image {name:?}; there are: {}", known.join(", "));
    ApiError::bad_request("INVALID_IMAGE", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str) -> Option<String> {
        let default: ImageName = "host".parse().unwrap();
        let is_there = |name: &ImageName| ["python", "mine:1"].contains(&name.as_str());
        find(name, is_there, &default).map(String::from)
    }

    #[test]
    fn a_pool_of_sessions_is_of_the_images_that_sessions_get() {
        use crate::config::{ConfigFlags, Sources, load};
        let flags = ConfigFlags::default()
            .with("sessions.pool", "python=2, base=1,later=3")
            .with("sandboxes.pool", "host@none=4");
        let settings = load(&Sources { flags, is_root: true, ..Sources::default() }).unwrap();
        let entries = settings.pool_entries(&["python".parse().unwrap()], |_| true);
        let seen: Vec<_> = entries
            .iter()
            .map(|entry| (entry.recipe.image.as_str(), entry.recipe.network, entry.size))
            .collect();
        let none = sandbank_engine::NetworkMode::None;
        assert_eq!(seen, [("host", none, 5), ("python", none, 2), ("later", none, 3)]);
    }

    #[test]
    fn imported_images_win_and_known_words_fall_back_to_the_default() {
        assert_eq!(found("python").as_deref(), Some("python"));
        assert_eq!(found("sandbox-runtime:python").as_deref(), Some("python"));
        assert_eq!(found("mine:1").as_deref(), Some("mine:1"));
        assert_eq!(found("node").as_deref(), Some("host"));
        assert_eq!(found("sandbox-runtime:base").as_deref(), Some("host"));
        for unknown in ["", "ruby", "sandbox-runtime:ruby", "../x", "PYTHON", "mine"] {
            assert_eq!(found(unknown), None, "{unknown}");
        }
    }
}
