//! The documents are true: each text, flag, path and key that they quote is there.

use std::collections::BTreeSet;
use std::path::Path;

use rhumb::testing::config::{self, Environment};

use crate::prose::{MOST_WORDS_OF_A_SENTENCE, sentences, words};
use crate::rust;
use crate::tree::{Source, files, read, root, sources};
use crate::{none, order};

/// Flags of other programs, and of the demo.
const FOREIGN_FLAGS: [&str; 15] = [
    "--armor",
    "--enable-helm",
    "--encrypted-regex",
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
    "--lib",
    "--test",
];

/// Words of older texts, each with the one of docs/glossary.md that is used instead.
const REPLACED_WORDS: [(&str, &str); 4] = [
    ("as wanted", "applied, or settled"),
    ("confined", "in the sandbox"),
    ("confinement", "sandbox"),
    ("walls", "sandbox"),
];

/// Returns all documents for people: those of the top level, and the book.
pub(crate) fn documents() -> Vec<Source> {
    let top = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
    let mut found: Vec<Source> =
        top.iter().map(|path| Source { path: (*path).to_owned(), text: read(path) }).collect();
    let is_page = |file: &Source| Path::new(&file.path).extension().is_some_and(|end| end == "md");
    found.extend(files(&["docs"]).into_iter().filter(is_page));
    found
}

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

/// Returns the first cells of the rows of a table below a heading, without backticks.
fn first_cells(text: &str, heading: &str) -> Vec<String> {
    let text = format!("\n{text}");
    let (_, after) = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let section = after.lines().take_while(|line| !line.starts_with('#'));
    let rows = section.filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.split(" |").next().unwrap().trim_matches(['|', ' ', '`']).to_owned()).collect()
}

/// Returns whether the parts of a text, separated by `…`, are in a literal in this order.
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
    let page = read("docs/troubleshooting.md");
    let texts: Vec<String> = page
        .lines()
        .filter(|line| line.starts_with("## "))
        .flat_map(|heading| first_cells(&page, heading))
        .collect();
    assert!(texts.len() >= 20, "{texts:?}");
    let unknown = texts.into_iter().filter(|text| !literals.iter().any(|literal| holds(literal, text)));
    none("docs/troubleshooting.md: the program says no such thing", unknown.collect());
}

/// Returns whether a file has a test of this name.
fn has_test(code: &str, name: &str) -> bool {
    let (plain, asynchronous) = (format!("fn {name}()"), format!("async fn {name}()"));
    let mut is_marked = false;
    code.lines().map(str::trim).any(|line| {
        if line.starts_with("#[") {
            is_marked |= line == "#[test]" || line.starts_with("#[tokio::test");
            return false;
        }
        let is_declared = line.starts_with(&plain) || line.starts_with(&asynchronous);
        std::mem::take(&mut is_marked) && is_declared
    })
}

/// Returns the words of a cell that name no test of the file before them; all of it where it names
/// none.
fn missing_tests(cell: &str) -> Vec<String> {
    let (mut code, mut count, mut missing) = (String::new(), 0, Vec::new());
    for word in quoted(cell) {
        if word.contains('/') {
            code = read(&word);
        } else if has_test(&code, &word) {
            count += 1;
        } else {
            missing.push(word);
        }
    }
    if count == 0 {
        missing.push(cell.to_owned());
    }
    missing
}

#[test]
fn each_attack_on_a_render_has_its_test() {
    let page = read("docs/reliability.md");
    let (_, section) = page.split_once("\n## Attacks on renders\n").unwrap();
    let rows = section.lines().take_while(|line| !line.starts_with('#'));
    let rows: Vec<&str> = rows.filter(|line| line.starts_with('|')).skip(2).collect();
    let tests = rows.iter().map(|row| row.trim_end_matches('|').rsplit(" | ").next().unwrap());
    none("docs/reliability.md: no such test", tests.flat_map(missing_tests).collect());
    assert_eq!(rows.len(), 30, "a row for each attack");
}

