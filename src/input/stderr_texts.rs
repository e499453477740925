//! The words of a program about its failure, as messages show them.
//!
//! **Invariant:** no word is cut. A search for the values of Secrets would not find a part of one.

use std::path::Path;

use super::sandbox::OMISSION_MARK;

/// Characters of a program's complaint that are shown.
const MAX_STDERR_CHARS: usize = 1_000;

/// The words before the reason of a failure, in the first of its lines.
const ERROR_PREFIX: &str = "Error: ";

/// Returns the words of a program about its failure, without the places of our own files. The
/// second text is the last line alone, for where the first one may quote a Secret.
pub(super) fn stderr_texts(stderr: &str, folder: &Path) -> [String; 2] {
    let stderr = without_cut_words(stderr).replace(&format!("{}/tree/", folder.display()), "");
    let stderr = stderr.replace(&format!("{}/tree", folder.display()), ".");
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.last().copied().unwrap_or("it says nothing");
    let start = lines.iter().position(|line| line.starts_with(ERROR_PREFIX));
    let reason = match start.and_then(|start| lines.get(start..)).unwrap_or_default() {
        [] | [_] => last.to_owned(),
        // The reason may be behind much that is repeated of the files.
        said @ [first, ..] => Some(said.join(" "))
            .filter(|reason| reason.chars().count() <= MAX_STDERR_CHARS)
            .unwrap_or_else(|| format!("{first} … {last}")),
    };
    [stderr_excerpt(&reason), stderr_excerpt(last)]
}

/// Returns the words of a program without the two beside what was not kept. Each may be a part of a
/// value.
fn without_cut_words(stderr: &str) -> String {
    let Some((beginning, end)) = stderr.split_once(OMISSION_MARK) else { return stderr.to_owned() };
    let beginning = beginning.rsplit_once(char::is_whitespace).map_or("", |(words, _)| words);
    let end = end.split_once(char::is_whitespace).map_or("", |(_, words)| words);
    format!("{beginning}{OMISSION_MARK}{end}")
}

/// Returns the words of a program as a message shows them. The word at the cut is left out: it may
/// be the beginning of a value.
fn stderr_excerpt(text: &str) -> String {
    let text = text.strip_prefix(ERROR_PREFIX).unwrap_or(text);
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let Some((end, _)) = text.char_indices().nth(MAX_STDERR_CHARS) else {
        return text.chars().map(plain).collect();
    };
    let cut = text.get(..end).unwrap_or_default();
    let words = cut.rsplit_once(char::is_whitespace).map_or("", |(words, _)| words.trim_end());
    words.chars().map(plain).chain(" …".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_failure_may_have_several_lines() {
        let check = |stderr: &str, expected: [&str; 2]| {
            assert_eq!(stderr_texts(stderr, Path::new("/run/a")), expected, "{stderr}");
        };
        check("", ["it says nothing"; 2]);
        check("stopped\n", ["stopped"; 2]);
        check("# Warning: old\nError: open /run/a/tree/b/x.yaml\n\n", ["open b/x.yaml"; 2]);
        let kind = "wrong node kind: expected MappingNode but got SequenceNode: node contents:";
        check(&format!("# Warning: old\nError: {kind}\n[a]\n"), [&format!("{kind} [a]"), "[a]"]);
        check(
            "Error: with config: `\npath: p.yaml\n`: both cannot be set\npath: p.yaml\n",
            ["with config: ` path: p.yaml `: both cannot be set path: p.yaml", "path: p.yaml"],
        );
        let long = format!("Error: with config: `\n{}\n`: no patch\n", "patch\n".repeat(MAX_STDERR_CHARS));
        check(&long, ["with config: ` … `: no patch", "`: no patch"]);
        // The part that a sandbox leaves out may begin and end within a value.
        check(
            "Error: bad value cana\n[...]\nry-k7 is no number\n",
            ["bad value [...] is no number", "is no number"],
        );
        check("Error: canary\n[...]\n-k7", ["[...]"; 2]);
    }

    #[test]
    fn no_word_is_cut_where_the_words_of_a_program_are_too_long() {
        let check = |stderr: &str, expected: &str| assert_eq!(stderr_excerpt(stderr), expected, "{stderr}");
        let filled = |letters: usize| "x".repeat(letters);
        let fits = format!("{} canary", filled(MAX_STDERR_CHARS - 7));
        check(&fits, &fits);
        check(&format!("Error: {fits}"), &fits);
        for letters in 1..=5 {
            let before = filled(MAX_STDERR_CHARS - 1 - letters);
            check(&format!("{before} canary-k7 is no number"), &format!("{before} …"));
        }
        check(&format!("{fits} is no number"), &format!("{} …", filled(MAX_STDERR_CHARS - 7)));
        check(&"é".repeat(MAX_STDERR_CHARS + 1), " …");
    }
}
