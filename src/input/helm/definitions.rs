//! Definitions that several charts of a release bring in `crds/`.
//!
//! helm installs these files one after the other, and passes over what is there already. So the
//! first of each name counts: of a chart with two aliases, or of two parts with the same operator.

use std::collections::BTreeMap;

use crate::object::{Diagnostic, Gvk, ObjectId, text_at};

use super::hooks::notice;
use super::output::ChartObject;

/// The code of a definition that another one of its name goes before.
const REPEATED_DEFINITION: &str = "repeated-definition";

/// Leaves out each object in `crds/` that one before it there has the name of. Returns also what a
/// person should know of those that are not the same.
pub(super) fn first_definitions(objects: Vec<ChartObject>) -> (Vec<ChartObject>, Vec<Diagnostic>) {
    let mut numbers: BTreeMap<ObjectId, usize> = BTreeMap::new();
    let (mut kept, mut notices) = (Vec::<ChartObject>::new(), Vec::new());
    for object in objects {
        if let Some(id) = definition_id(&object) {
            let first = numbers.get(&id).and_then(|number| kept.get(*number));
            if let Some(first) = first {
                if first.body != object.body {
                    let text = format!(
                        "another one of this name counts, which is installed first: {}",
                        first.origin
                    );
                    notices.push(notice(&object, REPEATED_DEFINITION, &text));
                }
                continue;
            }
            numbers.insert(id, kept.len());
        }
        kept.push(object);
    }
    (kept, notices)
}

/// Returns the identity of an object in `crds/`, as far as it has one.
fn definition_id(object: &ChartObject) -> Option<ObjectId> {
    let text = |path: &[&str]| text_at(&object.body, path);
    let name = text(&["metadata", "name"]);
    if !object.is_definition || name.is_empty() {
        return None;
    }
    let kind = Gvk::from_api_version(text(&["apiVersion"]), text(&["kind"])).group_kind();
    let namespace = Some(text(&["metadata", "namespace"])).filter(|namespace| !namespace.is_empty());
    Some(ObjectId::new(&kind, namespace, name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::input::origin::ObjectOrigin;

    fn object(kind: &str, name: &str, value: &str, is_definition: bool) -> ChartObject {
        let body =
            json!({"apiVersion": "a.example/v1", "kind": kind, "metadata": {"name": name}, "value": value});
        let origin = ObjectOrigin { root: "web".into(), renderer: "helm".into(), places: Vec::new() };
        ChartObject { body, origin, generated: Vec::new(), is_definition }
    }

    #[test]
    fn the_first_definition_of_a_name_counts_and_templates_are_left_as_they_are() {
        let check = |objects: &[(&str, &str, &str, bool)], expected: &[usize], warned: usize| {
            let all = objects
                .iter()
                .map(|(kind, name, value, is_definition)| object(kind, name, value, *is_definition));
            let all: Vec<ChartObject> = all.collect();
            let (kept, notices) = first_definitions(all.clone());
            let expected: Vec<&Value> = expected.iter().map(|number| &all[*number].body).collect();
            assert_eq!(kept.iter().map(|object| &object.body).collect::<Vec<_>>(), expected, "{objects:?}");
            assert_eq!(notices.len(), warned, "{objects:?}");
        };
        check(&[("A", "a", "1", true), ("A", "a", "1", true)], &[0], 0);
        check(&[("A", "a", "1", true), ("A", "b", "1", true), ("A", "a", "2", true)], &[0, 1], 1);
        check(&[("A", "a", "1", true), ("B", "a", "1", true)], &[0, 1], 0);
        check(&[("A", "a", "1", true), ("A", "a", "1", false), ("A", "a", "1", false)], &[0, 1, 2], 0);
        check(&[("A", "", "1", true), ("A", "", "1", true)], &[0, 1], 0);
    }
}
