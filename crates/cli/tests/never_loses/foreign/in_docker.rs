//! Containers, volumes and a network in the Docker that ours are in.

use std::sync::Arc;

use anyhow::Context;
use sandbank_test_support::{PrivateDocker, SUITE_IMAGE, TestDaemon};

use super::{LOOK_ALIKE, Planted, STRANGER};

pub(super) struct Foreign {
    docker: Arc<PrivateDocker>,
    /// Kind and name, in the order in which they can be removed.
    objects: Vec<(&'static str, String)>,
}

impl Foreign {
    pub(super) fn plant(daemon: &TestDaemon) -> anyhow::Result<Self> {
        let docker = daemon.shared_docker().context("it is over Docker")?;
        let mut planted = Self { docker, objects: Vec::new() };
        let named = format!("sandbank-{LOOK_ALIKE}");
        // By its name ours, by its labels nobody's.
        planted.container(&named, &[])?;
        planted.make("volume", &["volume", "create"], &[], &format!("{named}-workspace"))?;
        // Another instance's, and one whose name begins as ours does.
        for (number, instance) in
            [STRANGER.to_owned(), format!("{}x", daemon.instance()?)].iter().enumerate()
        {
            let sandbox = format!("{}{number}", &LOOK_ALIKE[..LOOK_ALIKE.len() - 1]);
            let labels =
                [format!("sandbank.instance={instance}"), format!("sandbank.sandbox={sandbox}")];
            planted.container(&format!("sandbank-{sandbox}"), &labels)?;
            let volume = format!("sandbank-{sandbox}-workspace");
            planted.make("volume", &["volume", "create"], &labels, &volume)?;
            let network = format!("sandbank-{instance}");
            planted.make(
                "network",
                &["network", "create", "--internal"],
                &labels[..1],
                &network,
            )?;
        }
        Ok(planted)
    }

    fn container(&mut self, name: &str, labels: &[String]) -> anyhow::Result<()> {
        let labels = labels.iter().flat_map(|label| ["--label", label.as_str()]);
        let words = ["create", "--network", "none", "--name", name].into_iter().chain(labels);
        let words: Vec<_> = words.chain([SUITE_IMAGE, "true"]).collect();
        self.docker.said(&words)?;
        self.objects.push(("container", name.to_owned()));
        Ok(())
    }

    fn make(
        &mut self,
        kind: &'static str,
        words: &[&str],
        labels: &[String],
        name: &str,
    ) -> anyhow::Result<()> {
        let labels = labels.iter().flat_map(|label| ["--label", label.as_str()]);
        let words: Vec<_> = words.iter().copied().chain(labels).chain([name]).collect();
        self.docker.said(&words)?;
        self.objects.push((kind, name.to_owned()));
        Ok(())
    }
}

impl Planted for Foreign {
    fn check(&self) -> anyhow::Result<()> {
        for (kind, name) in &self.objects {
            let found = self.docker.said(&[kind, "inspect", name]);
            found.with_context(|| format!("the {kind} {name} was taken away"))?;
        }
        Ok(())
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        for (kind, name) in &self.objects {
            let _ = self.docker.docker(&[kind, "rm", name]);
        }
    }
}
