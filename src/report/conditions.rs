//! The status of an object of kind `Source`: what kstatus, `kubectl wait` and people read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Phase, SourceStatus, healthy_text};
use crate::object::count_text;

/// Phases that do not pass without a person.
const STUCK_PHASES: [Phase; 4] = [Phase::Failed, Phase::Refused, Phase::RolledBack, Phase::Quarantined];

/// The condition of a source in the cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SourceCondition<'a> {
    /// It cannot be followed: a word, and why.
    Unusable(&'static str, &'a str),
    /// It is followed, and so far nothing is known.
    Starting,
    /// It is followed.
    Active(&'a SourceStatus),
    /// A person has deleted it, with all that it has; with what is left, once that is known.
    Deleting(Option<&'a SourceStatus>, Option<&'a RemainingObjects>),
}

/// The remaining objects of a source that a person has deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RemainingObjects {
    /// It cannot be known before a person does something: why.
    Unread(String),
    /// Objects that go, or wait for something: one of them, with what it waits for.
    Objects(Option<String>),
    /// Nothing but what is kept.
    Nothing,
    /// The object of its inventory's name is somebody's own data: why nothing is known.
    NoInventory(String),
    /// Its inventory is gone, and with it the list of the kinds that it had objects of.
    Unknown,
}

/// Phases in which a person keeps an object as it is.
const KEPT_PHASES: [Phase; 3] = [Phase::Held, Phase::Paused, Phase::OptedOut];

/// Phases that pass by themselves.
const TRANSIENT_PHASES: [Phase; 3] = [Phase::Progressing, Phase::RollingOut, Phase::Waiting];

struct ConditionText {
    ready: &'static str,
    stalled: bool,
    reason: &'static str,
    message: String,
}

fn condition_words(standing: SourceCondition<'_>) -> ConditionText {
    let progress = |reason, message| ConditionText { ready: "False", stalled: false, reason, message };
    match standing {
        SourceCondition::Unusable(reason, why) => {
            ConditionText { ready: "False", stalled: true, reason, message: why.to_owned() }
        }
        SourceCondition::Starting => progress("Starting", "it has not been read yet".to_owned()),
        SourceCondition::Deleting(status, left) => ending_condition(status, left),
        SourceCondition::Active(status) => {
            let of = |phases: &[Phase]| -> BTreeMap<Phase, usize> {
                let chosen = status.objects.iter().filter(|(phase, _)| phases.contains(phase));
                chosen.map(|(phase, count)| (*phase, *count)).collect()
            };
            let (stuck, kept) = (of(&STUCK_PHASES), of(&KEPT_PHASES));
            if let Some(why) = &status.barred {
                ConditionText {
                    ready: "False",
                    stalled: true,
                    reason: "InventoryUnread",
                    message: why.clone(),
                }
            } else if let Some(why) = &status.incomplete {
                let reason = if status.revision.is_none() { "Starting" } else { "SourceIncomplete" };
                progress(reason, why.clone())
            } else if !stuck.is_empty() {
                ConditionText {
                    ready: "False",
                    stalled: true,
                    reason: "ObjectsFailed",
                    message: counts_text(&stuck),
                }
            } else if status.healthy {
                let message = healthy_text(&status.objects);
                ConditionText { ready: "True", stalled: false, reason: "Settled", message }
            } else if !of(&TRANSIENT_PHASES).is_empty() || has_pending_prunes(status) {
                progress("Progressing", counts_text(&status.objects))
            } else if !kept.is_empty() {
                let reason = KEPT_PHASES.into_iter().find(|phase| kept.contains_key(phase));
                let reason = match reason {
                    Some(Phase::Held) => "Held",
                    Some(Phase::OptedOut) => "OptedOut",
                    _ => "Paused",
                };
                ConditionText { ready: "False", stalled: true, reason, message: kept_text(status, &kept) }
            } else {
                // All that is wanted is there and healthy.
                ConditionText {
                    ready: "True",
                    stalled: false,
                    reason: "PruneWaiting",
                    message: pending_prunes_text(status),
                }
            }
        }
    }
}

