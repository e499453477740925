//! The status that a daemon or a single pass wrote last: refusals, waits and unread files are facts
//! that no live object shows.

use std::collections::BTreeMap;

use crate::engine::QueuedObject;
use crate::object::ObjectId;
use crate::render::CodedReason;
use crate::report::{ObjectStatus, Phase, RecordedObject, StatusSummary};

/// The text before each reason that comes from the record.
const LAST_REPORT_WORDS: &str = "last reported by rhumb";

/// The text before the reason for which a source was not read completely.
const NOT_READ_COMPLETELY: &str = "; not read completely: ";

/// The status in a source's inventory ConfigMap.
#[derive(Default)]
pub(super) struct LastStatus {
    incomplete: Option<String>,
    objects: BTreeMap<ObjectId, RecordedObject>,
    unnamed: BTreeMap<Phase, usize>,
    /// Indicates whether what others put on its objects has an effect.
    pub(super) heeds_opt_outs: bool,
}

impl LastStatus {
    /// Reads the ConfigMap's data.
    pub(super) fn read(data: &BTreeMap<String, String>) -> Self {
        let Some(status) = StatusSummary::from_data(data) else {
            return Self { heeds_opt_outs: true, ..Self::default() };
        };
        let incomplete = status.line.split_once(NOT_READ_COMPLETELY);
        Self {
            incomplete: incomplete.map(|(_, why)| format!("{LAST_REPORT_WORDS}: {why}")),
            objects: status.objects().map(|recorded| (recorded.object.id(), recorded)).collect(),
            unnamed: status.unnamed_counts(),
            heeds_opt_outs: status.is_heeding_opt_outs(),
        }
    }

    /// Returns why the newest state was not read completely, as it was last reported.
    pub(super) fn incomplete_reason(&self) -> Option<String> {
        self.incomplete.clone()
    }

    /// Returns whether the record names nothing that was to be done, or was missing.
    pub(super) fn is_settled(&self) -> bool {
        let is_well = |phase: Phase| phase.is_well();
        self.incomplete.is_none()
            && self.objects.values().all(|recorded| is_well(recorded.phase))
            && self.unnamed.keys().all(|phase| is_well(*phase))
    }

    /// Returns the status of an object then, and why.
    pub(super) fn of(&self, id: &ObjectId) -> Option<(Phase, String)> {
        self.objects.get(id).map(|recorded| (recorded.phase, reason(recorded)))
    }

    /// Returns the place that an object comes from, where it was reported.
    pub(super) fn origin(&self, id: &ObjectId) -> Option<String> {
        self.objects.get(id)?.origin.clone()
    }

    /// Returns the object as it was reported where the cluster shows none: of such an object this
    /// is all that is known.
    pub(super) fn absent_object(&self, source: &str, id: &ObjectId) -> Option<ObjectStatus> {
        let recorded = self.objects.get(id)?;
        if !can_be_absent(recorded.phase) {
            return None;
        }
        Some(ObjectStatus {
            object: recorded.object.clone(),
            source: source.to_owned(),
            phase: recorded.phase,
            reason: Some(reason(recorded)),
            coded: CodedReason::default(),
            revision: None,
            origin: recorded.origin.clone(),
            wave: 0,
        })
    }

    /// Returns the objects that it names.
    pub(super) fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.objects.keys()
    }

    /// Returns how many objects of each phase it counts and nothing names, among those phases that
    /// no live object shows. The queue of the rollout budget names some of those that wait.
    pub(super) fn unnamed_counts(&self, queue: &[&QueuedObject]) -> BTreeMap<Phase, usize> {
        let is_queued_alone = |queued: &&&QueuedObject| !self.objects.contains_key(&queued.id);
        let named = queue.iter().filter(is_queued_alone).count();
        let counts = PHASES_NOT_SHOWN_LIVE.into_iter().filter_map(|phase| {
            let count = *self.unnamed.get(&phase)?;
            let count = if phase == Phase::Waiting { count.saturating_sub(named) } else { count };
            (count > 0).then_some((phase, count))
        });
        counts.collect()
    }
}

