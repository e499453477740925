//! Connections by selectors, the data that pods use, and connected parts.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::object::{GroupKind, ObjectId};

fn id(kind: &str, place: &str) -> ObjectId {
    let (namespace, name) = place.split_once('/').unwrap();
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    ObjectId::new(&GroupKind::new(group, kind), Some(namespace).filter(|n| !n.is_empty()), name)
}

fn workload(labels: Value) -> Value {
    json!({"spec": {"template": {"metadata": {"labels": labels}, "spec": {"containers": []}}}})
}

/// Checks whether a selecting object of a kind, in the namespace shop, selects a Deployment there
/// with these labels.
fn check(kind: &str, spec: Value, labels: Value, expected: bool) {
    let selects = LabelSelection::of(&id(kind, "shop/x"), &json!({ "spec": spec }));
    let web = SelectableLabels::of(&id("Deployment.apps", "shop/web"), &workload(labels.clone())).unwrap();
    let found = selects.is_some_and(|selects| selects.matches("shop", &web, "shop"));
    assert_eq!(found, expected, "{kind} {spec} {labels}");
}

#[test]
fn a_service_selects_by_equality_and_nothing_when_it_is_empty() {
    let labels = || json!({"app": "web", "tier": "front"});
    check("Service", json!({"selector": {"app": "web"}}), labels(), true);
    check("Service", json!({"selector": {"app": "web", "tier": "front"}}), labels(), true);
    check("Service", json!({"selector": {"app": "web", "tier": "back"}}), labels(), false);
    check("Service", json!({"selector": {"app": "other"}}), labels(), false);
    check("Service", json!({"selector": {"other": "web"}}), labels(), false);
    for nothing in [json!({}), json!({"selector": {}}), json!({"selector": null})] {
        check("Service", nothing.clone(), labels(), false);
        check("Service", nothing, json!({}), false);
    }
}

#[test]
fn a_label_selector_means_what_it_means_to_kubernetes() {
    let by = |expressions: Value| json!({"selector": {"matchExpressions": expressions}});
    let budget =
        |spec: Value, labels: Value, expected| check("PodDisruptionBudget.policy", spec, labels, expected);
    let web = || json!({"app": "web"});
    budget(json!({"selector": {}}), web(), true);
    budget(json!({"selector": {}}), json!({}), true);
    budget(json!({}), web(), false);
    budget(json!({"selector": null}), web(), false);
    let one_of = || json!({"key": "app", "operator": "In", "values": ["web", "api"]});
    budget(by(json!([one_of()])), web(), true);
    budget(by(json!([one_of()])), json!({"app": "db"}), false);
    budget(by(json!([one_of()])), json!({}), false);
    let none_of = || json!({"key": "app", "operator": "NotIn", "values": ["web", "api"]});
    budget(by(json!([none_of()])), web(), false);
    budget(by(json!([none_of()])), json!({"app": "db"}), true);
    budget(by(json!([none_of()])), json!({}), true);
    budget(by(json!([{"key": "app", "operator": "Exists"}])), web(), true);
    budget(by(json!([{"key": "app", "operator": "Exists"}])), json!({}), false);
    budget(by(json!([{"key": "app", "operator": "DoesNotExist"}])), web(), false);
    budget(by(json!([{"key": "app", "operator": "DoesNotExist"}])), json!({}), true);
    budget(by(json!([{"key": "app", "operator": "Like", "values": ["web"]}])), web(), false);
    budget(by(json!([one_of(), {"key": "old", "operator": "DoesNotExist"}])), web(), true);
    let both = json!({"selector": {"matchLabels": {"app": "web"}, "matchExpressions": [none_of()]}});
    budget(both, web(), false);
    check("NetworkPolicy.networking.k8s.io", json!({"podSelector": {}}), web(), true);
    check(
        "NetworkPolicy.networking.k8s.io",
        json!({"podSelector": {"matchLabels": {"app": "db"}}}),
        web(),
        false,
    );
    check("ConfigMap", json!({"selector": {"app": "web"}}), web(), false);
}

