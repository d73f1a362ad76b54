//! Scripts: what the shell says is what is reported.

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use crate::place::{Place, shell};

pub(super) async fn heredocs(place: Place) -> anyhow::Result<()> {
    let quoted = "$HOME `date` $(id) \\n \\\\ 'single' \"double\"\n\t tab é€😀\n";
    let heard = place.script(&format!("cat <<'EOF'\n{quoted}EOF")).await?;
    assert_eq!((heard.text().as_str(), heard.exit_code), (quoted, Some(0)));
    let nested = "x=7; cat <<A; cat <<-B\nvalue $x\ncat <<C\nC\nA\n\t\tindented\n\tB\nexit 3";
    let heard = place.script(nested).await?;
    assert_eq!(heard.text(), "value 7\ncat <<C\nC\nindented\n");
    assert_eq!(heard.exit_code, Some(3));
    let fed = place.script("bash -s <<'EOF'\necho from within\nexit 9\nEOF").await?;
    assert_eq!((fed.text().as_str(), fed.exit_code), ("from within\n", Some(9)));
    let endless = place.script("cat <<EOF\nnever closed").await?;
    assert_eq!((endless.text().as_str(), endless.exit_code), ("never closed\n", Some(0)));
    assert!(endless.errors().contains("end-of-file"), "{endless:?}");
    Ok(())
}

pub(super) async fn exit_codes(place: Place) -> anyhow::Result<()> {
    let code = |code: i64| {
        let place = place.clone();
        async move {
            let heard = place.run(json!({ "argv": ["sh", "-c", format!("exit {code}")] })).await?;
            anyhow::ensure!(heard.exit_code == Some(code), "exit {code} became {heard:?}");
            let exited = json!({ "kind": "exited", "code": code });
            anyhow::ensure!(heard.ending == Some(exited), "exit {code} became {heard:?}");
            Ok(())
        }
    };
    stream::iter((0..256).map(code)).buffer_unordered(8).try_collect().await
}

pub(super) async fn set_e(place: Place) -> anyhow::Result<()> {
    let cases = [
        ("set -e; echo a; (exit 4); echo b", "a\n", 4),
        ("set -e; false || echo tolerated; ! true; f() { return 6; }; f; echo b", "tolerated\n", 6),
        ("set -e; x=$(exit 5); echo b", "", 5),
        ("set -e; if false; then :; fi; echo end", "end\n", 0),
        ("set -eu; echo a; echo $undefined; echo b", "a\n", 1),
    ];
    for (script, out, code) in cases {
        let heard = place.script(script).await?;
        assert_eq!((heard.text().as_str(), heard.exit_code), (out, Some(code)), "{script}");
    }
    Ok(())
}

pub(super) async fn pipelines(place: Place) -> anyhow::Result<()> {
    let cases = [
        ("false | true", 0),
        ("true | (exit 3)", 3),
        ("set -o pipefail; false | true", 1),
        ("set -o pipefail; (exit 5) | (exit 6) | true", 6),
        // 128 + SIGPIPE: had the command inherited an ignored SIGPIPE, it would be 1.
        ("set -o pipefail; yes | head -n 1 > /dev/null", 141),
        ("yes | head -n 1 > /dev/null; exit ${PIPESTATUS[0]}", 141),
    ];
    for (script, code) in cases {
        assert_eq!(place.script(script).await?.exit_code, Some(code), "{script}");
    }
    Ok(())
}

pub(super) async fn pristine_signals(place: Place) -> anyhow::Result<()> {
    let heard = place.run(json!({ "argv": ["cat", "/proc/self/status"] })).await?;
    for field in ["SigBlk", "SigIgn", "SigPnd", "ShdPnd"] {
        let text = heard.text();
        let line = text.lines().find(|line| line.starts_with(field)).unwrap_or_default();
        assert!(line.ends_with("\t0000000000000000"), "{line:?}");
    }
    Ok(())
}

pub(super) async fn odd_ends(place: Place) -> anyhow::Result<()> {
    let exited = |code: i64| json!({ "kind": "exited", "code": code });
    let signaled = |signal: i64| json!({ "kind": "signaled", "signal": signal });
    let cases = [
        ("echo 'unbalanced", exited(2)),
        ("exec false", exited(1)),
        ("exec sh -c 'exit 8'", exited(8)),
        ("exec no-such-program", exited(127)),
        ("trap 'exit 9' EXIT; exit 1", exited(9)),
        ("(exit 4); exit", exited(4)),
        ("bash -c 'kill -9 $$'", signaled(9)),
        ("bash -c 'kill -9 $$'; exit $?", exited(137)),
        ("kill -INT $$; sleep 5", signaled(2)),
        ("ulimit -c 0; kill -ABRT $$; sleep 5", signaled(6)),
        ("exit 256", exited(0)),
        ("exit -1", exited(255)),
    ];
    for (script, ending) in cases {
        let heard = place.script(script).await?;
        assert_eq!(heard.ending, Some(ending), "{script}: {heard:?}");
    }
    Ok(())
}

pub(super) async fn forged_endings(place: Place) -> anyhow::Result<()> {
    let forged = r#"{"stream":"control","type":"ending","ending":{"kind":"exited","code":0},"exitCode":0,"seq":1}"#;
    let script = format!("printf '%s\\n' '{forged}' '{forged}'; printf '\\n{{' >&2; exit 21");
    let heard = place.script(&script).await?;
    assert_eq!(heard.text(), format!("{forged}\n{forged}\n"));
    assert_eq!((heard.errors().as_str(), heard.exit_code), ("\n{", Some(21)));
    Ok(())
}

pub(super) async fn one_ending(place: Place) -> anyhow::Result<()> {
    let scripts = ["exit 33", "kill -9 $$", "sleep 60"];
    for script in scripts {
        let mut body = shell(script);
        body["timeoutMs"] = json!(1_000);
        let command = place.start(body).await?;
        let (waited, heard) = tokio::try_join!(place.wait(&command), place.hear(&command))?;
        let status = place.status(&command).await?;
        let list = format!("/v1/sandboxes/{}/commands", place.sandbox);
        let list = place.api.call("GET", &list, None).await?;
        let mut listed = list["commands"].as_array().into_iter().flatten();
        let listed = listed.rfind(|known| known["commandId"] == json!(command));
        let listed = listed.cloned().unwrap_or_default();
        let later = place.hear(&command).await?;
        for (view, code, ending) in [
            ("wait", &waited["exitCode"], &waited["ending"]),
            ("status", &status["exitCode"], &status["ending"]),
            ("list", &listed["exitCode"], &listed["ending"]),
            ("logs later", &json!(later.exit_code), &json!(later.ending)),
        ] {
            assert_eq!((code, ending), (&json!(heard.exit_code), &json!(heard.ending)), "{view}");
        }
    }
    Ok(())
}
