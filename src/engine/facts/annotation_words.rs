//! The words in annotations by which an object asks for a treatment of its own, and what is wrong
//! with them.
//!
//! A word that cannot be read holds its object back: to guess would be a surprise in production.

use crate::object::annotations;
use serde_json::Value;

use crate::engine::facts::ignore_fields::{self};
use crate::engine::facts::step_annotations::STEP_ANNOTATIONS;
use crate::engine::facts::steps::check_steps;
use crate::engine::facts::tool_variables::{LiteralRole, LiteralVariable, find_literal};
use crate::engine::facts::tool_vocabulary::{self, MetadataMap};
use crate::engine::is_workload;
use crate::graph;
use crate::object::{Diagnostic, Object, annotation_text, with_article};

/// Our own words and what each may be.
const OWN_ANNOTATIONS: [(&str, AnnotationForm); 8] = [
    (annotations::WAVE, AnnotationForm::Number),
    (annotations::PRUNE, AnnotationForm::OneOf(&["never", "first"])),
    (annotations::RECREATE, AnnotationForm::OneOf(&["true", "false"])),
    (annotations::DEPENDS_ON, AnnotationForm::Objects),
    (annotations::RECONCILE, AnnotationForm::OneOf(&["disabled", "enabled"])),
    (annotations::RESTART_ON_CHANGE, AnnotationForm::OneOf(&["true", "false"])),
    (annotations::SUBSTITUTE, AnnotationForm::OneOf(&["disabled", "enabled"])),
    (annotations::IGNORE_FIELDS, AnnotationForm::Fields),
];

/// Annotations of live objects, which are in a manifest that somebody took from the cluster.
const LIVE_ONLY_ANNOTATIONS: [&str; 8] = [
    annotations::OVERLAY,
    annotations::CONFIG,
    annotations::CONFIG_HASH,
    annotations::HOOK_RELEASE,
    annotations::ORDER,
    annotations::PAUSED,
    annotations::HOLD,
    annotations::REVISION,
];

enum AnnotationForm {
    Number,
    OneOf(&'static [&'static str]),
    Objects,
    Fields,
}

/// Says what is wrong with the words of an object.
pub(crate) fn check_annotations(object: &Object) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let annotations = object.body.pointer("/metadata/annotations").and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let form = OWN_ANNOTATIONS.iter().find(|(word, _)| word == key).map(|(_, form)| form);
        let (message, hint) = match form {
            Some(AnnotationForm::Number) if text.trim().parse::<i32>().is_err() => (
                format!("{key} is {text:?}, which is no whole number"),
                "lower waves are released first, for example \"-1\" before \"0\"".to_owned(),
            ),
            Some(AnnotationForm::OneOf(words)) if !words.contains(&text) => {
                (format!("{key} is {text:?}"), format!("it may be {}", words.join(" or ")))
            }
            None if STEP_ANNOTATIONS.contains(&&**key) => continue,
            None if LIVE_ONLY_ANNOTATIONS.contains(&&**key) => {
                let message = format!("{key} is written on live objects, and does not belong in a manifest");
                found.push(
                    Diagnostic::warning(object.origin.clone(), "annotation", message)
                        .hint("take it out, with the fields that came with it"),
                );
                continue;
            }
            // A render writes this one.
            None if *key == annotations::GENERATED => continue,
            None if key.starts_with("rhumb.dev/") && key != annotations::RELEASE => (
                // It may be a slip in a word that was to protect something.
                format!("{key} is no annotation that rhumb knows"),
                format!("known are {}", known_keys().collect::<Vec<_>>().join(", ")),
            ),
            _ => continue,
        };
        found.push(Diagnostic::error(object.origin.clone(), "annotation", message).hint(hint));
    }
    found.extend(find_blocking_words(object));
    found.extend(check_dependencies(object));
    found.extend(ignore_fields::check_ignore_fields(object));
    found.extend(check_steps(object));
    found.extend(find_ineffective(object));
    found
}

/// Returns all our own words.
fn known_keys() -> impl Iterator<Item = &'static str> {
    OWN_ANNOTATIONS.iter().map(|(word, _)| *word).chain(STEP_ANNOTATIONS)
}

/// Finds words of other tools and misplaced words of ours that hold the object back.
fn find_blocking_words(object: &Object) -> Vec<Diagnostic> {
    let error = |code, message: String, hint: String| {
        Diagnostic::error(object.origin.clone(), code, message).hint(hint)
    };
    let mut found = Vec::new();
    for (carrier, key, value) in ignore_fields::labels_and_annotations(&object.body) {
        if let Some((why, hint)) = tool_vocabulary::hold_back_reason(carrier, key, value) {
            found.push(error("foreign-word", format!("{key} {why}"), hint.to_owned()));
        }
        if carrier == MetadataMap::Label && known_keys().any(|word| word == key) {
            let message = format!("{key} is a label, and is read from annotations alone");
            found.push(error("annotation", message, "move it to metadata.annotations".to_owned()));
        }
    }
    found
}

/// Says which variable of an object stays as it is, as its source puts in none.
///
/// In a field that the API itself takes, a value that is no more than names and variables is an
/// error: nobody means it so. In all else, as in scripts and prose, it may be meant for others.
pub(crate) fn check_variables(object: &Object) -> Option<Diagnostic> {
    let hint = format!(
        "name its value under `substitute` of the source; where it is meant literally, annotate the object with {}: \
         disabled",
        annotations::SUBSTITUTE
    );
    let LiteralVariable { path, variable, role } = find_literal(object)?;
    let path = if path.is_empty() { "it" } else { &path };
    let found = match role {
        LiteralRole::Value => {
            let message = format!("{path} contains the variable ${{{variable}}}, which nobody has filled in");
            Diagnostic::error(object.origin.clone(), "variable", message)
        }
        LiteralRole::Text => {
            let message = format!("{path} contains ${{{variable}}}, which stays as it is");
            Diagnostic::warning(object.origin.clone(), "literal-variable", message)
        }
    };
    Some(found.hint(hint))
}

/// Returns warnings about annotations that are understood and have no effect on this object.
fn find_ineffective(object: &Object) -> impl Iterator<Item = Diagnostic> {
    let other =
        annotation_text(&object.body, annotations::RESTART_ON_CHANGE) == "true" && !is_workload(&object.id);
    let restarts = other.then(|| {
        (
            format!("{} has no effect on {}", annotations::RESTART_ON_CHANGE, with_article(object.id.kind())),
            "it restarts Deployments, StatefulSets and DaemonSets",
        )
    });
    restarts
        .into_iter()
        .map(|(message, hint)| Diagnostic::warning(object.origin.clone(), "annotation", message).hint(hint))
}

fn check_dependencies(object: &Object) -> impl Iterator<Item = Diagnostic> {
    let unreadable = graph::unreadable_dependencies(&object.body).into_iter();
    let unreadable = unreadable.map(|(key, part)| {
        let message = format!("{key} names {part:?}, which is no object");
        Diagnostic::error(object.origin.clone(), "annotation", message).hint(
            "write Kind/name, group/Kind/name or group/namespaces/namespace/Kind/name, separated by commas",
        )
    });
    let itself = graph::has_self_reference(&object.id, &object.body).then(|| {
        Diagnostic::error(object.origin.clone(), "cycle", format!("{} depends on itself", object.id))
            .hint("take it out of its own depends-on annotation")
    });
    unreadable.chain(itself)
}
