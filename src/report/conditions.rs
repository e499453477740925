//! The status of an object of kind `Source`: what kstatus, `kubectl wait` and people read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Phase, SourceStatus};

/// Phases that do not pass without a person.
const STUCK: [Phase; 4] = [Phase::Failed, Phase::Refused, Phase::RolledBack, Phase::Quarantined];

/// What is known of a source that stands in the cluster.
#[derive(Clone, Copy, Debug)]
pub enum Standing<'a> {
    /// It cannot be followed: a word, and why.
    Unusable(&'static str, &'a str),
    /// It is followed, and so far nothing is known.
    Begun,
    /// It is followed.
    Followed(&'a SourceStatus),
}

struct Words {
    ready: &'static str,
    stalled: bool,
    reason: &'static str,
    message: String,
}

fn words(standing: Standing<'_>) -> Words {
    let progress = |reason, message| Words { ready: "False", stalled: false, reason, message };
    match standing {
        Standing::Unusable(reason, why) => {
            Words { ready: "False", stalled: true, reason, message: why.to_owned() }
        }
        Standing::Begun => progress("Starting", "it has not been read yet".to_owned()),
        Standing::Followed(status) => {
            let stuck: BTreeMap<Phase, usize> = status
                .objects
                .iter()
                .filter(|(phase, _)| STUCK.contains(phase))
                .map(|(p, n)| (*p, *n))
                .collect();
            if let Some(why) = &status.incomplete {
                let reason = if status.revision.is_none() { "Starting" } else { "NotReadWhole" };
                progress(reason, why.clone())
            } else if !stuck.is_empty() {
                Words { ready: "False", stalled: true, reason: "ObjectsFailed", message: counts(&stuck) }
            } else if status.healthy {
                let total: usize = status.objects.values().sum();
                Words {
                    ready: "True",
                    stalled: false,
                    reason: "Settled",
                    message: format!("{total} objects are as wanted and healthy"),
                }
            } else {
                progress("Progressing", counts(&status.objects))
            }
        }
    }
}

/// `3 RollingOut, 20 Settled`.
fn counts(objects: &BTreeMap<Phase, usize>) -> String {
    let counts: Vec<String> = objects.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    counts.join(", ")
}

/// The status that an object should have, where it has another now; none where it says all that already. Only the
/// times of conditions that stay as they are may differ.
pub fn source_conditions(
    known: &Value,
    generation: i64,
    standing: Standing<'_>,
    now: Timestamp,
) -> Option<Value> {
    let words = words(standing);
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
    if let Standing::Followed(followed) = standing {
        status["objects"] = json!(followed.objects.values().sum::<usize>());
        status["phases"] = json!(followed.objects);
        if let Some(revision) = &followed.revision {
            status["revision"] = json!(revision);
        }
    }
    (status != *known).then_some(status)
}

/// Whether an object says that all is well with this generation.
pub fn is_ready(known: &Value, generation: i64) -> bool {
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
            "place": "",
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
        fn check(standing: Standing<'_>, expected: [&str; 3], reason: &str, message: &str) {
            let status = source_conditions(&Value::Null, 3, standing, Timestamp::UNIX_EPOCH).unwrap();
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
        check(Standing::Unusable("Invalid", "no"), stuck, "Invalid", "no");
        check(Standing::Begun, works, "Starting", "it has not been read yet");
        let a = followed(&[], None, Some("not yet"));
        check(Standing::Followed(&a), works, "Starting", "not yet");
        let a = followed(&[(Phase::Settled, 2)], Some("a"), Some("a.yaml is broken"));
        check(Standing::Followed(&a), works, "NotReadWhole", "a.yaml is broken");
        let a = followed(&[(Phase::Settled, 2), (Phase::LeftAlone, 1)], Some("a"), None);
        check(Standing::Followed(&a), done, "Settled", "3 objects are as wanted and healthy");
        let a = followed(&[(Phase::Settled, 2), (Phase::RollingOut, 1)], Some("a"), None);
        check(Standing::Followed(&a), works, "Progressing", "2 Settled, 1 RollingOut");
        for phase in STUCK {
            let a = followed(&[(Phase::Settled, 2), (phase, 1)], Some("a"), None);
            check(Standing::Followed(&a), stuck, "ObjectsFailed", &format!("1 {phase}"));
        }
    }

    #[test]
    fn nothing_is_told_twice_and_a_time_is_that_of_the_change() {
        let tell = |known: &Value, objects: &[(Phase, usize)], seconds| {
            let status = followed(objects, Some("abc"), None);
            let now = Timestamp::from_second(seconds).unwrap();
            source_conditions(known, 1, Standing::Followed(&status), now)
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
