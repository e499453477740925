//! The operators on a value, as Flux's do: lengths and offsets are in bytes.

use std::borrow::Cow;

use super::expression::{CaseOperation, ReplaceScope, TrimOperation};
use super::expression_limits::{ExpansionBudget, ExpansionLimit};
use super::pattern::{MatchLength, ShellPattern};

/// An offset or length that falls between the bytes of one character.
pub(super) struct CutCharacter;

/// Returns a part of a value. An offset or length that is no number leaves the value as it is.
pub(super) fn substring<'v>(
    value: &'v str,
    offset: &str,
    length: Option<&str>,
) -> Result<&'v str, CutCharacter> {
    let length_in_bytes = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let Ok(offset) = offset.parse::<i64>() else { return Ok(value) };
    let start = if offset < 0 { length_in_bytes.saturating_add(offset).max(0) } else { offset };
    let end = match length.map(str::parse::<i64>) {
        None => length_in_bytes,
        Some(Err(_)) => return Ok(value),
        Some(Ok(length)) if length < 0 => length_in_bytes.saturating_add(length),
        Some(Ok(length)) => start.saturating_add(length).min(length_in_bytes),
    };
    if start >= end {
        return Ok("");
    }
    let range = usize::try_from(start).unwrap_or_default()..usize::try_from(end).unwrap_or_default();
    value.get(range).ok_or(CutCharacter)
}

/// Changes the case of letters whose other case is one letter.
pub(super) fn change_case(value: &str, case: CaseOperation) -> String {
    let upper = |letter: char| single_letter(letter, letter.to_uppercase());
    let lower = |letter: char| single_letter(letter, letter.to_lowercase());
    let first = |change: fn(char) -> char| {
        let mut letters = value.chars();
        letters.next().map(change).into_iter().chain(letters).collect()
    };
    match case {
        CaseOperation::Upper => value.chars().map(upper).collect(),
        CaseOperation::Lower => value.chars().map(lower).collect(),
        CaseOperation::UpperFirst => first(upper),
        CaseOperation::LowerFirst => first(lower),
    }
}

fn single_letter(letter: char, mut changed: impl Iterator<Item = char>) -> char {
    match (changed.next(), changed.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

/// Takes off what a pattern matches: at least one character, or nothing.
pub(super) fn trim<'v>(
    value: &'v str,
    pattern: &str,
    trim: TrimOperation,
    budget: &mut ExpansionBudget,
) -> Result<&'v str, ExpansionLimit> {
    use TrimOperation::{LongestPrefix, LongestSuffix, ShortestPrefix, ShortestSuffix};
    let length = match trim {
        ShortestPrefix | ShortestSuffix => MatchLength::Shortest,
        LongestPrefix | LongestSuffix => MatchLength::Longest,
    };
    let is_suffix = matches!(trim, ShortestSuffix | LongestSuffix);
    budget.spend_work((value.len() + pattern.len()) as u64)?;
    // Flux turns the pattern round too, letter by letter: a class is none any more then.
    let pattern: Cow<'_, str> =
        if is_suffix { pattern.chars().rev().collect::<String>().into() } else { pattern.into() };
    let Some(pattern) = ShellPattern::parse(&pattern) else { return Ok(value) };
    budget.spend_work(pattern.cost(value.len()))?;
    Ok(if is_suffix {
        let count = pattern.find_prefix(value.chars().rev(), length);
        let cut = count.and_then(|count| value.char_indices().nth_back(count - 1));
        cut.map_or(value, |(at, _)| &value[..at])
    } else {
        let count = pattern.find_prefix(value.chars(), length);
        let cut = count.map(|count| value.char_indices().nth(count).map_or(value.len(), |(at, _)| at));
        cut.map_or(value, |at| &value[at..])
    })
}

/// Replaces a text by another. At the beginning and the end nothing is taken off for no other.
pub(super) fn replace(
    value: &str,
    scope: ReplaceScope,
    text: &str,
    by: Option<&str>,
    budget: &mut ExpansionBudget,
) -> Result<String, ExpansionLimit> {
    budget.spend_work((value.len() + text.len()) as u64)?;
    let (count, by) = match (scope, by) {
        (ReplaceScope::All, by) => (value.matches(text).count(), by.unwrap_or_default()),
        (ReplaceScope::First, by) => (usize::from(value.contains(text)), by.unwrap_or_default()),
        (ReplaceScope::Prefix, Some(by)) => (usize::from(value.starts_with(text)), by),
        (ReplaceScope::Suffix, Some(by)) => (usize::from(value.ends_with(text)), by),
        (ReplaceScope::Prefix | ReplaceScope::Suffix, None) => (0, ""),
    };
    budget.spend_text(value.len().saturating_add(count.saturating_mul(by.len())))?;
    Ok(match scope {
        _ if count == 0 => value.to_owned(),
        ReplaceScope::Suffix => format!("{}{by}", &value[..value.len() - text.len()]),
        ReplaceScope::First | ReplaceScope::Prefix => value.replacen(text, by, 1),
        ReplaceScope::All => value.replace(text, by),
    })
}
