//! The objects that a source does not name, and that a root may want which does not render.
//!
//! Nobody knows what such a root wants. So an object may go only where all of this holds:
//! - the content that rhumb applied last is known, and comes from elsewhere;
//! - the text of the root rules the object out. It may have moved there by the very commit that
//!   broke the root, or by one before, so that an unchanged root says nothing.

use serde_json::json;

use crate::engine::facts::causes::prune_cause::{BlockingRoot, RootRelation};
use crate::engine::facts::entry::SourceId;
use crate::engine::state::Engine;
use crate::object::{ManifestOrigin, ObjectId, UnrenderedRoot, root_folder};

impl Engine {
    /// Returns why an object that a source does not name may be wanted by a root that does not
    /// render.
    pub(in crate::engine) fn unrendered_root_reason(
        &self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<BlockingRoot> {
        let accepted = self.objects.entries.get(id).and_then(|entry| entry.accepted.content());
        let origin = accepted.filter(|accepted| accepted.body.source == source).map(|known| &known.origin);
        let can_be_named = |root: &UnrenderedRoot| {
            let question = || json!({ "id": id, "root": root.path, "names": root.names });
            self.answer_for_trace(question, || root.names.can_be_named(id.name()))
        };
        unrendered_root_reason(origin, &self.sources[source].unrendered, can_be_named)
    }
}

/// Returns why an object may be wanted by one of these roots; none where all rule it out. The
/// origin is that of the content that was applied last; none where that is not known.
/// `can_be_named` says whether a root may name the object.
fn unrendered_root_reason(
    origin: Option<&ManifestOrigin>,
    roots: &[UnrenderedRoot],
    can_be_named: impl Fn(&UnrenderedRoot) -> bool,
) -> Option<BlockingRoot> {
    roots.iter().find_map(|root| {
        let relation = match origin {
            None => RootRelation::UnknownOrigin,
            Some(origin) if is_of_root(origin, root) => RootRelation::Origin,
            Some(_) if can_be_named(root) => RootRelation::PossibleName,
            Some(_) => return None,
        };
        Some(BlockingRoot { folder: root_folder(&root.path).into(), relation })
    })
}

/// Returns whether an object was rendered in the folder of a root, whatever its kustomization was
/// called.
fn is_of_root(origin: &ManifestOrigin, root: &UnrenderedRoot) -> bool {
    let rendered = origin.render.as_ref();
    rendered.is_some_and(|render| *render.root == *root_folder(&root.path))
        || origin.file.strip_prefix(&*root.path).is_some_and(|rest| rest.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{GroupKind, NameWords, PossibleNames, RenderOrigin};

    fn root(path: &str, words: Option<&str>) -> UnrenderedRoot {
        let words = words.and_then(|words| NameWords::default().with_text(words.as_bytes()));
        let names = words.map_or(PossibleNames::Any, |words| PossibleNames::Words(words.into()));
        UnrenderedRoot { path: path.into(), names }
    }

    fn rendered(file: &str, root: &str) -> ManifestOrigin {
        let render = RenderOrigin { root: root.into(), renderer: "kustomize".into(), places: [].into() };
        ManifestOrigin { render: Some(render.into()), ..ManifestOrigin::of_file(file) }
    }

    #[test]
    fn an_object_goes_only_where_every_root_rules_it_out() {
        let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "gone");
        let check = |origin: Option<&ManifestOrigin>, roots: &[UnrenderedRoot], expected: Option<&str>| {
            let reason = unrendered_root_reason(origin, roots, |root| root.names.can_be_named(id.name()));
            let reason = reason.map(|reason| reason.to_string());
            assert_eq!(reason.as_deref(), expected, "{origin:?} {roots:?}");
        };
        let plain = ManifestOrigin::of_file("plain.yaml");
        let other = rendered("b/kustomization.yaml#gone", "b");
        let own = rendered("a/kustomization.yaml#gone", "a");
        let renamed = rendered("a/kustomization.yml#gone", "a");
        let top = rendered("kustomization.yaml#gone", ".");
        let ruled_out = || root("a/kustomization.yaml", Some("web"));
        check(Some(&plain), &[], None);
        check(Some(&plain), &[ruled_out()], None);
        check(Some(&other), &[ruled_out()], None);
        let is_own = "not pruned: root a does not render, and the object came from it";
        check(Some(&own), &[ruled_out()], Some(is_own));
        check(Some(&renamed), &[ruled_out()], Some(is_own));
        // Not that of another root whose name begins alike.
        check(Some(&rendered("ab/kustomization.yaml#gone", "ab")), &[ruled_out()], None);
        let unknown = "not pruned: root a does not render, and where the object came from is not known";
        check(None, &[ruled_out()], Some(unknown));
        let may = "not pruned: root a does not render, and may want the object";
        check(Some(&other), &[root("a/kustomization.yaml", Some("web gone"))], Some(may));
        check(Some(&other), &[root("a/kustomization.yaml", None)], Some(may));
        let second = "not pruned: root c/d does not render, and may want the object";
        check(Some(&other), &[ruled_out(), root("c/d/kustomization.yaml", None)], Some(second));
        let top_root = "not pruned: root . does not render, and the object came from it";
        check(Some(&top), &[root("kustomization.yaml", Some("web"))], Some(top_root));
    }

    #[test]
    fn an_object_is_of_a_root_by_its_folder_or_by_its_own_path_in_it() {
        let check = |origin: &ManifestOrigin, expected: bool| {
            let found = is_of_root(origin, &root("a/kustomization.yaml", None));
            assert_eq!(found, expected, "{origin:?}");
        };
        check(&rendered("a/kustomization.yml#gone", "a"), true);
        check(&ManifestOrigin::of_file("a/kustomization.yaml#gone"), true);
        check(&ManifestOrigin::of_file("a/kustomization.yaml"), false);
        check(&ManifestOrigin::of_file("a/kustomization.yaml.bak#gone"), false);
        check(&ManifestOrigin::of_file("b/kustomization.yaml#gone"), false);
        check(&rendered("b/kustomization.yaml#gone", "b"), false);
    }
}