/// Returns whether a deletion waits for something that passes by itself.
fn has_pending_prunes(status: &SourceStatus) -> bool {
    let all = status.objects.get(&Phase::PruneWaiting).copied().unwrap_or_default();
    status.unlisted.is_none() && all > status.prune_waiting
}

fn kept_text(status: &SourceStatus, kept: &BTreeMap<Phase, usize>) -> String {
    match &status.paused {
        Some(why) => {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let name = &status.name;
            format!(
                "{}; the source is paused{why}; `rhumb rollout resume {name}` ends that",
                counts_text(kept)
            )
        }
        None => format!("{}: annotations on them ask for it", counts_text(kept)),
    }
}

fn ending_condition(status: Option<&SourceStatus>, left: Option<&RemainingObjects>) -> ConditionText {
    let of = |stalled, reason, message| ConditionText { ready: "False", stalled, reason, message };
    let begun = || "its objects are deleted once all of them have been listed".to_owned();
    match (status, left) {
        (_, Some(RemainingObjects::Unknown)) => {
            let why = "its ConfigMap, which named the kinds of its objects, is gone or was made anew: what is left \
                       of them is not known; with `deletionPolicy: Orphan` they stay, and it goes";
            of(true, "InventoryLost", why.to_owned())
        }
        (_, Some(RemainingObjects::Unread(why) | RemainingObjects::NoInventory(why))) => of(
            true,
            "InventoryUnread",
            format!("{why}; set `deletionPolicy: Orphan` to keep its objects and let the Source go"),
        ),
        (Some(status), _) if status.prune_waiting > 0 => {
            of(true, "PruneWaiting", pending_prunes_text(status))
        }
        (Some(status), _) if status.paused.is_some() => {
            let why = format!("paused; `rhumb rollout resume {}` ends that", status.name);
            of(true, "Paused", why)
        }
        (_, Some(RemainingObjects::Nothing)) => {
            of(false, "Deleting", "only objects that are kept are left".to_owned())
        }
        (Some(status), Some(RemainingObjects::Objects(waits))) => {
            let left = format!("{} are left", counts_text(&status.objects));
            of(false, "Deleting", waits.iter().fold(left, |left, one| format!("{left}: {one}")))
        }
        _ => of(false, "Deleting", begun()),
    }
}

/// Returns the number of pending deletions, and the command that confirms them.
fn pending_prunes_text(status: &SourceStatus) -> String {
    let SourceStatus { name, prune_waiting, unlisted, .. } = status;
    if let (Some(why), 0) = (unlisted, prune_waiting) {
        return why.clone();
    }
    let deletions = pending_deletions_text(*prune_waiting);
    format!(
        "{deletions}: `rhumb prune list --source {name}` shows them, `rhumb prune confirm --source {name} OBJECT...` confirms them"
    )
}

/// Returns the counts of phases, as `3 RollingOut, 20 Settled`.
fn counts_text(objects: &BTreeMap<Phase, usize>) -> String {
    let counts: Vec<String> = objects.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    counts.join(", ")
}

/// Returns `1 pending deletion` or `2 pending deletions`.
pub(crate) fn pending_deletions_text(count: usize) -> String {
    count_text(count, "pending deletion")
}

