//! Exact versions of charts: Semantic Versioning 2, with a `v` before it or without.
//!
//! Distinguishes them from ranges and from digests.

/// The algorithms of digests that registries know.
const DIGEST_PREFIXES: [&str; 3] = ["sha256:", "sha384:", "sha512:"];
/// The longest version.
const MAX_VERSION_CHARS: usize = 128;

/// Returns whether a text is one version, and no range of them.
pub(in crate::input) fn is_exact(text: &str) -> bool {
    number_count(text) == Some(3)
}

/// Returns whether a chart may have this version. helm takes one of fewer numbers too. It is a
/// range where no chart has it.
pub(super) fn is_version(text: &str) -> bool {
    number_count(text).is_some_and(|count| count <= 3)
}

/// Returns the count of numbers in a version; none where it is no version.
fn number_count(text: &str) -> Option<usize> {
    let version = without_v(text);
    let (version, build) = split_once_or_none(version, '+');
    let (core, before) = split_once_or_none(version, '-');
    let numbers = core.split('.').collect::<Vec<_>>();
    let is_version = text.len() <= MAX_VERSION_CHARS
        && numbers.iter().all(|number| is_number(number))
        && before.is_none_or(|text| text.split('.').all(is_identifier_of_order))
        && build.is_none_or(|text| text.split('.').all(is_identifier));
    is_version.then_some(numbers.len())
}

/// Returns whether a text is a digest, or ends with one behind an `@`, as images are named.
///
/// `helm pull` takes one. Neither a dependency of a chart nor a field of `helmCharts` does: helm
/// reads it as a range there. It would be that of a manifest, and not of the archive.
pub(super) fn is_digest_reference(text: &str) -> bool {
    let last = text.rsplit('@').next().unwrap_or(text);
    DIGEST_PREFIXES.iter().any(|algorithm| {
        last.get(..algorithm.len()).is_some_and(|start| start.eq_ignore_ascii_case(algorithm))
    })
}

/// Returns whether two versions are the same, be it with a `v` or without.
pub(super) fn is_same_version(one: &str, other: &str) -> bool {
    without_v(one) == without_v(other)
}

fn without_v(text: &str) -> &str {
    text.strip_prefix('v').unwrap_or(text)
}

fn split_once_or_none(text: &str, by: char) -> (&str, Option<&str>) {
    text.split_once(by).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// Returns whether a text is a number, which has no zero before it.
fn is_number(text: &str) -> bool {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits && (text == "0" || !text.starts_with('0'))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Returns whether a text is an identifier that has an order. One that is a number has no zero
/// before it.
fn is_identifier_of_order(text: &str) -> bool {
    is_identifier(text) && (is_number(text) || !text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_exact_or_a_range() {
        for text in [
            "1.2.3",
            "v1.2.3",
            "0.0.0",
            "1.2.3-rc.1",
            "1.2.3+build.05",
            "1.2.3+build.5",
            "0.0.0-0+x-y",
            "v1.2.3-0a.x-y+1-2",
        ] {
            assert!(is_exact(text), "{text}");
        }
        let long = format!("1.2.3-{}", "a".repeat(MAX_VERSION_CHARS));
        for text in [
            "",
            "v",
            "1",
            "1.2",
            "1.2.3.4",
            "1.x.0",
            "1.2.x",
            "*",
            "~1.2.3",
            "^1.2.3",
            ">=1.2.3",
            "=1.2.3",
            "1.2.3 - 2.0.0",
            "1.2.3 || 2.0.0",
            "1.2.3,2.0.0",
            " 1.2.3",
            "1.2.3 ",
            "V1.2.3",
            "vv1.2.3",
            "01.2.3",
            "1.2.03",
            "1.2.3-",
            "1.2.3+",
            "1.2.3-01",
            "1.2.3-a..b",
            "1.2.3-a_b",
            "1.2.+3",
            "1.2.-3",
            "1.2.3\n",
            "latest",
            &long,
        ] {
            assert!(!is_exact(text), "{text}");
        }
    }

    #[test]
    fn a_version_may_have_fewer_numbers() {
        for text in ["0.1", "1", "v1.2", "1.2-rc.1", "1.2+build.5", "1.2.3"] {
            assert!(is_version(text), "{text}");
        }
        for text in ["", "v", "1.x", "1.", "01.2", "~1.2", "1.2.3.4", "latest"] {
            assert!(!is_version(text), "{text}");
        }
    }

    #[test]
    fn a_digest_is_distinguished_from_a_version() {
        #[track_caller]
        fn check(text: &str, expected: bool) {
            assert_eq!(is_digest_reference(text), expected, "{text}");
        }
        check("sha256:ba7816bf", true);
        check("SHA256:ba7816bf", true);
        check("sha512:", true);
        check("@sha256:ba7816bf", true);
        check("1.2.3@sha256:ba7816bf", true);
        check("oci://ghcr.io/acme/web@sha256:ba7816bf", true);
        check("oci://ghcr.io/acme/web:1.2.3@sha256:ba7816bf", true);
        check("", false);
        check("@", false);
        check("1.2.3", false);
        check("1.2.3-sha256", false);
        check("1.2.3+sha256", false);
        check("oci://ghcr.io/sha256/web", false);
        check("oci://ann@ghcr.io/acme", false);
        check("sha256é:", false);
    }

    #[test]
    fn a_v_makes_no_other_version() {
        assert!(is_same_version("v1.2.3", "1.2.3") && is_same_version("1.2.3+a", "v1.2.3+a"));
        assert!(!is_same_version("1.2.3", "1.2.3+a") && !is_same_version("1.2.3", "1.2.4"));
    }
}
