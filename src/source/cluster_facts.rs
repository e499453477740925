//! The facts of a cluster that renders depend on, as values: nobody is asked for them here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::object::{GroupKind, ObjectId};

/// The facts of the cluster that a render may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClusterFacts {
    /// No cluster is asked: what the configuration leaves open is assumed.
    #[default]
    NotQueried,
    /// The known ones. A missing one is wanted before anything is rendered by it.
    Queried(KnownClusterFacts),
}

/// The facts of a cluster that are known so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownClusterFacts {
    /// The versions; none where the cluster was not asked yet.
    pub versions: Option<Arc<ServedVersions>>,
    /// The objects that were asked for by name.
    pub objects: BTreeMap<ObjectId, ObjectFact>,
}

/// The answer of a cluster about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ObjectFact {
    /// The object has these values.
    Found(Arc<Value>),
    /// There is no such object.
    Absent,
    /// It may not be read, for this reason.
    Unreadable(Arc<str>),
}

/// The versions that a cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedVersions {
    /// The version of Kubernetes, as `v1.36.4`, or the reason for which it is not known.
    pub server: Result<Arc<str>, Arc<str>>,
    /// The versions of the API and their kinds, as `apps/v1` and `apps/v1/Deployment`, in order.
    pub apis: Arc<[String]>,
    /// The reason for which these may be only some of them: the server has just started.
    pub unready: Option<Arc<str>>,
}

impl ServedVersions {
    /// Returns the kinds among them.
    pub(super) fn kinds(&self) -> BTreeSet<GroupKind> {
        self.apis.iter().filter_map(|api| kind_of(api)).collect()
    }
}

/// Returns the kind that an entry names; none for a version. The core group has a version alone.
fn kind_of(api: &str) -> Option<GroupKind> {
    match api.split('/').collect::<Vec<_>>()[..] {
        ["v1", kind] => Some(GroupKind::new("", kind)),
        [group, _, kind] => Some(GroupKind::new(group, kind)),
        _ => None,
    }
}

/// The facts that a render uses or wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactUse {
    /// Indicates whether the versions are among them.
    pub versions: bool,
    /// The objects by name.
    pub objects: BTreeSet<ObjectId>,
}

impl ClusterFacts {
    /// Returns whether a render by these facts may be another one than by others.
    pub(super) fn has_difference_in(&self, used: &FactUse, others: &Self) -> bool {
        match (self, others) {
            (Self::NotQueried, Self::NotQueried) => false,
            (Self::Queried(one), Self::Queried(other)) => {
                (used.versions && one.versions != other.versions)
                    || used.objects.iter().any(|id| one.objects.get(id) != other.objects.get(id))
            }
            _ => true,
        }
    }

    /// Returns the kinds that the server listed for a render that uses these facts; none where it
    /// depends on no list.
    pub(crate) fn kinds_listed_for(&self, used: &FactUse) -> Option<Arc<BTreeSet<GroupKind>>> {
        match self {
            Self::Queried(known) if used.versions => Some(Arc::new(known.versions.as_ref()?.kinds())),
            Self::Queried(_) | Self::NotQueried => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_told_from_versions() {
        let check = |api: &str, expected: Option<&str>| {
            assert_eq!(kind_of(api), expected.map(GroupKind::parse), "{api}");
        };
        check("v1", None);
        check("v1/Pod", Some("Pod"));
        check("apps/v1", None);
        check("apps/v1/Deployment", Some("Deployment.apps"));
        check("shop.org/v1beta1/cart", Some("cart.shop.org"));
    }

    fn versions(server: &str) -> ClusterFacts {
        let (server, apis) = (Ok(server.into()), ["v1".to_owned()].into());
        let versions = ServedVersions { server, apis, unready: None };
        ClusterFacts::Queried(KnownClusterFacts {
            versions: Some(versions.into()),
            ..KnownClusterFacts::default()
        })
    }

    #[test]
    fn facts_that_a_render_does_not_use_make_no_difference() {
        let unknown = ClusterFacts::Queried(KnownClusterFacts::default());
        for (one, other, used, expected) in [
            (versions("v1.35.0"), versions("v1.35.0"), true, false),
            (versions("v1.35.0"), versions("v1.36.0"), true, true),
            (versions("v1.35.0"), versions("v1.36.0"), false, false),
            (unknown.clone(), versions("v1.36.0"), true, true),
            (ClusterFacts::NotQueried, ClusterFacts::NotQueried, true, false),
            (ClusterFacts::NotQueried, unknown, false, true),
        ] {
            let used = FactUse { versions: used, ..FactUse::default() };
            assert_eq!(one.has_difference_in(&used, &other), expected, "{one:?} {other:?} {used:?}");
        }
    }

    #[test]
    fn the_kinds_of_a_render_are_known_where_it_depends_on_their_list() {
        let apis = ["apps/v1".to_owned(), "apps/v1/Deployment".to_owned()].into();
        let versions = ServedVersions { server: Ok("v1.36.0".into()), apis, unready: None };
        let known = KnownClusterFacts { versions: Some(versions.into()), ..KnownClusterFacts::default() };
        let check = |facts: &ClusterFacts, used: bool, expected: Option<&str>| {
            let used = FactUse { versions: used, ..FactUse::default() };
            let expected = expected.map(|kind| Arc::new(BTreeSet::from([GroupKind::parse(kind)])));
            assert_eq!(facts.kinds_listed_for(&used), expected, "{facts:?} {used:?}");
        };
        let queried = ClusterFacts::Queried(known);
        check(&queried, true, Some("Deployment.apps"));
        check(&queried, false, None);
        check(&ClusterFacts::Queried(KnownClusterFacts::default()), true, None);
        check(&ClusterFacts::NotQueried, true, None);
    }

    #[test]
    fn only_the_objects_that_a_render_uses_make_a_difference() {
        let id = |name: &str| ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), name);
        let found = |value: &str| ObjectFact::Found(json!({ "data": { "A": value } }).into());
        let facts = |objects: &[(&str, ObjectFact)]| {
            let objects = objects.iter().map(|(name, fact)| (id(name), fact.clone())).collect();
            ClusterFacts::Queried(KnownClusterFacts { versions: None, objects })
        };
        let used = FactUse { versions: false, objects: [id("used")].into() };
        let before = facts(&[("used", found("1")), ("other", found("1"))]);
        for (now, expected) in [
            (facts(&[("used", found("1"))]), false),
            (facts(&[("used", found("1")), ("other", ObjectFact::Absent)]), false),
            (facts(&[("used", found("2"))]), true),
            (facts(&[("used", ObjectFact::Absent)]), true),
            (facts(&[("used", ObjectFact::Unreadable("no".into()))]), true),
            (facts(&[]), true),
        ] {
            assert_eq!(before.has_difference_in(&used, &now), expected, "{now:?}");
        }
    }
}
