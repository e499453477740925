//! The house rules that no compiler checks. Each test lists every place that breaks its rule.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it did not expect")]

#[path = "tidy/comments.rs"]
mod comments;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/rust.rs"]
mod rust;
#[path = "tidy/tree.rs"]
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use tree::{FOLDERS, Source, files, read, sources, top_level};

/// Modules that do no I/O and know neither clock nor chance.
const CORE: [&str; 8] = ["object", "manifest", "fields", "health", "change", "graph", "engine", "render"];

/// The modules that do not use one above them, each with that one.
const INDEPENDENT: [(&str, &str); 1] = [("report", "cluster")];

/// The folders of the engine: each uses those before it, and nothing that comes later.
const ENGINE_FOLDERS: [&str; 6] = ["facts", "decide", "deletion", "rollout", "restart", "orders"];

/// The modules of the engine that each folder may use: the state, and the worlds of the tests.
const ENGINE_SHARED: [&str; 2] = ["state", "tests"];

/// The paths that the core must not use; each counts with everything below it.
const IMPURE: [&str; 22] = [
    "tokio",
    "kube",
    "k8s_openapi",
    "git2",
    "notify",
    "walkdir",
    "tempfile",
    "tracing",
    "rand",
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
];

/// The ends of paths that read a clock.
const CLOCKS: [&str; 7] = [
    "Instant::now",
    "Instant::elapsed",
    "SystemTime::now",
    "SystemTime::elapsed",
    "Timestamp::now",
    "Zoned::now",
    "UNIX_EPOCH",
];

/// The packages that rhumb is built on, by the names of their crates.
const FOUNDATION: [&str; 10] = [
    "notify",
    "git2",
    "serde",
    "serde_yaml",
    "walkdir",
    "tokio",
    "kube",
    "k8s_openapi",
    "tracing",
    "tempfile",
];

/// The allowed entries of the top level, and whether they must be there.
const TOP_LEVEL: [(&str, bool); 22] = [
    (".cargo", false),
    (".ci", true),
    (".gitignore", true),
    ("ARCHITECTURE.md", true),
    ("CHANGELOG.md", true),
    ("CONTRIBUTING.md", true),
    ("Cargo.lock", true),
    ("Cargo.toml", true),
    ("LICENSE", true),
    ("README.md", true),
    ("SECURITY.md", true),
    ("benches", false),
    ("clippy.toml", true),
    ("deny.toml", true),
    ("dist", true),
    ("docs", true),
    ("examples", true),
    ("justfile", true),
    ("rustfmt.toml", true),
    ("src", true),
    ("systemd", true),
    ("tests", true),
];

/// Words of a Rust file: about 600 lines as they are written here.
const MOST_WORDS: usize = 3_200;
/// Words of `src/main.rs`: a screen.
const MOST_WORDS_OF_MAIN: usize = 100;
/// Characters of a line that people read as prose; rustfmt bounds the code.
const WIDEST_PROSE: usize = 100;

/// Fails with all places at once.
fn none(rule: &str, broken: Vec<String>) {
    assert!(broken.is_empty(), "{rule}:\n  {}\n", broken.join("\n  "));
}

