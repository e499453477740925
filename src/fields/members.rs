//! Members of a union, and items of associative lists, that somebody set in the place of ours.
//!
//! Of several fields the API takes one, as of the sources of a volume (KEP-1027). Two ports of one
//! name it does not take either.
//!
//! An apply that brings ours back leaves the other one, as its owner is another. The server refuses
//! both together. No schema is read here, so what is found is a suspicion.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::cover::{has_keys, holds, uncovered_paths};
use super::entry::{ChildKey, EntryNode, ManagedEntry, item_keys};
use super::{FieldPath, PathElement, ValueSchema};

/// The maximum number of fields and items that are suspected: each may be tried for itself.
/// Somebody may have renumbered all ports of a Service.
const MAX_WRITER_CANDIDATES: usize = 32;

/// The maximum length of a list whose items are compared, each with each.
const MAX_COMPARED_ITEMS: usize = 512;

/// A member or an item of ours that is missing, and what others own beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplacedMember {
    /// The path of ours: its parent is there, and it is not.
    pub missing: FieldPath,
    /// The fields or items beside it that the content does not have. The items that are most like
    /// ours come first, and several of ours may share them.
    pub others: Vec<FieldPath>,
}

/// FieldsV1 texts of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldsV1Texts<'a> {
    /// Our own, of the object itself and not of a subresource.
    pub ours: Option<&'a str>,
    /// All others.
    pub others: &'a [String],
    /// The ones among them whose items stay, see [`super::has_known_writer`].
    pub unnamed: &'a [String],
}

/// Returns the fields and items of a content that are missing in a live object and no longer ours.
/// Each comes with what others set beside it. Metadata has no unions, so nothing of it is returned.
pub(crate) fn replaced_members(
    content: &Value,
    live: &Value,
    owners: FieldsV1Texts<'_>,
) -> Vec<ReplacedMember> {
    fn parse(texts: &[String]) -> Vec<ManagedEntry<'_>> {
        texts.iter().filter_map(|text| ManagedEntry::parse(text)).collect()
    }
    let sides = OwnedContentPair {
        content,
        live,
        ours: owners.ours.and_then(ManagedEntry::parse),
        others: parse(owners.others),
        unnamed: parse(owners.unnamed),
    };
    let lost = uncovered_paths(content, owners.ours);
    let lost: Vec<FieldPath> =
        lost.into_iter().filter(|path| !path.is_prefix_related(&["metadata"])).collect();
    let mut found = sides.members(&lost);
    let mut count = found.iter().map(|one| one.others.len()).sum::<usize>();
    let mut lists: Vec<FieldPath> = Vec::new();
    for path in &lost {
        sides.add_lists(path, &mut lists);
    }
    for list in lists {
        let items = sides.items(&list);
        let suspects = items.first().map_or(0, |one| one.others.len());
        if count + suspects <= MAX_WRITER_CANDIDATES {
            count += suspects;
            found.extend(items);
        }
    }
    found
}

/// A content and a live object, with who owns what of it.
struct OwnedContentPair<'a> {
    content: &'a Value,
    live: &'a Value,
    ours: Option<ManagedEntry<'a>>,
    others: Vec<ManagedEntry<'a>>,
    unnamed: Vec<ManagedEntry<'a>>,
}

