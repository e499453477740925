//! The commands that the documents show, run as they are there.
//!
//! Each page has a control plane, a home directory and a shell of its own, and is walked from its
//! top to its end:
//!
//! - A block of `yaml` whose first line is a comment with a file name, for example
//!   `# rhumb.yaml`, is written to that file.
//! - A line of a block of `console` that begins with `$ ` is run, and has to end with exit code 0.
//!   A comment behind it may say another code: `# exits with 1`.
//! - The lines below a command are what it printed, as far as [`normal_form`] distinguishes them. A
//!   line `...` stands for any number of lines, `…` in a line for any text. A command without such
//!   lines may print anything.
//! - `rhumb run` stays in the background until the next one, `rhumb uninstall`, or the end of the
//!   page, and has to end with exit code 0.
//! - A command that [`RUN_ELSEWHERE`] lists is not run here. A command with a placeholder in
//!   capitals, in whatever document, is checked to be one that the program understands.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]
#![allow(clippy::print_stderr, reason = "what a failing test shows")]

mod grammar;
mod normal_form;
mod page;
mod shell;
#[path = "../cluster/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the other tests of the program use the rest")]
mod support;

use std::path::{Path, PathBuf};

use page::{Page, Step};
use shell::Shell;

/// The pages whose commands are run.
const PAGES: [&str; 4] = ["README.md", "docs/quick-start.md", "docs/rollouts.md", "docs/pruning.md"];

/// The commands that are not run here. The file and the text in it say what runs them instead.
const RUN_ELSEWHERE: [(&str, &str, &str); 3] = [
    ("cargo run --example demo", ".ci/run", "cargo run --locked --example demo"),
    ("cargo test", ".ci/run", "cargo test --locked"),
    // It writes into the home directory, and builds for release what these tests run.
    ("cargo install --locked --path .", ".ci/release", "--locked --release --bin rhumb"),
];

/// Returns the root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Returns the reason for which a command is not run here.
fn is_run_elsewhere(command: &str) -> bool {
    RUN_ELSEWHERE.iter().any(|(known, ..)| *known == command)
}

fn walk(path: &str) {
    let page = Page::read(path);
    let mut shell = Shell::new();
    for step in page.steps {
        match step {
            Step::File { name, text } => shell.write(&name, &text),
            Step::Command(command) if is_run_elsewhere(&command.text) => {}
            Step::Command(command) => shell.run(path, &command),
        }
    }
    shell.end();
}

#[test]
fn quick_start_shows_what_happens() {
    walk("docs/quick-start.md");
}

#[test]
fn rollouts_show_what_happens() {
    walk("docs/rollouts.md");
}

#[test]
fn pruning_shows_what_happens() {
    walk("docs/pruning.md");
}

#[test]
fn readme_shows_what_happens() {
    walk("README.md");
}

#[test]
fn each_command_that_is_not_run_here_is_shown_and_run_elsewhere() {
    let pages = PAGES.map(Page::read);
    let shown: Vec<&str> = pages.iter().flat_map(Page::commands).map(|command| &*command.text).collect();
    for (command, file, text) in RUN_ELSEWHERE {
        assert!(shown.contains(&command), "no page shows {command}");
        let runner = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(runner.contains(text), "{file} does not run {command}");
    }
    let count = shown.iter().filter(|command| !is_run_elsewhere(command)).count();
    assert!(count >= 30, "only {count} commands are run");
}
