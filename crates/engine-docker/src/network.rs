//! The bridge that machines with network are on: apart from each other and from everybody else.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use bollard::models::{NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::InspectNetworkOptions;
use sandbank_engine::{Control, EngineError, InstanceId};
use tokio::sync::Mutex;

use crate::connection::{Client, status_of};
use crate::naming;

/// Whether containers on the bridge reach each other.
const BETWEEN: &str = "com.docker.network.bridge.enable_icc";

/// What its device is called, where somebody chose that.
const DEVICE: &str = "com.docker.network.bridge.name";

/// Of a network's id, in the name of its device.
const DEVICE_CHARACTERS: usize = 12;

pub(crate) struct Network {
    pub(crate) name: String,
    instance: InstanceId,
    /// How it was found, if it was as it should be; held while somebody looks.
    ready: Mutex<Option<Bridge>>,
}

/// The network as Docker's host has it.
#[derive(Debug, Clone)]
pub(crate) struct Bridge {
    /// Its device.
    pub(crate) device: String,
    /// By somebody, so that it says little about which network it is.
    pub(crate) is_named: bool,
    /// The host's addresses on it.
    pub(crate) gateways: Vec<Ipv4Addr>,
}

impl Bridge {
    fn of(found: &NetworkInspect) -> Self {
        let named = found.options.as_ref().and_then(|options| options.get(DEVICE)).cloned();
        let is_named = named.is_some();
        let device = named.unwrap_or_else(|| {
            let id = found.id.as_deref().unwrap_or_default();
            format!("br-{}", id.get(..DEVICE_CHARACTERS).unwrap_or(id))
        });
        let configs = found.ipam.iter().flat_map(|ipam| ipam.config.iter().flatten());
        // Older engines put the length of the network behind it.
        let gateways = configs.filter_map(|config| {
            let text = config.gateway.as_deref()?;
            text.split('/').next()?.parse().ok()
        });
        Self { device, is_named, gateways: gateways.collect() }
    }
}

impl Network {
    pub(crate) fn new(name: Option<String>, instance: &InstanceId) -> Self {
        let name = name.unwrap_or_else(|| naming::network(instance));
        Self { name, instance: instance.clone(), ready: Mutex::new(None) }
    }

    /// It is there, or an error says why machines cannot use it.
    pub(crate) async fn ensure(&self, client: &Client) -> Result<Bridge, EngineError> {
        let mut ready = self.ready.lock().await;
        if let Some(bridge) = &*ready {
            return Ok(bridge.clone());
        }
        let found = match self.look(client).await? {
            Some(found) => found,
            None => {
                self.make(client).await?;
                let gone = || {
                    let text = "the network was removed as soon as it was made; try again";
                    EngineError::Unavailable(text.to_owned())
                };
                self.look(client).await?.ok_or_else(gone)?
            }
        };
        self.check(&found)?;
        Ok(ready.insert(Bridge::of(&found)).clone())
    }

    /// Somebody may have removed it.
    pub(crate) async fn forget(&self) {
        *self.ready.lock().await = None;
    }

    async fn look(&self, client: &Client) -> Result<Option<NetworkInspect>, EngineError> {
        let found = client.api().inspect_network(&self.name, None::<InspectNetworkOptions>).await;
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => {
                Ok(None)
            }
            Err(error) => Err(client.failed("look at the network")(error)),
        }
    }

    /// One that somebody else made may be used, too, as long as it keeps machines apart.
    fn check(&self, found: &NetworkInspect) -> Result<(), EngineError> {
        let options = found.options.as_ref();
        let apart = options.and_then(|o| o.get(BETWEEN)).is_some_and(|value| value == "false");
        let bridge = found.driver.as_deref() == Some("bridge");
        let old_protocol_only = found.enable_ipv6 != Some(true);
        if apart && bridge && old_protocol_only {
            return Ok(());
        }
        Err(EngineError::ControlUnavailable {
            control: Control::NetworkEgress,
            reason: format!(
                "the Docker network {} does not keep sandboxes apart: it must be a bridge without \
                 IPv6 and with {BETWEEN}=false; remove it, or name another one",
                self.name
            ),
        })
    }

    async fn make(&self, client: &Client) -> Result<(), EngineError> {
        let labels = HashMap::from([
            (naming::INSTANCE.to_owned(), self.instance.to_string()),
            (naming::VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ]);
        let request = NetworkCreateRequest {
            name: self.name.clone(),
            driver: Some("bridge".to_owned()),
            enable_ipv6: Some(false),
            attachable: Some(false),
            options: Some(HashMap::from([(BETWEEN.to_owned(), "false".to_owned())])),
            labels: Some(labels),
            ..NetworkCreateRequest::default()
        };
        match client.api().create_network(request).await {
            Ok(_) => Ok(()),
            // Another daemon was faster.
            Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 409) => Ok(()),
            Err(error) => Err(client.failed("make the network")(error)),
        }
    }

    /// When nobody is on it, and it is ours.
    pub(crate) async fn remove_if_unused(&self, client: &Client) {
        let mut ready = self.ready.lock().await;
        let Ok(Some(found)) = self.look(client).await else { return };
        let ours = found.labels.as_ref().and_then(|labels| labels.get(naming::INSTANCE))
            == Some(&self.instance.to_string());
        if ours && client.api().remove_network(&self.name).await.is_ok() {
            *ready = None;
        }
    }
}
