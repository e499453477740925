//! The words in annotations by which an object asks for a treatment of its own, and what is wrong with them.
//!
//! A word that cannot be read holds its object back: to guess would be a surprise in production.

use serde_json::Value;

use super::config_hash::RESTART_ON_CHANGE;
use super::ignore::{self, IGNORE_FIELDS, RECONCILE};
use super::step_words::STEP_WORDS;
use super::steps::misused_steps;
use super::{OVERLAY, STARTED, is_workload};
use crate::graph;
use crate::object::{Diagnostic, Object, RELEASE, annotation};

/// Our own words and what each may be.
const WORDS: [(&str, Form); 7] = [
    ("rhumb.dev/wave", Form::Number),
    ("rhumb.dev/prune", Form::OneOf(&["never", "first"])),
    ("rhumb.dev/recreate", Form::OneOf(&["true", "false"])),
    ("rhumb.dev/depends-on", Form::Objects),
    (RECONCILE, Form::OneOf(&["disabled", "enabled"])),
    (RESTART_ON_CHANGE, Form::OneOf(&["true", "false"])),
    (IGNORE_FIELDS, Form::Fields),
];

/// Argo CD's word for a wave; what it cannot read there it takes for 0, and so do we, with a warning.
const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";

enum Form {
    Number,
    OneOf(&'static [&'static str]),
    Objects,
    Fields,
}

/// Says what is wrong with the words of an object.
pub fn misused(object: &Object) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let annotations = object.body.pointer("/metadata/annotations").and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let form = WORDS.iter().find(|(word, _)| word == key).map(|(_, form)| form);
        let (message, hint) = match form {
            Some(Form::Number) if text.trim().parse::<i32>().is_err() => (
                format!("{key} is {text:?}, which is no whole number"),
                "lower waves are released first, as \"-1\" before \"0\"".to_owned(),
            ),
            Some(Form::OneOf(words)) if !words.contains(&text) => {
                (format!("{key} is {text:?}"), format!("it may be {}", words.join(" or ")))
            }
            None if STEP_WORDS.contains(&&**key) => continue,
            None if key == OVERLAY || key == STARTED => {
                let message = format!("{key} is written by rhumb, and is not read from a manifest");
                found.push(
                    Diagnostic::warning(object.origin.clone(), "annotation", message)
                        .hint("take it out, with the fields that came with it"),
                );
                continue;
            }
            None if key.starts_with("rhumb.dev/") && key != RELEASE => {
                let words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).chain(STEP_WORDS).collect();
                let message = format!("{key} is no annotation that rhumb knows");
                found.push(
                    Diagnostic::warning(object.origin.clone(), "unknown-annotation", message)
                        .hint(format!("it has no effect; known are {}", words.join(", "))),
                );
                continue;
            }
            None if key == SYNC_WAVE && text.trim().parse::<i32>().is_err() => {
                let message = format!("{key} is {text:?}, which is no whole number; it counts as 0");
                found.push(Diagnostic::warning(object.origin.clone(), "annotation", message));
                continue;
            }
            _ => continue,
        };
        found.push(Diagnostic::error(object.origin.clone(), "annotation", message).hint(hint));
    }
    found.extend(dependencies(object));
    found.extend(ignore::misused(object));
    found.extend(misused_steps(object));
    found.extend(without_effect(object));
    found
}

/// Words that are understood and do nothing yet: nobody is to rely on them unknowingly.
fn without_effect(object: &Object) -> impl Iterator<Item = Diagnostic> {
    let other = annotation(&object.body, RESTART_ON_CHANGE) == "true" && !is_workload(&object.id);
    let restarts = other.then(|| {
        (
            format!("{RESTART_ON_CHANGE} has no effect on a {}", object.id.kind()),
            "it restarts Deployments, StatefulSets and DaemonSets",
        )
    });
    restarts
        .into_iter()
        .map(|(message, hint)| Diagnostic::warning(object.origin.clone(), "annotation", message).hint(hint))
}

fn dependencies(object: &Object) -> impl Iterator<Item = Diagnostic> {
    let unreadable = graph::unreadable_dependencies(&object.body).into_iter();
    let unreadable = unreadable.map(|(key, part)| {
        let message = format!("{key} names {part:?}, which is no object");
        Diagnostic::error(object.origin.clone(), "annotation", message).hint(
            "write Kind/name, group/Kind/name or group/namespaces/namespace/Kind/name, separated by commas",
        )
    });
    let itself = graph::names_itself(&object.id, &object.body).then(|| {
        Diagnostic::error(object.origin.clone(), "cycle", format!("{} depends on itself", object.id))
            .hint("take it out of its own depends-on annotation")
    });
    unreadable.chain(itself)
}
