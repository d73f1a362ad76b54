//! The bridge that machines with network are on: apart from each other and from everybody else.

use std::collections::HashMap;

use bollard::models::{NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::InspectNetworkOptions;
use sandbank_engine::{Control, EngineError, InstanceId};
use tokio::sync::Mutex;

use crate::connection::{Client, status_of};
use crate::naming;

/// Whether containers on the bridge reach each other.
const BETWEEN: &str = "com.docker.network.bridge.enable_icc";

pub(crate) struct Network {
    pub(crate) name: String,
    instance: InstanceId,
    /// Whether it was found as it should be; held while somebody looks.
    ready: Mutex<bool>,
}

impl Network {
    pub(crate) fn new(name: Option<String>, instance: &InstanceId) -> Self {
        let name = name.unwrap_or_else(|| naming::network(instance));
        Self { name, instance: instance.clone(), ready: Mutex::new(false) }
    }

    /// It is there, or an error says why machines cannot use it.
    pub(crate) async fn ensure(&self, client: &Client) -> Result<(), EngineError> {
        let mut ready = self.ready.lock().await;
        if *ready {
            return Ok(());
        }
        match self.look(client).await? {
            Some(found) => self.check(&found)?,
            None => self.make(client).await?,
        }
        *ready = true;
        Ok(())
    }

    /// Somebody may have removed it.
    pub(crate) async fn forget(&self) {
        *self.ready.lock().await = false;
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
        let make = "make the network";
        match client.api().create_network(request).await {
            Ok(_) => Ok(()),
            // Another daemon was faster.
            Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 409) => {
                match self.look(client).await? {
                    Some(found) => self.check(&found),
                    None => Err(client.failed(make)(error)),
                }
            }
            Err(error) => Err(client.failed(make)(error)),
        }
    }

    /// When nobody is on it, and it is ours.
    pub(crate) async fn remove_if_unused(&self, client: &Client) {
        let mut ready = self.ready.lock().await;
        let Ok(Some(found)) = self.look(client).await else { return };
        let ours = found.labels.as_ref().and_then(|labels| labels.get(naming::INSTANCE))
            == Some(&self.instance.to_string());
        if ours && client.api().remove_network(&self.name).await.is_ok() {
            *ready = false;
        }
    }
}
