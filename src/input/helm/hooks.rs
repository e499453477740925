//! Hooks of a chart as objects among others, in the words by which rhumb orders these.
//!
//! What runs before is needed by the rest of the release, and what runs after needs all of it. The
//! steps in between are helm's: by weight, kind and name, and one Job after the other. A Job runs
//! again when its release changes, as its pod template holds the hash of the other objects.
//!
//! helm's policies of deletion come down to one: a Job is made anew before it runs again. A Job that
//! has ended stays, as nothing else says whether it failed, and what follows waits for its success.
//!
//! **Invariant:** no word of helm for hooks is left on an object, and no other object of a source
//! waits for one.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::manifest::TextPlace;
use crate::object::annotations::{HOOK_RELEASE, RECREATE};
use crate::object::{ContentHash, Diagnostic, annotation_text, text_at, value_at};

use super::generated::name_of;
use super::hook_order::{HookPhase, HookSteps, order};
use super::output::ChartObject;
use super::refusal::origin_at;

/// The words of helm for hooks.
const HOOK: &str = "helm.sh/hook";
const WEIGHT: &str = "helm.sh/hook-weight";
const HOOK_WORDS: [&str; 4] = [HOOK, WEIGHT, "helm.sh/hook-delete-policy", "helm.sh/hook-output-log-policy"];

/// By this annotation an object is created where it is missing, and then left alone.
const LEFT_ALONE: (&str, &str) = ("client.lifecycle.config.k8s.io/mutation", "ignore");

/// The events of helm at which a hook runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HookEvents {
    pre_install: bool,
    post_install: bool,
    pre_upgrade: bool,
    post_upgrade: bool,
    test: bool,
}

impl HookEvents {
    fn of(body: &Value) -> Option<Self> {
        let text = annotation_text(body, HOOK);
        if text.is_empty() {
            return None;
        }
        let mut events = Self::default();
        for word in text.split(',').map(|word| word.trim().to_ascii_lowercase()) {
            match word.as_str() {
                "pre-install" => events.pre_install = true,
                "post-install" => events.post_install = true,
                "pre-upgrade" => events.pre_upgrade = true,
                "post-upgrade" => events.post_upgrade = true,
                "test" | "test-success" => events.test = true,
                // At a deletion, at a rollback, or never.
                _ => {}
            }
        }
        Some(events)
    }

    /// Returns when it runs; none where it never does. What an installation needs decides: before a
    /// first one there is nothing that an upgrade would find.
    fn phase(self) -> Option<HookPhase> {
        match self {
            Self { test: true, .. } => None,
            Self { pre_install: true, .. } => Some(HookPhase::Before),
            Self { post_install: true, .. } => Some(HookPhase::After),
            Self { pre_upgrade: true, .. } => Some(HookPhase::Before),
            Self { post_upgrade: true, .. } => Some(HookPhase::After),
            _ => None,
        }
    }

    /// Returns whether it runs only when the release is new.
    fn is_only_installation(self) -> bool {
        !self.pre_upgrade && !self.post_upgrade
    }

    /// Returns what is done otherwise than by helm.
    fn notice(self) -> Option<&'static str> {
        match self {
            Self { pre_install: true, post_install: true, .. } => {
                Some("it asks to run before and after the rest, and runs once, before")
            }
            Self { pre_install: true, pre_upgrade: false, post_upgrade: true, .. } => {
                Some("it asks to run after an upgrade, and runs before the rest, as at an installation")
            }
            Self { post_install: true, pre_upgrade: true, .. } => {
                Some("it asks to run before an upgrade, and runs after the rest, as at an installation")
            }
            Self { pre_install: false, post_install: false, .. } => {
                Some("it asks to run at upgrades alone, and runs when the release is new too")
            }
            _ => None,
        }
    }
}

/// Returns whether an object is created at an installation, and left alone from then on.
pub(super) fn is_made_once(body: &Value) -> bool {
    HookEvents::of(body).is_some_and(|events| events.phase().is_some() && events.is_only_installation())
}