#[test]
fn each_mechanism_against_an_attack_has_its_tests_and_its_cost() {
    let path = "docs/decisions/0059-each-mechanism-has-its-test-and-its-cost.md";
    let page = read(path);
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| attack");
    let rows: Vec<&str> = page.lines().filter(is_row).collect();
    let missing = rows.iter().flat_map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        match cells[..] {
            [_, _, tests, cost] if !cost.is_empty() => missing_tests(tests),
            _ => vec![(*row).to_owned()],
        }
    });
    none(path, missing.collect());
    assert_eq!(rows.len(), 59, "a row for each attack");
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
    let units = ["systemd/rhumb.service", "systemd/rhumb@.service"];
    let units = units.map(|path| Source { path: path.to_owned(), text: read(path) });
    for Source { path, text } in documents().iter().chain(&units) {
        let tools = ["kubectl", "systemctl", "journalctl", "$ git ", "$ mkdir "];
        let own_tools = ["cargo bench", "cargo mutants", "just mutants"];
        let others = tools.iter().chain(&own_tools).chain(&["--clusterrole"]);
        let is_ours = |line: &&str| !others.clone().any(|other| line.contains(other));
        for line in text.lines().filter(is_ours) {
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
    let text: String = documents().into_iter().map(|document| document.text + "\n").collect();
    let keys = quoted(&text).into_iter().filter_map(|quote| {
        let key = quote.split(':').next().unwrap().to_owned();
        let named = ["rhumb.dev/", "argocd.", "kustomize.", "config.kubernetes.io/", "applyset."];
        named.iter().any(|start| key.starts_with(start)).then_some(key)
    });
    let unknown = keys.filter(|key| !key.ends_with('*') && !code.contains(key));
    none("nothing in src/ knows this key", unknown.collect());
}

#[test]
fn each_key_is_spelled_in_one_place() {
    // API versions, a finalizer, a domain of seals and a schema are no annotations.
    let others = [
        "rhumb.dev/",
        "rhumb.dev/v1",
        "rhumb.dev/v1alpha1",
        "rhumb.dev/prune",
        "rhumb.dev/release v1",
        "rhumb.dev/plan/v1",
    ];
    let mut broken = Vec::new();
    for file in sources(&["src"]).iter().filter(|file| !file.is_test()) {
        let text = file.text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let is_registry = file.path == "src/object/annotations.rs";
        for literal in rust::strings(text) {
            if literal.starts_with("rhumb.dev/") && !is_registry && !others.contains(&&*literal) {
                broken.push(format!("{}: {literal}", file.path));
            }
        }
    }
    none("src/object/annotations.rs has all keys", broken);
}

/// Returns the anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            words.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
        })
        .collect()
}

#[test]
fn each_link_leads_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let folder = Path::new(&document.path).parent().unwrap().to_path_buf();
        for rest in document.text.split("](").skip(1) {
            let link = rest.split(')').next().unwrap();
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { document.path.clone().into() } else { folder.join(path) };
            let found = root().join(&target);
            let is_known = anchor.is_empty()
                || std::fs::read_to_string(&found).is_ok_and(|text| anchors(&text).contains(anchor));
            if !found.exists() || !is_known {
                broken.push(format!("{}: {link}", document.path));
            }
        }
    }
    none("no such file or heading", broken);
}

#[test]
fn each_page_is_in_the_book() {
    let summary = read("docs/SUMMARY.md");
    let is_page = |path: &String| path.starts_with("docs/") && *path != "docs/SUMMARY.md";
    let pages = documents().into_iter().map(|document| document.path).filter(is_page);
    let missing = pages.filter(|path| !summary.contains(&format!("]({})", &path["docs/".len()..])));
    none("docs/SUMMARY.md does not name", missing.collect());
}

/// Returns the headings of a decision that are missing or in another order.
fn missing_parts<'a>(page: &str, parts: &[&'a str]) -> Vec<&'a str> {
    let mut lines = page.lines();
    parts.iter().copied().filter(|part| !lines.any(|line| line.strip_prefix("## ") == Some(*part))).collect()
}

#[test]
fn each_decision_has_its_context_its_consequences_and_the_ways_that_were_left() {
    let is_decision = |path: &str| path.starts_with("docs/decisions/0");
    let mut broken = Vec::new();
    for page in documents().iter().filter(|page| is_decision(&page.path)) {
        let parts = ["Context", "Decision", "Consequences", "Tried and left"];
        let missing = missing_parts(&page.text, &parts);
        broken.extend(missing.into_iter().map(|part| format!("{}: {part}", page.path)));
    }
    none("a decision has a context, consequences, and ways that were left", broken);
}