#[test]
fn monitors_look_for_pods_or_services_where_they_say() {
    fn check(kind: &str, spec: Value, of: &str, place: &str, expected: bool) {
        let monitor = id(&format!("{kind}.monitoring.coreos.com"), "monitoring/m");
        let selects = LabelSelection::of(&monitor, &json!({ "spec": spec })).unwrap();
        let object = json!({"metadata": {"labels": {"app": "web"}}});
        let seen = id(of, place);
        let labels = SelectableLabels::of(&seen, &object).unwrap();
        let found = selects.matches("monitoring", &labels, seen.namespace().unwrap());
        assert_eq!(found, expected, "{kind} {spec} {of} {place}");
    }
    let in_places =
        |places: Value| json!({"selector": {"matchLabels": {"app": "web"}}, "namespaceSelector": places});
    check("ServiceMonitor", in_places(json!({"any": true})), "Service", "shop/web", true);
    check("ServiceMonitor", in_places(json!({"any": true})), "Pod", "shop/web", false);
    check("PodMonitor", in_places(json!({"any": true})), "Pod", "shop/web", true);
    check("PodMonitor", in_places(json!({"any": true})), "Service", "shop/web", false);
    check("ServiceMonitor", in_places(json!({"matchNames": ["a", "shop"]})), "Service", "shop/web", true);
    check("ServiceMonitor", in_places(json!({"matchNames": ["a", "b"]})), "Service", "shop/web", false);
    check("ServiceMonitor", in_places(json!({})), "Service", "shop/web", false);
    check("ServiceMonitor", in_places(json!(null)), "Service", "monitoring/web", true);
}

#[test]
fn what_can_be_selected_has_the_labels_of_its_pods() {
    fn check(kind: &str, body: Value, expected: Option<&[(&str, &str)]>) {
        let labels = SelectableLabels::of(&id(kind, "shop/db"), &body);
        let found = labels.as_ref().map(|labels| labels.iter().collect::<Vec<_>>());
        assert_eq!(found.as_deref(), expected, "{kind} {body}");
    }
    let pods = || workload(json!({"b": "2", "a": "1"}));
    check("Deployment.apps", pods(), Some(&[("a", "1"), ("b", "2")]));
    check("Job.batch", pods(), Some(&[("a", "1"), ("b", "2")]));
    check("Rollout.argoproj.io", pods(), Some(&[("a", "1"), ("b", "2")]));
    let nightly =
        json!({"spec": {"jobTemplate": {"spec": {"template": {"metadata": {"labels": {"a": "1"}}}}}}});
    check("CronJob.batch", nightly, Some(&[("a", "1")]));
    check("Pod", json!({"metadata": {"labels": {"a": "1"}}}), Some(&[("a", "1")]));
    check("Service", json!({"metadata": {"labels": {"a": "1"}}}), Some(&[("a", "1")]));
    check("ConfigMap", json!({"metadata": {"labels": {"a": "1"}}}), None);
    check("Pod", json!({"metadata": {"labels": "hostile"}}), Some(&[]));
    assert_eq!(size_of::<Option<Box<SelectableLabels>>>(), 8);
    assert_eq!(size_of::<Option<Box<LabelSelection>>>(), 8);
}

#[test]
fn each_label_is_found_with_its_value_however_many_there_are() {
    for count in [1, 2, 3, 50] {
        let labels: serde_json::Map<String, Value> =
            (0..count).map(|number| (format!("a{number}"), json!(format!("v{number}")))).collect();
        for number in 0..count {
            let select = |key: String, value: String| json!({"selector": {key: value}});
            let of = |key: String, value: String, expected: bool| {
                check("Service", select(key, value), Value::Object(labels.clone()), expected);
            };
            of(format!("a{number}"), format!("v{number}"), true);
            of(format!("a{number}"), format!("v{number}x"), false);
            of(format!("a{number}x"), format!("v{number}"), false);
        }
    }
    check("Service", json!({"selector": {"a": ""}}), json!({"a": "", "b": "1"}), true);
    check("Service", json!({"selector": {"b": "1"}}), json!({"a": "", "b": "1"}), true);
    check("Service", json!({"selector": {"é": "ü"}}), json!({"é": "ü", "z": "1"}), true);
}

