//! Every command of rhumb that a document shows is one that the program understands.

use std::process::Command;

use crate::root;

/// The placeholders of commands, each with something that may be there.
const PLACEHOLDERS: [(&str, &str); 9] = [
    ("NAME", "deploy/web"),
    ("SOURCE", "shop"),
    ("PATH", "deploy"),
    ("DIR", "out"),
    ("FILE", "rhumb.yaml"),
    ("COMMIT", "0123456789ab"),
    ("OBJECT", "shop/deployment.apps/web"),
    ("COMMAND", "run"),
    ("TIMEOUT", "5m"),
];

/// Returns the words of a command as a shell has them, but for escapes.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in text.split(['"', '\'']).enumerate() {
        let is_quoted = number % 2 == 1;
        if is_quoted {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Returns the words of a command, with something in the place of each placeholder.
fn words(text: &str) -> Vec<String> {
    let word = |word: &str| {
        let (start, value) =
            word.split_once('=').map_or(("", word), |(flag, _)| word.split_at(flag.len() + 1));
        let known = PLACEHOLDERS.iter().find(|(placeholder, _)| *placeholder == value);
        known.map_or_else(|| word.to_owned(), |(_, example)| format!("{start}{example}"))
    };
    split(&text.replace(['[', ']'], "")).iter().map(|text| word(text)).collect()
}

/// Returns the commands of rhumb in a document's text: in backticks, and behind a `$`. The first
/// cells of a table that begins with `text` quote what the program prints.
fn shown_commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut is_block, mut is_of_messages) = (false, false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if is_block {
            let command = line.strip_prefix("$ ").map(|rest| rest.trim_start_matches("sudo "));
            found.extend(command.map(str::to_owned));
        } else {
            let (message, rest) = line.split_once(" | ").unwrap_or(("", line));
            let quoting = if is_of_messages { rest } else { line };
            found.extend(quoting.split('`').skip(1).step_by(2).map(str::to_owned));
            is_of_messages = line.starts_with('|') && (is_of_messages || message == "| text");
        }
    }
    let of_rhumb = |command: String| {
        let command = command.split([';', '|', '>']).next().unwrap_or_default().to_owned();
        let command = command.split(" # ").next().unwrap_or_default().trim().to_owned();
        (command.starts_with("rhumb ") && !command.ends_with('\\')).then_some(command)
    };
    found.into_iter().filter_map(of_rhumb).collect()
}

#[test]
fn each_command_that_is_shown_is_understood() {
    let mut broken = Vec::new();
    let mut count = 0;
    let pages =
        walkdir::WalkDir::new(root().join("docs")).into_iter().map(|entry| entry.unwrap().into_path());
    let top = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name));
    let is_page = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "md");
    for path in pages.chain(top).filter(is_page) {
        for command in shown_commands(&std::fs::read_to_string(&path).unwrap()) {
            count += 1;
            // Flags before it are checked, and nothing is done.
            let arguments = words(&command).split_off(1);
            let asked =
                Command::new(env!("CARGO_BIN_EXE_rhumb")).args(arguments).arg("--help").output().unwrap();
            if !asked.status.success() {
                let why =
                    String::from_utf8_lossy(&asked.stderr).lines().next().unwrap_or_default().to_owned();
                broken.push(format!("{}: `{command}`: {why}", path.display()));
            }
        }
    }
    assert!(count > 60, "{count}");
    assert!(broken.is_empty(), "no such command:\n  {}\n", broken.join("\n  "));
}
