//! Files that are named one by one, and sources that are given no name.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::{Folder, ProgramOutput, TestNamespace, run, yaml};

/// Runs a command with a text on its standard input.
fn piped(mut command: Command, text: &str) -> ProgramOutput {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    ProgramOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn what_single_files_do_not_name_is_neither_pruned_nor_reported() {
    let site = TestNamespace::new("parts");
    let folder = Folder::new(&[
        ("env.yaml", yaml::config_map("env", "a", "one")),
        ("other.yaml", yaml::config_map("other", "a", "one")),
    ]);
    site.apply(folder.path(), &[]).ends(0);
    folder.write("env.yaml", &yaml::config_map("env", "a", "two"));
    let window = site.window();
    let env = folder.path().join("env.yaml");
    let diff = site.diff(&env, &[]).ends(1);
    diff.says(&["~ ConfigMap parts/env"]);
    diff.says(&["only the given files were read", "nor deleted"]);
    diff.says(&["0 to create, 1 to configure, 0 to delete, 0 unchanged"]);
    assert!(!diff.all().contains("parts/other"), "{}", diff.all());
    let applied = site.rhumb(&["apply", "-f", env.to_str().unwrap()]).ends(0);
    applied.says(&["0 created, 1 configured, 0 pruned, 0 unchanged"]);
    assert!(!applied.all().contains("parts/other"), "{}", applied.all());
    assert_eq!((site.data("env", "a"), site.data("other", "a")), ("two".into(), "one".into()));
    // Through a pipe, with the lines of findings.
    let text = format!("{}---\n{}", yaml::config_map("new", "a", "one"), "apiVersion: v1\nkind: ConfigMap\n");
    let wrong = piped(site.command(&["diff", "-f", "-"]), &text).ends(1);
    wrong.says(&["+ ConfigMap parts/new", "<stdin>:1"]);
    wrong.says(&["<stdin>:", "error:"]);
    piped(site.command(&["apply", "-"]), &yaml::config_map("new", "a", "one")).ends(0).says(&["1 created"]);
    window.assert_no_deletes();
    // An object from the pipe is of another place: the folder's next pass asks before it deletes
    // it.
    let inventory = site.inventory().unwrap();
    let recorded = inventory["metadata"]["annotations"]["rhumb.dev/source"].as_str().unwrap();
    let (first, last) = recorded.split_once(" and ").unwrap_or_else(|| panic!("one alone: {recorded}"));
    let folder_path = folder.path().to_str().unwrap();
    assert!(first.contains(folder_path) && last.contains("standard input in "), "{recorded}");
    site.apply(folder.path(), &["--prune"]).ends(4).says(&["standard input in "]);
    assert!(site.has("ConfigMap", "new") && site.has("ConfigMap", "other"));
}

#[test]
fn a_source_that_is_given_no_name_has_one_of_its_own() {
    let site = TestNamespace::new("nameless");
    let folders = Folder::new(&[
        ("one/shop/env.yaml", yaml::config_map("env", "a", "one")),
        ("two/shop/more.yaml", yaml::config_map("more", "a", "two")),
        ("old/old.yaml", yaml::config_map("old", "a", "three")),
    ]);
    let unnamed = |words: &[&str], folder: &str| {
        let mut command = site.bare_command();
        command.args(words).arg(folders.path().join(folder)).args(["-n", &site.name]);
        run(command)
    };
    unnamed(&["apply", "--prune"], "one/shop").ends(0);
    assert!(site.inventory_of("shop").is_some() && site.inventory_of("default").is_none());
    // Another folder of that name is another source.
    for words in [&["apply", "--prune"][..], &["diff"]] {
        let taken = unnamed(words, "two/shop").ends(2);
        taken.says(&["the name shop, which follows from", "two/shop", "one/shop"]);
    }
    unnamed(&["apply", "--prune", "--source", "more"], "two/shop").ends(0);
    assert!(site.has("ConfigMap", "env") && site.has("ConfigMap", "more"));
    // Objects of an older version go on under the name that it gave.
    unnamed(&["apply", "--source", "default"], "old").ends(0);
    let went_on = unnamed(&["apply", "--prune"], "old").ends(0);
    went_on.says(&["this location was applied as source default before"]);
    went_on.says(&["1 unchanged"]);
    assert!(site.inventory_of("old").is_none());
}
