//! The sentences of why a source may not have an object, and the change that would allow it.

use std::fmt;

use crate::engine::{AllowViolation, KindPattern};
use crate::object::{Diagnostic, ManifestOrigin, ObjectId};

/// The position of a list: its key, and its owner.
struct AllowListPosition(&'static str, &'static str);

/// The list of a source.
const SOURCE_LIST: AllowListPosition = AllowListPosition("allow", "source");
/// The list of all sources in the cluster.
const CUSTOM_SOURCES_LIST: AllowListPosition = AllowListPosition("customSources.objects", "configuration");

impl fmt::Display for AllowViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&message_at(self, &SOURCE_LIST))
    }
}

/// Returns the finding about an object that its source may not have.
pub(crate) fn describe_violation(
    violation: &AllowViolation,
    id: &ObjectId,
    origin: &ManifestOrigin,
) -> Diagnostic {
    let message = format!("{id} is not allowed: {violation}");
    Diagnostic::error(origin.clone(), "not-allowed", message).hint(hint_at(violation, &SOURCE_LIST))
}

fn message_at(violation: &AllowViolation, at: &AllowListPosition) -> String {
    let AllowListPosition(list, whose) = at;
    match violation {
        AllowViolation::Namespace(namespace) => {
            format!("the namespace {namespace} is not among `{list}.namespaces` of the {whose}")
        }
        AllowViolation::NamespaceItself(name) => {
            format!("it is the namespace {name}, which is not among `{list}.namespaces` of the {whose}")
        }
        AllowViolation::Records(namespace) => format!(
            "{namespace} is the namespace of rhumb's own records, and `{list}.namespaces` of the {whose} does not \
             name it"
        ),
        AllowViolation::Kind(kind) => {
            format!("the kind {} is not among `{list}.kinds` of the {whose}", KindPattern::of(kind))
        }
        AllowViolation::ClusterScoped(kind) => format!(
            "the kind {} lives in no namespace, and `{list}.clusterScoped` of the {whose} does not name it",
            KindPattern::of(kind)
        ),
        AllowViolation::Outer(inner) => message_at(inner, &CUSTOM_SOURCES_LIST),
    }
}

/// Returns the change that would allow an object.
fn hint_at(violation: &AllowViolation, at: &AllowListPosition) -> String {
    let AllowListPosition(list, whose) = at;
    let (subject, key) = match violation {
        AllowViolation::Namespace(name) | AllowViolation::NamespaceItself(name) => {
            (name.to_string(), "namespaces")
        }
        AllowViolation::Records(_) => {
            return format!(
                "take the object out of its manifests, or list all namespaces of the {whose} in `{list}.namespaces`"
            );
        }
        AllowViolation::Kind(kind) => (KindPattern::of(kind).to_string(), "kinds"),
        AllowViolation::ClusterScoped(kind) => (KindPattern::of(kind).to_string(), "clusterScoped"),
        AllowViolation::Outer(inner) => return hint_at(inner, &CUSTOM_SOURCES_LIST),
    };
    format!("add {subject} to `{list}.{key}` of the {whose}, or take the object out of its manifests")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    #[test]
    fn an_object_that_is_not_allowed_is_reported_with_the_list_and_the_change_that_would_allow_it() {
        let id = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
        let check = |violation: AllowViolation, message: &str, hint: &str| {
            let found = describe_violation(&violation, &id, &ManifestOrigin::new("a.yaml".into(), 1, 1));
            assert_eq!(found.message, format!("Deployment shop/web is not allowed: {message}"));
            assert_eq!(found.hint.as_deref(), Some(hint));
        };
        let kind = || GroupKind::new("apps", "Deployment");
        check(
            AllowViolation::Namespace("shop".into()),
            "the namespace shop is not among `allow.namespaces` of the source",
            "add shop to `allow.namespaces` of the source, or take the object out of its manifests",
        );
        check(
            AllowViolation::NamespaceItself("shop".into()),
            "it is the namespace shop, which is not among `allow.namespaces` of the source",
            "add shop to `allow.namespaces` of the source, or take the object out of its manifests",
        );
        check(
            AllowViolation::Records("ops".into()),
            "ops is the namespace of rhumb's own records, and `allow.namespaces` of the source does not name it",
            "take the object out of its manifests, or list all namespaces of the source in `allow.namespaces`",
        );
        check(
            AllowViolation::Kind(kind()),
            "the kind apps/Deployment is not among `allow.kinds` of the source",
            "add apps/Deployment to `allow.kinds` of the source, or take the object out of its manifests",
        );
        check(
            AllowViolation::ClusterScoped(kind()),
            "the kind apps/Deployment lives in no namespace, and `allow.clusterScoped` of the source does not name it",
            "add apps/Deployment to `allow.clusterScoped` of the source, or take the object out of its manifests",
        );
        check(
            AllowViolation::Outer(Box::new(AllowViolation::Kind(kind()))),
            "the kind apps/Deployment is not among `customSources.objects.kinds` of the configuration",
            "add apps/Deployment to `customSources.objects.kinds` of the configuration, or take the object out of its \
             manifests",
        );
    }
}