/// Returns the modules in the order of the table in src/lib.rs.
fn order() -> Vec<String> {
    let text = read("src/lib.rs");
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | [`"));
    rows.map(|row| row.split('`').next().unwrap().to_owned()).collect()
}

/// Returns the modules of the crate that a file uses, each with the path that does.
fn used_modules(file: &Source, known: &[String]) -> BTreeMap<String, String> {
    let code = rust::code(&file.text);
    let depths = rust::inline_depths(&code);
    let mut found = BTreeMap::new();
    let mut note = |path: &str, top: Option<&str>| {
        if let Some(top) = top.filter(|top| known.iter().any(|name| name == top)) {
            found.insert(top.to_owned(), path.to_owned());
        }
    };
    // As a whole, for uses over several lines, and line by line, where `super` depends on the
    // module around.
    for path in rust::paths(&code) {
        note(&path, path.strip_prefix("crate::").map(first));
    }
    for (line, inline) in code.lines().zip(depths) {
        for path in rust::paths(line) {
            let above = path.split("::").take_while(|part| *part == "super").count();
            let is_root = above > 0 && above == file.module().len() + inline;
            note(&path, path.split("::").nth(above).filter(|_| is_root));
        }
    }
    found
}

fn first(path: &str) -> &str {
    path.split("::").next().unwrap()
}

#[test]
fn modules_use_only_those_above_them() {
    let order = order();
    // A module of tests alone stands beside all others, and may use each.
    let is_test = |name: &str| name.ends_with("_tests");
    let declared: BTreeSet<String> = rust::modules(&read("src/lib.rs"))
        .into_iter()
        .map(|module| module.name)
        .filter(|name| !is_test(name))
        .collect();
    assert_eq!(declared, order.iter().cloned().collect(), "src/lib.rs: its table and its modules");
    let place = |name: &str| order.iter().position(|other| other == name).unwrap();
    let mut broken = Vec::new();
    let is_ordered = |file: &&Source| file.module().first().is_some_and(|own| !is_test(own));
    for file in sources(&["src"]).iter().filter(is_ordered) {
        let own = file.module()[0];
        for (used, path) in used_modules(file, &order) {
            if place(&used) > place(own) {
                broken.push(format!("{}: {path} ({used} is below {own})", file.path));
            }
        }
    }
    none("a module uses only those above it in the table of src/lib.rs", broken);
}

#[test]
fn independent_modules_do_not_use_each_other() {
    let order = order();
    let mut broken = Vec::new();
    for file in &sources(&["src"]) {
        let used = used_modules(file, &order);
        let dependencies = INDEPENDENT.iter().filter(|(own, _)| file.module().first() == Some(own));
        let paths = dependencies.filter_map(|(_, other)| used.get(*other));
        broken.extend(paths.map(|path| format!("{}: {path}", file.path)));
    }
    none("a module that is independent of another does not use it", broken);
    let names = INDEPENDENT.iter().flat_map(|(own, other)| [*own, *other]);
    let unknown = names.filter(|name| !order.iter().any(|known| known == name));
    none("src/lib.rs has no such module", unknown.map(str::to_owned).collect());
}

/// Returns the names that the engine's root gives on, each with the module that it comes from.
fn engine_names() -> BTreeMap<String, String> {
    let paths = rust::paths(&rust::code(&read("src/engine/mod.rs")));
    let own = paths.iter().filter(|path| path.contains("::") && first(path) != "crate");
    own.map(|path| (path.rsplit("::").next().unwrap().to_owned(), first(path).to_owned())).collect()
}

/// Returns the paths of a file that lead from its folder of the engine into a later one. Some do so
/// by a name of the engine's root.
fn later_uses(file: &Source, names: &BTreeMap<String, String>) -> Vec<String> {
    let place = |module: &str| ENGINE_FOLDERS.iter().position(|folder| *folder == module);
    let Some(own) = file.module().get(1).and_then(|folder| place(folder)) else { return Vec::new() };
    let is_later = |path: &String| {
        let Some(name) = path.strip_prefix("crate::engine::").map(first) else { return false };
        let module = names.get(name).map_or(name, String::as_str);
        !ENGINE_SHARED.contains(&module) && place(module).is_none_or(|other| other > own)
    };
    rust::paths(&rust::code(&file.text)).into_iter().filter(is_later).collect()
}

#[test]
fn folders_of_the_engine_use_only_those_before_them() {
    let names = engine_names();
    assert_eq!(names["SourceId"], "facts", "the names of the engine's root are found");
    let mut broken = Vec::new();
    for file in sources(&["src/engine"]).iter().filter(|file| !file.is_test()) {
        broken.extend(later_uses(file, &names).iter().map(|path| format!("{}: {path}", file.path)));
    }
    none("a folder of the engine uses none that comes later", broken);
}

#[test]
fn a_use_of_a_later_folder_is_found_by_its_path_and_by_a_name() {
    fn check(folder: &str, text: &str, expected: &[&str]) {
        let from = [("SourceId", "facts"), ("Reason", "decide"), ("Engine", "state"), ("Input", "input")];
        let names: BTreeMap<String, String> =
            from.map(|(name, module)| (name.to_owned(), module.to_owned())).into();
        let file = Source { path: format!("src/engine/{folder}/a.rs"), text: text.to_owned() };
        assert_eq!(later_uses(&file, &names), expected, "{folder}: {text}");
    }
    check("facts", "use crate::engine::{Reason, SourceId};", &["crate::engine::Reason"]);
    check("decide", "use crate::engine::{Reason, SourceId};", &[]);
    check("decide", "fn f(a: crate::engine::rollout::b::C) {}", &["crate::engine::rollout::b::C"]);
    check("rollout/rollback", "use crate::engine::facts::b;", &[]);
    check("orders", "use crate::engine::Input;", &["crate::engine::Input"]);
    check("facts", "use crate::engine::{Engine, state::DecisionMode};", &[]);
}

#[test]
fn the_core_is_pure() {
    let mut broken = Vec::new();
    let core = |file: &Source| file.module().first().is_some_and(|module| CORE.contains(module));
    for file in sources(&["src"]).iter().filter(|file| core(file) && !file.is_test()) {
        for path in rust::paths(&rust::code(&file.text)) {
            let is_below = |name: &str| path == name || path.starts_with(&format!("{name}::"));
            let clock = CLOCKS.iter().any(|clock| path == *clock || path.ends_with(&format!("::{clock}")));
            if IMPURE.iter().any(|name| is_below(name)) || clock {
                broken.push(format!("{}: {path}", file.path));
            }
        }
    }
    none("the core does no I/O and knows neither clock nor chance", broken);
    let order = order();
    assert_eq!(order[..CORE.len()], CORE, "the core comes first in the table of src/lib.rs");
}

/// Returns the functions of the engine that others may call and that change it, each from its name
/// to its end.
fn engine_calls(code: &str) -> Vec<&str> {
    let blocks = code.split("\nimpl Engine {\n").skip(1);
    let functions = blocks.flat_map(|block| {
        let inside = block.split("\n}\n").next().unwrap();
        inside.split("pub(crate) fn ").skip(1)
    });
    functions
        .map(|function| function.split("\n    }\n").next().unwrap())
        .filter(|function| function.split('{').next().unwrap().contains("&mut self"))
        .collect()
}

#[test]
fn each_call_of_the_engine_has_its_line_in_a_trace() {
    // The end of the trace itself is no call.
    let of_the_trace = ["take_trace(", "end_trace("];
    let (mut broken, mut traced) = (Vec::new(), 0);
    for file in sources(&["src/engine"]).iter().filter(|file| !file.is_test()) {
        for call in engine_calls(&rust::code(&file.text)) {
            if file.path == "src/engine/calls.rs" && call.contains("self.trace_call(") {
                traced += 1;
            } else if !of_the_trace.iter().any(|name| call.starts_with(name)) {
                broken.push(format!("{}: {}", file.path, call.split('(').next().unwrap()));
            }
        }
    }
    none("what changes an engine from outside goes through `trace_call` in calls.rs", broken);
    assert!(traced > 0, "src/engine/calls.rs has calls");
}

#[test]
fn the_calls_of_an_engine_are_found() {
    let code = "\nimpl Engine {\n    pub(crate) fn a(&mut self, b: u8) {\n        c();\n    }\n\n    \
                pub(crate) fn d(&self) {\n    }\n}\n\nimpl Other {\n    pub(crate) fn e(&mut self) {\n    }\n}\n";
    assert_eq!(engine_calls(code), ["a(&mut self, b: u8) {\n        c();"]);
}

#[test]
fn no_file_is_too_long() {
    let mut broken = Vec::new();
    for file in sources(&FOLDERS) {
        let most = if file.path == "src/main.rs" { MOST_WORDS_OF_MAIN } else { MOST_WORDS };
        let words = file.text.split_whitespace().count();
        if words > most {
            broken.push(format!("{}: {words} words, at most {most}", file.path));
        }
    }
    none("files stay short", broken);
}

#[test]
fn no_comment_is_too_wide() {
    let mut broken = Vec::new();
    for file in sources(&FOLDERS) {
        for (number, line) in file.text.lines().enumerate() {
            let Some(text) = line.trim().strip_prefix("//") else { continue };
            // A table's row and an address cannot be wrapped.
            let is_row = text.trim_start_matches(['/', '!', ' ']).starts_with('|');
            if !is_row && !text.contains("://") && line.trim().chars().count() > WIDEST_PROSE {
                broken.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    none("a comment's line has at most 100 characters", broken);
}

#[test]
fn no_file_is_forgotten() {
    let (reached, missing) = tree::reached();
    let mut broken = missing;
    let forgotten = sources(&FOLDERS).into_iter().filter(|file| !reached.contains(&file.path));
    broken.extend(forgotten.map(|file| format!("{}: no `mod` names it", file.path)));
    none("each Rust file is compiled", broken);
}

#[test]
fn no_test_is_ignored() {
    let mut broken = Vec::new();
    for file in sources(&FOLDERS) {
        for (number, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("#[ignore") {
                broken.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    none("no test is ignored", broken);
}

#[test]
fn names_say_something() {
    let empty = ["common", "helper", "helpers", "manager", "misc", "util", "utils"];
    let is_test = |path: &str| path.starts_with("tests/");
    let broken = sources(&FOLDERS).into_iter().filter(|file| {
        let mut parts = file.path.split('/').map(|part| part.trim_end_matches(".rs"));
        // Cargo's own word for what integration tests share.
        parts.any(|part| empty.contains(&part) && !(part == "common" && is_test(&file.path)))
    });
    none("a module's name says what it owns", broken.map(|file| file.path).collect());
}

#[test]
fn public_functions_take_no_booleans() {
    let mut broken = Vec::new();
    for file in sources(&["src", "tests/controlplane/src"]) {
        for (name, parameters) in rust::public_functions(&rust::code(&file.text)) {
            let words: Vec<String> = rust::paths(&parameters);
            // A closure's result is no parameter.
            if words.iter().any(|word| word == "bool") && !parameters.contains("-> bool") {
                broken.push(format!("{}: {name}", file.path));
            }
        }
    }
    none("an enum says at the call what a boolean does not", broken);
}

#[test]
fn no_parameter_is_a_tuple() {
    let mut broken = Vec::new();
    for file in sources(&["src", "tests/controlplane/src"]).iter().filter(|file| !file.is_test()) {
        let code = rust::code(&file.text);
        // A table's row is a tuple.
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let found = rust::tuple_parameters(code).into_iter();
        broken.extend(found.map(|parameter| format!("{}: {parameter}", file.path)));
    }
    none("what belongs together is a struct with a name, what does not is by itself", broken);
}

#[test]
fn each_dependency_is_one_line() {
    let mut broken = Vec::new();
    for path in ["Cargo.toml", "tests/controlplane/Cargo.toml"] {
        let text = read(path);
        let mut section = String::new();
        let mut names: Vec<&str> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']).to_owned();
                names.clear();
                if section.contains("dependencies.") {
                    broken.push(format!("{path}: [{section}]"));
                }
            } else if section.ends_with("dependencies") {
                let name = line.split(" = ").next().unwrap();
                let is_one_line = matches!(line.chars().last(), Some('"' | '}'));
                if !is_one_line || names.contains(&name) || !line.contains(" = ") {
                    broken.push(format!("{path}: [{section}] {line}"));
                }
                names.push(name);
            }
        }
    }
    none("a dependency is one line `name = …`", broken);
}

#[test]
fn the_foundation_is_used() {
    let manifest = read("Cargo.toml");
    let (_, after) = manifest.split_once("\n[dependencies]\n").unwrap();
    let declared: Vec<String> = after
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| Some(line.split_once(" = ")?.0.replace('-', "_")))
        .collect();
    let mut used = BTreeSet::new();
    for file in sources(&["src"]).iter().filter(|file| !file.is_test()) {
        used.extend(rust::paths(&rust::code(&file.text)).iter().map(|path| first(path).to_owned()));
    }
    let missing = FOUNDATION.iter().filter(|name| !declared.contains(&(**name).to_owned()));
    none("a dependency", missing.map(ToString::to_string).collect());
    let idle = declared.iter().filter(|name| !used.contains(*name));
    none("each dependency is used in src/", idle.cloned().collect());
}

#[test]
fn the_top_level_is_clear() {
    let there: BTreeSet<String> =
        top_level().into_iter().filter(|name| !matches!(name.as_str(), ".git" | "target")).collect();
    let allowed: BTreeSet<String> = TOP_LEVEL.iter().map(|(name, _)| (*name).to_owned()).collect();
    none("not for the top level", there.difference(&allowed).cloned().collect());
    let needed = TOP_LEVEL.iter().filter(|(name, must)| *must && !there.contains(*name));
    none("missing at the top level", needed.map(|(name, _)| (*name).to_owned()).collect());
}

#[test]
fn no_trace_of_development_is_left() {
    let marks = ["TODO", "FIXME", "XXX", "HACK"].map(|mark| format!("{mark}:"));
    let places = ["home", "root", "Users", "work"].map(|folder| format!("/{folder}/"));
    // The people in the examples.
    let ann = format!("{}ann", places[0]);
    let texts = ["Cargo.toml", "justfile", ".ci/run"];
    let mut documents = documents::documents();
    documents.extend(texts.map(|path| Source { path: path.to_owned(), text: read(path) }));
    let mut broken = Vec::new();
    for file in files(&["src", "tests", "examples", "benches", "systemd"]).iter().chain(&documents) {
        for (number, line) in file.text.lines().enumerate() {
            let rest = line.replace(&ann, "");
            if marks.iter().chain(&places).any(|mark| rest.contains(mark.as_str())) {
                broken.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    none("no open ends, no directories of whoever wrote it", broken);
}
