//! Docker elsewhere: over TCP, TLS and ssh, found by what the environment says, as its own CLI
//! finds it. A cable leads there, which is cut while a machine is used.

#![allow(clippy::unwrap_used, reason = "tests")]

mod link;
mod support;

use link::certificates::Certificates;
use link::sshd::{self, Sshd};
use link::{Elsewhere, REACHED, was_elsewhere};
use sandbank_test_support::{Cable, PrivateDocker, busybox_root, find_program};

/// Of the private Docker, where nobody else listens.
const PORT: u16 = 2376;

/// One at a time: private Dockers of one process share the place of their cgroups.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// None, with a counted reason, where there can be none.
fn docker(options: Vec<String>) -> Option<PrivateDocker> {
    let directory = tempfile::tempdir().unwrap();
    busybox_root(&directory.path().join("root.tar")).unwrap()?;
    let mut all = vec![format!("--host=tcp://127.0.0.1:{PORT}")];
    all.extend(options);
    PrivateDocker::start_with(false, all).unwrap()
}

fn tls_docker(certificates: &Certificates) -> Option<PrivateDocker> {
    docker(certificates.options())
}

fn over_tls<'a>(
    test: &'a str,
    cable: &Cable,
    certificates: &Certificates,
    whose: &str,
) -> Elsewhere<'a> {
    let directory = certificates.of(whose).to_str().unwrap().to_owned();
    let env = vec![
        ("DOCKER_HOST", format!("tcp://{}", cable.near())),
        ("DOCKER_TLS_VERIFY", "1".to_owned()),
        ("DOCKER_CERT_PATH", directory),
    ];
    Elsewhere { test, env, ssh: None }
}