/// Makes objects among others of the hooks of a release, in the order in which helm prints them.
/// Returns also what a person should know of them.
pub(super) fn translate(objects: Vec<ChartObject>, namespace: &str) -> (Vec<ChartObject>, Vec<Diagnostic>) {
    let mut notices = Vec::new();
    let (mut rest, mut hooks) = (Vec::new(), Vec::new());
    for object in objects {
        let Some(events) = HookEvents::of(&object.body) else {
            rest.push(object);
            continue;
        };
        match events.phase() {
            Some(phase) => {
                notices.extend(events.notice().map(|text| notice(&object, "hook-order", text)));
                hooks.push((phase, weight(&object.body), events, object));
            }
            None => notices.push(notice(&object, "hook-not-run", never_run(events))),
        }
    }
    if hooks.is_empty() {
        return (rest, notices);
    }
    let release = release_hash(rest.iter().chain(hooks.iter().map(|(_, _, _, object)| object)));
    hooks.sort_by_key(|(phase, weight, _, _)| (*phase, *weight));
    let mut steps = HookSteps::default();
    for (phase, weight, events, mut object) in hooks {
        take_words(&mut object.body);
        if is_pod(&object.body) {
            notices.push(notice(
                &object,
                "hook-order",
                "it is a Pod, which runs once: a Job runs for each release",
            ));
        }
        if is_job(&object.body) {
            keep_ended(&mut object.body);
        }
        if events.is_only_installation() {
            annotate(&mut object.body, LEFT_ALONE.0, LEFT_ALONE.1);
        } else if is_job(&object.body) {
            run_for_each_release(&mut object.body, release);
        }
        steps.add(phase, weight, object);
    }
    (order(rest, steps, namespace), notices)
}

fn never_run(events: HookEvents) -> &'static str {
    if events.test {
        "it is a test, which is not run"
    } else {
        "it is a hook for deletion or rollback, which is not run"
    }
}

fn notice(object: &ChartObject, code: &'static str, text: &str) -> Diagnostic {
    let place = object.origin.places.first().cloned();
    let place = place.unwrap_or_else(|| Diagnostic::file_error(object.origin.root.clone(), "", "").origin);
    Diagnostic::warning(place, code, format!("{}: {text}", name_of(&object.body)))
}

/// Returns the notices of the tests in a chart's templates, by their texts: helm leaves them out.
pub(super) fn tests_in(file: &Arc<str>, text: &str) -> Option<Diagnostic> {
    let is_test = |line: &str| {
        let events = line
            .split_once(HOOK)
            .filter(|(_, rest)| !rest.starts_with('-'))
            .and_then(|(_, rest)| rest.split_once(':'))
            .map_or("", |(_, events)| events);
        let mut words = events.split([',', ' ', '"', '\'']);
        words.any(|word| matches!(word, "test" | "test-success" | "test-failure"))
    };
    let (_, line) = text.lines().zip(1..).find(|(line, _)| is_test(line))?;
    let place = origin_at(file, TextPlace { line, column: 1 });
    Some(Diagnostic::warning(place, "hook-not-run", "this template makes a test, which is not run"))
}

/// Returns the weight of a hook. Helm takes what is no number for none.
fn weight(body: &Value) -> i64 {
    annotation_text(body, WEIGHT).parse().unwrap_or(0)
}

pub(super) fn is_job(body: &Value) -> bool {
    text_at(body, &["kind"]) == "Job" && text_at(body, &["apiVersion"]).starts_with("batch/")
}

pub(super) fn is_pod(body: &Value) -> bool {
    text_at(body, &["kind"]) == "Pod" && text_at(body, &["apiVersion"]) == "v1"
}

/// Takes helm's words for hooks off an object.
fn take_words(body: &mut Value) {
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    HOOK_WORDS.iter().for_each(|word| drop(annotations.remove(*word)));
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// Keeps a Job from going away by itself.
fn keep_ended(body: &mut Value) {
    if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("ttlSecondsAfterFinished");
    }
}

/// Has a Job run again whenever its release is another one. Its template cannot be changed, so that
/// it is made anew.
fn run_for_each_release(body: &mut Value, release: ContentHash) {
    annotate(body, RECREATE, "true");
    if let Some(template) = body.get_mut("spec").and_then(|spec| spec.get_mut("template")) {
        annotate(template, HOOK_RELEASE, &release.to_string());
    }
}

/// Sets an annotation.
pub(super) fn annotate(body: &mut Value, key: &str, text: &str) {
    let mut at = body;
    for name in ["metadata", "annotations"] {
        let Some(map) = at.as_object_mut() else { return };
        let inner = map.entry(name).or_insert_with(|| Value::Object(Map::new()));
        if inner.is_null() {
            *inner = Value::Object(Map::new());
        }
        at = inner;
    }
    if let Some(annotations) = at.as_object_mut() {
        annotations.insert(key.to_owned(), text.into());
    }
}

/// Returns the hash of a release: of all its objects, without what must not be told of Secrets and
/// without what is another one at each render.
fn release_hash<'a>(objects: impl Iterator<Item = &'a ChartObject>) -> ContentHash {
    let body = |object: &ChartObject| {
        let mut body = object.body.clone();
        for path in &object.generated {
            if let Some(value) = body.pointer_mut(path) {
                *value = Value::Null;
            }
        }
        if is_made_once(&object.body)
            || (text_at(&body, &["kind"]) == "Secret" && text_at(&body, &["apiVersion"]) == "v1")
        {
            let keys = ["data", "stringData"]
                .map(|field| value_at(&body, &[field]).and_then(Value::as_object).map(keys_of));
            return json!([text_at(&body, &["kind"]), value_at(&body, &["metadata", "name"]), keys]);
        }
        body
    };
    ContentHash::of(&objects.map(body).collect())
}