impl OwnedContentPair<'_> {
    /// Returns whether others own a path, and we do not.
    fn is_foreign(&self, path: &FieldPath) -> bool {
        let is_in = |entry: &ManagedEntry<'_>| holds(entry.root(), path.elements());
        !self.ours.as_ref().is_some_and(is_in) && self.others.iter().any(is_in)
    }

    /// Returns whether others own an item, and we do not. One of no known writer stays.
    fn can_go(&self, path: &FieldPath) -> bool {
        let is_kept = || self.unnamed.iter().any(|one| holds(one.root(), path.elements()));
        self.is_foreign(path) && !is_kept()
    }

    /// Returns the missing fields of maps; none where too many stand beside them.
    fn members(&self, lost: &[FieldPath]) -> Vec<ReplacedMember> {
        let mut found: Vec<ReplacedMember> = Vec::new();
        for lost in lost {
            let Some((parent, missing)) = first_absent(lost, self.live) else { continue };
            let (Some(Value::Object(there)), Some(wanted)) =
                (parent.find(self.live), parent.find(self.content))
            else {
                continue;
            };
            let beside = there.keys().filter(|key| wanted.get(key.as_str()).is_none());
            let paths = beside.map(|key| extend_path(&parent, PathElement::key(key)));
            let others: Vec<FieldPath> = paths.filter(|path| self.is_foreign(path)).collect();
            if !others.is_empty() && found.iter().all(|one| one.missing != missing) {
                found.push(ReplacedMember { missing, others });
            }
        }
        let count = found.iter().map(|one| one.others.len()).sum::<usize>();
        if count > MAX_WRITER_CANDIDATES { Vec::new() } else { found }
    }

    /// Adds the lists that a lost path leads through, and those that were lost whole.
    fn add_lists(&self, lost: &FieldPath, lists: &mut Vec<FieldPath>) {
        let mut path = FieldPath::default();
        let mut add = |list: &FieldPath| {
            if !lists.contains(list) {
                lists.push(list.clone());
            }
        };
        for element in lost.elements() {
            if matches!(element, PathElement::Item(_)) {
                add(&path);
            }
            path.push(element.clone());
        }
        let mut below = vec![path];
        while let Some(path) = below.pop() {
            match path.find(self.content) {
                Some(Value::Array(_)) => add(&path),
                Some(Value::Object(map)) => {
                    below.extend(map.keys().map(|key| extend_path(&path, PathElement::key(key))));
                }
                _ => {}
            }
        }
    }

    /// Returns the missing items of an associative list, each with the items that only others own
    /// and the content does not have.
    fn items(&self, list: &FieldPath) -> Vec<ReplacedMember> {
        let (Some(Value::Array(wanted)), Some(Value::Array(there))) =
            (list.find(self.content), list.find(self.live))
        else {
            return Vec::new();
        };
        let keys = self.foreign_keys(list);
        if wanted.len().max(there.len()).max(keys.len()) > MAX_COMPARED_ITEMS {
            return Vec::new();
        }
        let schema = ValueSchema::of_object(self.content);
        let Some(names) = keys.first().map(|keys| keys.keys().cloned().collect::<Vec<String>>()) else {
            return Vec::new();
        };
        let beside = keys.iter().filter(|keys| !wanted.iter().any(|item| has_keys(item, keys, schema)));
        let paths = beside.map(|keys| item_path(list, keys));
        let suspects: Vec<(FieldPath, &Value)> = paths
            .filter(|path| self.can_go(path))
            .filter_map(|path| path.find(self.live).map(|item| (path, item)))
            .collect();
        if suspects.is_empty() || suspects.len() > MAX_WRITER_CANDIDATES {
            return Vec::new();
        }
        let namesakes = self.foreign_namesakes(list, wanted, &names);
        let shown: Vec<Map<String, Value>> = there.iter().map(|item| keys_of(item, &names)).collect();
        let missing = wanted.iter().filter(|item| !shown.iter().any(|keys| has_keys(item, keys, schema)));
        let replaced = missing.filter_map(|item| {
            let own = Some(keys_of(item, &names)).filter(|keys| !keys.is_empty())?;
            let mut others = suspects.clone();
            others.sort_by_key(|(_, other)| std::cmp::Reverse(equal_fields(item, other)));
            let same = namesakes.iter().filter(|(keys, _)| *keys == own).map(|(_, path)| path.clone());
            let others = others.into_iter().map(|(path, _)| path).chain(same).collect();
            Some(ReplacedMember { missing: item_path(list, &own), others })
        });
        replaced.collect()
    }

    /// Returns the items of the lists beside one that have the keys of an item of ours, and that only
    /// others own. A container and an init container may not have the same name either.
    fn foreign_namesakes(
        &self,
        list: &FieldPath,
        wanted: &[Value],
        names: &[String],
    ) -> Vec<(Map<String, Value>, FieldPath)> {
        let Some((own_key, above)) = list.elements().split_last() else { return Vec::new() };
        let above = FieldPath::from(above.to_vec());
        let Some(Value::Object(parent)) = above.find(self.live) else { return Vec::new() };
        let beside = parent.keys().map(|key| extend_path(&above, PathElement::key(key)));
        let lists = beside.filter(|path| path.elements().last() != Some(own_key));
        let keyed: Vec<_> =
            wanted.iter().map(|item| keys_of(item, names)).filter(|keys| !keys.is_empty()).collect();
        let found =
            lists.flat_map(|list| keyed.iter().map(move |keys| (keys.clone(), item_path(&list, keys))));
        let is_there = |path: &FieldPath| path.find(self.live).is_some() && path.find(self.content).is_none();
        found.filter(|(_, path)| is_there(path) && self.can_go(path)).take(MAX_WRITER_CANDIDATES).collect()
    }

    /// Returns the keys by which others own items of a list, as far as they are not ours too.
    fn foreign_keys(&self, list: &FieldPath) -> Vec<Map<String, Value>> {
        fn texts<'e>(entry: &'e ManagedEntry<'_>, list: &FieldPath) -> impl Iterator<Item = &'e str> {
            let node = list.elements().iter().try_fold(entry.root(), EntryNode::step);
            node.into_iter().flat_map(EntryNode::children).filter_map(|child| match child.child() {
                ChildKey::Item(text) => Some(text),
                _ => None,
            })
        }
        let mut known: HashSet<&str> = self.ours.iter().flat_map(|entry| texts(entry, list)).collect();
        let others = self.others.iter().flat_map(|entry| texts(entry, list));
        others.filter(|text| known.insert(text)).filter_map(item_keys).collect()
    }
}