#[test]
fn missing_parts_of_a_decision_are_found() {
    fn check(page: &str, expected: &[&str]) {
        assert_eq!(missing_parts(page, &["Context", "Decision"]), expected, "{page}");
    }
    check("# 1. One\n\n## Context\n\nA.\n\n## Decision\n\nB.\n", &[]);
    check("# 1. Context\n\nContext\n\n## Decision\n", &["Context", "Decision"]);
    check("## Decision\n\n## Context\n", &["Decision"]);
}

#[test]
fn documents_are_short_and_narrow() {
    assert!(read("README.md").len() <= 8_000, "README.md has at most 8 kB");
    assert!(read("ARCHITECTURE.md").lines().count() <= 200, "ARCHITECTURE.md has at most 200 lines");
    let mut broken = Vec::new();
    for document in &documents() {
        let mut is_code = false;
        for (number, line) in document.text.lines().enumerate() {
            is_code ^= line.starts_with("```");
            let cannot_wrap = is_code || line.starts_with('|') || line.contains("](") || line.contains("://");
            if !cannot_wrap && line.chars().count() > 100 {
                broken.push(format!("{}:{}", document.path, number + 1));
            }
        }
    }
    none("a line of prose has at most 100 characters", broken);
}

#[test]
fn pages_speak_in_short_sentences() {
    // These two are lists of long points.
    let is_page = |path: &str| !["ARCHITECTURE.md", "CHANGELOG.md"].contains(&path);
    let mut broken = Vec::new();
    for page in documents().iter().filter(|page| is_page(&page.path)) {
        for sentence in sentences(&page.text) {
            let words = words(&sentence.text);
            if words > MOST_WORDS_OF_A_SENTENCE {
                broken.push(format!("{}:{}: {words} words: {}", page.path, sentence.line, sentence.text));
            }
        }
    }
    none("a sentence of a page has at most 25 words", broken);
}

#[test]
fn each_thing_has_one_word() {
    let literals = sources(&["src"]).into_iter().filter(|file| !file.is_test()).map(|file| {
        let text = rust::strings(&file.text).join("\n");
        Source { path: file.path, text }
    });
    let others =
        ["src/serve/openapi.json", "src/serve/page/page.js", "examples/rhumb.yaml", "examples/alerts.yaml"];
    let others = others.map(|path| Source { path: path.to_owned(), text: read(path) });
    // The changelog names the words of before.
    let pages = documents().into_iter().filter(|document| document.path != "CHANGELOG.md");
    let mut broken = Vec::new();
    for file in literals.chain(others).chain(pages) {
        let text = file.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_inside = |c: char| c.is_alphanumeric();
        for (word, instead) in REPLACED_WORDS {
            let found = text.match_indices(word).any(|(at, _)| {
                !text[..at].ends_with(is_inside) && !text[at + word.len()..].starts_with(is_inside)
            });
            if found {
                broken.push(format!("{}: {word} (write: {instead})", file.path));
            }
        }
    }
    none("one thing has one word (docs/glossary.md)", broken);
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
    let mut count = 0;
    for document in documents() {
        let blocks = document.text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        for block in blocks.filter(|block| block.contains("apiVersion: rhumb.dev/v1alpha1")) {
            let environment = Environment { home: Some("/tmp".into()), ..Environment::default() };
            let config = config::read(&document.path, block, &environment);
            assert!(config.is_ok(), "{}: {config:?}", document.path);
            count += 1;
        }
    }
    assert!(count >= 5, "{count}");
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

/// The phases that say of an object that it is on its way, or there.
const QUIET_PHASES: [&str; 4] = ["Settled", "Progressing", "RollingOut", "Waiting"];

#[test]
fn alerts_and_panels_name_each_phase_that_somebody_has_to_know() {
    let declared = read("src/report/phase.rs");
    let variants = declared.split_once("enum Phase {").unwrap().1.split_once("\n}").unwrap().0;
    let variants = variants.lines().filter_map(|line| line.trim().strip_suffix(','));
    let phases: BTreeSet<&str> =
        variants.filter(|word| !word.starts_with('/') && !QUIET_PHASES.contains(word)).collect();
    assert!(phases.contains("RolledBack") && phases.len() > 5, "{phases:?}");
    let named = |file: &str| {
        let text = read(file).replace("\\\"", "\"");
        let matchers = text.split("phase=").skip(1).filter_map(|rest| rest.split('"').nth(1));
        let words = matchers.flat_map(|words| words.split('|')).map(str::to_owned);
        words.collect::<BTreeSet<String>>()
    };
    // A manifest asks for the first, and the second has a metric of its own.
    let unalerted = ["LeftAlone", "PruneWaiting"];
    for (file, left_out) in [("examples/alerts.yaml", &unalerted[..]), ("examples/grafana.json", &[])] {
        let named = named(file);
        let unknown = named.iter().filter(|word| !declared.contains(&format!("    {word},")));
        none("no such phase", unknown.map(|word| format!("{file}: {word}")).collect());
        let wanted = phases.iter().filter(|phase| !left_out.contains(phase));
        let missing = wanted.filter(|phase| !named.contains(**phase));
        none("a phase in no query", missing.map(|phase| format!("{file}: {phase}")).collect());
    }
}

#[test]
fn the_page_on_observability_names_each_alert() {
    let (rules, page) = (read("examples/alerts.yaml"), read("docs/observability.md"));
    let names: BTreeSet<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let shown: BTreeSet<&str> =
        page.split('`').filter(|word| word.starts_with("Rhumb") && !word.contains(' ')).collect();
    assert_eq!(shown, names, "docs/observability.md has other alerts than examples/alerts.yaml");
}

/// Returns the text below a heading, up to the next one of its level or above.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, after) = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let level = heading.split(' ').next().unwrap().len();
    let is_end = |line: &str| {
        let depth = line.len() - line.trim_start_matches('#').len();
        (1..=level).contains(&depth) && line[depth..].starts_with(' ')
    };
    let length: usize = after.lines().take_while(|line| !is_end(line)).map(|line| line.len() + 1).sum();
    &after[..length.min(after.len())]
}