/// The phases that a live object does not show.
const PHASES_NOT_SHOWN_LIVE: [Phase; 4] = [Phase::Refused, Phase::Waiting, Phase::Paused, Phase::LeftAlone];

/// Returns whether an object of that phase need not be in the cluster.
fn can_be_absent(phase: Phase) -> bool {
    PHASES_NOT_SHOWN_LIVE.contains(&phase) || phase == Phase::RolledBack
}

fn reason(recorded: &RecordedObject) -> String {
    match &*recorded.reason {
        "" => LAST_REPORT_WORDS.to_owned(),
        reason => format!("{LAST_REPORT_WORDS}: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    fn id(group: &str, kind: &str, name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::new(group, kind), Some("shop"), name)
    }

    fn record() -> LastStatus {
        let open = "Refused ConfigMap shop/env: env.yaml is not understood\n\
                    Refused Deployment.apps shop/web: no such field\n\
                    Waiting ConfigMap shop/slow\n\
                    Failed Deployment.apps shop/db: old\n\
                    and 7 more: 3 Waiting, 4 RollingOut\n";
        LastStatus::read(&BTreeMap::from([
            ("status".to_owned(), "0123: 4 objects: 4 Refused; not read completely: env.yaml".to_owned()),
            ("not-as-wanted".to_owned(), open.to_owned()),
            ("left-alone".to_owned(), "LeftAlone ConfigMap shop/own: so\n".to_owned()),
            ("origins".to_owned(), "ConfigMap shop/env: env.yaml:3\n".to_owned()),
        ]))
    }

    #[test]
    fn an_object_is_known_by_its_group_too() {
        let reported = |words: &str| format!("{LAST_REPORT_WORDS}: {words}");
        let record = record();
        let check =
            |id: ObjectId, expected: Option<(Phase, String)>| assert_eq!(record.of(&id), expected, "{id}");
        check(id("", "ConfigMap", "env"), Some((Phase::Refused, reported("env.yaml is not understood"))));
        check(id("apps", "Deployment", "web"), Some((Phase::Refused, reported("no such field"))));
        check(id("other.example", "Deployment", "web"), None);
        check(id("", "ConfigMap", "slow"), Some((Phase::Waiting, LAST_REPORT_WORDS.to_owned())));
        check(id("", "ConfigMap", "own"), Some((Phase::LeftAlone, reported("so"))));
        assert_eq!(record.incomplete_reason(), Some(reported("env.yaml")));
        assert_eq!(LastStatus::read(&BTreeMap::new()).incomplete_reason(), None);
    }

    #[test]
    fn of_what_is_not_there_only_what_need_not_be_is_reported() {
        let record = record();
        let absent = |id: &ObjectId| record.absent_object("shop", id).map(|status| status.phase);
        assert_eq!(absent(&id("", "ConfigMap", "env")), Some(Phase::Refused));
        assert_eq!(absent(&id("", "ConfigMap", "slow")), Some(Phase::Waiting));
        assert_eq!(absent(&id("apps", "Deployment", "db")), None);
        assert_eq!(absent(&id("", "ConfigMap", "none")), None);
        let origin = |name: &str| record.absent_object("shop", &id("", "ConfigMap", name))?.origin;
        assert_eq!((origin("env"), origin("slow")), (Some("env.yaml:3".to_owned()), None));
        assert_eq!(record.origin(&id("", "ConfigMap", "env")), Some("env.yaml:3".to_owned()));
    }

    #[test]
    fn whom_the_queue_names_is_not_unnamed() {
        let queued = |name: &str| QueuedObject {
            id: id("", "ConfigMap", name),
            inventory_id: "set".into(),
            position: None,
            reason: "it is so".into(),
        };
        let (slow, other) = (queued("slow"), queued("other"));
        let check = |queue: &[&QueuedObject], expected: &[(Phase, usize)]| {
            assert_eq!(record().unnamed_counts(queue), expected.iter().copied().collect());
        };
        check(&[], &[(Phase::Waiting, 3)]);
        check(&[&slow], &[(Phase::Waiting, 3)]);
        check(&[&slow, &other], &[(Phase::Waiting, 2)]);
        check(&[&other, &other, &other], &[]);
    }
}
