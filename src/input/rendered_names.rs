//! The names of rendered objects, by which each has a path of its own below its root.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::object::{Gvk, text_at};
use crate::source::RENDERED_SEPARATOR;

/// The ends of the names of plain files with manifests.
const MANIFEST_ENDS: [&str; 3] = [".yaml", ".yml", ".json"];

/// The names of a root's objects, no two alike.
///
/// **Invariant:** behind the path of its root, a name makes a path that no object of another root
/// and no plain file has. So it has no separator, and not the end of a manifest.
#[derive(Debug, Default)]
pub(super) struct RenderedNames {
    /// The number of times that each full name was there.
    counts: HashMap<String, usize>,
    given: HashSet<String>,
}

impl RenderedNames {
    /// Returns `KIND.GROUP/NAMESPACE/NAME`, with a number where that is not enough.
    pub(super) fn name_of(&mut self, body: &Value) -> String {
        let gvk = Gvk::from_api_version(text_at(body, &["apiVersion"]), text_at(body, &["kind"]));
        let group = if gvk.group.is_empty() { String::new() } else { format!(".{}", gvk.group) };
        let namespace = text_at(body, &["metadata", "namespace"]);
        let name = text_at(body, &["metadata", "name"]);
        let full_name = format!("{}{group}/{namespace}/{name}", gvk.kind).replace(RENDERED_SEPARATOR, "%23");
        let is_like_a_file = MANIFEST_ENDS.iter().any(|end| full_name.ends_with(end));
        let count = self.counts.entry(full_name.clone()).or_default();
        loop {
            *count += 1;
            let numbered = is_like_a_file || *count > 1;
            let name = if numbered { format!("{full_name}/{count}") } else { full_name.clone() };
            if self.given.insert(name.clone()) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::source::RenderedRoot;

    #[test]
    fn no_two_objects_and_no_plain_file_have_one_path_whatever_they_are_called() {
        let object = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "shop", "name": name}});
        let objects = [
            object("ConfigMap", "a"),
            object("ConfigMap", "a"),
            object("ConfigMap", "a/2"),
            object("ConfigMap", "b.yaml"),
            object("ConfigMap", "kustomization.yaml#ConfigMap/shop/a"),
            object("ConfigMap#", "a"),
        ];
        let roots =
            ["x/kustomization.yaml", "x/kustomization.yaml#ConfigMap/shop/kustomization.yaml", "p.yaml"];
        let mut paths: HashSet<Arc<str>> = ["p.yaml#ConfigMap/shop/b.yaml".into()].into();
        for root in roots {
            let mut names = RenderedNames::default();
            for object in &objects {
                let path = RenderedRoot::object_path(root, &names.name_of(object));
                assert!(paths.insert(path.clone()), "{path}");
            }
        }
    }

    #[test]
    fn a_name_says_which_object_it_is_of() {
        let mut names = RenderedNames::default();
        let mut check = |api_version: &str, kind: &str, name: &str, expected: &str| {
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": "shop", "name": name}});
            assert_eq!(names.name_of(&object), expected);
        };
        check("v1", "ConfigMap", "a", "ConfigMap/shop/a");
        check("v1", "ConfigMap", "a", "ConfigMap/shop/a/2");
        check("apps/v1", "Deployment", "a", "Deployment.apps/shop/a");
        check("v1", "ConfigMap", "b.json", "ConfigMap/shop/b.json/1");
        check("v1", "ConfigMap", "x#y", "ConfigMap/shop/x%23y");
    }
}