fn without_openssl() -> bool {
    let missing = find_program("openssl").is_none();
    if missing {
        println!("skipped: there is no openssl here; see scripts/setup.sh --test");
    }
    missing
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_lives_over_tls_and_a_cut() {
    if was_elsewhere().await || without_openssl() {
        return;
    }
    let _alone = ALONE.lock().await;
    let certificates = Certificates::make();
    let Some(docker) = tls_docker(&certificates) else { return };
    let cable = Cable::lay(&docker, PORT).unwrap();
    over_tls("a_machine_lives_over_tls_and_a_cut", &cable, &certificates, "client")
        .live(&docker, &cable);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_neither_side_takes_a_stranger_and_the_reason_is_said() {
    if was_elsewhere().await || without_openssl() {
        return;
    }
    let _alone = ALONE.lock().await;
    let test = "over_tls_neither_side_takes_a_stranger_and_the_reason_is_said";
    let certificates = Certificates::make();
    let Some(docker) = tls_docker(&certificates) else { return };
    let cable = Cable::lay(&docker, PORT).unwrap();
    let look = |whose: &str| over_tls(test, &cable, &certificates, whose).look();
    let known = look("client");
    assert!(known.contains(REACHED), "{known}");
    let stranger = look("stranger");
    assert!(stranger.contains("does not accept our certificate"), "{stranger}");
    let misled = look("misled");
    assert!(misled.contains("is not one that ca.pem vouches for"), "{misled}");
    let nowhere = look("nowhere");
    assert!(nowhere.contains("nowhere/ca.pem"), "{nowhere}");
    let env = vec![("DOCKER_HOST", format!("tcp://{}", cable.near()))];
    let clear = Elsewhere { test, env, ssh: None }.look();
    assert!(clear.contains("DOCKER_TLS_VERIFY=1"), "{clear}");
    for refused in [stranger, misled, nowhere, clear] {
        assert!(refused.contains("not reached") && !refused.contains(REACHED), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_the_docker_cli_wrote_leads_to_its_engine() {
    if was_elsewhere().await || without_openssl() {
        return;
    }
    let _alone = ALONE.lock().await;
    let certificates = Certificates::make();
    let Some(docker) = tls_docker(&certificates) else { return };
    let cable = Cable::lay(&docker, PORT).unwrap();
    let at = |name: &str| certificates.of("client").join(name).display().to_string();
    let engine = format!(
        "host=tcp://{},ca={},cert={},key={}",
        cable.near(),
        at("ca.pem"),
        at("cert.pem"),
        at("key.pem")
    );
    docker.said(&["context", "create", "box", "--docker", &engine]).unwrap();
    let config = docker.dir().join(".docker").display().to_string();
    let test = "a_context_that_the_docker_cli_wrote_leads_to_its_engine";
    let look = |context: &str| {
        let env = vec![("DOCKER_CONFIG", config.clone()), ("DOCKER_CONTEXT", context.to_owned())];
        Elsewhere { test, env, ssh: None }.look()
    };
    let found = look("box");
    assert!(found.contains(REACHED), "{found}");
    let missing = look("another");
    assert!(missing.contains("not reached") && missing.contains("docker context ls"), "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_lives_over_plain_tcp_and_a_cut() {
    if was_elsewhere().await {
        return;
    }
    let _alone = ALONE.lock().await;
    let Some(docker) = docker(vec!["--tls=false".to_owned()]) else { return };
    let cable = Cable::lay(&docker, PORT).unwrap();
    let test = "a_machine_lives_over_plain_tcp_and_a_cut";
    let host = ("DOCKER_HOST", format!("tcp://{}", cable.near()));
    Elsewhere { test, env: vec![host.clone()], ssh: None }.live(&docker, &cable);
    // What was to be encrypted is not sent in the clear.
    if without_openssl() {
        return;
    }
    let certificates = Certificates::make();
    let tls = over_tls(test, &cable, &certificates, "client").look();
    assert!(tls.contains("not reached") && tls.contains("does not speak TLS"), "{tls}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_lives_over_ssh_and_a_cut() {
    if was_elsewhere().await {
        return;
    }
    let _alone = ALONE.lock().await;
    let test = "a_machine_lives_over_ssh_and_a_cut";
    let Some(docker) = docker(Vec::new()) else { return };
    let cable = Cable::lay(&docker, sshd::PORT).unwrap();
    let Some(server) = Sshd::start(&docker, &cable).await else { return };
    let host = format!("ssh://root@{}", cable.near());
    let friend = server.of("friend");
    let to = |host: &str| vec![("DOCKER_HOST", host.to_owned())];
    Elsewhere { test, env: to(&host), ssh: Some(&friend) }.live(&docker, &cable);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_ssh_the_reason_of_a_refusal_is_ssh_s_own() {
    if was_elsewhere().await {
        return;
    }
    let _alone = ALONE.lock().await;
    let test = "over_ssh_the_reason_of_a_refusal_is_ssh_s_own";
    let Some(docker) = docker(Vec::new()) else { return };
    let cable = Cable::lay(&docker, sshd::PORT).unwrap();
    let Some(server) = Sshd::start(&docker, &cable).await else { return };
    let look = |whose: &str, socket: &str| {
        let host = format!("ssh://root@{}{socket}", cable.near());
        Elsewhere { test, env: vec![("DOCKER_HOST", host)], ssh: Some(&server.of(whose)) }.look()
    };
    for socket in ["", docker.socket().to_str().unwrap()] {
        let known = look("friend", socket);
        assert!(known.contains(REACHED), "{known}");
    }
    for (whose, socket, reason) in [
        ("stranger", "", "Permission denied"),
        ("doubter", "", "Host key verification failed"),
        ("friend", "/nowhere/docker.sock", "/nowhere/docker.sock"),
        // Nothing of it is for the shell there.
        ("friend", "/nowhere/$(echo docker).sock", "$(echo docker).sock"),
    ] {
        let refused = look(whose, socket);
        assert!(refused.contains("not reached") && refused.contains(reason), "{refused}");
        assert!(!refused.contains(REACHED), "{refused}");
    }
}