/// Returns the status that an object should have, where it has another now; none where it says all
/// that already. Only the times of conditions that stay as they are may differ.
pub(crate) fn updated_status(
    known: &Value,
    generation: i64,
    standing: SourceCondition<'_>,
    now: Timestamp,
) -> Option<Value> {
    let words = condition_words(standing);
    let truth = |yes: bool| if yes { "True" } else { "False" };
    let reconciling = words.ready == "False" && !words.stalled;
    let all =
        [("Ready", words.ready), ("Reconciling", truth(reconciling)), ("Stalled", truth(words.stalled))];
    let conditions = all.map(|(name, state)| {
        let since = known["conditions"].as_array().into_iter().flatten();
        let mut since = since.filter(|old| old["type"] == name && old["status"] == state);
        let since = since.find_map(|old| old["lastTransitionTime"].as_str());
        let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        json!({
            "type": name,
            "status": state,
            "observedGeneration": generation,
            "lastTransitionTime": since.unwrap_or(&now),
            "reason": words.reason,
            "message": words.message,
        })
    });
    let mut status = json!({ "observedGeneration": generation, "conditions": conditions });
    match standing {
        SourceCondition::Active(followed)
        | SourceCondition::Deleting(Some(followed), Some(RemainingObjects::Objects(_))) => {
            status["objects"] = match known.get("objects") {
                // A source that is not read yet does not have no objects.
                Some(objects) if followed.revision.is_none() => objects.clone(),
                _ => json!(followed.objects.values().sum::<usize>()),
            };
            status["phases"] = json!(followed.objects);
            let revision = match standing {
                SourceCondition::Active(_) => followed.revision.as_ref().map(|revision| json!(revision)),
                _ => known.get("revision").cloned(),
            };
            if let Some(revision) = revision {
                status["revision"] = revision;
            }
        }
        // Former objects decide whether something can be lost, when it is deleted later.
        SourceCondition::Deleting(..) | SourceCondition::Unusable(..) | SourceCondition::Starting => {
            for key in ["objects", "phases", "revision"] {
                if let Some(value) = known.get(key) {
                    status[key] = value.clone();
                }
            }
        }
    }
    (status != *known).then_some(status)
}

