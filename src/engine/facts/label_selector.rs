//! Label selectors as `kubectl -l` reads them: `disk=ssd`, `zone in (a, b)`, `!gpu`.

use serde::{Deserialize, Serialize};

/// A label selector: all its terms must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelSelector(Vec<SelectorTerm>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SelectorTerm {
    key: String,
    test: SelectorTest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum SelectorTest {
    Exists,
    Absent,
    In(Vec<String>),
    /// Also holds where there is no such label.
    NotIn(Vec<String>),
}

impl LabelSelector {
    /// Reads a selector; none where the text is no selector, or an empty one.
    pub fn parse(text: &str) -> Option<Self> {
        split_terms(text)?.into_iter().map(read).collect::<Option<Vec<SelectorTerm>>>().map(Self)
    }

    /// Returns whether an object with these labels is selected.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|term| {
            let value = label(&term.key);
            let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
            match &term.test {
                SelectorTest::Exists => value.is_some(),
                SelectorTest::Absent => value.is_none(),
                SelectorTest::In(values) => among(values),
                SelectorTest::NotIn(values) => !among(values),
            }
        })
    }
}

/// Splits at the commas that are outside of parentheses.
fn split_terms(text: &str) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | ')' if inside == (letter == '(') => return None,
            '(' | ')' => inside = !inside,
            ',' if !inside => {
                found.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text.get(start..)?);
    (!inside).then_some(found)
}

fn read(text: &str) -> Option<SelectorTerm> {
    let term = text.trim();
    if let Some(key) = term.strip_prefix('!') {
        return Some(SelectorTerm { key: validate_key(key)?, test: SelectorTest::Absent });
    }
    if let Some((key, value)) = term.split_once("!=") {
        return Some(SelectorTerm {
            key: validate_key(key)?,
            test: SelectorTest::NotIn(vec![validate_value(value)?]),
        });
    }
    if let Some((key, value)) = term.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        return Some(SelectorTerm {
            key: validate_key(key)?,
            test: SelectorTest::In(vec![validate_value(value)?]),
        });
    }
    let Some((before, list)) = term.split_once('(') else {
        return Some(SelectorTerm { key: validate_key(term)?, test: SelectorTest::Exists });
    };
    let values = list.strip_suffix(')')?.split(',').map(validate_value).collect::<Option<Vec<_>>>()?;
    let mut words = before.split_whitespace();
    let (key, word) = (validate_key(words.next()?)?, words.next()?);
    let condition = match word {
        "in" => SelectorTest::In(values),
        "notin" => SelectorTest::NotIn(values),
        _ => return None,
    };
    words.next().is_none().then_some(SelectorTerm { key, test: condition })
}

fn validate_key(text: &str) -> Option<String> {
    let text = text.trim();
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let good = is_name(name) && prefix.is_none_or(is_name);
    good.then(|| text.to_owned())
}

fn validate_value(text: &str) -> Option<String> {
    let text = text.trim();
    (text.is_empty() || is_name(text)).then(|| text.to_owned())
}

/// Returns whether a text has letters, digits, dots, dashes and underscores between two letters or
/// digits.
fn is_name(text: &str) -> bool {
    let is_edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    is_edge(text.chars().next()) && is_edge(text.chars().next_back()) && text.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_select_as_kubectl_does() {
        fn check(selector: &str, labels: &[(&str, &str)], expected: Option<bool>) {
            let labelled = |key: &str| labels.iter().find(|(one, _)| *one == key).map(|(_, value)| *value);
            let matches = LabelSelector::parse(selector).map(|selector| selector.matches(labelled));
            assert_eq!(matches, expected, "{selector} {labels:?}");
        }
        let ssd = &[("disk", "ssd"), ("zone", "a"), ("node.io/pool", "")][..];
        for good in
            ["disk=ssd", "disk==ssd,zone=a", "zone in (a, b)", "disk , !gpu", "zone!=b", "gpu notin (x)"]
        {
            check(good, ssd, Some(true));
        }
        for other in
            ["disk=hdd", "gpu", "!zone", "zone notin (a,b)", "disk!=ssd", "zone in (b)", "disk=ssd,gpu"]
        {
            check(other, ssd, Some(false));
        }
        check("node.io/pool=", ssd, Some(true));
        check("node.io/pool", ssd, Some(true));
        for wrong in [
            "",
            ",",
            "a b",
            "a=b c",
            "=b",
            "a=(b)",
            "a in b",
            "a in (b",
            "a in b)",
            "a of (b)",
            "a in (b) c",
            "/a=b",
            "a/b/c=d",
            "a>1",
            "a in (b),",
            "-a=b",
            "a=b-",
            "a in x (b)",
            "a in ((b))",
            "!a=b",
        ] {
            check(wrong, ssd, None);
        }
    }
}
