//! The rights that the API server asks for beside the one to write an object.
//!
//! The writer of a role must have the rights in it, or the one to escalate; its binder, the right
//! to bind. Admission policies and trust bundles have such conditions too.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    ADMISSION_GROUP, CERTIFICATES_GROUP, PluralLookup, RBAC_GROUP, RightScope, RightSubject, Rights,
    SourceAccess, guess_plural, is_group, is_plain, named_object, objects,
};
use crate::object::{GroupKind, Object, text_at, value_at};

impl Rights {
    /// Adds what is needed to bind policies, which may be of any source.
    pub(in crate::cli) fn add_bindings(
        &mut self,
        holdings: &[(SourceAccess, Vec<Object>)],
        plural: PluralLookup<'_>,
    ) {
        let written =
            holdings.iter().filter(|(access, _)| access.is_writing()).flat_map(|(_, objects)| objects);
        for binding in written.filter(|object| object.id.group() == ADMISSION_GROUP) {
            let Some(policy) = binding.id.kind().strip_suffix("Binding") else { continue };
            let Some(right_scope) = self.add_chosen_parameters(binding) else { continue };
            let name = text_at(&binding.body, &["spec", "policyName"]);
            let mut all = holdings.iter().flat_map(|(_, objects)| objects);
            let Some(policy) =
                all.find(|other| other.id.is(ADMISSION_GROUP, policy) && other.id.name() == name)
            else {
                self.unbound.insert(format!("{} {}", binding.id.kind(), binding.id.name()));
                continue;
            };
            if let Some(kind) = parameter_kind(policy) {
                let resource = plural(&kind).unwrap_or_else(|| guess_plural(&kind.kind));
                let why = "a binding of the source chooses among the parameters of a policy";
                self.add(right_scope, objects(&kind.group, &resource), &["list"], why);
            }
        }
    }

    /// Adds the rights to grant: writing roles takes the rights in them, and binding roles the
    /// right to bind.
    pub(super) fn add_granted(&mut self, object: &Object) {
        if object.id.group() != RBAC_GROUP {
            return;
        }
        let right_scope = self.right_scope(object);
        match object.id.kind() {
            "Role" | "ClusterRole" if value_at(&object.body, &["aggregationRule"]).is_some() => {
                let why = "a ClusterRole of the source gathers the rights of others";
                self.add(
                    right_scope,
                    named_object(RBAC_GROUP, "clusterroles", object.id.name()),
                    &["escalate"],
                    why,
                );
            }
            "Role" | "ClusterRole" => {
                let rules = value_at(&object.body, &["rules"]).and_then(Value::as_array);
                for rule in rules.into_iter().flatten() {
                    self.add_rule(&right_scope, rule);
                }
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                let text = |key| text_at(&object.body, &["roleRef", key]);
                let resource = if text("kind") == "Role" { "roles" } else { "clusterroles" };
                let why = "a binding of the source refers to it";
                self.add(right_scope, named_object(RBAC_GROUP, resource, text("name")), &["bind"], why);
            }
            _ => {}
        }
    }

    /// Adds the rights that the server asks for when an object is written. These are to read a
    /// policy's parameters, and to vouch for the signer of a trust bundle.
    pub(super) fn add_admission(&mut self, object: &Object, plural: &dyn Fn(&GroupKind) -> String) {
        match (object.id.group(), object.id.kind()) {
            (ADMISSION_GROUP, "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy") => {
                if let Some(kind) = parameter_kind(object) {
                    let why = "a policy of the source has parameters of this kind";
                    self.add(RightScope::Cluster, objects(&kind.group, &plural(&kind)), &["get"], why);
                }
            }
            (CERTIFICATES_GROUP, "ClusterTrustBundle") => {
                let signer = text_at(&object.body, &["spec", "signerName"]);
                if !signer.is_empty() {
                    let why = "a bundle of the source is of this signer";
                    self.add(
                        RightScope::Cluster,
                        named_object(CERTIFICATES_GROUP, "signers", signer),
                        &["attest"],
                        why,
                    );
                }
            }
            _ => {}
        }
    }

    /// Adds the right to read parameters that a binding chooses by label. Returns the scope of a
    /// parameter that it names.
    fn add_chosen_parameters(&mut self, binding: &Object) -> Option<RightScope> {
        let chosen = value_at(&binding.body, &["spec", "paramRef"])?;
        match (text_at(chosen, &["name"]), text_at(chosen, &["namespace"])) {
            ("", "") => Some(RightScope::Cluster),
            // No server has another one, and it is written out beside the roles, where a line break
            // would begin a document of its own.
            ("", namespace) if is_plain(namespace) => {
                self.namespaces.insert(namespace.to_owned());
                Some(RightScope::Namespace(namespace.to_owned()))
            }
            _ => None,
        }
    }

    fn add_rule(&mut self, right_scope: &RightScope, rule: &Value) {
        let texts = |key: &str| -> Vec<String> {
            let all = value_at(rule, &[key]).and_then(Value::as_array).into_iter().flatten();
            all.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let verbs = texts("verbs");
        let verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
        let why = "a role of the source grants it, and only who has a right may grant it";
        let names: BTreeSet<String> = texts("resourceNames").into_iter().collect();
        for group in texts("apiGroups") {
            for resource in texts("resources") {
                let names = (!names.is_empty()).then(|| names.clone());
                let subject = RightSubject::Objects { group: group.clone(), resource, names };
                self.add(right_scope.clone(), subject, &verbs, why);
            }
        }
        for path in texts("nonResourceURLs") {
            self.add(RightScope::Cluster, RightSubject::Path(path), &verbs, why);
        }
    }
}

/// Returns the kind of the parameters of a policy for admission.
pub(super) fn parameter_kind(policy: &Object) -> Option<GroupKind> {
    let text = |key| text_at(&policy.body, &["spec", "paramKind", key]);
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let is_kind = |kind: &&str| is_plain(&kind.to_lowercase()) && is_group(group);
    Some(text("kind")).filter(is_kind).map(|kind| GroupKind::new(group, kind))
}
