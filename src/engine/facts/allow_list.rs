//! The allow-list of a source, whatever its manifests say: the question before all others.
//!
//! A list only takes away. An object outside of it is neither written, compared nor deleted, and
//! not even read from the cluster. So narrowing a list leaves everything as it is.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::manifest::KindScope;
use crate::object::{GroupKind, ObjectId};

/// The namespaces and kinds that a source is bounded to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowList {
    /// The namespaces of its objects; none for any.
    pub namespaces: Option<BTreeSet<Arc<str>>>,
    /// Their kinds; none for any.
    pub kinds: Option<BTreeSet<KindPattern>>,
    /// The objects without a namespace that it may have.
    pub cluster_scoped: ClusterScopeRule,
    /// The outer bound; none for no bound.
    pub outer: Option<Box<AllowList>>,
    /// The namespace of rhumb's own records, where only a list of namespaces that names it allows
    /// that.
    pub system: Option<Arc<str>>,
}

/// The objects without a namespace that a source may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClusterScopeRule {
    /// Objects of all kinds that it may have.
    #[default]
    Any,
    /// None.
    None,
    /// Objects of these kinds.
    Kinds(BTreeSet<KindPattern>),
}

/// A kind, or all kinds of a group: `apps/Deployment`, `apps/*`, `ConfigMap`. Case counts, as it
/// does for the server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindPattern {
    group: Arc<str>,
    /// None for all of the group.
    kind: Option<Arc<str>>,
}

/// The reason for which a source may not have an object. `render` has its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowViolation {
    /// Its namespace is not named.
    Namespace(Arc<str>),
    /// It is a namespace that is not named.
    NamespaceItself(Arc<str>),
    /// It is among rhumb's own records, or their namespace, which is not named.
    Records(Arc<str>),
    /// Its kind is not named.
    Kind(GroupKind),
    /// It lives in no namespace.
    ClusterScoped(GroupKind),
    /// It is not among what no source in the cluster may go beyond.
    Outer(Box<AllowViolation>),
}

impl AllowList {
    /// Returns a list that allows nothing.
    pub fn deny_all() -> Self {
        Self {
            namespaces: Some(BTreeSet::new()),
            kinds: Some(BTreeSet::new()),
            cluster_scoped: ClusterScopeRule::None,
            outer: None,
            system: None,
        }
    }

    /// Returns the same without the namespace of rhumb's own records, unless it is named. A list of
    /// kinds alone would let the author of one source write the orders of another.
    ///
    /// A source without any list is trusted with all that its account may do.
    #[must_use]
    pub fn without_records_in(self, system: &str) -> Self {
        let outer = self.outer.clone().map(|outer| outer.without_records_in(system).into());
        let is_open = Self { outer: None, ..self.clone() } == Self::default();
        let system = (!is_open && self.namespaces.is_none()).then(|| system.into());
        Self { outer, system, ..self }
    }

    /// Returns the same within another list: an object is allowed that both allow.
    #[must_use]
    pub fn intersect(self, outer: Self) -> Self {
        Self { outer: Some(Box::new(outer)), ..self }
    }

    /// Returns why an object is not allowed; none where it is, or where only the scope of its kind
    /// decides.
    pub fn violation(&self, id: &ObjectId, scope: Option<KindScope>) -> Option<AllowViolation> {
        let outer = self.outer.as_ref().and_then(|outer| outer.violation(id, scope));
        // The source's author cannot change the outer bound, so it is reported first.
        outer.map(|refusal| AllowViolation::Outer(refusal.into())).or_else(|| self.own_violation(id, scope))
    }

    fn own_violation(&self, id: &ObjectId, scope: Option<KindScope>) -> Option<AllowViolation> {
        if *self == Self::default() {
            return None;
        }
        let kind = id.group_kind();
        match (id.namespace(), scope) {
            // A namespace that is named means nothing then. A manifest may have been read before its
            // kind was known, or beside a definition that says otherwise.
            (_, Some(KindScope::Cluster)) => self.cluster_scoped_violation(&kind, id.name()),
            (Some(namespace), _) => self.namespaced_violation(&kind, namespace),
            // A kind that is refused in every namespace is refused.
            (None, _) if self.can_allow_kind_itself(&kind, None) => None,
            (None, _) => self.kind_violation(&kind).or_else(|| self.cluster_kind_violation(&kind)),
        }
    }