#[test]
fn a_label_that_the_server_refuses_counts_for_nothing_and_hides_no_other() {
    for odd in ["a\nb", "a\0b", "\n", "\0"] {
        let of_key = json!({odd: "1", "c": "2"});
        check("Service", json!({"selector": {odd: "1"}}), of_key.clone(), false);
        check("Service", json!({"selector": {"c": "2"}}), of_key.clone(), true);
        check("Service", json!({"selector": {"b": "1"}}), of_key, false);
        let of_value = json!({"a": odd, "c": "2"});
        check("Service", json!({"selector": {"a": odd}}), of_value.clone(), false);
        check("Service", json!({"selector": {"c": "2"}}), of_value, true);
    }
}

#[test]
fn labels_are_in_a_trace_as_pairs() {
    let labels =
        SelectableLabels::of(&id("Pod", "shop/a"), &json!({"metadata": {"labels": {"b": "2", "a": ""}}}));
    let labels = *labels.unwrap();
    let form = serde_json::to_value(&labels).unwrap();
    assert_eq!(form, json!({"target": "Pods", "labels": [["a", ""], ["b", "2"]]}));
    assert_eq!(serde_json::from_value::<SelectableLabels>(form).unwrap(), labels);
}

#[test]
fn a_service_for_one_pod_belongs_to_the_set_that_makes_it() {
    let primary = json!({"spec": {"selector": {"statefulset.kubernetes.io/pod-name": "db-0"}}});
    let selects = LabelSelection::of(&id("Service", "shop/primary"), &primary).unwrap();
    let of = |name: &str| SelectableLabels::of(&id("StatefulSet.apps", name), &workload(json!({}))).unwrap();
    assert!(selects.matches("shop", &of("shop/db"), "shop"));
    assert!(!selects.matches("shop", &of("shop/other"), "shop"));
    let set = of("shop/db");
    let (primary, db) = (id("Service", "shop/primary"), id("StatefulSet.apps", "shop/db"));
    let units = connect_objects(
        [node(&primary, &[], Some(&selects), None), node(&db, &[], None, Some(&set))].into_iter(),
    );
    assert!(units.is_same_unit(&primary, &db));
}

#[test]
fn pods_use_data_also_where_it_may_be_missing() {
    let pods = json!({"imagePullSecrets": [{"name": "pull"}], "serviceAccountName": "robot",
        "initContainers": [{"envFrom": [{"configMapRef": {"name": "early"}}]}],
        "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "key", "key": "a", "optional": true}}}],
                        "envFrom": [{"configMapRef": {"name": "may", "optional": true}}]}],
        "volumes": [{"secret": {"secretName": "tls", "optional": true}}, {"persistentVolumeClaim": {"claimName": "d"}},
                    {"projected": {"sources": [{"configMap": {"name": "part", "optional": true}}]}}]});
    let expected = [
        "ConfigMap shop/early",
        "ConfigMap shop/may",
        "ConfigMap shop/part",
        "Secret shop/key",
        "Secret shop/tls",
    ];
    let body = json!({"spec": {"template": {"spec": pods}}});
    for kind in ["Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "Rollout.argoproj.io"] {
        let found: Vec<String> =
            configuration(&id(kind, "shop/web"), &body).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{kind}");
    }
    assert!(configuration(&id("ConfigMap", "shop/web"), &json!({"data": {}})).is_empty());
}

