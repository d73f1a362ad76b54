//! Operations drawn by chance in every place of a workspace; those of
//! `sandbank_test_support::workspace`.

use sandbank_test_support::workspace::the_same_answers;

use crate::everywhere::everywhere;

#[tokio::test]
async fn operations_drawn_by_chance_have_the_same_answers_in_every_place() {
    let seed = std::env::var("SANDBANK_SEED").ok().and_then(|text| text.parse().ok());
    for seed in seed.map_or(vec![1, 2, 3], |seed| vec![seed]) {
        let places = everywhere(&[]).await;
        let mut workspaces = Vec::new();
        for place in &places {
            workspaces.push(place.workspace().await);
        }
        the_same_answers(&workspaces, seed).await.unwrap();
        for place in places {
            place.end().await;
        }
    }
}
