//! As much of Rust's grammar as the rules need. It trusts rustfmt's layout.

/// A module that is declared with a file of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    /// The path of `#[path = "…"]`.
    pub(crate) path: Option<String>,
    /// The inline modules around the declaration.
    pub(crate) inside: Vec<String>,
}

/// Returns the code without comments, and with empty strings.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' || is_raw(rest, &out) {
            out.push_str("\"\"");
            string(rest)
        } else if first == '\'' {
            out.push_str("' '");
            character(rest)
        } else {
            out.push(first);
            first.len_utf8()
        };
        rest = &rest[skipped..];
    }
    out
}

/// Returns all string literals, with their continued lines joined and their placeholders as `…`.
pub(crate) fn strings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut rest, mut before) = (text, String::new());
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' || is_raw(rest, &before) {
            let length = string(rest);
            let literal = rest[..length].trim_start_matches(['b', 'r']).trim_matches('#');
            found.push(plain(literal.trim_matches('"')));
            length
        } else if first == '\'' {
            character(rest)
        } else {
            first.len_utf8()
        };
        rest[..skipped].clone_into(&mut before);
        rest = &rest[skipped..];
    }
    found
}

/// Returns a literal's text as it is shown.
fn plain(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let mut joined = lines.next().unwrap_or_default().to_owned();
    lines.for_each(|line| joined.push_str(line.trim_start()));
    let joined = joined.replace("\\\"", "\"").replace("\\n", "\n");
    let mut out = String::new();
    let mut rest = joined.as_str();
    while let Some((text, after)) = rest.split_once('{') {
        out.push_str(text);
        out.push('…');
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    out + rest
}

fn is_raw(rest: &str, before: &str) -> bool {
    let opens = ["r\"", "r#", "br\"", "br#"].iter().any(|opening| rest.starts_with(opening));
    let hashes = rest.trim_start_matches(['b', 'r']).trim_start_matches('#');
    opens && hashes.starts_with('"') && !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns the length of the string literal that begins here.
fn string(rest: &str) -> usize {
    let opening = rest.find('"').unwrap_or(0) + 1;
    if rest.starts_with('"') {
        let mut escaped = false;
        let end = rest[opening..].find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        return end.map_or(rest.len(), |end| opening + end + 1);
    }
    let closing = format!("\"{}", "#".repeat(rest[..opening].matches('#').count()));
    rest[opening..].find(&closing).map_or(rest.len(), |end| opening + end + closing.len())
}

/// Returns the length of the character literal, or of the tick of a lifetime, that begins here.
fn character(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let after = at + escaped.len_utf8();
            rest[after..].find('\'').map_or(rest.len(), |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// Returns all paths of a code, `use a::{b, c::d}` as `a::b` and `a::c::d`; macros with their `!`.
pub(crate) fn paths(code: &str) -> Vec<String> {
    let tokens = tokens(code);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        at = path(&tokens, at, "", &mut found).max(at + 1);
    }
    found
}

fn tokens(code: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), code);
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return found };
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        found.push(&rest[..length]);
        rest = &rest[length..];
    }
}