    /// Returns whether objects of a kind may be allowed, as far as its scope is known.
    pub fn can_allow_kind(&self, kind: &GroupKind, scope: Option<KindScope>) -> bool {
        self.can_allow_kind_itself(kind, scope)
            && self.outer.as_ref().is_none_or(|outer| outer.can_allow_kind(kind, scope))
    }

    fn can_allow_kind_itself(&self, kind: &GroupKind, scope: Option<KindScope>) -> bool {
        let inside = self.kind_violation(kind).is_none()
            && self.namespaces.as_ref().is_none_or(|namespaces| !namespaces.is_empty());
        let outside = self.cluster_kind_violation(kind).is_none();
        match scope {
            Some(KindScope::Namespaced) => inside,
            Some(KindScope::Cluster) => outside,
            None => inside || outside,
        }
    }

    fn kind_violation(&self, kind: &GroupKind) -> Option<AllowViolation> {
        let named = self.kinds.as_ref().is_none_or(|kinds| covers(kinds, kind));
        (!named).then(|| AllowViolation::Kind(kind.clone()))
    }

    fn namespaced_violation(&self, kind: &GroupKind, namespace: &str) -> Option<AllowViolation> {
        let named = self.namespaces.as_ref().is_none_or(|names| names.contains(namespace));
        let elsewhere = (!named).then(|| AllowViolation::Namespace(namespace.into()));
        elsewhere.or_else(|| self.records_violation(namespace)).or_else(|| self.kind_violation(kind))
    }

    fn records_violation(&self, namespace: &str) -> Option<AllowViolation> {
        let system = self.system.as_ref().filter(|system| ***system == *namespace)?;
        Some(AllowViolation::Records(system.clone()))
    }

    /// Returns why a cluster-scoped kind is not allowed. A kind that `clusterScoped` names need not
    /// be among the kinds too.
    fn cluster_kind_violation(&self, kind: &GroupKind) -> Option<AllowViolation> {
        match &self.cluster_scoped {
            ClusterScopeRule::Any => self.kind_violation(kind),
            ClusterScopeRule::Kinds(kinds) if covers(kinds, kind) => None,
            ClusterScopeRule::None | ClusterScopeRule::Kinds(_) => {
                Some(AllowViolation::ClusterScoped(kind.clone()))
            }
        }
    }

    /// Returns the rule that forbids a cluster-scoped object. The list of namespaces bounds
    /// Namespace objects too, as their labels decide what pods may do.
    fn cluster_scoped_violation(&self, kind: &GroupKind, name: &str) -> Option<AllowViolation> {
        let other = kind.is("", "Namespace")
            && self.namespaces.as_ref().is_some_and(|namespaces| !namespaces.contains(name));
        let other = other.then(|| AllowViolation::NamespaceItself(name.into()));
        let records = || self.records_violation(name).filter(|_| kind.is("", "Namespace"));
        self.cluster_kind_violation(kind).or(other).or_else(records)
    }
}

fn covers(patterns: &BTreeSet<KindPattern>, kind: &GroupKind) -> bool {
    patterns.iter().any(|pattern| pattern.covers(kind))
}

impl KindPattern {
    /// Returns whether it means a kind.
    pub fn covers(&self, kind: &GroupKind) -> bool {
        self.group == kind.group && self.kind.as_ref().is_none_or(|one| *one == kind.kind)
    }

    /// Returns the pattern of exactly this kind.
    pub(crate) fn of(kind: &GroupKind) -> Self {
        Self { group: kind.group.clone(), kind: Some(kind.kind.clone()) }
    }
}

/// A text that is no kind, and not all kinds of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a kind (for example apps/Deployment, or ConfigMap for one without a group), nor apps/* for all of a group"
)]
pub struct ParseKindPatternError;

