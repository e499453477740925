//! An object in one word, as records name it.

use crate::object::{GroupKind, ObjectId};

/// Returns an object in one word, for example `Deployment.apps/shop/web`. A cluster-scoped one has
/// nothing between the slashes.
pub(crate) fn object_word(id: &ObjectId) -> String {
    format!("{}/{}/{}", id.group_kind(), id.namespace().unwrap_or_default(), id.name())
}

/// Reads what [`object_word`] writes.
pub(crate) fn parse_object_word(word: &str) -> Option<ObjectId> {
    let mut parts = word.splitn(3, '/');
    let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    let namespace = (!namespace.is_empty()).then_some(namespace);
    (!kind.is_empty() && !name.is_empty()).then(|| ObjectId::new(&GroupKind::parse(kind), namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_as_it_is_written() {
        let role = ObjectId::new(&GroupKind::new("rbac.authorization.k8s.io", "ClusterRole"), None, "a:b");
        assert_eq!(parse_object_word(&object_word(&role)), Some(role));
        for wrong in ["", "web", "Deployment.apps/web", "/shop/web", "Deployment.apps/shop/"] {
            assert_eq!(parse_object_word(wrong), None, "{wrong}");
        }
    }
}