/// Returns the path of the item of a list that has these keys.
fn item_path(list: &FieldPath, keys: &Map<String, Value>) -> FieldPath {
    let keys = keys.iter().map(|(name, value)| (name.as_str().into(), value.clone()));
    extend_path(list, PathElement::Item(keys.collect()))
}

/// Returns the keys of an item, as far as it has them.
fn keys_of(item: &Value, names: &[String]) -> Map<String, Value> {
    names.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone()))).collect()
}

/// Returns the number of fields that two items have in common.
fn equal_fields(item: &Value, other: &Value) -> usize {
    let fields = item.as_object().into_iter().flatten();
    fields.filter(|(name, value)| other.get(name.as_str()) == Some(*value)).count()
}

/// Returns the path at which a live object ends on the way to one, and the step after it: a key of
/// a map. None where all is there.
fn first_absent(path: &FieldPath, live: &Value) -> Option<(FieldPath, FieldPath)> {
    let mut parent = FieldPath::default();
    for element in path.elements() {
        let next = extend_path(&parent, element.clone());
        if next.find(live).is_none_or(Value::is_null) {
            return matches!(element, PathElement::Key(_)).then_some((parent, next));
        }
        parent = next;
    }
    None
}

fn extend_path(parent: &FieldPath, element: PathElement) -> FieldPath {
    let mut path = parent.clone();
    path.push(element);
    path
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns what is missing, each with what stands beside it, as texts.
    fn texts(found: Vec<ReplacedMember>) -> Vec<(String, Vec<String>)> {
        let text = |one: ReplacedMember| {
            (one.missing.to_string(), one.others.iter().map(FieldPath::to_string).collect())
        };
        found.into_iter().map(text).collect()
    }

    #[test]
    fn what_others_set_beside_a_missing_field_of_ours_is_suspected() {
        let check =
            |content: Value, live: Value, ours: Value, others: Value, expected: &[(&str, &[&str])]| {
                let [ours, others] = [ours, others].map(|fields| json!({ "f:spec": fields }).to_string());
                let [content, live] =
                    [content, live].map(|spec| json!({ "kind": "Deployment", "spec": spec }));
                let owners = FieldsV1Texts { ours: Some(&ours), others: &[others], unnamed: &[] };
                let found = texts(replaced_members(&content, &live, owners));
                let expected: Vec<(String, Vec<String>)> = expected
                    .iter()
                    .map(|(missing, others)| {
                        ((*missing).to_owned(), others.iter().map(|path| (*path).to_owned()).collect())
                    })
                    .collect();
                assert_eq!(found, expected, "{content} {live}");
            };
        let volume = |source: Value| json!({ "volumes": [source] });
        let item = |fields: Value| json!({ "f:volumes": { "k:{\"name\":\"tmp\"}": fields } });
        let source = r#".spec.volumes[name="tmp"]"#;
        check(
            volume(json!({ "name": "tmp", "emptyDir": {} })),
            volume(json!({ "name": "tmp", "hostPath": { "path": "/", "type": "" } })),
            item(json!({ ".": {}, "f:name": {} })),
            item(json!({ "f:hostPath": { ".": {}, "f:path": {}, "f:type": {} } })),
            &[(&format!("{source}.emptyDir"), &[&format!("{source}.hostPath")])],
        );
        // The loss of a deep field is that of its topmost parent that is gone.
        check(
            json!({ "probe": { "exec": { "command": ["x"] }, "periodSeconds": 1 } }),
            json!({ "probe": { "grpc": { "port": 1 }, "periodSeconds": 1, "failureThreshold": 3 } }),
            json!({ "f:probe": { "f:periodSeconds": {} } }),
            json!({ "f:probe": { "f:grpc": { "f:port": {} } } }),
            &[(".spec.probe.exec", &[".spec.probe.grpc"])],
        );
        // Changed values, fields that nobody owns or that are ours too, and more than a union has.
        check(json!({ "a": 1 }), json!({ "a": 2, "b": 1 }), json!({}), json!({ "f:b": {} }), &[]);
        check(json!({ "a": 1 }), json!({ "b": 1 }), json!({}), json!({ "f:c": {} }), &[]);
        check(json!({ "a": 1 }), json!({ "b": 1 }), json!({ "f:b": {} }), json!({ "f:b": {} }), &[]);
        check(json!({ "a": 1, "b": 2 }), json!({ "b": 1 }), json!({}), json!({ "f:b": {} }), &[]);
        let many: serde_json::Map<String, Value> = (0..9).map(|n| (format!("b{n}"), json!(n))).collect();
        let theirs = many.keys().map(|key| (format!("f:{key}"), json!({}))).collect();
        check(json!({ "a": 1 }), Value::Object(many), json!({}), Value::Object(theirs), &[]);
    }

    /// Returns a Service's FieldsV1 text with these ports, named by number and protocol.
    fn ports_text(ports: &[&str]) -> String {
        let item = |port: &&str| {
            let (number, protocol) = port.split_once('/').unwrap();
            let keys = format!(r#"k:{{"port":{number},"protocol":"{protocol}"}}"#);
            (keys, json!({ ".": {}, "f:name": {}, "f:port": {} }))
        };
        let items: Map<String, Value> = ports.iter().map(item).collect();
        // A node without children would own all below it.
        let mut spec = json!({ "f:type": {} });
        if !items.is_empty() {
            spec["f:ports"] = Value::Object(items);
        }
        json!({ "f:spec": spec }).to_string()
    }

    #[test]
    fn items_that_only_others_own_beside_a_missing_one_of_ours_are_suspected() {
        let check = |content: Value,
                     live: Value,
                     [ours, others, unnamed]: [&[&str]; 3],
                     expected: &[(&str, &[&str])]| {
            let service =
                |ports: Value| json!({ "apiVersion": "v1", "kind": "Service", "spec": { "ports": ports } });
            let [ours, others, unnamed] = [ours, others, unnamed].map(ports_text);
            let (others, unnamed) = (vec![others, unnamed.clone()], vec![unnamed]);
            let owners = FieldsV1Texts { ours: Some(&ours), others: &others, unnamed: &unnamed };
            let found = texts(replaced_members(&service(content), &service(live.clone()), owners));
            let expected: Vec<(String, Vec<String>)> = expected
                .iter()
                .map(|(missing, others)| {
                    let others = others.iter().map(|keys| format!(".spec.ports[{keys}]"));
                    (format!(".spec.ports[{missing}]"), others.collect())
                })
                .collect();
            assert_eq!(found, expected, "{live}");
        };
        let tcp = |port: u16| json!({ "port": port, "protocol": "TCP", "targetPort": 80 });
        let named = |name: &str, port: u16| json!({ "name": name, "port": port, "protocol": "TCP" });
        let (old, new) = ("port=80", r#"port=82,protocol="TCP""#);
        // The whole list was lost with its only item, or one item of several.
        check(json!([{ "port": 80 }]), json!([tcp(82)]), [&[], &["82/TCP"], &[]], &[(old, &[new])]);
        let wanted = json!([{ "name": "a", "port": 80 }, { "name": "b", "port": 81 }]);
        check(
            wanted.clone(),
            json!([named("a", 82), named("b", 81)]),
            [&["81/TCP"], &["82/TCP"], &[]],
            &[(old, &[new])],
        );
        // Of several, the one that is most like ours comes first.
        let second = r#"port=83,protocol="TCP""#;
        check(
            wanted.clone(),
            json!([named("b", 82), named("a", 83)]),
            [&[], &["82/TCP", "83/TCP"], &[]],
            &[(old, &[second, new]), ("port=81", &[new, second])],
        );
        // A key that the content leaves out has its default.
        let udp = json!([{ "port": 80, "protocol": "UDP" }]);
        check(
            json!([{ "port": 80 }]),
            udp,
            [&[], &["80/UDP"], &[]],
            &[("port=80", &[r#"port=80,protocol="UDP""#])],
        );
        check(json!([{ "port": 80 }]), json!([tcp(80)]), [&[], &["80/TCP"], &[]], &[]);
        // Nothing is missing, and items that are ours too, nobody's or of no known writer.
        let both = json!([named("a", 80), named("b", 81), named("c", 82)]);
        check(wanted, both, [&["80/TCP", "81/TCP"], &["82/TCP"], &[]], &[]);
        let wanted = json!([{ "port": 80 }]);
        check(wanted.clone(), json!([tcp(82)]), [&["82/TCP"], &["82/TCP"], &[]], &[]);
        check(wanted.clone(), json!([tcp(82)]), [&[], &["83/TCP"], &[]], &[]);
        check(wanted.clone(), json!([tcp(82)]), [&[], &["82/TCP"], &["82/TCP"]], &[]);
        // More than are tried.
        let texts: Vec<String> = (0..33).map(|n| format!("{}/TCP", 100 + n)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        check(wanted, (100..133).map(tcp).collect(), [&[], &texts, &[]], &[]);
    }

    #[test]
    fn an_item_of_another_list_that_has_the_name_of_a_missing_one_is_suspected() {
        let check = |init: Value, others: Value, expected: &[&str]| {
            let deployment =
                |spec: Value| json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": spec });
            let container = |name: &str| json!({ "name": name, "image": "app:1" });
            let content = deployment(json!({ "containers": [container("c")] }));
            let live = deployment(json!({ "containers": [container("d")], "initContainers": init }));
            let others = vec![json!({ "f:spec": others }).to_string()];
            let owners = FieldsV1Texts { ours: Some("{}"), others: &others, unnamed: &[] };
            let found = texts(replaced_members(&content, &live, owners));
            let expected = expected.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(found, [(r#".spec.containers[name="c"]"#.to_owned(), expected)], "{live}");
        };
        let owned = |init: &str| json!({ "f:containers": { "k:{\"name\":\"d\"}": {} }, "f:initContainers": { init: {} } });
        let (same, other) = (r#"k:{"name":"c"}"#, r#"k:{"name":"e"}"#);
        let [beside, above] = [r#".spec.containers[name="d"]"#, r#".spec.initContainers[name="c"]"#];
        let init = json!([{ "name": "c", "image": "app:2" }]);
        check(init.clone(), owned(same), &[beside, above]);
        check(init, owned(other), &[beside]);
        check(json!([{ "name": "e", "image": "app:2" }]), owned(other), &[beside]);
    }
}
