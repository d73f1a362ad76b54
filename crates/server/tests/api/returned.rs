//! Sessions of a workspace that was away when their daemon began, or when their time was over.

use crate::far::{Far, terminal};

#[tokio::test]
async fn sessions_of_a_workspace_that_was_away_at_the_start_are_found_when_it_is_back() {
    let mut far = Far::start().await;
    let earlier = far.world("86400").await;
    drop(terminal(&earlier).await);
    earlier.shutdown.drain();
    earlier.server.await.unwrap().unwrap();
    assert!(far.has_terminal().await);
    far.carry(false).await;
    // Nobody ever asks this daemon for a session.
    let _world = far.world("0").await;
    far.was_tried().await;
    far.carry(true).await;
    far.loses_its_terminal().await;
}

#[tokio::test]
async fn a_session_whose_time_is_over_while_its_workspace_is_away_ends_when_it_is_back() {
    let mut far = Far::start().await;
    let world = far.world("1").await;
    let pty = terminal(&world).await;
    assert!(far.has_terminal().await);
    drop(pty);
    far.carry(false).await;
    far.was_tried().await;
    far.carry(true).await;
    far.loses_its_terminal().await;
}
