//! Whether a volume has anything in it, on whatever machine Docker is: looked at through a container
//! that is never started.

use bollard::query_parameters::{
    CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, ListImagesOptions,
};
use futures_util::TryStreamExt;
use sandbank_engine::{EngineError, SandboxId};

use super::{Parts, destroy};
use crate::{container, naming};

const PLACE: &str = "/looked-at";

/// A directory's own entry, and the beginning of what is in it. Everything is a header of so many
/// bytes at least.
const HEADER_BYTES: usize = 512;

/// Where a header says what it is of, and what it says of a directory.
const TYPE_AT: usize = 156;
const DIRECTORY: u8 = b'5';

/// The container has the labels of a machine: whoever finds one that a dead daemon left clears it
/// away.
pub(super) async fn is_empty(parts: &Parts, volume: &str) -> Result<bool, EngineError> {
    let client = &parts.client;
    let images = client.api().list_images(None::<ListImagesOptions>).await;
    let images = images.map_err(client.failed("list the images"))?;
    // Nothing of it is used.
    let image = images.first().map(|image| image.id.clone()).ok_or_else(|| {
        EngineError::Unavailable("there is no image to look at a volume with".to_owned())
    })?;
    let id = SandboxId::random();
    let name = naming::container(&id);
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    let labels = naming::machine_labels(&parts.settings.instance, &id);
    let mount = container::bare_volume(volume.to_owned(), PLACE, None);
    let body = container::unstarted(&image, labels, vec![mount]);
    let made = client.api().create_container(Some(options), body).await;
    let looked = match made {
        Ok(_) => look(parts, &name).await,
        Err(error) => Err(client.failed("make a container")(error)),
    };
    destroy::remove_all(parts, &id).await?;
    looked
}

async fn look(parts: &Parts, container: &str) -> Result<bool, EngineError> {
    let options = DownloadFromContainerOptionsBuilder::default().path(PLACE).build();
    let mut stream = parts.client.api().download_from_container(container, Some(options));
    let mut archive = Vec::new();
    let failed = parts.client.failed("look into a volume");
    while archive.len() < 2 * HEADER_BYTES
        && let Some(piece) = stream.try_next().await.map_err(&failed)?
    {
        archive.extend_from_slice(&piece);
    }
    Ok(is_empty_directory(&archive))
}

/// The directory itself, and then the end of the archive. Whatever else stands in its place, such
/// as a link, is something.
fn is_empty_directory(archive: &[u8]) -> bool {
    let second = archive.get(HEADER_BYTES..2 * HEADER_BYTES);
    archive.get(TYPE_AT) == Some(&DIRECTORY)
        && second.is_some_and(|header| header.iter().all(|byte| *byte == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(kinds: &[tar::EntryType]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for kind in kinds {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_size(0);
            header.set_mode(0o755);
            header.set_path("looked-at").unwrap();
            if kind.is_symlink() {
                header.set_link_name("elsewhere").unwrap();
            }
            header.set_cksum();
            archive.append(&header, std::io::empty()).unwrap();
        }
        archive.into_inner().unwrap()
    }

    #[test]
    fn only_a_directory_with_nothing_in_it_is_empty() {
        use tar::EntryType::{Directory, Regular, Symlink};
        assert!(is_empty_directory(&archive(&[Directory])));
        for kinds in [&[Symlink][..], &[Regular], &[Directory, Regular], &[]] {
            assert!(!is_empty_directory(&archive(kinds)), "{kinds:?}");
        }
        assert!(!is_empty_directory(&archive(&[Directory])[..HEADER_BYTES]), "it was cut off");
    }
}
