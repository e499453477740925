//! The namespaces of a release's objects, as far as they are known without a cluster.

use serde_json::Value;

use crate::manifest::{KindScope, KindScopes};
use crate::object::{GroupKind, Gvk, text_at};

use super::output::ChartObject;

/// Returns the scopes of the kinds that Kubernetes brings along, and of those that the release
/// defines itself.
pub(super) fn scopes_of<'a>(objects: impl Iterator<Item = &'a ChartObject>) -> KindScopes {
    let mut scopes = KindScopes::builtin();
    for object in objects.filter(|object| text_at(&object.body, &["kind"]) == "CustomResourceDefinition") {
        let text = |path: &[&str]| text_at(&object.body, path);
        let kind = GroupKind::new(text(&["spec", "group"]), text(&["spec", "names", "kind"]));
        let scope = match text(&["spec", "scope"]) {
            "Cluster" => KindScope::Cluster,
            _ => KindScope::Namespaced,
        };
        scopes.insert(kind, scope);
    }
    scopes
}

/// Puts objects that name no namespace into that of the release, but those of kinds that have none.
pub(super) fn name_namespace(objects: &mut [ChartObject], namespace: &str) {
    let scopes = scopes_of(objects.iter());
    for ChartObject { body, .. } in objects {
        let kind =
            Gvk::from_api_version(text_at(body, &["apiVersion"]), text_at(body, &["kind"])).group_kind();
        let is_named = !text_at(body, &["metadata", "namespace"]).is_empty();
        if is_named || scopes.get(&kind) == Some(KindScope::Cluster) {
            continue;
        }
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::origin::ObjectOrigin;

    #[test]
    fn objects_that_name_no_namespace_are_in_that_of_the_release() {
        let object = |kind: &str, version: &str, rest: Value| {
            let mut body = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
            for (key, value) in rest.as_object().unwrap() {
                body[key] = value.clone();
            }
            let origin = ObjectOrigin { root: "".into(), renderer: "".into(), places: Vec::new() };
            ChartObject { body, origin, generated: Vec::new(), is_definition: false }
        };
        let definition =
            json!({"spec": {"group": "a.example", "names": {"kind": "Zone"}, "scope": "Cluster"}});
        let named = json!({"metadata": {"name": "a", "namespace": "other"}});
        let mut objects = [
            object("ConfigMap", "v1", json!({})),
            object("ConfigMap", "v1", named),
            object("Order", "a.example/v1", json!({})),
            object("ClusterRole", "rbac.authorization.k8s.io/v1", json!({})),
            object("Zone", "a.example/v1", json!({})),
            object("CustomResourceDefinition", "apiextensions.k8s.io/v1", definition),
        ];
        name_namespace(&mut objects, "prod");
        let namespaces = objects.each_ref().map(|object| text_at(&object.body, &["metadata", "namespace"]));
        assert_eq!(namespaces, ["prod", "other", "prod", "", "", ""]);
    }
}
