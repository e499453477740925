//! Names of commits by their descendants: `main~2`, `HEAD^`, `v1^2~1` (gitrevisions(7)).
//!
//! **Invariant:** does no I/O.

/// The most digits of a number: no history that is walked one by one is longer.
const MAX_DIGITS: usize = 6;

/// A name, and the way from it to an ancestor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AncestorName<'a> {
    /// The name that the way begins at.
    pub(super) base: &'a str,
    /// The steps.
    pub(super) steps: Vec<AncestorStep>,
}

/// A step of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AncestorStep {
    /// Goes to the first parent this number of times.
    First(usize),
    /// Goes to the parent of this number, which counts from 1.
    Parent(usize),
}

impl<'a> AncestorName<'a> {
    /// Reads a name with at least one step; none for any other, as no reference has such signs.
    pub(super) fn parse(name: &'a str) -> Option<Self> {
        let (base, mut rest) = name.split_at(name.find(['~', '^'])?);
        let mut steps = Vec::new();
        while let Some(sign) = rest.chars().next() {
            let after = rest.get(1..)?;
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, left) = after.split_at(digits);
            let count = match digits {
                0 => 1,
                1..=MAX_DIGITS => number.parse().ok()?,
                _ => return None,
            };
            steps.push(match (sign, count) {
                ('~', count) => AncestorStep::First(count),
                ('^', 0) => AncestorStep::First(0),
                ('^', number) => AncestorStep::Parent(number),
                _ => return None,
            });
            rest = left;
        }
        Some(Self { base, steps })
    }
}

#[cfg(test)]
mod tests {
    use super::AncestorStep::{First, Parent};
    use super::*;

    #[test]
    fn names_are_read_as_git_reads_them() {
        #[track_caller]
        fn check(name: &str, expected: Option<(&str, &[AncestorStep])>) {
            let expected = expected.map(|(base, steps)| AncestorName { base, steps: steps.to_vec() });
            assert_eq!(AncestorName::parse(name), expected, "{name}");
        }
        check("main~1", Some(("main", &[First(1)])));
        check("HEAD^", Some(("HEAD", &[Parent(1)])));
        check("HEAD~", Some(("HEAD", &[First(1)])));
        check("v1^2~13", Some(("v1", &[Parent(2), First(13)])));
        check("v1^^", Some(("v1", &[Parent(1), Parent(1)])));
        check("v1^0", Some(("v1", &[First(0)])));
        check("~2", Some(("", &[First(2)])));
        check("main", None);
        check("v1^{commit}", None);
        check("main~x", None);
        check("main~1x", None);
        check("main~é", None);
        check("main~1234567", None);
    }
}