#[test]
fn the_security_policy_says_how_to_report_and_what_each_attacker_cannot_do() {
    let policy = read("SECURITY.md");
    assert!(section(&policy, "## Reporting").contains('@'), "an address to write to");
    assert!(!first_cells(&policy, "## What is trusted").is_empty(), "who is trusted");
    assert!(section(&policy, "## What it does not protect from").contains("**"), "what it does not do");
    let who = section(&policy, "## Who can do what");
    let attackers: Vec<&str> = who.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let is_vague = |attacker: &&&str| !section(&policy, &format!("### {attacker}")).contains("\nCannot:\n");
    let vague = attackers.iter().filter(is_vague).map(|attacker| (*attacker).to_owned());
    none("SECURITY.md: who cannot do what?", vague.collect());
    assert!(attackers.len() > 5, "{attackers:?}");
}

#[test]
fn the_principle_of_unproven_facts_is_where_people_look_for_it() {
    let check = |path: &str, texts: &[&str]| {
        let words = read(path).split_whitespace().collect::<Vec<_>>().join(" ");
        let missing = texts.iter().filter(|text| !words.contains(**text));
        none(path, missing.map(|text| (*text).to_owned()).collect());
    };
    check("ARCHITECTURE.md", &["Unproven facts can only reduce", "what rhumb does to that very object"]);
    check("docs/security.md", &["## The principle", "can only reduce what rhumb does to that object"]);
    check(
        "docs/decisions/0004-a-fact-on-an-object-is-sealed.md",
        &["is unproven. It keeps rhumb from writing"],
    );
}

#[test]
fn the_steps_of_ci_check_the_supply_chain() {
    let script = read(".ci/run");
    let check = |step: &str, commands: &[&str]| {
        let (_, after) =
            script.split_once(&format!("\n{step}() {{\n")).unwrap_or_else(|| panic!("no {step}"));
        let (body, _) = after.split_once("\n}\n").unwrap();
        let missing = commands.iter().filter(|command| !body.contains(**command));
        none(step, missing.map(|command| (*command).to_owned()).collect());
    };
    check("rules_of_dependencies", &["cargo deny --locked check bans licenses sources"]);
    check("step_lint", &["rules_of_dependencies"]);
    check("step_deny", &["rules_of_dependencies", "cargo deny --locked check advisories"]);
    check("step_sbom", &["tools cargo-auditable cargo-cyclonedx", ".dep-v0", "rhumb.cdx.json"]);
    // Two builds of one commit in two folders.
    check("step_reproducible", &["\"$scratch/one\"", "\"$scratch/another/and/deeper\"", "return 1"]);
    let release = read(".ci/release");
    none(
        ".ci/release",
        ["auditable", "cyclonedx"]
            .iter()
            .filter(|word| !release.contains(**word))
            .map(|word| (*word).to_owned())
            .collect(),
    );
}
