//! Which URLs and revisions are taken, and what is said without secrets.

use super::*;

#[test]
fn only_urls_that_lead_to_a_repository_by_a_known_way_are_taken() {
    for good in [
        "https://github.com/owner/name.git",
        "https://example.com:8443/a/b",
        "http://127.0.0.1:8080/project/.git",
        "http://[::1]:80/x",
        "ssh://git@example.com/owner/name",
        "ssh://example.com:2222/~/x",
        "git@github.com:owner/name.git",
        "https://example.com/with%20space",
        "HTTPS://example.com/x",
    ] {
        let parsed = RepositoryUrl::parse(good);
        assert!(parsed.is_ok(), "{good}: {parsed:?}");
        assert!(parsed.unwrap().1.is_none());
    }
    for bad in [
        "",
        "-",
        "--upload-pack=touch /tmp/x",
        "-oProxyCommand=x",
        "ext::sh -c touch% /tmp/x",
        "ext::sh",
        "fd::17/x",
        "file:///etc",
        "/etc",
        "../x",
        "x",
        "git://example.com/x",
        "ftp://example.com/x",
        "javascript:alert(1)",
        "https://",
        "https://example.com",
        "https://example.com/",
        "https:///x",
        "https://-oProxyCommand=x/y",
        "ssh://-oProxyCommand=touch/x",
        "ssh://-x@example.com/y",
        "ssh://a b@example.com/y",
        "-x@example.com:y",
        "git@-oProxyCommand=x:y",
        "git@example.com:-x",
        "git@example.com:",
        "https://example.com/x\nhttps://other/y",
        "https://example.com/x\0",
        "https://example.com/a b",
        "https://example.com/$(touch x)\"",
        "https://example.com/`touch x`",
        "https://example.com/'; touch x; '",
        "https://example.com/x|y",
        "https://example.com/x\\y",
        "https://example.com%0a@evil/x",
        "https://a%0Ab:c@example.com/x",
        "https://example.com:0/x",
        "https://example.com:99999/x",
        "https://example.com:port/x",
        "https://[nonsense]/x",
        "https://exämple.com/x",
    ] {
        assert!(RepositoryUrl::parse(bad).is_err(), "{bad:?}");
    }
    assert!(RepositoryUrl::parse(&format!("https://e.com/{}", "x".repeat(3_000))).is_err());
}

#[test]
fn what_stands_before_the_at_sign_is_a_secret_and_no_part_of_the_url() {
    for (url, user, password) in [
        ("https://alice:s3%2Fcret@example.com/x", "alice", "s3/cret"),
        ("https://ghp_token@example.com/x", "x-access-token", "ghp_token"),
        ("https://:only@example.com/x", "x-access-token", "only"),
    ] {
        let (parsed, credentials) = RepositoryUrl::parse(url).unwrap();
        assert_eq!(parsed.as_str(), "https://example.com/x");
        let credentials = credentials.unwrap();
        assert_eq!((credentials.user.as_str(), credentials.password.as_str()), (user, password));
        assert_eq!(format!("{credentials:?}"), "[redacted]");
    }
    for (url, accepted) in [
        ("https://example.com/x", true),
        ("http://127.0.0.1/x", true),
        ("http://localhost:80/x", true),
        ("http://example.com/x", false),
        ("ssh://example.com/x", false),
    ] {
        let (parsed, _) = RepositoryUrl::parse(url).unwrap();
        assert_eq!(parsed.accepts_credentials().is_ok(), accepted, "{url}");
    }
    assert!(Credentials::new("u", "a\nb").is_err() && Credentials::new("u", "").is_err());
}

#[test]
fn only_names_and_hashes_are_revisions() {
    let hash = "0123456789abcdef0123456789abcdef01234567";
    for (good, how) in [
        ("main", "name"),
        ("v1.0", "name"),
        ("feature/x-y_z", "name"),
        ("refs/pull/1/head", "name"),
        ("release+1", "name"),
        ("日本", "name"),
        (hash, "hash"),
        ("0123456", "short"),
        ("012345", "name"),
    ] {
        assert_eq!(Revision::parse(good).map(|revision| revision.how()), Ok(how), "{good}");
    }
    for bad in [
        "",
        "-",
        "--upload-pack=x",
        "-b",
        "a b",
        "a\nb",
        "a\0b",
        "a..b",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "@{-1}",
        "a@{1}",
        "@",
        "/a",
        "a/",
        "a//b",
        ".a",
        "a/.b",
        "a.",
        "a.lock",
        "a.lock/b",
        "$(x)",
        "`x`",
        "'",
        "\"",
        "a;b",
        "a|b",
        "<a",
        "{a",
    ] {
        assert!(Revision::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn what_git_says_is_told_without_secrets_and_control_characters() {
    let credentials = Credentials::new("alice", "s3/cret").unwrap();
    let mut output = Output::new(Some(&credentials));
    let lines = std::sync::Mutex::new(Vec::new());
    let told = |line: &str| lines.lock().unwrap().push(line.to_owned());
    output
        .read(b"Cloning into 'x'...\nReceiving objects:  10%\rReceiving objects: 100%\r\n", &told);
    output.read(b"fatal: \x1b[31mcannot read https://bob:pa", &told);
    output.read(b"ss@example.com/x with s3/cret or s3%2Fcret", &told);
    let end = output.end();
    assert_eq!(
        end,
        "Cloning into 'x'...\nfatal: [31mcannot read https://[redacted]@example.com/x with [redacted] or [redacted]"
    );
    assert_eq!(
        *lines.lock().unwrap(),
        ["Cloning into 'x'...", "Receiving objects:  10%", "Receiving objects: 100%"]
    );
    let mut output = Output::new(None);
    output.read(&b"error: line\n".repeat(10_000), &|_| {});
    assert!(output.end().len() <= 4 << 10);
}
