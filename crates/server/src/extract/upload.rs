//! A body on its way into a sandbox: passed on piece by piece, as fast as the runner takes it.

use std::sync::{Arc, OnceLock};

use axum::extract::{FromRequest, Request};
use futures_util::StreamExt;
use sandbank_channel::{ChannelBody, ChannelError, stream_body};

use super::body::stalled;
use crate::app::App;
use crate::error::{ApiError, ApiResult};

pub(crate) struct Upload {
    body: ChannelBody,
    fault: Arc<OnceLock<ApiError>>,
}

/// Remembers what went wrong on the client's side, which the runner only sees as a reset.
pub(crate) struct UploadFault(Arc<OnceLock<ApiError>>);

impl FromRequest<App> for Upload {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let pause = app.settings().server.body_timeout;
        let fault = Arc::new(OnceLock::new());
        let noted = fault.clone();
        let stream = request.into_body().into_data_stream();
        let chunks = futures_util::stream::unfold(Some(stream), move |stream| {
            let noted = noted.clone();
            async move {
                let mut stream = stream?;
                let error = match tokio::time::timeout(pause, stream.next()).await {
                    Ok(Some(Ok(chunk))) => return Some((Ok(chunk), Some(stream))),
                    Ok(None) => return None,
                    Ok(Some(Err(error))) => ApiError::bad_request(
                        "body_incomplete",
                        format!("the request body broke off: {error}"),
                    ),
                    Err(_) => stalled(pause),
                };
                let text = error.message.clone();
                let _ = noted.set(error);
                Some((Err(std::io::Error::other(text)), None))
            }
        });
        Ok(Self { body: stream_body(chunks), fault })
    }
}

impl Upload {
    pub(crate) fn into_parts(self) -> (ChannelBody, UploadFault) {
        (self.body, UploadFault(self.fault))
    }
}

impl UploadFault {
    /// The client's fault where there was one, else the runner's answer.
    pub(crate) fn or<T>(self, result: Result<T, ChannelError>) -> ApiResult<T> {
        match (result, self.0.get()) {
            (Ok(value), _) => Ok(value),
            (Err(_), Some(fault)) => Err(fault.clone()),
            (Err(error), None) => Err(error.into()),
        }
    }
}
