//! Patterns of the shell: `*`, `?`, `[a-z]`, `[^a-z]` and `\`.
//!
//! **Invariant:** the time is that of characters times parts of the pattern, whatever both are.

/// A pattern that can match.
pub(super) struct ShellPattern {
    parts: Vec<ShellPatternPart>,
}

enum ShellPatternPart {
    /// Any characters, or none.
    Any,
    /// One character.
    One,
    Literal(char),
    Class {
        is_negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// The part of a text that a pattern takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchLength {
    Shortest,
    Longest,
}

impl ShellPattern {
    /// Reads a pattern; none of what is malformed, which matches nothing.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text.chars();
        while let Some(next) = rest.next() {
            parts.push(match next {
                '*' if matches!(parts.last(), Some(ShellPatternPart::Any)) => continue,
                '*' => ShellPatternPart::Any,
                '?' => ShellPatternPart::One,
                '\\' => ShellPatternPart::Literal(rest.next()?),
                '[' => class(&mut rest)?,
                other => ShellPatternPart::Literal(other),
            });
        }
        Some(Self { parts })
    }

    /// Returns the steps that a search in a text of so many characters takes at most.
    pub(super) fn cost(&self, characters: usize) -> u64 {
        (self.parts.len() as u64 + 1) * characters as u64
    }

    /// Returns how many characters at the beginning match, at least one; none where none do.
    pub(super) fn find_prefix(
        &self,
        characters: impl Iterator<Item = char>,
        length: MatchLength,
    ) -> Option<usize> {
        // `reached[n]` says that the first n parts match what was read so far.
        let mut reached = vec![false; self.parts.len() + 1];
        if let Some(start) = reached.first_mut() {
            *start = true;
        }
        self.pass_stars(&mut reached);
        let mut found = None;
        for (character, count) in characters.zip(1..) {
            let mut next = vec![false; reached.len()];
            let mut is_alive = false;
            for (index, part) in self.parts.iter().enumerate().filter(|(index, _)| reached[*index]) {
                let target = match part {
                    ShellPatternPart::Any => index,
                    part if part.is_matching(character) => index + 1,
                    _ => continue,
                };
                next[target] = true;
                is_alive = true;
            }
            self.pass_stars(&mut next);
            reached = next;
            if reached.last() == Some(&true) {
                found = Some(count);
                if length == MatchLength::Shortest {
                    break;
                }
            }
            if !is_alive {
                break;
            }
        }
        found
    }

    /// Passes stars that match nothing.
    fn pass_stars(&self, reached: &mut [bool]) {
        for (index, part) in self.parts.iter().enumerate() {
            if reached[index] && matches!(part, ShellPatternPart::Any) {
                reached[index + 1] = true;
            }
        }
    }
}

impl ShellPatternPart {
    fn is_matching(&self, character: char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Literal(literal) => *literal == character,
            Self::Class { is_negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *is_negated
            }
        }
    }
}

/// Reads what follows `[`.
fn class(rest: &mut std::str::Chars<'_>) -> Option<ShellPatternPart> {
    let is_negated = rest.as_str().starts_with('^');
    if is_negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && rest.as_str().starts_with(']') {
            rest.next();
            return Some(ShellPatternPart::Class { is_negated, ranges });
        }
        let low = class_character(rest)?;
        let mut high = low;
        if rest.as_str().starts_with('-') {
            rest.next();
            high = class_character(rest)?;
        }
        ranges.push((low, high));
    }
}

fn class_character(rest: &mut std::str::Chars<'_>) -> Option<char> {
    match rest.next()? {
        '-' | ']' => None,
        '\\' => rest.next(),
        other => Some(other),
    }
}
