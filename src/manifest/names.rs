//! The API's own rules for names, label keys and values, and annotation keys.

/// A name rule of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameRule {
    /// RFC 1123 subdomain: what most kinds take.
    Subdomain,
    /// RFC 1123 subdomain of at most 52 characters, because names of Jobs are made of it.
    CronJob,
    /// RFC 1123 label.
    Label,
    /// Anything that fits into one segment of a URL.
    PathSegment,
}

impl NameRule {
    /// Returns the rule for the names of a kind.
    pub(super) fn of(group: &str, kind: &str) -> Self {
        // Served by an API server of its own, with rules of its own.
        if group.ends_with("openshift.io") {
            return Self::PathSegment;
        }
        match (group, kind) {
            ("", "Namespace" | "Service") | ("apps", "StatefulSet") => Self::Label,
            ("batch", "CronJob") => Self::CronJob,
            ("rbac.authorization.k8s.io" | "internal.apiserver.k8s.io", _)
            | ("", "Event")
            | ("policy", "PodDisruptionBudget")
            | ("certificates.k8s.io", "CertificateSigningRequest" | "ClusterTrustBundle")
            | ("networking.k8s.io", "IPAddress") => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }

    /// Returns the fault of a name, if any.
    pub(super) fn fault(self, name: &str) -> Option<&'static str> {
        match self {
            Self::CronJob if name.len() > 52 => Some(
                "the name of a CronJob has at most 52 characters, because the names of its Jobs are longer",
            ),
            Self::Subdomain | Self::CronJob => (!is_subdomain(name)).then_some(SUBDOMAIN_RULE),
            Self::Label => (!is_label(name)).then_some(LABEL_RULE),
            Self::PathSegment => {
                let fits = !matches!(name, "." | "..") && !name.contains(['/', '%']);
                (!fits).then_some("a name here must not be `.` or `..`, and must not contain `/` or `%`")
            }
        }
    }
}

/// Returns the nearest name that every kind takes, for a hint; none when nothing is left of it.
pub(super) fn nearest_valid_name(name: &str) -> Option<String> {
    let mut near = String::new();
    for character in name.chars().flat_map(char::to_lowercase) {
        match character {
            'a'..='z' | '0'..='9' => near.push(character),
            '-' | '_' | '.' | ' ' | '/' | ':' if !near.ends_with('-') => near.push('-'),
            '-' | '_' | '.' | ' ' | '/' | ':' => {}
            _ => return None,
        }
    }
    let near = near.trim_matches('-');
    is_label(near).then(|| near.to_owned())
}

const SUBDOMAIN_RULE: &str = "a name here has at most 253 characters: lower-case letters, digits, `-` and `.`, \
                         and begins and ends with a letter or digit";

/// The rule of [`NameRule::Label`], in words.
pub(super) const LABEL_RULE: &str = "a name here has at most 63 characters: lower-case letters, digits and `-`, \
                                and begins and ends with a letter or digit";

/// The rule of [`label_value_fault`], in words.
const LABEL_VALUE_RULE: &str = "the value of a label has at most 63 characters: letters, digits, `-`, `_` and `.`, \
                     and begins and ends with a letter or digit";

/// Returns whether a text is an RFC 1123 label.
pub(super) fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_label_form(text)
}

fn is_label_form(text: &str) -> bool {
    let inner = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    inner && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}

/// Returns whether a text may name a kind: what API servers take in a definition.
pub(super) fn is_kind(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && is_label(&text.to_ascii_lowercase())
}

/// Returns whether a text is an RFC 1123 subdomain.
pub(super) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_form)
}

/// Returns the fault in the key of a label (or, in lower case, of an annotation), if any.
pub(super) fn key_fault(key: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        return Some("the part of a key before `/` must be a domain name in lower case");
    }
    if !is_qualified(name) {
        return Some(
            "the name of a key has 1 to 63 characters: letters, digits, `-`, `_` and `.`, and begins and ends \
             with a letter or digit; one `/` may separate a domain before it",
        );
    }
    None
}

/// Returns the fault in a key of a `ConfigMap` or `Secret`, if any.
pub(super) fn data_key_fault(key: &str) -> Option<&'static str> {
    let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    let fits = plain && (1..=253).contains(&key.len()) && key != "." && !key.starts_with("..");
    (!fits).then_some("it has 1 to 253 characters: letters, digits, `-`, `_` and `.`, and neither is `.` nor begins with `..`")
}

/// Returns the fault in the value of a label, if any.
pub(super) fn label_value_fault(value: &str) -> Option<&'static str> {
    (!value.is_empty() && !is_qualified(value)).then_some(LABEL_VALUE_RULE)
}

fn is_qualified(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    text.len() <= 63
        && ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}
