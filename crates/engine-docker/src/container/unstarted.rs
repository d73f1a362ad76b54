//! A container that never starts: Docker reads and writes files through it, on whatever machine
//! that is. Nothing of its image is used but what is looked at.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, MountVolumeOptions,
};

pub(crate) fn unstarted(
    image: &str,
    labels: HashMap<String, String>,
    mounts: Vec<Mount>,
) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(image.to_owned()),
        // Without it an image that names no program is refused.
        entrypoint: Some(vec!["/nothing".to_owned()]),
        labels: Some(labels),
        host_config: Some(HostConfig {
            mounts: Some(mounts),
            network_mode: Some("none".to_owned()),
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

/// A volume that gets nothing of the image. The labels are its own if it is made with this.
pub(crate) fn bare_volume(
    name: String,
    place: &str,
    labels: Option<HashMap<String, String>>,
) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(name),
        target: Some(place.to_owned()),
        volume_options: Some(MountVolumeOptions {
            no_copy: Some(true),
            labels,
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}
