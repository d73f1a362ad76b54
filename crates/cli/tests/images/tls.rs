//! A registry that is not on a loopback address is spoken to with TLS, and must be who it says.

use std::process::Command;

use anyhow::ensure;
use sandbank_test_support::{find_unpacked, skip_unless_root};

use crate::layers::Layer;
use crate::place::{SANDBANK, Said};
use crate::registry::Registry;

/// In a network of its own, whose only address that is not loopback is the registry's. The second
/// registry has no TLS.
const SCRIPT: &str = r#"
ip link set lo up && ip address add 192.0.2.1/32 dev lo || exit 9
"$REGISTRY" serve "$DIR/tls.yml" >"$DIR/tls.log" 2>&1 & tls=$!
"$REGISTRY" serve "$DIR/plain.yml" >"$DIR/plain.log" 2>&1 & plain=$!
trap 'kill $tls $plain' EXIT
for port in 5443 5080; do
    for attempt in $(seq 200); do
        (: </dev/tcp/192.0.2.1/$port) 2>/dev/null && break
        sleep 0.05
    done
done
"$SANDBANK" image pull "$@"
"#;

/// A certificate authority and a certificate of the address by it.
fn certificates(dir: &std::path::Path) -> anyhow::Result<()> {
    let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key \
        -out ca.pem -days 2 -subj /CN=test && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
        -nodes -keyout own.key -out own.csr -subj /CN=registry && printf \
        'subjectAltName=IP:192.0.2.1\\nbasicConstraints=CA:FALSE\\n' >own.ext && openssl x509 -req -in own.csr \
        -CA ca.pem -CAkey ca.key -CAcreateserial -out own.pem -days 2 -extfile own.ext";
    let made = Command::new("sh").args(["-c", script]).current_dir(dir).output()?;
    ensure!(made.status.success(), "{made:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_elsewhere_must_prove_who_it_is() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let Some(program) = find_unpacked("docker-registry") else { return Ok(()) };
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: there is no openssl to make certificates with");
        return Ok(());
    }
    let registry = Registry::start_as(&program, false).await?;
    registry.push("app:1", &[Layer::text("a", "a")]).await?;
    let dir = registry.dir();
    certificates(dir)?;
    let config = |port: u16, tls: &str| {
        let place = dir.display();
        format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {place}/data}}}}\n\
             http: {{addr: \"192.0.2.1:{port}\", secret: x{tls}}}\n"
        )
    };
    let place = dir.display();
    let tls = format!(", tls: {{certificate: {place}/own.pem, key: {place}/own.key}}");
    std::fs::write(dir.join("tls.yml"), config(5443, &tls))?;
    std::fs::write(dir.join("plain.yml"), config(5080, ""))?;
    let data = tempfile::tempdir()?;
    let pull = |reference: &str, name: &str, settings: &[(&str, &str)]| -> anyhow::Result<Said> {
        let mut command = Command::new("timeout");
        command
            .args([
                "60", "unshare", "--net", "bash", "-c", SCRIPT, "bash", reference, "--name", name,
            ])
            .env("REGISTRY", &program)
            .env("SANDBANK", SANDBANK)
            .env("DIR", dir)
            .env("SANDBANK_DATA_DIR", data.path())
            .env("DOCKER_CONFIG", data.path())
            .env_remove("SANDBANK_URL")
            .env_remove("SSL_CERT_DIR")
            .env("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")
            .envs(settings.iter().copied());
        Ok(Said::from(command.output()?))
    };
    let authority = dir.join("ca.pem");
    let trusted = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    let insecure = [("SANDBANK_INSECURE_REGISTRIES", "192.0.2.1:5080")];

    let stranger = pull("192.0.2.1:5443/app:1", "stranger", &[])?;
    ensure!(stranger.code != Some(0) && stranger.err.contains("certificate"), "{stranger:?}");
    ensure!(stranger.err.contains("update-ca-certificates"), "{stranger:?}");
    let plain = pull("192.0.2.1:5080/app:1", "plain", &trusted)?;
    ensure!(plain.code != Some(0) && plain.err.contains("insecure_registries"), "{plain:?}");
    let names = std::fs::read_dir(data.path().join("images/names"))?.count();
    ensure!(names == 0, "one of them was taken");

    let proven = pull("192.0.2.1:5443/app:1", "proven", &trusted)?;
    ensure!(proven.code == Some(0), "{proven:?}");
    let named = pull("192.0.2.1:5080/app:1", "named", &insecure)?;
    ensure!(named.code == Some(0), "{named:?}");
    Ok(())
}
