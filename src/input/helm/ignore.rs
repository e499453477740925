//! `.helmignore`: which files of a folder are no part of its chart, by helm's own reading.
//!
//! It looks like git's file and is another one. A rule that begins with `!` leaves out all that it
//! does not match, and `**` is an error.

/// The name of the file.
pub(super) const IGNORE_FILE: &str = ".helmignore";

/// The rules of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IgnoreRules(Vec<IgnoreRule>);

/// Indicates whether a path is that of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathForm {
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// A line that is no rule, and why helm does not take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IgnoreFault {
    /// The line, from 1.
    pub(super) line: u32,
    /// The reason.
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct IgnoreRule {
    pattern: Vec<IgnorePatternPart>,
    is_negated: bool,
    is_for_folders: bool,
    /// Says that the last name of a path is compared, and not all of it.
    is_for_names: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum IgnorePatternPart {
    /// Any letters but `/`.
    AnyLetters,
    /// One letter but `/`.
    AnyLetter,
    /// A letter of these, or one that is none of them.
    Class { is_negated: bool, ranges: Vec<(char, char)> },
    /// This letter.
    Letter(char),
}

impl IgnorePatternPart {
    /// Returns how many letters or ranges of them a letter is compared with.
    fn width(&self) -> u64 {
        match self {
            Self::Class { ranges, .. } => 1 + ranges.len() as u64,
            Self::AnyLetters | Self::AnyLetter | Self::Letter(_) => 1,
        }
    }
}

impl IgnoreRules {
    /// Reads a file, and adds the rule that every chart has: hidden files are no templates.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, IgnoreFault> {
        let text = String::from_utf8_lossy(bytes);
        let mut rules = Vec::new();
        let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).lines();
        for (line, number) in lines.chain(["templates/.?*"]).zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            rules.push(IgnoreRule::read(line).map_err(|reason| IgnoreFault { line: number, reason })?);
        }
        Ok(Self(rules))
    }

    /// Returns the steps that the comparison of a path with all rules takes at most.
    pub(super) fn steps(&self, path: &str) -> u64 {
        let name = path.rsplit('/').next().unwrap_or(path);
        let steps = |rule: &IgnoreRule| {
            let text = if rule.is_for_names { name } else { path };
            rule.pattern.iter().map(IgnorePatternPart::width).sum::<u64>() * (text.len() as u64 + 1)
        };
        self.0.iter().map(steps).sum()
    }

    /// Returns whether a path in the chart is left out.
    pub(super) fn is_ignored(&self, path: &str, form: PathForm) -> bool {
        for rule in &self.0 {
            let fits = !rule.is_for_folders || form == PathForm::Folder;
            if rule.is_negated {
                if !fits || !rule.matches(path) {
                    return true;
                }
            } else if fits && rule.matches(path) {
                return true;
            }
        }
        false
    }
}

impl IgnoreRule {
    fn read(line: &str) -> Result<Self, &'static str> {
        if line.contains("**") {
            return Err("`**` is not supported");
        }
        parse(line)?;
        let (is_negated, rule) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (is_for_folders, rule) = rule.strip_suffix('/').map_or((false, rule), |rest| (true, rest));
        let (pattern, is_for_names) = match rule.strip_prefix('/') {
            Some(rest) => (rest, false),
            None => (rule, !rule.contains('/')),
        };
        Ok(Self { pattern: parse(pattern)?, is_negated, is_for_folders, is_for_names })
    }

    fn matches(&self, path: &str) -> bool {
        let text = if self.is_for_names { path.rsplit('/').next().unwrap_or(path) } else { path };
        matches(&self.pattern, text)
    }
}

/// Reads a pattern of Go's `filepath.Match`.
fn parse(pattern: &str) -> Result<Vec<IgnorePatternPart>, &'static str> {
    const PATTERN_FAULT: &str = "the pattern is not well-formed";
    let mut letters = pattern.chars().peekable();
    let mut parts = Vec::new();
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            '*' => IgnorePatternPart::AnyLetters,
            '?' => IgnorePatternPart::AnyLetter,
            '\\' => IgnorePatternPart::Letter(letters.next().ok_or(PATTERN_FAULT)?),
            '[' => {
                let is_negated = letters.next_if_eq(&'^').is_some();
                let mut ranges = Vec::new();
                while ranges.is_empty() || letters.next_if_eq(&']').is_none() {
                    let mut end = || match letters.next() {
                        None | Some('-' | ']') => Err(PATTERN_FAULT),
                        Some('\\') => letters.next().ok_or(PATTERN_FAULT),
                        Some(letter) => Ok(letter),
                    };
                    let low = end()?;
                    let high = if letters.next_if_eq(&'-').is_some() {
                        match letters.next() {
                            None | Some('-' | ']') => return Err(PATTERN_FAULT),
                            Some('\\') => letters.next().ok_or(PATTERN_FAULT)?,
                            Some(letter) => letter,
                        }
                    } else {
                        low
                    };
                    ranges.push((low, high));
                }
                IgnorePatternPart::Class { is_negated, ranges }
            }
            letter => IgnorePatternPart::Letter(letter),
        });
    }
    Ok(parts)
}

