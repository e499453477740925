//! Hooks of a chart as objects among others, in the words by which rhumb orders these.
//!
//! A hook that runs before is needed by the rest of the release, and what runs after needs all of
//! it. The steps in between are helm's: by weight, name and kind, and one Job after the other. A
//! Job runs again when its release changes, as its pod template holds the hash of the other
//! objects.
//!
//! helm's policies of deletion come down to one: a Job is made anew before it runs again. A Job
//! that has ended stays, as nothing else says whether it failed, and what follows waits for its
//! success.
//!
//! **Invariant:** no word of helm for hooks is left on an object, and no other object of a source
//! waits for one.

use serde_json::{Map, Value, json};

use crate::engine::{ARGO_HOOK, ARGO_HOOK_DELETE_POLICY, ARGO_HOOK_SKIP};
use crate::manifest;
use crate::object::annotations::{HOOK_RELEASE, RECREATE};
use crate::object::{ContentHash, Diagnostic, ManifestOrigin, annotation_text, text_at, value_at};
use crate::source::HOOK_NOT_RUN;

use super::generated::name_of;
use super::hook_events::{HOOK_ANNOTATION, HookEvent, HookEvents};
use super::hook_names::HookNames;
use super::hook_order::{HookSteps, MAX_AWAITED_NAME_BYTES, TooManyNames, order};
use super::options::UnnamedNamespace;
use super::output::ChartObject;

/// The words of helm for hooks.
pub(super) const HOOK_WEIGHT_ANNOTATION: &str = "helm.sh/hook-weight";
const HOOK_ANNOTATIONS: [&str; 4] =
    [HOOK_ANNOTATION, HOOK_WEIGHT_ANNOTATION, "helm.sh/hook-delete-policy", "helm.sh/hook-output-log-policy"];

/// The words of Argo CD for the same. Charts for both tools have both, and helm's decide here.
const ARGO_HOOK_WORDS: [&str; 2] = [ARGO_HOOK, ARGO_HOOK_DELETE_POLICY];

/// By this annotation an object is created where it is missing, and then left alone.
pub(super) const LEFT_ALONE_ANNOTATION: (&str, &str) = ("client.lifecycle.config.k8s.io/mutation", "ignore");

/// Returns whether an object is created at an installation, and left alone from then on.
pub(super) fn is_made_once(body: &Value) -> bool {
    HookEvents::of(body).is_some_and(|events| events.phase().is_some() && events.is_only_installation())
}

/// Returns whether an object is a hook that is not run.
pub(super) fn is_never_run(body: &Value) -> bool {
    HookEvents::of(body).is_some_and(|events| events.phase().is_none())
}

/// Takes the words for hooks off a file in `crds/`, which helm installs as it is. Returns whether
/// they made a hook of it.
pub(super) fn take_hook_of_definition(object: &mut ChartObject) -> bool {
    let is_hook = object.is_definition && HookEvents::of(&object.body).is_some();
    if is_hook {
        take_words(&mut object.body);
    }
    is_hook
}

/// Returns whether an object asks Argo CD to leave it alone. So does rhumb.
fn is_skipped(body: &Value) -> bool {
    annotation_text(body, ARGO_HOOK).split(',').any(|part| part.trim() == ARGO_HOOK_SKIP)
}

