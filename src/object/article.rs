//! Nouns with their article: `a Service`, `an Ingress`, `an HTTPRoute`.

/// Letters whose names begin with a vowel, as they are said one by one.
const VOWEL_NAMES: &str = "AEFHILMNORSX";

/// Returns a kind with `a` or `an` before it.
pub(crate) fn with_article(kind: &str) -> String {
    let mut letters = kind.chars();
    let (first, second) = (letters.next().unwrap_or_default(), letters.next().unwrap_or_default());
    let is_spelt = first.is_ascii_uppercase() && second.is_ascii_uppercase();
    let begins_with_vowel =
        if is_spelt { VOWEL_NAMES.contains(first) } else { "AEIO".contains(first.to_ascii_uppercase()) };
    format!("{} {kind}", if begins_with_vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_the_article_that_is_said() {
        for expected in ["a Service", "an App", "an Ingress", "an HTTPRoute", "a TCPRoute", "a User", "a "] {
            let kind = expected.split_once(' ').unwrap().1;
            assert_eq!(with_article(kind), expected);
        }
    }
}