#[test]
fn references_lead_to_what_is_scaled_and_routed_to() {
    fn check(kind: &str, spec: Value, expected: &[&str]) {
        let found = references(&id(kind, "shop/x"), &json!({ "spec": spec }));
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{kind}");
    }
    let backends = json!({"rules": [
        {"backendRefs": [{"name": "web", "port": 80}, {"name": "api", "namespace": "other"}],
         "filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "shadow"}}}]},
        {"backendRefs": [{"group": "example.com", "kind": "Bucket", "name": "files"}]}]});
    let routed = &["Service other/api", "Service shop/shadow", "Service shop/web", "Bucket shop/files"];
    check("HTTPRoute.gateway.networking.k8s.io", backends.clone(), routed);
    check("GRPCRoute.gateway.networking.k8s.io", backends, routed);
    check("HTTPRoute.gateway.networking.k8s.io", json!({"rules": "hostile"}), &[]);
    let target = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"});
    check(
        "VerticalPodAutoscaler.autoscaling.k8s.io",
        json!({ "targetRef": target }),
        &["StatefulSet shop/db"],
    );
    check("ScaledObject.keda.sh", json!({ "scaleTargetRef": target }), &["StatefulSet shop/db"]);
    check("ScaledObject.keda.sh", json!({"scaleTargetRef": {"name": "web"}}), &["Deployment shop/web"]);
    let core = json!({"apiVersion": "v1", "kind": "ReplicationController", "name": "old"});
    check(
        "HorizontalPodAutoscaler.autoscaling",
        json!({ "scaleTargetRef": core }),
        &["ReplicationController shop/old"],
    );
    let template = json!({"spec": {"containers": [], "runtimeClassName": "kata", "priorityClassName": "high",
        "serviceAccountName": "robot"}});
    check(
        "Rollout.argoproj.io",
        json!({ "template": template }),
        &["ServiceAccount shop/robot", "RuntimeClass kata", "PriorityClass high"],
    );
}

fn node<'a>(
    id: &'a ObjectId,
    refs: &'a [ObjectId],
    selects: Option<&'a LabelSelection>,
    labels: Option<&'a SelectableLabels>,
) -> GraphNode<'a> {
    GraphNode { id, refs, selects, labels }
}

#[test]
fn what_did_not_change_connects_nothing() {
    let [a, b] = ["shop/a", "shop/b"].map(|name| id("Deployment.apps", name));
    let shared = [id("ServiceAccount", "shop/default")];
    let both = [node(&a, &shared, None, None), node(&b, &shared, None, None)];
    assert!(!connect_objects(both.into_iter()).is_same_unit(&a, &b));
    let changed = both.into_iter().chain([node(&shared[0], &[], None, None)]);
    let units = connect_objects(changed);
    assert!(units.is_same_unit(&a, &b));
    assert_eq!(units.unit_members(), [[&shared[0], &a, &b]]);
}

/// An object of the properties: with its body, its references as numbers of others.
#[derive(Clone, Debug)]
struct GraphObject {
    kind: &'static str,
    namespace: &'static str,
    body: Value,
    refs: Vec<usize>,
}