impl FromStr for KindPattern {
    type Err = ParseKindPatternError;

    fn from_str(text: &str) -> Result<Self, ParseKindPatternError> {
        let (group, kind) = text.split_once('/').unwrap_or(("", text));
        let grouped = text.contains('/');
        let right = (!grouped || is_group(group)) && (is_kind(kind) || (grouped && kind == "*"));
        let kind = (kind != "*").then(|| kind.into());
        right.then(|| Self { group: group.into(), kind }).ok_or(ParseKindPatternError)
    }
}

/// Returns whether a text is a DNS subdomain. The author of `v1/ConfigMap` has taken the version
/// for the group, and would allow nothing.
fn is_group(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let version = text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    text.len() <= 253 && text.split('.').all(label) && (!version || text.contains('.'))
}

fn is_kind(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// `apps/Deployment`, `apps/*` or `ConfigMap`.
impl fmt::Display for KindPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        f.write_str(self.kind.as_deref().unwrap_or("*"))
    }
}

impl Serialize for KindPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KindPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KindPatternVisitor)
    }
}

struct KindPatternVisitor;

impl Visitor<'_> for KindPatternVisitor {
    type Value = KindPattern;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a kind (for example apps/Deployment, or ConfigMap for one without a group), or apps/* for all of a group",
        )
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<KindPattern, E> {
        text.parse().map_err(|ParseKindPatternError| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rhumbs_own_records_are_no_part_of_a_list_that_does_not_name_their_namespace() {
        let open = AllowList::default();
        let kinds = list(None, Some(&["ConfigMap", "Namespace"]), ClusterScopeRule::Any);
        let no_cluster = list(None, None, ClusterScopeRule::None);
        let named = list(Some(&["rhumb-system", "shop"]), Some(&["ConfigMap"]), ClusterScopeRule::None);
        let check = |list: &AllowList, kind: &str, namespace: Option<&str>, name: &str, expected: bool| {
            let id = ObjectId::new(&GroupKind::parse(kind), namespace, name);
            let scope = if namespace.is_some() { KindScope::Namespaced } else { KindScope::Cluster };
            let list = list.clone().without_records_in("rhumb-system");
            assert_eq!(list.violation(&id, Some(scope)).is_none(), expected, "{id} of {list:?}");
        };
        let (system, orders) = (Some("rhumb-system"), "orders.shop.rhumb.dev");
        check(&open, "ConfigMap", system, orders, true);
        check(&kinds, "ConfigMap", system, orders, false);
        check(&no_cluster, "ConfigMap", system, orders, false);
        check(&named, "ConfigMap", system, orders, true);
        check(&open.clone().intersect(kinds.clone()), "ConfigMap", system, orders, false);
        check(&kinds, "ConfigMap", Some("shop"), orders, true);
        check(&kinds, "Namespace", None, "rhumb-system", false);
        check(&kinds, "Namespace", None, "shop", true);
    }

    fn list(
        namespaces: Option<&[&str]>,
        kinds: Option<&[&str]>,
        cluster_scoped: ClusterScopeRule,
    ) -> AllowList {
        AllowList {
            namespaces: namespaces.map(|names| names.iter().copied().map(Arc::from).collect()),
            kinds: kinds.map(patterns),
            cluster_scoped,
            outer: None,
            system: None,
        }
    }

    fn patterns(texts: &[&str]) -> BTreeSet<KindPattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_kind_is_named_in_full_or_with_its_group() {
        #[track_caller]
        fn check(text: &str, kind: (&str, &str), expected: bool) {
            let pattern: KindPattern = text.parse().unwrap();
            assert_eq!(pattern.to_string(), text);
            assert_eq!(pattern.covers(&GroupKind::new(kind.0, kind.1)), expected);
        }
        check("apps/Deployment", ("apps", "Deployment"), true);
        check("apps/Deployment", ("apps", "deployment"), false);
        check("apps/Deployment", ("extensions", "Deployment"), false);
        check("apps/Deployment", ("", "Deployment"), false);
        check("apps/*", ("apps", "StatefulSet"), true);
        check("apps/*", ("apps.example.org", "StatefulSet"), false);
        check("ConfigMap", ("", "ConfigMap"), true);
        check("ConfigMap", ("example.org", "ConfigMap"), false);
        check("v1.example.org/Thing", ("v1.example.org", "Thing"), true);
        let wrong = [
            "",
            "*",
            "/ConfigMap",
            "/*",
            "apps/",
            "*/Deployment",
            "*/*",
            "apps/v1/Deployment",
            "v1/ConfigMap",
            "v1beta1/Thing",
            "apps/Deploy*",
            "Apps/Deployment",
            "a b",
            "Config_Map",
            "apps /Deployment",
        ];
        for text in wrong {
            assert_eq!(text.parse::<KindPattern>(), Err(ParseKindPatternError), "{text}");
        }
    }

    const INSIDE: Option<KindScope> = Some(KindScope::Namespaced);
    const OUTSIDE: Option<KindScope> = Some(KindScope::Cluster);

    fn kind(text: &str) -> AllowViolation {
        AllowViolation::Kind(GroupKind::parse(text))
    }

    fn cluster_scoped(text: &str) -> AllowViolation {
        AllowViolation::ClusterScoped(GroupKind::parse(text))
    }

    fn namespace(name: &str) -> AllowViolation {
        AllowViolation::Namespace(name.into())
    }

    #[test]
    fn an_object_is_held_against_its_namespace_its_kind_and_its_scope() {
        #[track_caller]
        fn check(
            list: &AllowList,
            id: (&str, &str),
            scope: Option<KindScope>,
            expected: Option<AllowViolation>,
        ) {
            let (kind, namespace) = id;
            let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
            let id = ObjectId::new(&GroupKind::parse(kind), namespace, "web");
            assert_eq!(list.violation(&id, scope), expected);
        }
        let open = AllowList::default();
        for scope in [INSIDE, OUTSIDE, None] {
            check(&open, ("ClusterRole.rbac.authorization.k8s.io", ""), scope, None);
        }
        let team = list(Some(&["shop"]), None, ClusterScopeRule::None);
        check(&team, ("ConfigMap", "shop"), INSIDE, None);
        check(&team, ("ConfigMap", "web"), INSIDE, Some(namespace("web")));
        check(&team, ("ConfigMap", "Shop"), INSIDE, Some(namespace("Shop")));
        check(&team, ("Namespace", ""), OUTSIDE, Some(cluster_scoped("Namespace")));
        // The namespace that is written is held against the list before anybody knows whether it
        // counts.
        check(&team, ("Thing.example.org", ""), None, None);
        check(&team, ("Thing.example.org", "shop"), None, None);
        check(&team, ("Thing.example.org", "web"), None, Some(namespace("web")));
        // A kind without namespaces is written past the one that its manifest names.
        check(&team, ("Thing.example.org", "shop"), OUTSIDE, Some(cluster_scoped("Thing.example.org")));
        let kinds = list(None, Some(&["apps/*"]), ClusterScopeRule::Any);
        check(&kinds, ("Deployment.apps", "shop"), INSIDE, None);
        check(&kinds, ("Deployment.extensions", "shop"), INSIDE, Some(kind("Deployment.extensions")));
        check(&kinds, ("Secret", "shop"), INSIDE, Some(kind("Secret")));
        check(&kinds, ("Thing.example.org", ""), None, Some(kind("Thing.example.org")));
        check(&kinds, ("Node", ""), OUTSIDE, Some(kind("Node")));
        let named =
            list(Some(&["web"]), Some(&["ConfigMap"]), ClusterScopeRule::Kinds(patterns(&["Namespace"])));
        check(&named, ("Namespace", ""), OUTSIDE, None);
        check(&named, ("Node", ""), OUTSIDE, Some(cluster_scoped("Node")));
        check(&named, ("Namespace", "web"), INSIDE, Some(kind("Namespace")));
        let others = list(Some(&["shop"]), None, ClusterScopeRule::Any);
        check(&others, ("Namespace", ""), OUTSIDE, Some(AllowViolation::NamespaceItself("web".into())));
        check(&others, ("Node", ""), OUTSIDE, None);
        let nothing = list(Some(&[]), None, ClusterScopeRule::None);
        check(&nothing, ("ConfigMap", "shop"), INSIDE, Some(namespace("shop")));
        check(&nothing, ("Thing.example.org", ""), None, Some(cluster_scoped("Thing.example.org")));
    }

    #[test]
    fn a_kind_is_looked_at_only_where_something_of_it_may_be_had() {
        #[track_caller]
        fn check(list: &AllowList, kind: (&str, &str), scope: Option<KindScope>, expected: bool) {
            assert_eq!(list.can_allow_kind(&GroupKind::new(kind.0, kind.1), scope), expected);
        }
        let team =
            list(Some(&["shop"]), Some(&["ConfigMap"]), ClusterScopeRule::Kinds(patterns(&["Namespace"])));
        check(&team, ("", "ConfigMap"), INSIDE, true);
        check(&team, ("", "ConfigMap"), None, true);
        check(&team, ("", "Secret"), INSIDE, false);
        check(&team, ("", "Namespace"), OUTSIDE, true);
        check(&team, ("", "Node"), OUTSIDE, false);
        check(&team, ("example.org", "Thing"), None, false);
        check(&list(Some(&[]), None, ClusterScopeRule::None), ("", "ConfigMap"), INSIDE, false);
        check(&AllowList::default(), ("", "Node"), OUTSIDE, true);
    }

    #[test]
    fn two_lists_allow_what_each_of_them_allows() {
        #[track_caller]
        fn check(
            own: &AllowList,
            outer: &AllowList,
            kind: &str,
            namespace: &str,
            expected: Option<AllowViolation>,
        ) {
            let (namespace, scope) =
                if namespace.is_empty() { (None, OUTSIDE) } else { (Some(namespace), INSIDE) };
            let id = ObjectId::new(&GroupKind::parse(kind), namespace, "web");
            let both = own.clone().intersect(outer.clone());
            assert_eq!(both.violation(&id, scope), expected);
            // The order decides about the words alone.
            let turned = outer.clone().intersect(own.clone());
            assert_eq!(turned.violation(&id, scope).is_none(), expected.is_none());
            assert_eq!(
                both.can_allow_kind(&id.group_kind(), scope),
                turned.can_allow_kind(&id.group_kind(), scope)
            );
        }
        let outer = |violation: AllowViolation| Some(AllowViolation::Outer(violation.into()));
        let open = AllowList::default();
        let team = list(Some(&["shop", "web"]), Some(&["ConfigMap", "apps/*"]), ClusterScopeRule::None);
        check(&open, &team, "ConfigMap", "shop", None);
        check(&open, &team, "ConfigMap", "ops", outer(namespace("ops")));
        check(&open, &team, "Secret", "shop", outer(kind("Secret")));
        check(&open, &team, "Namespace", "", outer(cluster_scoped("Namespace")));
        // A wider list of the source counts for nothing, and a missing one is the outer bound.
        let wide = list(Some(&["shop", "ops"]), Some(&["Secret", "apps/Deployment"]), ClusterScopeRule::Any);
        check(&wide, &team, "Deployment.apps", "shop", None);
        check(&wide, &team, "Deployment.apps", "ops", outer(namespace("ops")));
        check(&wide, &team, "Deployment.apps", "web", Some(namespace("web")));
        check(&wide, &team, "StatefulSet.apps", "shop", Some(kind("StatefulSet.apps")));
        check(&wide, &team, "Secret", "shop", outer(kind("Secret")));
        check(&wide, &team, "Namespace", "", outer(cluster_scoped("Namespace")));
        check(&team, &open, "Secret", "shop", Some(kind("Secret")));
        check(&open, &open, "Namespace", "", None);
        assert!(!open.intersect(team).can_allow_kind(&GroupKind::new("", "Secret"), INSIDE));
    }
}
