//! A registry that wants to know who asks.

use std::os::unix::fs::PermissionsExt;

use anyhow::ensure;
use base64::Engine;

use crate::layers::Layer;
use crate::place::{Place, Said};
use crate::registry::USER;

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_docker_login_open_a_registry_and_others_do_not() -> anyhow::Result<()> {
    let Some(place) = Place::make_as(true).await? else { return Ok(()) };
    place.registry.push("app:1", &[Layer::text("a", "a")]).await?;
    let reference = place.registry.reference("app:1");
    let host = format!("127.0.0.1:{}", place.registry.port);
    let config = place.docker_config.path().join("config.json");
    let wants = ["it wants credentials", "docker login"];
    place.refused(&reference, &wants).await?;
    let login = |registry: &str, pair: (&str, &str)| {
        let auth =
            base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", pair.0, pair.1));
        format!(r#"{{"auths":{{"{registry}":{{"auth":"{auth}"}}}}}}"#)
    };
    std::fs::write(&config, login("127.0.0.1:1", USER))?;
    place.refused(&reference, &wants).await?;
    std::fs::write(&config, login(&host, ("me", "wrong")))?;
    place.refused(&reference, &["credentials are not accepted", "docker login"]).await?;
    std::fs::write(&config, "{ damaged")?;
    place.refused(&reference, &["config.json", "DOCKER_CONFIG"]).await?;
    std::fs::write(&config, login(&host, USER))?;
    place.pull_ok(&reference, "app").await?;
    let log = std::fs::read_to_string(place.daemon.log_path())?;
    let encoded =
        base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", USER.0, USER.1));
    ensure!(!log.contains(USER.1) && !log.contains(&encoded), "a secret is in the log");
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_helper_is_asked_for_its_registry() -> anyhow::Result<()> {
    let Some(place) = Place::make_as(true).await? else { return Ok(()) };
    place.registry.push("app:1", &[Layer::text("a", "a")]).await?;
    let reference = place.registry.reference("app:1");
    let host = format!("127.0.0.1:{}", place.registry.port);
    let helpers = tempfile::tempdir()?;
    let helper = helpers.path().join("docker-credential-test");
    let script = format!(
        "#!/bin/sh\nread -r asked\n[ \"$1 $asked\" = 'get {host}' ] || {{ echo 'credentials not found in \
         native keychain'; exit 1; }}\necho '{{\"Username\":\"{}\",\"Secret\":\"{}\"}}'\n",
        USER.0, USER.1
    );
    std::fs::write(&helper, script)?;
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{}", helpers.path().display(), std::env::var("PATH")?);
    let pull = |config: &str, name: &str| -> anyhow::Result<Said> {
        std::fs::write(place.docker_config.path().join("config.json"), config)?;
        let mut command = place.image(&["pull", &reference, "--name", name]);
        Ok(Said::from(command.env("PATH", &path).output()?))
    };
    let other = pull(r#"{"credHelpers":{"elsewhere:1":"test"}}"#, "refused")?;
    ensure!(other.err.contains("it wants credentials"), "{other:?}");
    let absent = pull(r#"{"credsStore":"absent"}"#, "refused")?;
    ensure!(absent.err.contains("helper absent failed"), "{absent:?}");
    ensure!(place.store().names.is_empty(), "{:?}", place.store());
    for (number, config) in
        [format!(r#"{{"credHelpers":{{"{host}":"test"}}}}"#), r#"{"credsStore":"test"}"#.to_owned()]
            .iter()
            .enumerate()
    {
        let said = pull(config, &format!("app{number}"))?;
        ensure!(said.code == Some(0), "{config}: {said:?}");
    }
    place.daemon.finish().await
}
