//! Killed for memory, and killed otherwise.

use sandbank_test_support::wait_for;
use serde_json::json;

use crate::place::{LIMIT, Place, shell};

pub(super) async fn out_of_memory(place: Place) -> anyhow::Result<()> {
    let body = json!({
        "sessionKey": "short of memory", "resources": { "memoryMb": 256 },
        "network": { "mode": "none" },
    });
    let place = place.another(body).await?;
    let bystander = place.start(shell("echo $$ > pid; exec sleep 5555")).await?;
    wait_for("the bystander to run", LIMIT, || async {
        place.processes_with("5555").await.is_ok_and(|alive| alive == 1)
    })
    .await?;
    // It looks for a last line that never comes.
    for _ in 0..3 {
        let hog = place.run(json!({ "argv": ["tail", "/dev/zero"] })).await?;
        assert_eq!(hog.ending, Some(json!({ "kind": "oom_killed" })), "{hog:?}");
    }
    // Memory ran out while the bystander ran, but that is not what it died of.
    place.inside("kill -9 $(cat pid)").await?;
    let heard = place.hear(&bystander).await?;
    assert_eq!(heard.ending, Some(json!({ "kind": "signaled", "signal": 9 })), "{heard:?}");
    // Of a child it is the shell's to tell.
    let child = place.script("tail /dev/zero; exit $?").await?;
    assert_eq!(child.ending, Some(json!({ "kind": "exited", "code": 137 })), "{child:?}");
    assert_eq!(place.inside("echo fine").await?, "fine", "the sandbox lives");
    place.api.stop(&place.sandbox).await
}
