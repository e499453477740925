//! The documents are true: each text, flag, path and key that they quote is there.

use std::collections::BTreeSet;
use std::path::Path;

use rhumb::config::{self, Environment};

use crate::rust;
use crate::tree::{files, read, root, sources};
use crate::{none, order};

/// Flags of other programs, and of the demo.
const FOREIGN_FLAGS: [&str; 11] = [
    "--armor",
    "--export",
    "--unshallow",
    "--unix-socket",
    "--example",
    "--keep",
    "--locked",
    "--package",
    "--local",
    "--document-private-items",
    "--open",
];

/// Returns the texts in backticks outside of code blocks.
fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            block = !block;
        } else if !block {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

/// The first cells of the rows of a table below a heading, without backticks.
fn first_cells(text: &str, heading: &str) -> Vec<String> {
    let (_, after) = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let section = after.lines().take_while(|line| !line.starts_with('#'));
    let rows = section.filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.split(" |").next().unwrap().trim_matches(['|', ' ', '`']).to_owned()).collect()
}

/// Returns whether the parts of a text, separated by `…`, stand in a literal in this order.
fn holds(literal: &str, text: &str) -> bool {
    let mut rest = literal;
    text.split('…').map(str::trim).filter(|part| !part.is_empty()).all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[test]
fn troubleshooting_quotes_the_program() {
    let literals: Vec<String> = sources(&["src"])
        .iter()
        .filter(|file| !file.is_test())
        .flat_map(|file| rust::strings(&file.text))
        .collect();
    let texts = first_cells(&read("README.md"), "## Troubleshooting");
    assert!(texts.len() >= 20, "{texts:?}");
    let unknown = texts.into_iter().filter(|text| !literals.iter().any(|literal| holds(literal, text)));
    none("README.md: the program says no such thing", unknown.collect());
}

#[test]
fn the_exit_codes_are_those_of_the_program() {
    let code = rust::code(&read("src/cli/exit.rs"));
    let (_, after) = code.split_once("pub enum ExitStatus {").unwrap();
    let body = after.split('}').next().unwrap();
    let codes = body.lines().filter_map(|line| line.split_once(" = "));
    let codes: Vec<&str> = codes.map(|(_, code)| code.trim_end_matches(',')).collect();
    assert_eq!(first_cells(&read("README.md"), "### Exit codes"), codes);
}

#[test]
fn quoted_flags_exist() {
    let help: String = files(&["tests/cli"])
        .into_iter()
        .filter(|f| Path::new(&f.path).extension().is_some_and(|e| e == "snap"))
        .map(|f| f.text)
        .collect();
    let is_flag = |word: &str| word.len() > 2 && word.starts_with("--");
    let words = |text: &str| -> BTreeSet<String> {
        let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
        text.split(ends).filter(|word| is_flag(word)).map(str::to_owned).collect()
    };
    let known = words(&help);
    let mut unknown = Vec::new();
    for path in ["README.md", "ARCHITECTURE.md", "systemd/rhumb.service", "systemd/rhumb@.service"] {
        let others = ["kubectl", "systemctl", "journalctl"];
        let is_ours = |line: &&str| !others.iter().any(|other| line.contains(other));
        for line in read(path).lines().filter(is_ours) {
            for flag in words(line) {
                if !known.contains(&flag) && !FOREIGN_FLAGS.contains(&flag.as_str()) {
                    unknown.push(format!("{path}: {flag}"));
                }
            }
        }
    }
    none("a flag that no help text has", unknown);
}

#[test]
fn quoted_keys_are_read() {
    let code: String = sources(&["src"]).iter().flat_map(|file| rust::strings(&file.text)).collect();
    let text = read("README.md");
    let keys = quoted(&text).into_iter().filter_map(|quote| {
        let key = quote.split(':').next().unwrap().to_owned();
        let named = ["rhumb.dev/", "argocd.", "kustomize.", "config.kubernetes.io/", "applyset."];
        named.iter().any(|start| key.starts_with(start)).then_some(key)
    });
    let unknown = keys.filter(|key| !code.contains(key));
    none("README.md: nothing in src/ knows this key", unknown.collect());
}

#[test]
fn every_annotation_is_explained() {
    let texts = sources(&["src"]).into_iter().filter(|file| !file.is_test());
    let words: BTreeSet<String> = texts
        .flat_map(|file| rust::strings(&file.text))
        .flat_map(|literal| {
            let ends = |c: char| c.is_whitespace() || "\"`:,;".contains(c);
            literal
                .split(ends)
                .filter(|word| word.starts_with("rhumb.dev/"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|word| word.len() > "rhumb.dev/".len() && !word.contains("/v1") && !word.contains("/plan/"))
        .collect();
    assert!(words.len() >= 5, "{words:?}");
    let text = read("README.md");
    none("README.md: not explained", words.into_iter().filter(|word| !text.contains(&**word)).collect());
}

#[test]
fn the_code_map_is_the_tree() {
    let text = read("ARCHITECTURE.md");
    let modules = first_cells(&text, "## Code map");
    let order = order();
    assert_eq!(modules[..order.len()], order, "ARCHITECTURE.md names the modules in the order of src/lib.rs");
    let quotes: BTreeSet<String> = quoted(&text).into_iter().collect();
    let folders = ["src/", "tests/", "examples/", "systemd/", "benches/"];
    let paths = quotes.iter().filter(|quote| folders.iter().any(|folder| quote.starts_with(folder)));
    none(
        "ARCHITECTURE.md: no such file",
        paths.filter(|path| !root().join(path).exists()).cloned().collect(),
    );
    let mut missing = Vec::new();
    for folder in ["tests", "examples", "benches"] {
        let entries = root().join(folder).read_dir().into_iter().flatten();
        for entry in entries.map(|entry| entry.unwrap()) {
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            let named = [name.clone(), format!("{name}/")].iter().any(|name| quotes.contains(name));
            if !named && !quotes.contains(&format!("{folder}/")) {
                missing.push(name);
            }
        }
    }
    missing.sort();
    none("ARCHITECTURE.md does not name", missing);
}

#[test]
fn configurations_that_are_shown_are_read() {
    let text = read("README.md");
    let blocks = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let shown: Vec<&str> = blocks.filter(|block| block.contains("rhumb.dev/")).collect();
    assert!(!shown.is_empty());
    for block in shown {
        let environment = Environment { home: Some("/tmp".into()), ..Environment::default() };
        let config = config::read("README.md", block, &environment);
        assert!(config.is_ok(), "{config:?}");
    }
}

#[test]
fn alerts_and_dashboards_ask_for_metrics_that_there_are() {
    let texts = sources(&["src"]).into_iter().filter(|file| !file.is_test());
    let literals: BTreeSet<String> = texts.flat_map(|file| rust::strings(&file.text)).collect();
    let known = |word: &str| {
        // The encoder's additions.
        let bare =
            ["_total", "_bucket", "_sum", "_count", "_info"].iter().find_map(|end| word.strip_suffix(end));
        literals.contains(word) || bare.is_some_and(|bare| literals.contains(bare))
    };
    let mut unknown = Vec::new();
    for file in ["examples/alerts.yaml", "examples/grafana.json"] {
        let text = read(file);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let asked: BTreeSet<&str> =
            words.filter(|word| word.starts_with("rhumb_") || word.starts_with("workqueue_")).collect();
        assert!(asked.len() > 8, "{file}: {asked:?}");
        unknown.extend(asked.into_iter().filter(|word| !known(word)).map(|word| format!("{file}: {word}")));
    }
    none("nothing in src/ counts this", unknown);
}