fn things() -> impl Strategy<Value = Vec<GraphObject>> {
    let labels = || prop::collection::btree_map("[ab]", "[xy]", 0..3);
    let expression = ("[ab]", prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]), "[xy]");
    let expressions = prop::collection::vec(expression, 0..2).prop_map(|list| {
        let list = list.into_iter();
        list.map(|(key, operator, value)| json!({"key": key, "operator": operator, "values": [value]}))
            .collect::<Vec<_>>()
    });
    let body = (labels(), labels(), expressions, 0..3usize).prop_map(|(own, wanted, expressions, scope)| {
        let scope = [json!(null), json!({"any": true}), json!({"matchNames": ["n", "n"]})][scope].clone();
        json!({"metadata": {"labels": own}, "spec": {"selector": {"matchLabels": wanted, "matchExpressions": expressions},
            "namespaceSelector": scope, "template": {"metadata": {"labels": own}, "spec": {"containers": []}}}})
    });
    let kinds = vec![
        "Deployment.apps",
        "Pod",
        "ConfigMap",
        "Service",
        "PodDisruptionBudget.policy",
        "PodMonitor.monitoring.coreos.com",
        "ServiceMonitor.monitoring.coreos.com",
    ];
    let thing = (
        prop::sample::select(kinds),
        prop::sample::select(vec!["m", "n"]),
        body,
        prop::collection::vec(0..20usize, 0..2),
    );
    let thing = thing.prop_map(|(kind, namespace, mut body, refs)| {
        if kind == "Service" {
            body["spec"]["selector"] = body["spec"]["selector"]["matchLabels"].take();
        }
        GraphObject { kind, namespace, body, refs }
    });
    prop::collection::vec(thing, 0..14)
}

proptest! {
    #[test]
    fn connected_parts_are_those_of_looking_at_every_pair(things in things()) {
        let named = |number: usize, thing: &GraphObject| id(thing.kind, &format!("{}/t{number}", thing.namespace));
        let ids: Vec<ObjectId> = things.iter().enumerate().map(|(n, thing)| named(n, thing)).collect();
        let refs: Vec<Vec<ObjectId>> = things.iter().map(|thing| {
            let known = thing.refs.iter().map(|n| ids.get(*n).cloned());
            known.map(|id| id.unwrap_or_else(|| self::id("Secret", "m/not changed"))).collect()
        }).collect();
        let selects: Vec<_> = things.iter().zip(&ids).map(|(thing, id)| LabelSelection::of(id, &thing.body)).collect();
        let labels: Vec<_> = things.iter().zip(&ids).map(|(thing, id)| SelectableLabels::of(id, &thing.body)).collect();
        let nodes = (0..ids.len()).map(|n| node(&ids[n], &refs[n], selects[n].as_deref(), labels[n].as_deref()));
        let units = connect_objects(nodes);

        let edge = |a: usize, b: usize| {
            let near = |n: usize| ids[n].namespace().unwrap();
            refs[a].contains(&ids[b])
                || selects[a].as_ref().zip(labels[b].as_ref())
                    .is_some_and(|(selects, labels)| selects.matches(near(a), labels, near(b)))
        };
        let mut parts: Vec<usize> = (0..ids.len()).collect();
        for a in 0..ids.len() {
            for b in 0..ids.len() {
                if edge(a, b) {
                    let (from, to) = (parts[a], parts[b]);
                    parts.iter_mut().filter(|part| **part == from).for_each(|part| *part = to);
                }
            }
        }
        for a in 0..ids.len() {
            for b in 0..ids.len() {
                prop_assert_eq!(units.is_same_unit(&ids[a], &ids[b]), parts[a] == parts[b], "{} {}", ids[a], ids[b]);
            }
        }
        prop_assert_eq!(units.unit_members().concat().len(), ids.len());
    }
}

// Looking at every pair would be 400 million looks.
#[test]
fn what_is_selected_again_and_again_is_joined_once() {
    let everything =
        LabelSelection::of(&id("PodDisruptionBudget.policy", "shop/x"), &json!({"spec": {"selector": {}}}))
            .unwrap();
    let labels = SelectableLabels::of(&id("Deployment.apps", "shop/x"), &workload(json!({}))).unwrap();
    let many = |kind: &str| (0..20_000).map(|n| id(kind, &format!("shop/n{n}"))).collect::<Vec<_>>();
    let (pods, budgets) = (many("Deployment.apps"), many("PodDisruptionBudget.policy"));
    let nodes = pods.iter().map(|id| node(id, &[], None, Some(&labels)));
    let nodes = nodes.chain(budgets.iter().map(|id| node(id, &[], Some(&everything), None)));
    assert_eq!(connect_objects(nodes).unit_members().len(), 1);
}