/// Returns whether an object says that all is well with this generation.
pub(crate) fn is_ready(known: &Value, generation: i64) -> bool {
    let ready = known["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    ready && known["observedGeneration"] == json!(generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(
        objects: &[(Phase, usize)],
        revision: Option<&str>,
        incomplete: Option<&str>,
    ) -> SourceStatus {
        let objects: BTreeMap<Phase, usize> = objects.iter().copied().collect();
        let status = json!({
            "name": "shop",
            "location": "",
            "revision": revision,
            "complete": incomplete.is_none(),
            "incomplete": incomplete,
            "observed": false,
            "healthy": incomplete.is_none() && objects.keys().all(|phase| phase.is_well()),
            "objects": objects,
            "findings": 0,
            "pruneWaiting": 0,
        });
        serde_json::from_value(status).unwrap()
    }

    fn states(status: &Value) -> Vec<(&str, &str)> {
        let conditions = status["conditions"].as_array().unwrap().iter();
        conditions.map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap())).collect()
    }

    #[test]
    fn the_conditions_are_those_of_kstatus() {
        #[track_caller]
        fn check(standing: SourceCondition<'_>, expected: [&str; 3], reason: &str, message: &str) {
            let status = updated_status(&Value::Null, 3, standing, Timestamp::UNIX_EPOCH).unwrap();
            let names = ["Ready", "Reconciling", "Stalled"];
            assert_eq!(states(&status), names.into_iter().zip(expected).collect::<Vec<_>>());
            assert_eq!(status["observedGeneration"], 3);
            assert_eq!(
                (&status["conditions"][0]["reason"], &status["conditions"][0]["message"]),
                (&json!(reason), &json!(message))
            );
        }
        let (done, works, stuck) =
            (["True", "False", "False"], ["False", "True", "False"], ["False", "False", "True"]);
        check(SourceCondition::Unusable("Invalid", "no"), stuck, "Invalid", "no");
        check(SourceCondition::Starting, works, "Starting", "it has not been read yet");
        let a = followed(&[], None, Some("not yet"));
        check(SourceCondition::Active(&a), works, "Starting", "not yet");
        let a = followed(&[(Phase::Settled, 2)], Some("a"), Some("a.yaml is broken"));
        check(SourceCondition::Active(&a), works, "SourceIncomplete", "a.yaml is broken");
        // Nothing of it goes on before a person does something.
        let mut a = followed(&[(Phase::Settled, 2)], Some("a"), Some("its ConfigMap is somebody else's"));
        a.barred.clone_from(&a.incomplete);
        check(SourceCondition::Active(&a), stuck, "InventoryUnread", "its ConfigMap is somebody else's");
        let a = followed(&[(Phase::Settled, 2), (Phase::LeftAlone, 1)], Some("a"), None);
        check(
            SourceCondition::Active(&a),
            done,
            "Settled",
            "2 objects are applied and healthy, 1 left alone",
        );
        let a = followed(&[(Phase::Settled, 2), (Phase::OptedOut, 1)], Some("a"), None);
        check(SourceCondition::Active(&a), stuck, "OptedOut", "1 OptedOut: annotations on them ask for it");
        let a = followed(&[(Phase::Settled, 2), (Phase::RollingOut, 1)], Some("a"), None);
        check(SourceCondition::Active(&a), works, "Progressing", "2 Settled, 1 RollingOut");
        for phase in STUCK_PHASES {
            let a = followed(&[(Phase::Settled, 2), (phase, 1)], Some("a"), None);
            check(SourceCondition::Active(&a), stuck, "ObjectsFailed", &format!("1 {phase}"));
        }
    }

    #[test]
    fn what_waits_for_a_person_alone_does_not_look_as_if_it_went_on() {
        #[track_caller]
        fn check(status: &SourceStatus, expected: [&str; 3], reason: &str, message: &str) {
            let status =
                updated_status(&Value::Null, 3, SourceCondition::Active(status), Timestamp::UNIX_EPOCH);
            let status = status.unwrap();
            let names = ["Ready", "Reconciling", "Stalled"];
            assert_eq!(states(&status), names.into_iter().zip(expected).collect::<Vec<_>>());
            assert_eq!(status["conditions"][0]["reason"], reason);
            assert!(status["conditions"][0]["message"].as_str().unwrap().contains(message), "{status:#}");
        }
        let (done, works, stuck) =
            (["True", "False", "False"], ["False", "True", "False"], ["False", "False", "True"]);
        let status = |objects: &[(Phase, usize)]| followed(objects, Some("a"), None);
        let pruned = [(Phase::Settled, 2), (Phase::PruneWaiting, 2)];
        let confirm = SourceStatus { prune_waiting: 2, ..status(&pruned) };
        check(&confirm, done, "PruneWaiting", "`rhumb prune confirm --source shop OBJECT...`");
        let half = SourceStatus { prune_waiting: 1, ..status(&pruned) };
        check(&half, works, "Progressing", "2 PruneWaiting");
        let unlisted = SourceStatus { unlisted: Some("no Widgets".to_owned()), ..status(&pruned) };
        check(&unlisted, done, "PruneWaiting", "no Widgets");
        check(&status(&[(Phase::Settled, 2), (Phase::Held, 1)]), stuck, "Held", "1 Held");
        let paused = status(&[(Phase::Settled, 2), (Phase::Paused, 1)]);
        check(&paused, stuck, "Paused", "1 Paused: annotations");
        let paused_source = SourceStatus { paused: Some("fair".to_owned()), ..paused };
        check(
            &paused_source,
            stuck,
            "Paused",
            "the source is paused: fair; `rhumb rollout resume shop` ends that",
        );
        // A pause that keeps nothing back changes nothing.
        let idle = SourceStatus { paused: Some(String::new()), ..status(&[(Phase::Settled, 2)]) };
        check(&idle, done, "Settled", "2 objects");
        let rolls = status(&[(Phase::Paused, 1), (Phase::RollingOut, 1), (Phase::PruneWaiting, 1)]);
        check(&rolls, works, "Progressing", "1 RollingOut");
        check(&status(&[(Phase::Held, 1), (Phase::Refused, 1)]), stuck, "ObjectsFailed", "1 Refused");
    }

    #[test]
    fn what_is_left_of_one_that_was_deleted_is_reported_until_it_is_gone() {
        let known = json!({ "objects": 7, "phases": { "Settled": 7 }, "revision": "abc" });
        let tell = |status: Option<&SourceStatus>, left: Option<RemainingObjects>| {
            let standing = SourceCondition::Deleting(status, left.as_ref());
            updated_status(&known, 3, standing, Timestamp::UNIX_EPOCH).unwrap()
        };
        let words = |status: &Value| {
            let text = |key: &str| status["conditions"][0][key].as_str().unwrap().to_owned();
            (states(status)[2].1.to_owned(), text("reason"), text("message"))
        };
        let going = followed(&[(Phase::PruneWaiting, 3)], Some("deleted"), None);
        let why = || Some(RemainingObjects::Objects(Some("ConfigMap a/b: it is being deleted".to_owned())));
        let status = tell(Some(&going), why());
        let message = "3 PruneWaiting are left: ConfigMap a/b: it is being deleted".to_owned();
        assert_eq!(words(&status), ("False".to_owned(), "Deleting".to_owned(), message));
        assert_eq!((&status["objects"], &status["revision"]), (&json!(3), &json!("abc")));
        let asks = SourceStatus { prune_waiting: 1, ..going.clone() };
        let (stalled, reason, message) = words(&tell(Some(&asks), why()));
        assert_eq!((&*stalled, &*reason), ("True", "PruneWaiting"));
        assert!(message.starts_with("1 pending deletion: `rhumb prune list --source shop`"));
        let paused = SourceStatus { paused: Some(String::new()), ..going };
        assert_eq!(words(&tell(Some(&paused), why())).1, "Paused");
        let (stalled, reason, message) =
            words(&tell(None, Some(RemainingObjects::Unread("no Widgets".to_owned()))));
        assert_eq!((&*stalled, &*reason), ("True", "InventoryUnread"));
        assert!(message.starts_with("no Widgets; set `deletionPolicy: Orphan`"), "{message}");
        let empty = followed(&[], Some("deleted"), None);
        assert_eq!(
            words(&tell(Some(&empty), Some(RemainingObjects::Nothing))).2,
            "only objects that are kept are left"
        );
        // Former objects are not forgotten before they are known to be gone.
        for left in [None, Some(RemainingObjects::Unknown), Some(RemainingObjects::Unread(String::new()))] {
            assert_eq!(tell(None, left)["objects"], 7);
        }
        let unread = followed(&[], None, Some("not yet"));
        for standing in [
            SourceCondition::Starting,
            SourceCondition::Unusable("Invalid", "no"),
            SourceCondition::Active(&unread),
        ] {
            let status = updated_status(&known, 3, standing, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(status["objects"], 7, "{standing:?}");
        }
        assert_eq!(words(&tell(None, Some(RemainingObjects::Unknown))).1, "InventoryLost");
    }

    #[test]
    fn nothing_is_reported_twice_and_a_time_is_that_of_the_change() {
        let tell = |known: &Value, objects: &[(Phase, usize)], seconds| {
            let status = followed(objects, Some("abc"), None);
            let now = Timestamp::from_second(seconds).unwrap();
            updated_status(known, 1, SourceCondition::Active(&status), now)
        };
        let first = tell(&Value::Null, &[(Phase::Settled, 1)], 1).unwrap();
        assert_eq!(
            (&first["objects"], &first["phases"], &first["revision"]),
            (&json!(1), &json!({ "Settled": 1 }), &json!("abc"))
        );
        assert!(is_ready(&first, 1) && !is_ready(&first, 2));
        assert_eq!(tell(&first, &[(Phase::Settled, 1)], 2), None);
        let more = tell(&first, &[(Phase::Settled, 2)], 3).unwrap();
        let time = |status: &Value, number: usize| status["conditions"][number]["lastTransitionTime"].clone();
        assert_eq!((time(&more, 0), time(&more, 2)), (time(&first, 0), time(&first, 2)));
        let rolls = tell(&more, &[(Phase::RollingOut, 2)], 4).unwrap();
        assert!(!is_ready(&rolls, 1));
        assert_eq!((time(&rolls, 0), time(&rolls, 2)), (json!("1970-01-01T00:00:04Z"), time(&first, 2)));
    }
}