fn keys_of(map: &Map<String, Value>) -> Vec<String> {
    map.keys().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::ObjectOrigin;

    fn object(kind: &str, name: &str, hook: &str, weight: &str) -> ChartObject {
        let version = match kind {
            "Job" => "batch/v1",
            "Deployment" => "apps/v1",
            "RoleBinding" => "rbac.authorization.k8s.io/v1",
            "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
            "Order" => "example.com/v1",
            _ => "v1",
        };
        let mut body = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
        for (key, text) in [(HOOK, hook), (WEIGHT, weight)] {
            if !text.is_empty() {
                annotate(&mut body, key, text);
            }
        }
        if kind == "Job" {
            body["spec"] = json!({"ttlSecondsAfterFinished": 5, "template": {"spec": {"containers": []}}});
        }
        let origin = ObjectOrigin { root: "web".into(), renderer: "helm".into(), places: Vec::new() };
        ChartObject { body, origin, generated: Vec::new() }
    }

    /// Each object by its name, with the names of those that it waits for.
    fn order(objects: Vec<ChartObject>) -> Vec<String> {
        let (objects, _) = translate(objects, "prod");
        let waits = |object: &ChartObject| {
            let names = annotation_text(&object.body, crate::object::annotations::DEPENDS_ON);
            let names = names.split(", ").map(|name| name.rsplit('/').next().unwrap());
            format!(
                "{}: {}",
                text_at(&object.body, &["metadata", "name"]),
                names.collect::<Vec<_>>().join(" ")
            )
        };
        objects.iter().map(waits).collect()
    }

    #[test]
    fn hooks_run_in_the_steps_of_helm() {
        let (pre, post) = ("pre-install,pre-upgrade", "post-install,post-upgrade");
        assert_eq!(
            order(vec![
                object("CustomResourceDefinition", "crd", "", ""),
                object("ConfigMap", "config", "", ""),
                object("Deployment", "web", "", ""),
                object("ServiceAccount", "account", pre, "-5"),
                object("ConfigMap", "script", pre, "-5"),
                object("Job", "second", pre, "5"),
                object("Job", "first", pre, ""),
                object("Job", "first-too", pre, "0"),
                object("Job", "after", post, "x"),
                object("ConfigMap", "last", post, "1"),
            ]),
            [
                "account: ",
                "script: ",
                "first: account script",
                "first-too: account script first",
                "second: account script first first-too",
                "crd: ",
                "config: account script first first-too second",
                "web: account script first first-too second",
                "after: crd config web",
                "last: crd config web after",
            ]
        );
    }

    #[test]
    fn what_a_hook_needs_does_not_wait_for_it() {
        let mut job = object("Job", "migrate", "pre-upgrade", "");
        job.body["spec"]["template"]["spec"] = json!({"serviceAccountName": "web",
            "containers": [{"envFrom": [{"secretRef": {"name": "login"}}]}]});
        let mut binding = object("RoleBinding", "rights", "", "");
        binding.body["subjects"] = json!([{"kind": "ServiceAccount", "name": "web", "namespace": "prod"}]);
        binding.body["roleRef"] = json!({"kind": "Role", "name": "elsewhere"});
        assert_eq!(
            order(vec![
                object("ServiceAccount", "web", "", ""),
                object("Secret", "login", "", ""),
                object("Secret", "other", "", ""),
                binding,
                job,
            ]),
            ["migrate: ", "web: ", "login: ", "other: migrate", "rights: "]
        );
    }

    #[test]
    fn an_object_is_named_as_the_annotation_wants_it() {
        let mut elsewhere = object("ConfigMap", "b", "pre-install", "");
        elsewhere.body["metadata"]["namespace"] = "elsewhere".into();
        let mut definition = object("CustomResourceDefinition", "orders", "", "");
        definition.body["spec"] =
            json!({"group": "example.com", "scope": "Namespaced", "names": {"kind": "Order"}});
        let mut web = object("Deployment", "web", "", "");
        annotate(&mut web.body, crate::object::annotations::DEPENDS_ON, "Secret/own");
        let hooks = vec![
            object("Job", "a", "pre-install", ""),
            object("Namespace", "d", "pre-install", ""),
            object("Order", "c", "pre-install", ""),
            object("Unknown", "u", "pre-install", ""),
            elsewhere,
            definition,
            web,
        ];
        let (objects, _) = translate(hooks, "prod");
        assert_eq!(
            annotation_text(&objects[6].body, crate::object::annotations::DEPENDS_ON),
            "Secret/own, batch/namespaces/prod/Job/a, /Namespace/d, example.com/namespaces/prod/Order/c, \
             /namespaces/elsewhere/ConfigMap/b"
        );
    }

    #[test]
    fn a_job_runs_again_when_its_release_changes() {
        let run = |image: &str, password: &str| {
            let mut web = object("Deployment", "web", "", "");
            web.body["spec"] = json!({"image": image});
            let mut secret = object("Secret", "login", "", "");
            secret.body["data"] = json!({"password": password});
            let mut config = object("ConfigMap", "made-up", "", "");
            config.body["data"] = json!({"token": password});
            config.generated = vec!["/data/token".to_owned()];
            let job = object("Job", "migrate", "pre-install,pre-upgrade", "");
            let (objects, notices) = translate(vec![web, secret, config, job], "prod");
            assert_eq!(notices, []);
            objects[0].body.clone()
        };
        let job = run("a", "x");
        assert_eq!(annotation_text(&job, RECREATE), "true");
        assert_eq!(job["metadata"]["annotations"].as_object().unwrap().len(), 1);
        assert_eq!(job["spec"].as_object().unwrap().len(), 1);
        assert_eq!(annotation_text(&job["spec"]["template"], HOOK_RELEASE).len(), 32);
        assert_ne!(job, run("b", "x"));
        // The hash tells nothing of a Secret, and nothing that is another one each time.
        assert_eq!(job, run("a", "y"));
    }

    #[test]
    fn what_only_an_installation_runs_is_left_alone_afterwards() {
        let (objects, notices) = translate(vec![object("Job", "a", "pre-install", "")], "prod");
        assert_eq!(notices, []);
        assert_eq!(
            objects[0].body,
            json!({"apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "a", "annotations": {LEFT_ALONE.0: LEFT_ALONE.1}},
                "spec": {"template": {"spec": {"containers": []}}}})
        );
    }

    #[test]
    fn what_is_not_run_as_by_helm_is_told() {
        let check = |hook: &str, order: &[&str], notices: &[&str]| {
            let (objects, told) =
                translate(vec![object("Secret", "web", "", ""), object("ConfigMap", "a", hook, "")], "prod");
            let names: Vec<_> =
                objects.iter().map(|object| text_at(&object.body, &["metadata", "name"])).collect();
            assert_eq!(names, order, "{hook}");
            let told: Vec<_> = told.iter().map(|found| format!("{} {}", found.code, found.message)).collect();
            assert_eq!(told, notices, "{hook}");
        };
        check("pre-install, Pre-Upgrade,pre-delete", &["a", "web"], &[]);
        check("post-install,post-upgrade", &["web", "a"], &[]);
        check(
            "post-install,pre-upgrade",
            &["web", "a"],
            &[
                "hook-order ConfigMap a: it asks to run before an upgrade, and runs after the rest, as at an installation",
            ],
        );
        check(
            "pre-install,post-upgrade",
            &["a", "web"],
            &[
                "hook-order ConfigMap a: it asks to run after an upgrade, and runs before the rest, as at an installation",
            ],
        );
        check(
            "pre-install,post-install",
            &["a", "web"],
            &["hook-order ConfigMap a: it asks to run before and after the rest, and runs once, before"],
        );
        check(
            "pre-upgrade",
            &["a", "web"],
            &[
                "hook-order ConfigMap a: it asks to run at upgrades alone, and runs when the release is new too",
            ],
        );
        check(
            "post-upgrade",
            &["web", "a"],
            &[
                "hook-order ConfigMap a: it asks to run at upgrades alone, and runs when the release is new too",
            ],
        );
        for hook in ["pre-delete", "post-delete,post-rollback", "crd-install"] {
            check(
                hook,
                &["web"],
                &["hook-not-run ConfigMap a: it is a hook for deletion or rollback, which is not run"],
            );
        }
        check("test", &["web"], &["hook-not-run ConfigMap a: it is a test, which is not run"]);
    }

    #[test]
    fn a_template_of_a_test_is_named() {
        let check = |text: &str, expected: Option<u32>| {
            let found = tests_in(&Arc::from("a.yaml"), text);
            assert_eq!(found.map(|found| found.origin.line), expected, "{text}");
        };
        check("a: b\n    \"helm.sh/hook\": test-success\n", Some(2));
        check("'helm.sh/hook': 'pre-install, test'", Some(1));
        check("helm.sh/hook: test", Some(1));
        check("helm.sh/hook: pre-install\nhelm.sh/hook-weight: \"1\" # test", None);
        check("test: helm.sh/hook", None);
    }

    #[test]
    fn a_release_without_hooks_stays_as_it_is() {
        let mut kept = object("Secret", "kept", "", "");
        annotate(&mut kept.body, "helm.sh/resource-policy", "keep");
        let objects = vec![object("Deployment", "web", "", ""), kept];
        assert_eq!(translate(objects.clone(), "prod"), (objects, Vec::new()));
    }
}
