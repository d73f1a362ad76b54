//! A real sandbox, of the native engine or of Docker: it answers as a directory does, and no path
//! leads out of its workspace.

use anyhow::Context;
use sandbank_test_support::skip_unless_root;
use sandbank_test_support::workspace::{
    a_file_that_grows_ends, links_lead_nowhere, names_go_round, one_writer_wrote_all,
    paths_lead_nowhere, special_files_are_refused, swapped_paths_lead_nowhere, the_same_answers,
};

use super::places::Place;

#[tokio::test(flavor = "multi_thread")]
async fn operations_drawn_by_chance_are_answered_in_a_real_sandbox_as_in_a_directory()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let seed = std::env::var("SANDBANK_SEED").ok().and_then(|text| text.parse().ok());
    let places = [Place::beside().await?, Place::sandbox().await?];
    let workspaces = [places[0].workspace().await?, places[1].workspace().await?];
    the_same_answers(&workspaces, seed.unwrap_or(4)).await?;
    for place in places {
        place.end().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attack_on_paths_leads_out_of_the_workspace_of_a_real_sandbox() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let place = Place::sandbox().await?;
    let workspace = place.workspace().await?;
    paths_lead_nowhere(&workspace).await.context("paths")?;
    links_lead_nowhere(&workspace).await.context("links")?;
    special_files_are_refused(&workspace).await.context("special files")?;
    names_go_round(&workspace).await.context("names")?;
    swapped_paths_lead_nowhere(&workspace).await.context("swapped paths")?;
    a_file_that_grows_ends(&workspace).await.context("a file that grows")?;
    one_writer_wrote_all(&workspace).await.context("writers")?;
    place.end().await
}
