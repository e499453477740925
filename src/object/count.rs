//! Numbers of things in words: `1 object`, `20 objects`.

use std::fmt::Display;

/// Returns a count with its noun, in the plural unless it is one. A share keeps the plural, as in
/// kubectl: `0 of 1 pods`.
pub(crate) fn count_text<N: Display + TryInto<u64> + Copy>(count: N, noun: &str) -> String {
    if is_one(count) {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

/// Returns `is` or `are`, as the count before it asks.
pub(crate) fn verb_to_be<N: TryInto<u64>>(count: N) -> &'static str {
    if is_one(count) { "is" } else { "are" }
}

fn is_one(count: impl TryInto<u64>) -> bool {
    count.try_into().is_ok_and(|count| count == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_and_verbs_follow_their_count() {
        fn check(count: u32, noun: &str, expected: &str) {
            assert_eq!(format!("{} {}", count_text(count, noun), verb_to_be(count)), expected);
        }
        check(0, "object", "0 objects are");
        check(1, "object", "1 object is");
        check(2, "object", "2 objects are");
        check(1, "identity", "1 identity is");
        check(2, "identity", "2 identities are");
        check(2, "key", "2 keys are");
    }
}