/// Makes objects among others of the hooks of a release, which are in the order in which helm
/// prints them. A hook without a name gets one that follows from that of the release. One that is
/// skipped holds nothing up. Returns also what a person should know of them.
///
/// # Errors
/// Fails where the objects would wait for each other in more names than may be written on them.
pub(crate) fn translate(
    objects: Vec<ChartObject>,
    release_name: &str,
    namespace: &str,
    unnamed: UnnamedNamespace,
) -> Result<(Vec<ChartObject>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut notices = Vec::new();
    let (mut rest, mut hooks, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for mut object in objects {
        let Some(events) = HookEvents::of(&object.body) else {
            if !annotation_text(&object.body, HOOK_ANNOTATION).is_empty() {
                take_words(&mut object.body);
            }
            rest.push(object);
            continue;
        };
        match events.phase() {
            Some(_) if is_skipped(&object.body) => {
                take_words(&mut object.body);
                skipped.push(object);
            }
            Some(phase) => {
                notices.extend(events.notice().map(|text| notice(&object, "hook-order", text)));
                hooks.push((phase, weight(&object.body), events, object));
            }
            None => notices.push(notice(&object, HOOK_NOT_RUN, not_run_notice(&events))),
        }
    }
    let Some((_, _, _, first)) = hooks.first() else {
        rest.append(&mut skipped);
        return Ok((rest, notices));
    };
    let origin = origin_of(first);

    let release = release_hash(rest.iter().chain(hooks.iter().map(|(_, _, _, object)| object)));
    // helm prints them by kind, and runs those of one weight by name: the kind decides last.
    let name = |object: &ChartObject| text_at(&object.body, &["metadata", "name"]).to_owned();
    hooks.sort_by_cached_key(|(phase, weight, _, object)| (*phase, *weight, name(object)));
    let (mut steps, mut names) = (HookSteps::default(), HookNames::of_release(release_name));
    for (phase, weight, events, mut object) in hooks {
        let content = hashed_content(&object);
        names.name(&mut object.body, &content);
        if is_pod(&object.body) {
            notices.push(notice(
                &object,
                "hook-order",
                "it is a Pod, which runs once: a Job runs for each release",
            ));
        }
        make_ordinary(&mut object.body, &events, release);
        steps.add(phase, weight, object);
    }
    let mut ordered = order(rest, steps, namespace, unnamed).map_err(|TooManyNames| {
        let message = format!(
            "the hooks of this chart make its objects wait for each other in more than {MAX_AWAITED_NAME_BYTES} bytes of names"
        );
        let hint = "each object waits for all hooks before it: use fewer hooks, or make several charts of it";
        vec![Diagnostic::error(origin, "too-large", message).hint(hint)]
    })?;
    ordered.append(&mut skipped);
    Ok((ordered, notices))
}

/// Makes a hook an object as any other: a Job runs again for each release, and what only an
/// installation makes is left alone.
fn make_ordinary(body: &mut Value, events: &HookEvents, release: ContentHash) {
    take_words(body);
    take_annotations(body, &ARGO_HOOK_WORDS);
    if is_job(body) {
        keep_ended(body);
    }
    if events.is_only_installation() {
        annotate(body, LEFT_ALONE_ANNOTATION.0, LEFT_ALONE_ANNOTATION.1);
    } else if is_job(body) {
        run_for_each_release(body, release);
    }
}

/// Returns the objects of a document that helm printed. Items of a list are hooks where the list is
/// one, as helm runs it as a whole.
pub(super) fn listed_objects(object: ChartObject) -> impl Iterator<Item = ChartObject> {
    let ChartObject { body, origin, generated, is_definition } = object;
    let words: Vec<(&str, String)> = HOOK_ANNOTATIONS
        .into_iter()
        .map(|key| (key, annotation_text(&body, key).to_owned()))
        .filter(|(_, text)| !text.is_empty())
        .collect();
    manifest::listed_objects(body).into_iter().map(move |mut body| {
        if HookEvents::of(&body).is_none() {
            for (key, text) in &words {
                annotate(&mut body, key, text);
            }
        }
        ChartObject { body, origin: origin.clone(), generated: generated.clone(), is_definition }
    })
}

fn not_run_notice(events: &HookEvents) -> &'static str {
    if events.has(HookEvent::Test) {
        "it is a test, which is not run"
    } else {
        "it is a hook for deletion or rollback, which is not run"
    }
}

/// Returns what a person should know of an object.
pub(super) fn notice(object: &ChartObject, code: &'static str, text: &str) -> Diagnostic {
    Diagnostic::warning(origin_of(object), code, format!("{}: {text}", name_of(&object.body)))
}

fn origin_of(object: &ChartObject) -> ManifestOrigin {
    let origin = object.origin.places.first().cloned();
    origin.unwrap_or_else(|| ManifestOrigin::of_file(object.origin.root.clone()))
}

/// Returns the weight of a hook. Helm takes what is no number for none.
fn weight(body: &Value) -> i64 {
    annotation_text(body, HOOK_WEIGHT_ANNOTATION).parse().unwrap_or(0)
}

pub(super) fn is_job(body: &Value) -> bool {
    text_at(body, &["kind"]) == "Job" && text_at(body, &["apiVersion"]).starts_with("batch/")
}

pub(super) fn is_pod(body: &Value) -> bool {
    text_at(body, &["kind"]) == "Pod" && text_at(body, &["apiVersion"]) == "v1"
}

/// Takes helm's words for hooks off an object.
fn take_words(body: &mut Value) {
    take_annotations(body, &HOOK_ANNOTATIONS);
}

/// Takes annotations off an object.
fn take_annotations(body: &mut Value, keys: &[&str]) {
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.retain(|key, _| !keys.contains(&key.as_str()));
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

/// Makes a Job run again for each release. Its template cannot be changed, so the Job is recreated.
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

/// Returns the hash of a release, over all its objects. It leaves out what must not be shown of
/// Secrets, and what is another one at each render.
fn release_hash<'a>(objects: impl Iterator<Item = &'a ChartObject>) -> ContentHash {
    ContentHash::of(&objects.map(hashed_content).collect())
}

/// Returns the part of an object that the hash of its release follows from.
fn hashed_content(object: &ChartObject) -> Value {
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
}

fn keys_of(map: &Map<String, Value>) -> Vec<String> {
    map.keys().cloned().collect()
}
