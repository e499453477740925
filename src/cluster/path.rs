//! URLs of the Kubernetes API.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::kinds::{ServedKind, ServedScope};
use crate::object::{ObjectId, PART_OF};

/// The objects of a kind that a list covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListSelector {
    /// All.
    All,
    /// The members of these sets, by label.
    ApplySets(BTreeSet<Arc<str>>),
    /// Objects without the label of any set.
    Unlabelled,
    /// Some objects of one namespace.
    Namespace(Arc<NamespaceSelector>),
}

/// Some objects of one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceSelector {
    /// The namespace.
    pub namespace: Arc<str>,
    /// A label selector, as in a URL; none for all labels.
    pub labels: Option<Arc<str>>,
    /// A field selector, as in a URL; none for all.
    pub fields: Option<Arc<str>>,
}

impl ListSelector {
    /// Returns the members of these sets, by label; those of one namespace, where it is named.
    pub fn members_of(sets: &BTreeSet<Arc<str>>, namespace: Option<&Arc<str>>) -> Self {
        let Some(namespace) = namespace else { return Self::ApplySets(sets.clone()) };
        let labels = Some(members_of(sets).into());
        Self::Namespace(Arc::new(NamespaceSelector { namespace: namespace.clone(), labels, fields: None }))
    }

    /// Returns the namespace; none for the whole cluster.
    pub(super) fn namespace(&self) -> Option<&str> {
        match self {
            Self::All | Self::ApplySets(_) | Self::Unlabelled => None,
            Self::Namespace(within) => Some(&within.namespace),
        }
    }

    /// Returns the parameters of a list or a watch.
    pub(super) fn parameters(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        match self {
            Self::All => Vec::new(),
            Self::ApplySets(sets) => vec![("labelSelector", members_of(sets).into())],
            Self::Unlabelled => vec![("labelSelector", format!("!{PART_OF}").into())],
            Self::Namespace(within) => {
                let labels = within.labels.as_deref().map(|labels| ("labelSelector", labels.into()));
                let fields = within.fields.as_deref().map(|fields| ("fieldSelector", fields.into()));
                labels.into_iter().chain(fields).collect()
            }
        }
    }
}

fn members_of(sets: &BTreeSet<Arc<str>>) -> String {
    let sets: Vec<&str> = sets.iter().map(|set| &**set).collect();
    format!("{PART_OF} in ({})", sets.join(","))
}

/// Returns the path of a kind's collection: of one namespace, or of the whole cluster.
///
/// An aggregated API server chooses the names that discovery gives. They stay within their segment.
pub(super) fn collection_path(kind: &ServedKind, namespace: Option<&str>) -> String {
    let mut path = String::from(if kind.gvk.group.is_empty() { "/api" } else { "/apis" });
    let group = Some(&*kind.gvk.group).filter(|group| !group.is_empty());
    let mut push_segment = |segment: &str| {
        path.push('/');
        push_encoded(&mut path, segment);
    };
    group.into_iter().chain([&*kind.gvk.version]).for_each(&mut push_segment);
    if let (ServedScope::Namespaced, Some(namespace)) = (kind.scope, namespace) {
        push_segment("namespaces");
        push_segment(namespace);
    }
    push_segment(&kind.plural);
    path
}

/// Returns the path of one object.
pub(super) fn object(kind: &ServedKind, id: &ObjectId) -> String {
    object_path(kind, id.namespace(), id.name())
}

/// Returns the path of one object by its names.
pub(super) fn object_path(kind: &ServedKind, namespace: Option<&str>, name: &str) -> String {
    let mut path = collection_path(kind, namespace);
    path.push('/');
    push_encoded(&mut path, name);
    path
}

/// Adds parameters; their values may hold any character.
pub(super) fn with_query(mut path: String, parameters: &[(&str, &str)]) -> String {
    let mut mark = '?';
    for (name, value) in parameters {
        path.push(mark);
        path.push_str(name);
        path.push('=');
        push_encoded(&mut path, value);
        mark = '&';
    }
    path
}

/// Appends a text with all characters encoded but the unreserved ones (RFC 3986) and the colon. A
/// colon may be in a path, and names of RBAC have it.
fn push_encoded(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0').to_ascii_uppercase());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::fake::kind;

    #[test]
    fn each_name_of_a_kind_stays_within_its_segment() {
        let check = |api_version: &str, plural: &str, namespace: Option<&str>, expected: &str| {
            let found = collection_path(&kind(api_version, "Thing", plural), namespace);
            assert_eq!(found, expected, "{api_version} {plural} {namespace:?}");
        };
        check("v1", "things", None, "/api/v1/things");
        check("v1", "things", Some("shop"), "/api/v1/namespaces/shop/things");
        check("x.io/v1", "things", Some("shop"), "/apis/x.io/v1/namespaces/shop/things");
        check("x.io/v1", "../things", Some("shop"), "/apis/x.io/v1/namespaces/shop/..%2Fthings");
        check("x.io/v1", "things?force=true#", None, "/apis/x.io/v1/things%3Fforce%3Dtrue%23");
        check("x.io/v1?", "things", Some("a/b"), "/apis/x.io/v1%3F/namespaces/a%2Fb/things");
    }
}
