//! An upload's form as files: their names, where they go, and their bytes as they are.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use futures_util::stream;
use http::header;
use multer::Multipart;
use sandbank_channel::{ChannelBody, stream_body};
use sandbank_protocol::file_batch::{FileHeader, encode_header};
use utoipa::ToSchema;

use super::error::invalid;
use super::path;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::extract::read_whole;
use crate::limits::{
    MAX_PATH_FIELD_BYTES, MAX_UPLOADED_BYTES, MAX_UPLOADED_FILES, UPLOAD_FRAME_BYTES,
};

const MODE: u32 = 0o644;

/// Only for the documentation.
#[derive(ToSchema)]
#[schema(as = UploadForm)]
#[allow(dead_code, reason = "describes the body; `read` takes it apart")]
pub(super) struct FormBody {
    /// At most 100 of these and of `files`, 10 MiB in all.
    #[schema(value_type = Option<String>, format = Binary)]
    file: Option<Vec<u8>>,
    #[schema(value_type = Option<Vec<String>>)]
    files: Option<Vec<String>>,
    /// The directory that they go to, `/workspace` when absent.
    path: Option<String>,
}

/// Checked: written all or not at all.
pub(super) struct Form {
    /// Relative to the workspace.
    paths: Vec<String>,
    contents: Vec<Bytes>,
}

impl FromRequest<App> for Form {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let boundary = multer::parse_boundary(kind)
            .map_err(|_| invalid("the body must be multipart/form-data with a boundary"))?;
        let body = read_whole(request, app, MAX_UPLOADED_BYTES + UPLOAD_FRAME_BYTES).await?;
        read(body, &boundary).await
    }
}

async fn read(body: Bytes, boundary: &str) -> ApiResult<Form> {
    let body = stream::once(async { Ok::<_, std::convert::Infallible>(body) });
    let mut form = Multipart::new(body, boundary);
    let (mut directory, mut files, mut total) = (None, Vec::new(), 0);
    let broken = |error: multer::Error| invalid(format!("the form is not usable: {error}"));
    while let Some(field) = form.next_field().await.map_err(broken)? {
        match field.name().unwrap_or_default() {
            "path" => {
                let text = field.text().await.map_err(broken)?;
                if text.len() > MAX_PATH_FIELD_BYTES {
                    return Err(invalid("path is too long"));
                }
                directory = Some(path::directory(&text)?);
            }
            "file" | "files" => {
                let name = base_name(field.file_name().unwrap_or_default())?;
                let content = field.bytes().await.map_err(broken)?;
                total += content.len();
                files.push((name, content));
            }
            _ => {}
        }
    }
    if files.is_empty() {
        return Err(invalid("a file is required: the field file or files, with a file name"));
    }
    if files.len() > MAX_UPLOADED_FILES {
        return Err(invalid(format!("one upload has at most {MAX_UPLOADED_FILES} files")));
    }
    if total > MAX_UPLOADED_BYTES {
        let message = format!("one upload has at most {MAX_UPLOADED_BYTES} bytes of files");
        let status = http::StatusCode::PAYLOAD_TOO_LARGE;
        return Err(ApiError::new(status, "REQUEST_TOO_LARGE", message));
    }
    let directory = directory.filter(|directory| directory != ".");
    let place = |name| match &directory {
        Some(directory) => format!("{directory}/{name}"),
        None => name,
    };
    let (names, contents): (Vec<String>, Vec<Bytes>) = files.into_iter().unzip();
    let paths = names.into_iter().map(place).map(|path| path::file(&path));
    Ok(Form { paths: paths.collect::<ApiResult<_>>()?, contents })
}

/// A browser may send a whole path; only its last part names the file.
fn base_name(name: &str) -> ApiResult<String> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    if matches!(name, "" | "." | "..") {
        return Err(invalid("every file needs a file name"));
    }
    Ok(name.to_owned())
}

impl Form {
    /// Cheap: the contents are shared, so that a broken channel can be tried again.
    pub(super) fn body(&self) -> ChannelBody {
        let mut pieces = Vec::with_capacity(self.paths.len() * 2);
        for (path, content) in self.paths.iter().zip(&self.contents) {
            let size = content.len() as u64;
            let header = FileHeader { path: path.clone(), size, mode: MODE };
            pieces.push(encode_header(&serde_json::to_vec(&header).expect("plain data")));
            pieces.push(content.clone());
        }
        stream_body(stream::iter(pieces.into_iter().map(Ok)))
    }

    /// As the answer names them.
    pub(super) fn shown(&self) -> Vec<String> {
        self.paths.iter().map(|path| path::shown(path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn form(parts: &[(&str, &str, &[u8])]) -> ApiResult<Form> {
        let mut body = Vec::new();
        for (name, file, content) in parts {
            let file =
                if file.is_empty() { String::new() } else { format!("; filename=\"{file}\"") };
            body.extend_from_slice(
                format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n")
                    .as_bytes(),
            );
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--B--\r\n");
        read(body.into(), "B").await
    }

    #[tokio::test]
    async fn bytes_stay_as_they_are_and_the_path_may_come_last() {
        let all: Vec<u8> = (0..=255).collect();
        let parts: [(&str, &str, &[u8]); 3] =
            [("file", "C:\\x\\a.bin", &all), ("files", "b", b""), ("path", "", b"/workspace/d/e")];
        let form = form(&parts).await.unwrap();
        assert_eq!(form.shown(), ["/workspace/d/e/a.bin", "/workspace/d/e/b"]);
        assert_eq!(form.contents, [Bytes::from(all), Bytes::new()]);
    }

    #[tokio::test]
    async fn what_is_missing_too_much_or_elsewhere_is_refused() {
        let many = vec![("file", "a", &b"x"[..]); MAX_UPLOADED_FILES + 1];
        let cases: [&[(&str, &str, &[u8])]; 7] = [
            &[],
            &[("path", "", b"d")],
            &[("file", "", b"x")],
            &[("file", "..", b"x")],
            &[("path", "", b"../d"), ("file", "a", b"x")],
            &[("path", "", b"/etc"), ("file", "a", b"x")],
            &many,
        ];
        for parts in cases {
            let error = form(parts).await.err().expect("refused");
            assert_eq!(error.code, "INVALID_REQUEST", "{parts:?}");
        }
        let long = vec![0; MAX_UPLOADED_BYTES + 1];
        let error = form(&[("file", "a", &long)]).await.err().expect("refused");
        assert_eq!(error.status, http::StatusCode::PAYLOAD_TOO_LARGE);
        assert!(read(Bytes::from_static(b"--B\r\n"), "B").await.is_err());
    }
}