/// Reads one path, with all that is in its braces, and returns where it ends.
fn path(tokens: &[&str], start: usize, prefix: &str, found: &mut Vec<String>) -> usize {
    let is_word = |at: usize| {
        tokens.get(at).is_some_and(|token| token.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let mut full_path = prefix.to_owned();
    let mut at = start;
    while is_word(at) {
        if !full_path.is_empty() {
            full_path.push_str("::");
        }
        full_path.push_str(tokens[at]);
        at += 1;
        if tokens.get(at) != Some(&"::") {
            if tokens.get(at) == Some(&"!") && tokens.get(at + 1) != Some(&"=") {
                full_path.push('!');
            }
            break;
        }
        at += 1;
    }
    if at == start {
        return at;
    }
    if at > start + 1 && tokens[at - 1] == "::" && tokens.get(at) == Some(&"{") {
        at += 1;
        while at < tokens.len() && tokens[at] != "}" {
            at = path(tokens, at, &full_path, found).max(at + 1);
        }
        return at + 1;
    }
    found.push(full_path);
    at
}

/// Returns the modules that have a file of their own.
pub(crate) fn modules(text: &str) -> Vec<Module> {
    let (mut found, mut inside, mut path): (Vec<Module>, Vec<(usize, String)>, _) =
        (Vec::new(), Vec::new(), None);
    for line in text.lines() {
        let indentation = line.len() - line.trim_start().len();
        if line.trim() == "}" {
            inside.retain(|(depth, _)| *depth < indentation);
        }
        if let Some(named) = line.trim().strip_prefix("#[path = \"") {
            path = named.strip_suffix("\"]").map(str::to_owned);
        }
        let Some(declared) = declaration(line.trim()) else { continue };
        if let Some(name) = declared.strip_suffix(';') {
            let inside = inside.iter().map(|(_, name)| name.clone()).collect();
            found.push(Module { name: name.to_owned(), path: path.take(), inside });
        } else if let Some(name) = declared.strip_suffix(" {") {
            inside.push((indentation, name.to_owned()));
        }
    }
    found
}

fn declaration(line: &str) -> Option<&str> {
    let visible = ["pub ", "pub(crate) ", "pub(super) ", "pub(in crate::engine) "];
    let line = visible.iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
    line.strip_prefix("mod ")
}

/// Returns the inline modules that each line of a code is in: how many.
pub(crate) fn inline_depths(code: &str) -> Vec<usize> {
    let mut open: Vec<usize> = Vec::new();
    code.lines()
        .map(|line| {
            let indentation = line.len() - line.trim_start().len();
            if line.trim() == "}" {
                open.retain(|depth| *depth < indentation);
            }
            let depth = open.len();
            if declaration(line.trim()).is_some_and(|declared| declared.ends_with(" {")) {
                open.push(indentation);
            }
            depth
        })
        .collect()
}

/// Returns whether a line begins the declaration of a function.
pub(crate) fn is_function(line: &str) -> bool {
    let visible = ["pub ", "pub(crate) ", "pub(super) ", "pub(in "];
    let rest = visible.iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
    let rest =
        if line.starts_with("pub(in ") { rest.split_once(") ").map_or("", |(_, rest)| rest) } else { rest };
    rest.trim_start_matches("const ").trim_start_matches("async ").starts_with("fn ")
}

/// Returns the signatures of functions that other modules may use: name and parameters.
pub(crate) fn public_functions(code: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let visible = ["pub ", "pub(crate) "];
    for (at, word) in visible.iter().flat_map(|word| code.match_indices(word)) {
        let words = ["const ", "async ", "fn "];
        let mut rest = &code[at + word.len()..];
        let mut is_function = false;
        while let Some((word, after)) = words.iter().find_map(|word| Some((word, rest.strip_prefix(word)?))) {
            (is_function, rest) = (*word == "fn ", after);
        }
        let Some(open) = rest.find('(').filter(|_| is_function) else { continue };
        let mut depth = 0_i32;
        let end = rest[open..].find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        let parameters = &rest[open..open + end.unwrap_or(rest.len() - open)];
        found.push((rest[..open].to_owned(), parameters.to_owned()));
    }
    found
}

/// Returns the parameters that are tuples, each behind the name of its function.
pub(crate) fn tuple_parameters(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let rest = &code[at + 3..];
        let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
        // Generic parameters come before the others, and may have parentheses of their own.
        let Some(open) = opening(&rest[name.len()..]).filter(|_| !name.is_empty()) else { continue };
        for parameter in arguments(&rest[name.len() + open + 1..]) {
            let (pattern, of) = parameter.split_once(": ").unwrap_or((parameter, ""));
            let of = of.trim_start_matches('&').trim_start_matches("mut ");
            // A type with a bound is in parentheses too.
            let is_tuple = of.starts_with('(') && !of.starts_with("(dyn ") && !of.starts_with("(impl ");
            if pattern.starts_with('(') || is_tuple {
                found.push(format!("{name}: {parameter}"));
            }
        }
    }
    found
}

/// Returns the place of the parenthesis that opens the parameters, behind a function's name.
fn opening(rest: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in rest.char_indices() {
        match c {
            '(' if depth == 0 => return Some(at),
            '>' if rest[..at].ends_with('-') => {}
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ';' | '{' => return None,
            _ => {}
        }
    }
    None
}

/// Returns the parameters up to the parenthesis that closes them.
fn arguments(rest: &str) -> Vec<&str> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in rest.char_indices() {
        match c {
            '(' | '[' | '<' => depth += 1,
            '>' if rest[..at].ends_with('-') => {}
            ')' | ']' | '>' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 0) || depth < 0 {
            found.push(rest[start..at].trim());
            start = at + 1;
        }
        if depth < 0 {
            break;
        }
    }
    found.retain(|parameter| !parameter.is_empty());
    found
}

#[test]
fn parameters_that_are_tuples_are_found() {
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(tuple_parameters(text), expected, "{text}");
    }
    check("fn f(&self, (a, b): (A, B<C, D>), e: E) {", &["f: (a, b): (A, B<C, D>)"]);
    check("fn f(a: &mut (A, B)) -> (C, D) {", &["f: a: &mut (A, B)"]);
    check("fn f<T: Fn(A) -> (B, C)>(a: T, b: &(dyn D + 'a)) {", &[]);
    check("fn f(a: Vec<(A, B)>, b: [(A, B); 2], c: impl Fn((A, B)) -> C) {", &[]);
    check("type A = fn(B);", &[]);
}

#[test]
fn paths_are_found_in_uses_and_expressions() {
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(paths(&code(text)), expected, "{text}");
    }
    check("use std::{fs, io::{self, Read}};", &["use", "std::fs", "std::io::self", "std::io::Read"]);
    check("let a = std::fs::read(path); // std::net", &["let", "a", "std::fs::read", "path"]);
    check("x(\"std::fs\", r#\"std::\"net\"#, '\"', 'a')", &["x"]);
    check("println!(\"\"); a != b", &["println!", "a", "b"]);
    check("fn f<'a>(x: &'a crate::b::C)", &["fn", "f", "a", "x", "a", "crate::b::C"]);
}

#[test]
fn modules_are_found_with_their_paths() {
    let text =
        "mod a;\npub mod b;\n#[cfg(test)]\n#[path = \"x/c.rs\"]\nmod c;\nmod d {\n    mod e;\n}\nmod f;\n";
    let found = modules(text);
    let names: Vec<(&str, Option<&str>, usize)> =
        found.iter().map(|m| (m.name.as_str(), m.path.as_deref(), m.inside.len())).collect();
    let expected = [("a", None, 0), ("b", None, 0), ("c", Some("x/c.rs"), 0), ("e", None, 1), ("f", None, 0)];
    assert_eq!(names, expected);
}
