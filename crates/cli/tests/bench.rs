//! `sandbank bench` measures with a server of its own and leaves nothing behind. No figure is
//! judged here.

use std::process::Command;

use sandbank_test_support::skip_unless_root;
use serde_json::Value;

fn bench(temporary: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandbank"));
    command.args(["bench", "--quick"]).env("TMPDIR", temporary);
    command
}

#[test]
fn a_quick_run_reports_as_json_and_as_a_document_and_leaves_nothing() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let temporary = tempfile::tempdir()?;
    let documents = tempfile::tempdir()?;
    let path = documents.path().join("figures.md");
    let output = bench(temporary.path())
        .args([
            "--json",
            "--only",
            "create,docker,stream,files,tree,search,workspace,pty,tools,at-once,density",
            "--density",
            "5",
            "--write",
        ])
        .arg(&path)
        .output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{complaint}");

    let report: Value = serde_json::from_slice(&output.stdout)?;
    let titles: Vec<_> = report["sections"].as_array().into_iter().flatten().collect();
    let titles: Vec<_> = titles.iter().filter_map(|section| section["title"].as_str()).collect();
    let expected = [
        "Create and destroy",
        "Sandboxes on Docker",
        "Log stream",
        "Files",
        "Tree",
        "Search",
        "Workspace",
        "Workspace terminals",
        "Tools",
        "At once",
        "Density and growth",
    ];
    assert_eq!(titles, expected);
    let goals = |title: &str| {
        let sections = report["sections"].as_array().into_iter().flatten();
        let section = sections.clone().find(|section| section["title"] == title);
        let comparisons = section.and_then(|section| section["comparisons"].as_array());
        comparisons.into_iter().flatten().filter(|each| !each["goal"].is_null()).count()
    };
    match report["skipped"].as_array().into_iter().flatten().find(|s| s["name"] == "Docker") {
        Some(reason) => println!("skipped: without Docker: {reason}"),
        None => assert_eq!((goals("Sandboxes on Docker"), goals("At once")), (3, 3)),
    }
    assert_eq!((goals("Tree"), goals("Workspace")), (2, 5));
    match sandbank_test_support::find_program("rg") {
        Some(_) => assert_eq!(goals("Search"), 2),
        None => println!("skipped: without rg there is nothing to compare with"),
    }
    let document = std::fs::read_to_string(&path)?;
    assert!(document.contains("sandbank ÷ loopback TCP"), "{document}");
    assert!(path.with_extension("svg").is_file());

    let left: Vec<_> = std::fs::read_dir(temporary.path())?.flatten().map(|e| e.path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}

#[test]
fn an_unknown_part_is_refused_before_anything_is_started() -> anyhow::Result<()> {
    let temporary = tempfile::tempdir()?;
    let output = bench(temporary.path()).args(["--only", "creat"]).output()?;
    assert_eq!(output.status.code(), Some(64));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("creat") && complaint.contains("throughput"), "{complaint}");
    Ok(())
}
