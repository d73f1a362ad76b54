//! Files that somebody adds to a chat. Each gets a directory of its own, named by the server, so that
//! no name a browser sends can be another's.

use axum::extract::{FromRequest, Request, State};
use bytes::Bytes;
use futures_util::stream;
use http::{StatusCode, header};
use multer::Multipart;
use sandbank_channel::full_body;
use sandbank_protocol::FaultCode;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::error::{Detail, refused, unprocessable};
use super::file::about_file;
use super::place::{Place, Refusal};
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::extract::read_whole;
use crate::limits::{
    MAX_ATTACHMENT_BYTES, MAX_ATTACHMENT_NAME_BYTES, MAX_ATTACHMENTS, UPLOAD_FRAME_BYTES,
};
use crate::reply::Reply;

const DIRECTORY: &str = ".attachments";

/// What is attached is not meant for the repository.
const IGNORE: &str = "*\n";

/// Only for the documentation.
#[derive(ToSchema)]
#[schema(as = AttachmentForm)]
#[allow(dead_code, reason = "describes the body; `read` takes it apart")]
pub(super) struct FormBody {
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Attached {
    /// As a chat's parameter `file` names it, before its path.
    file_id: String,
    relative_path: String,
    name: String,
    size: usize,
}

/// Add a file for a chat.
#[utoipa::path(post, path = "/api/attachments", tag = "workspace",
    request_body(content = FormBody, content_type = "multipart/form-data"),
    responses((status = 200, body = Attached), (status = "default", body = Detail)))]
pub(super) async fn attach(State(app): State<App>, form: Form) -> ApiResult<Reply<Attached>> {
    let Form { name, content } = form;
    let place = Place::of(&app).await?;
    make_room(&place).await?;
    let file_id = uuid::Uuid::new_v4().to_string();
    let relative_path = format!("{DIRECTORY}/{file_id}/{name}");
    write(&place, &relative_path, content.clone()).await?;
    Ok(Reply(Attached { file_id, relative_path, name, size: content.len() }))
}

async fn make_room(place: &Place) -> ApiResult<()> {
    let listing = place.run(|client| async move { client.list(DIRECTORY).await }).await;
    match listing {
        Ok(listing) if listing.truncated || listing.entries.len() > MAX_ATTACHMENTS => {
            let message = format!(
                "There are {MAX_ATTACHMENTS} attachments; delete some of them in {DIRECTORY}"
            );
            Err(refused(StatusCode::CONFLICT, "too_many_attachments", message))
        }
        Ok(_) => Ok(()),
        Err(Refusal::Fault(FaultCode::NotFound, _)) => {
            write(place, &format!("{DIRECTORY}/.gitignore"), Bytes::from_static(IGNORE.as_bytes()))
                .await
        }
        Err(other) => Err(about_file(DIRECTORY, other)),
    }
}

async fn write(place: &Place, path: &str, content: Bytes) -> ApiResult<()> {
    let written = place.run(|client| {
        let body = full_body(content.clone());
        async move { client.write_file(path, None, body).await }
    });
    written.await.map(drop).map_err(|refusal| about_file(path, refusal))
}

/// The one file of a form.
#[derive(Debug)]
pub(super) struct Form {
    name: String,
    content: Bytes,
}

impl FromRequest<App> for Form {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let boundary = multer::parse_boundary(kind).map_err(|_| missing())?;
        let body = read_whole(request, app, MAX_ATTACHMENT_BYTES + UPLOAD_FRAME_BYTES).await?;
        read(body, &boundary).await
    }
}

async fn read(body: Bytes, boundary: &str) -> ApiResult<Form> {
    let body = stream::once(async { Ok::<_, std::convert::Infallible>(body) });
    let mut form = Multipart::new(body, boundary);
    let broken = |error: multer::Error| {
        unprocessable(json!({
            "type": "multipart_invalid", "loc": ["body"], "msg": error.to_string(), "input": null,
        }))
    };
    let mut found = None;
    while let Some(field) = form.next_field().await.map_err(broken)? {
        if field.name() != Some("file") {
            continue;
        }
        if found.is_some() {
            return Err(unprocessable(json!({
                "type": "too_long",
                "loc": ["body", "file"],
                "msg": "A request adds one file",
                "input": null,
            })));
        }
        let name = safe_name(field.file_name().unwrap_or_default());
        let content = field.bytes().await.map_err(broken)?;
        if content.len() > MAX_ATTACHMENT_BYTES {
            let message = format!("An attachment has at most {MAX_ATTACHMENT_BYTES} bytes");
            return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", message));
        }
        found = Some(Form { name, content });
    }
    found.ok_or_else(missing)
}

fn missing() -> ApiError {
    unprocessable(json!({
        "type": "missing", "loc": ["body", "file"], "msg": "Field required", "input": null,
    }))
}

/// The last part of what a browser calls it, as a word that is no option, hidden file or several
/// lines to anybody.
fn safe_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |c: char| if c.is_alphanumeric() || "-_.+@ ()".contains(c) { c } else { '_' };
    let name: String = last.chars().map(plain).collect();
    let name = name.trim_matches(|c| " .-".contains(c));
    let end = name.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = end.take_while(|end| *end <= MAX_ATTACHMENT_NAME_BYTES).last().unwrap_or(0);
    match &name[..end] {
        "" => "attachment".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_plain_word_whatever_a_browser_sends() {
        let long = "x".repeat(300);
        for (given, name) in [
            ("report.pdf", "report.pdf"),
            ("Größe (1).txt", "Größe (1).txt"),
            ("C:\\x\\a.txt", "a.txt"),
            ("../../etc/passwd", "passwd"),
            ("..", "attachment"),
            ("", "attachment"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("a\nb\0c", "a_b_c"),
            ("a:b,c", "a_b_c"),
            (&long, &long[..MAX_ATTACHMENT_NAME_BYTES]),
        ] {
            assert_eq!(safe_name(given), name, "{given:?}");
        }
        let wide = safe_name(&"ü".repeat(300));
        assert!(wide.len() <= MAX_ATTACHMENT_NAME_BYTES && wide.chars().all(|c| c == 'ü'));
    }

    #[tokio::test]
    async fn a_form_has_one_file() {
        let part =
            "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nx\r\n";
        let form = |parts: usize| format!("{}--B--\r\n", part.repeat(parts));
        let one = read(form(1).into(), "B").await.unwrap();
        assert_eq!((one.name.as_str(), &one.content[..]), ("a", &b"x"[..]));
        for (body, kind) in
            [(form(0), "missing"), (form(2), "too_long"), (part.to_owned(), "multipart_invalid")]
        {
            let error = read(body.into(), "B").await.unwrap_err();
            assert_eq!(error.details.unwrap()[0]["type"], kind);
        }
    }
}
