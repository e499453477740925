//! A forgiving view of an object: what is missing or has another type than expected reads as its
//! default.

use serde_json::Value;

use super::{Health, HealthStatus};
use crate::object::{annotation_text, count_text, text_at, value_at, verb_to_be};

/// The maximum number of characters of a message: it ends up in one line of a terminal, of a log,
/// of an Event.
const MAX_HEALTH_MESSAGE_CHARS: usize = 400;

pub(super) struct HealthView<'a> {
    object: &'a Value,
}

/// One of `status.conditions`.
#[derive(Clone, Copy)]
pub(super) struct StatusCondition<'a>(&'a Value);

impl<'a> HealthView<'a> {
    pub(super) fn new(object: &'a Value) -> Self {
        Self { object }
    }

    pub(super) fn generation(&self) -> Option<i64> {
        value_at(self.object, &["metadata", "generation"]).and_then(number)
    }

    pub(super) fn observed_generation(&self) -> Option<i64> {
        value_at(self.object, &["status", "observedGeneration"]).and_then(number)
    }

    pub(super) fn is_deleting(&self) -> bool {
        !text_at(self.object, &["metadata", "deletionTimestamp"]).is_empty()
    }

    pub(super) fn annotation(&self, name: &str) -> &'a str {
        annotation_text(self.object, name)
    }

    pub(super) fn spec(&self, path: &[&str]) -> Option<&'a Value> {
        value_at(self.object.get("spec")?, path)
    }

    /// Returns a whole number of the spec, where it is set.
    pub(super) fn spec_number(&self, path: &[&str]) -> Option<i64> {
        self.spec(path).and_then(Value::as_i64)
    }

    pub(super) fn spec_text(&self, path: &[&str]) -> &'a str {
        self.spec(path).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn has_spec_flag(&self, key: &str) -> bool {
        self.spec(&[key]).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Returns the pods asked for; the API's default is one.
    pub(super) fn replicas(&self) -> i64 {
        self.spec_number(&["replicas"]).unwrap_or(1)
    }

    pub(super) fn status(&self, key: &str) -> Option<&'a Value> {
        value_at(self.object, &["status", key])
    }

    /// Returns a count of the status; controllers leave zeros out.
    pub(super) fn count(&self, key: &str) -> i64 {
        self.status(key).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn status_text(&self, key: &str) -> &'a str {
        self.status(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the items of a list of the status.
    pub(super) fn status_list(&self, key: &str) -> &'a [Value] {
        self.status(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the condition of this type.
    pub(super) fn condition(&self, kind: &str) -> Option<StatusCondition<'a>> {
        self.status_list("conditions")
            .iter()
            .find(|entry| text_at(entry, &["type"]) == kind)
            .map(StatusCondition)
    }

    /// Returns the condition of this type, if it is `True`.
    pub(super) fn holds(&self, kind: &str) -> Option<StatusCondition<'a>> {
        self.condition(kind).filter(|condition| condition.has_status("True"))
    }
}

impl<'a> StatusCondition<'a> {
    pub(super) fn has_status(self, status: &str) -> bool {
        text_at(self.0, &["status"]) == status
    }

    pub(super) fn reason(self) -> &'a str {
        text_at(self.0, &["reason"])
    }

    /// Returns the generation that it speaks of.
    pub(super) fn generation(self) -> Option<i64> {
        self.0.get("observedGeneration").and_then(number)
    }

    /// Returns its reason and message as one text; the fallback where it has neither.
    pub(super) fn message_or(self, fallback: &str) -> String {
        match (self.reason(), text_at(self.0, &["message"])) {
            ("", "") => fallback.to_owned(),
            (reason, "") => reason.to_owned(),
            ("", message) => message.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

/// Returns a number, or its digits: some custom kinds keep generations as text.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// Returns the health of an object that its controller works on.
pub(super) fn in_progress_health(message: &str) -> Health {
    health_with_reason(HealthStatus::InProgress, message)
}

/// Returns the health of an object that its controller has given up.
pub(super) fn failed_health(message: &str) -> Health {
    health_with_reason(HealthStatus::Failed, message)
}

/// Returns the health of an object that is being deleted.
pub(super) fn terminating_health(message: &str) -> Health {
    health_with_reason(HealthStatus::Terminating, message)
}

fn health_with_reason(status: HealthStatus, message: &str) -> Health {
    match one_line(message).as_str() {
        "" => Health::new(status, "no reason given"),
        line => Health::new(status, line),
    }
}

/// Returns a foreign text in one bounded line, without control characters: a terminal would obey
/// them.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = String::new();
    let mut left = MAX_HEALTH_MESSAGE_CHARS;
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        let length = word.chars().count();
        if length >= left {
            line.extend(word.chars().take(left));
            line.push('…');
            break;
        }
        left -= length + 1;
        line.push_str(word);
    }
    line
}

/// Says of replicas or pods that their controller has yet to see them end.
pub(super) fn pending_termination_text(count: i64, noun: &str) -> String {
    format!("{} {} pending termination", count_text(count, noun), verb_to_be(count))
}
