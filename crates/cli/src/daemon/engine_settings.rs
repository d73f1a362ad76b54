//! The configuration's words in the parts' own types.

use std::time::Duration;

use sandbank_engine::{Control, Engine, InstanceId};
use sandbank_engine_docker::DockerSettings;
use sandbank_engine_native::{NativeSettings, Omitted, StorageKind as NativeStorage, Subnet};
use sandbank_orchestrator::Settings as LifecycleSettings;
use sandbank_registry::{Mirror, RegistrySettings};
use sandbank_server::config::{ImageSettings, Settings, StorageKind};

use super::others::Other;
use super::start_failure::DOCKER;
use crate::failure::Failure;

pub(super) fn docker_settings(settings: &Settings, instance: InstanceId) -> DockerSettings {
    let default = settings.default_image(DOCKER).clone();
    DockerSettings {
        host: settings.docker.host.clone(),
        runtime: settings.docker.runtime.clone(),
        network: settings.docker.network.clone(),
        host_addresses: settings.docker.host_addresses.clone(),
        resolvers: settings.docker.resolvers.clone(),
        default_image: (!default.is_host()).then_some(default),
        allow_weaker: settings.allow_weaker.clone(),
        scratch: settings.data_dir.clone(),
        ..DockerSettings::new(instance)
    }
}

pub(super) fn native_settings(
    settings: &Settings,
    instance: InstanceId,
) -> Result<NativeSettings, Failure> {
    let mut native = NativeSettings::new(&settings.data_dir, instance);
    native.storage = match settings.storage.kind {
        StorageKind::Auto => NativeStorage::Auto,
        StorageKind::Btrfs => NativeStorage::Btrfs,
        StorageKind::Plain => NativeStorage::Plain,
    };
    native.pool_bytes = settings.storage.pool_bytes;
    native.subnet = subnet(&settings.network.subnet)?;
    native.allow_weaker = settings.allow_weaker.clone();
    native.networks_ready = settings.network.pool_size;
    // These cost next to nothing to keep, and every sandbox takes one, networked or not.
    native.user_namespaces_ready = 2 * settings.network.pool_size;
    native.cgroups_ready = 2 * settings.network.pool_size;
    native.registries = registries(&settings.images)?;
    leave_out(&mut native);
    Ok(native)
}

fn registries(images: &ImageSettings) -> Result<RegistrySettings, Failure> {
    let mirrors = images.mirrors.iter().map(|text| text.parse::<Mirror>());
    let mirrors = mirrors.collect::<Result<_, _>>().map_err(|error| {
        Failure::usage(format!("the setting images.mirrors cannot be used: {error}"))
            .hint("change SANDBANK_IMAGE_MIRRORS, or leave it out")
    })?;
    let insecure = images.insecure_registries.clone();
    Ok(RegistrySettings { mirrors, insecure, stall: images.stall_timeout })
}

const LEAVE_OUT: &str = "SANDBANK_TEST_LEAVE_OUT";

/// For tests of the self-test: a build for development can be told to leave controls out, of all
/// sandboxes or, with `@image` behind their names, of those of one image.
fn leave_out(native: &mut NativeSettings) {
    if !cfg!(debug_assertions) {
        return;
    }
    let Ok(text) = std::env::var(LEAVE_OUT) else { return };
    let (names, image) = match text.split_once('@') {
        Some((names, image)) => (names, Some(image.parse().expect("the name of an image"))),
        None => (&*text, None),
    };
    // A slip in a test must not look like a control that was in force.
    let named =
        |name| Control::named(name).unwrap_or_else(|| panic!("{LEAVE_OUT}={names}: {name}?"));
    native.omitted = Omitted { controls: names.split(',').map(named).collect(), image };
}

const LOSS_INTERVAL: &str = "SANDBANK_TEST_LOSS_INTERVAL_MS";

/// For tests of who tells of a loss: a build for development can be told not to look for it.
fn loss_interval() -> Duration {
    let told = std::env::var(LOSS_INTERVAL).ok().filter(|_| cfg!(debug_assertions));
    let told = told.map(|text| Duration::from_millis(text.parse().expect("milliseconds")));
    told.unwrap_or(LifecycleSettings::default().loss_interval)
}

pub(super) async fn lifecycle_settings(
    settings: &Settings,
    engine: &dyn Engine,
    others: &[Other],
) -> LifecycleSettings {
    let images = engine.images().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "which images there are is not known; pools go by their names");
        Vec::new()
    });
    let images: Vec<_> = images.into_iter().map(|image| image.name).collect();
    let enforces_quota = |name: Option<&str>| {
        let other = others.iter().map(|other| &**other.engine());
        let named = other.into_iter().find(|other| Some(other.name()) == name);
        named.unwrap_or(engine).capabilities().disk_quota
    };
    let sandboxes = &settings.sandboxes;
    LifecycleSettings {
        max_sandboxes: sandboxes.max,
        evict_idle: sandboxes.evict_idle,
        default_idle_ttl: sandboxes.default_idle_ttl,
        max_lifetime: sandboxes.max_lifetime,
        create_deadline: sandboxes.create_deadline,
        turn_patience: LifecycleSettings::default().turn_patience,
        stop_deadline: sandboxes.stop_deadline,
        sweep_interval: sandboxes.sweep_interval,
        loss_interval: loss_interval(),
        concurrent_creates: sandboxes.concurrent_creates,
        pool: settings.pool_entries(&images, enforces_quota),
        publish_address: settings.ports.publish_address,
        listen_address: settings.ports.listen_address,
        port_range: settings.ports.range.clone(),
        keep_post_mortems: sandboxes.keep_post_mortems,
    }
}

/// The table holds to the engine's rule; what comes past it is still refused in words.
fn subnet(text: &str) -> Result<Subnet, Failure> {
    text.parse().map_err(|error| {
        Failure::usage(format!("the setting network.subnet cannot be used: {error}"))
            .hint("change SANDBANK_NETWORK_SUBNET, or leave it out")
    })
}
