//! One repository on one host: asks with whatever authorization the host wants.

use std::sync::{Arc, Mutex, PoisonError};

use ::http::header::WWW_AUTHENTICATE;
use ::http::{HeaderValue, StatusCode, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::challenge::{self, Challenge};
use crate::error::clipped;
use crate::http::{Answer, Ask, Http};
use crate::limits::{COMPLAINT_BYTES, TOKEN_BYTES};
use crate::{Credentials, Reference, RegistryError};

pub(crate) struct Endpoint {
    http: Arc<Http>,
    pub(crate) host: String,
    reference: Reference,
    credentials: Option<Credentials>,
    /// What the host accepted last; all downloads share it.
    authorization: Mutex<Option<HeaderValue>>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct Complaint {
    errors: Vec<ComplaintEntry>,
}

#[derive(Deserialize)]
struct ComplaintEntry {
    message: String,
}

impl Endpoint {
    pub(crate) fn new(
        http: Arc<Http>,
        host: String,
        reference: Reference,
        credentials: Option<Credentials>,
    ) -> Self {
        Self { http, host, reference, credentials, authorization: Mutex::new(None) }
    }

    /// `path` is below the repository. A successful answer, or why there is none.
    pub(crate) async fn get(
        &self,
        path: &str,
        accept: Option<&'static str>,
        from: u64,
    ) -> Result<Answer, RegistryError> {
        let (scheme, repository) = (self.http.scheme_of(&self.host), self.reference.repository());
        let uri = self.uri(&format!("{scheme}://{}/v2/{repository}/{path}", self.host))?;
        let mut ask = Ask { accept, authorization: self.authorization(), from };
        let mut answer = self.http.get(uri.clone(), &ask).await?;
        if answer.status == StatusCode::UNAUTHORIZED
            && let Some(authorization) = self.authorize(&answer).await?
        {
            ask.authorization = Some(authorization.clone());
            answer = self.http.get(uri, &ask).await?;
            if answer.status.is_success() {
                *self.lock() = Some(authorization);
            }
        }
        match answer.status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(answer),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.unauthorized()),
            StatusCode::NOT_FOUND => {
                Err(RegistryError::NotFound { reference: Box::new(self.reference.clone()) })
            }
            status => {
                let host = answer.host.clone();
                let body = answer.beginning(COMPLAINT_BYTES).await;
                let complaint = serde_json::from_slice::<Complaint>(&body).ok();
                let complaint = complaint.and_then(|all| all.errors.into_iter().next());
                let complaint =
                    complaint.map_or_else(String::new, |c| format!(": {}", clipped(&c.message)));
                Err(RegistryError::Refused { host, status: status.as_u16(), complaint })
            }
        }
    }

    fn authorization(&self) -> Option<HeaderValue> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<HeaderValue>> {
        self.authorization.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unauthorized(&self) -> RegistryError {
        RegistryError::Unauthorized {
            host: self.reference.registry().to_owned(),
            repository: self.reference.repository().to_owned(),
            known: self.credentials.is_some(),
        }
    }

    fn uri(&self, text: &str) -> Result<Uri, RegistryError> {
        text.parse().map_err(|error: ::http::uri::InvalidUri| RegistryError::Malformed {
            what: "an address",
            host: self.host.clone(),
            reason: error.to_string(),
        })
    }

    /// What to send so that the same question is answered; none when nothing would help.
    async fn authorize(&self, answer: &Answer) -> Result<Option<HeaderValue>, RegistryError> {
        // Whoever it redirected us to must not ask for what is the registry's.
        if answer.host != self.host {
            return Ok(None);
        }
        let offered = answer.headers.get_all(WWW_AUTHENTICATE);
        let mut challenges =
            offered.iter().filter_map(|value| challenge::parse(value.to_str().ok()?));
        match challenges.next() {
            Some(Challenge::Basic) => Ok(self.basic()),
            Some(Challenge::Bearer { realm, service }) => {
                self.token(&realm, service.as_deref()).await.map(Some)
            }
            None => Ok(None),
        }
    }

    fn basic(&self) -> Option<HeaderValue> {
        let Credentials { username, password } = self.credentials.as_ref()?;
        secret(&format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))))
    }

    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
    ) -> Result<HeaderValue, RegistryError> {
        let scope = format!("repository:{}:pull", self.reference.repository());
        let mut query = format!("scope={}", escaped(&scope));
        if let Some(service) = service {
            query.push_str(&format!("&service={}", escaped(service)));
        }
        let joint = if realm.contains('?') { '&' } else { '?' };
        let uri = self.uri(&format!("{realm}{joint}{query}"))?;
        self.http.may_go(&self.host, &uri)?;
        let ask = Ask { authorization: self.basic(), ..Ask::default() };
        let answer = self.http.get(uri, &ask).await?;
        match answer.status {
            StatusCode::OK => {}
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                let complaint = String::new();
                return Err(RegistryError::Refused {
                    host: answer.host,
                    status: status.as_u16(),
                    complaint,
                });
            }
            _ => return Err(self.unauthorized()),
        }
        let host = answer.host.clone();
        let body = answer.read("a token", TOKEN_BYTES).await?;
        let token: Option<Token> = serde_json::from_slice(&body).ok();
        let token = token.and_then(|token| token.token.or(token.access_token));
        token.and_then(|token| secret(&format!("Bearer {token}"))).ok_or_else(|| {
            let reason = "it is none".to_owned();
            RegistryError::Malformed { what: "a token", host, reason }
        })
    }
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// As part of a query.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