/// Returns whether a pattern matches the whole text, in time that is bounded by the product of both
/// lengths. The caller bounds the sum over all rules and paths.
fn matches(pattern: &[IgnorePatternPart], text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    // For each number of letters, whether the parts so far match exactly so many.
    let mut reached = vec![false; letters.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for part in pattern {
        let mut next = vec![false; reached.len()];
        let mut is_open = false;
        for (at, slot) in next.iter_mut().enumerate() {
            let before = at.checked_sub(1).and_then(|at| letters.get(at)).copied();
            let from_before = at > 0 && reached.get(at - 1).copied().unwrap_or(false);
            *slot = match part {
                IgnorePatternPart::AnyLetters => {
                    is_open = (is_open && before != Some('/')) || reached.get(at).copied().unwrap_or(false);
                    is_open
                }
                IgnorePatternPart::AnyLetter => from_before && before != Some('/'),
                IgnorePatternPart::Letter(letter) => from_before && before == Some(*letter),
                IgnorePatternPart::Class { is_negated, ranges } => {
                    let is_in = |letter| ranges.iter().any(|(low, high)| (*low..=*high).contains(&letter));
                    from_before && before.is_some_and(|letter| is_in(letter) != *is_negated)
                }
            };
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_matched_as_go_does() {
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(matches(&parse(pattern).unwrap(), text), expected, "{pattern} {text}");
        };
        for (pattern, text) in [
            ("abc", "abc"),
            ("*", "abc"),
            ("*c", "abc"),
            ("a*", "a"),
            ("a*/b", "abc/b"),
            ("a*b*c*d*e*/f", "axbxcxdxe/f"),
            ("ab[c]", "abc"),
            ("ab[b-d]", "abc"),
            ("ab[^e-g]", "abc"),
            ("a\\*b", "a*b"),
            ("a?b", "aäb"),
            ("[a-ζ]*", "α"),
            ("[\\-x]", "-"),
            ("*x", "xxx"),
            ("", ""),
            ("a[^x]b", "a/b"),
        ] {
            check(pattern, text, true);
        }
        for (pattern, text) in [
            ("a*", "ab/c"),
            ("a*/b", "a/c/b"),
            ("ab[e-g]", "abc"),
            ("a?b", "a/b"),
            ("a??b", "aäb"),
            ("*ba*", "abc"),
            ("a", ""),
            ("", "a"),
            ("*", "/"),
            ("a*b", "ab/b"),
        ] {
            check(pattern, text, false);
        }
        for pattern in ["[", "[]a]", "[-]", "[x-]", "[-x]", "[a-b-c]", "[^", "[^bc", "a[", "a\\", "[a", "[a-"]
        {
            assert!(parse(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn what_the_rules_leave_out_is_no_part_of_the_chart() {
        use PathForm::{File, Folder};
        let check = |text: &str, path: &str, form: PathForm, expected: bool| {
            let rules = IgnoreRules::read(text.as_bytes()).unwrap();
            assert_eq!(rules.is_ignored(path, form), expected, "{text:?} {path}");
        };
        check("# x\n\n  *.tmp  \n", "a/b.tmp", File, true);
        check("*.tmp", "a/b.txt", File, false);
        check("ci/", "ci", Folder, true);
        check("ci/", "ci", File, false);
        check("ci/", "a/ci", Folder, true);
        check("/ci", "a/ci", Folder, false);
        check("/ci", "ci", Folder, true);
        check("a/*.txt", "a/b.txt", File, true);
        check("a/*.txt", "x/a/b.txt", File, false);
        check("!*.yaml", "a.txt", File, true);
        check("!*.yaml", "a.yaml", File, false);
        check("!a/", "a", File, true);
        check("\u{feff}x", "x", File, true);
        check("", "templates/.hidden", File, true);
        check("", "templates/a/.hidden", File, false);
        check("", ".hidden", File, false);
    }

    #[test]
    fn a_line_that_helm_refuses_is_reported() {
        let fault = |text: &str| IgnoreRules::read(text.as_bytes()).unwrap_err();
        assert_eq!(fault("a\n**/b\n"), IgnoreFault { line: 2, reason: "`**` is not supported" });
        assert_eq!(fault("[\n").line, 1);
    }
}
