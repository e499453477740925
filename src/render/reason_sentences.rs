//! The sentences of reasons, and of the values inside them. A person reads the same one in the
//! status, on the page, in Events, in the log and in JSON.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::{
    ActiveHold, CurrentOwner, DependencyState, FightCause, HeldStep, IncompleteCause, IncompleteSource,
    PauseSubject, Reason, ReconcilePolicy, RejectedContent, RejectionOutcome, StepObstacle, WatchFault,
    WithheldWrite,
};
use crate::health::{Health, HealthStatus};

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syncing(kind) => write!(f, "waiting for the first list of {kind}"),
            Self::Unobservable(kind, fault, _) => write!(f, "{kind} cannot be watched: {fault}"),
            Self::Inventory(name) => write!(f, "the inventory ConfigMap {name} is being written"),
            Self::Unserved(gvk, others) => {
                write!(f, "the server has no kind {gvk}")?;
                if others.is_empty() { Ok(()) } else { write!(f, " (it has {})", others.join(", ")) }
            }
            Self::UnknownKind(gvk) => write!(f, "the API server cannot say now whether it serves {gvk}"),
            Self::Needs(id, why) => write!(f, "needs {id}, which {why}"),
            Self::Wave(wave, id) => write!(f, "wave {wave} is not finished: {id}"),
            Self::Budget(shortage) => shortage.fmt(f),
            Self::Claiming => f.write_str("its claim on the rollout budget is being written"),
            Self::UnitWorkload(id) => write!(f, "it is released together with {id}, which has not started to roll out"),
            Self::Owned(owner) => write!(f, "it belongs to {owner}"),
            Self::NotAdopted => f.write_str("it exists already, this source did not create it, and adopt is `never`; `adopt: if-unowned` takes it over"),
            Self::Generated(other) => write!(
                f,
                "its generated values would not fit those of {other}, which another render made: restore it, or delete \
                 all objects of the release with generated values"
            ),
            Self::Terminating => f.write_str("it is being deleted"),
            Self::OwnWrite => f.write_str("waiting for the watch to show rhumb's last write"),
            Self::Retrying(cause, after) => write!(f, "{cause}; retry in {}", seconds(*after)),
            Self::Fight(cause, after) => write!(f, "{cause}; next repair in {}", seconds(*after)),
            Self::ReadingRevision(revision) => write!(f, "reading its content from revision {revision}"),
            Self::KeyUnavailable(why) => {
                write!(f, "the recorded hashes of Secrets are sealed, and the key is not available: {why}")
            }
            Self::Reading(id) => write!(f, "reading {id}, whose data its pods use"),
            Self::Incomplete(cause) => write!(f, "the source was not read completely: {cause}"),
            Self::Refused(cause, _) => write!(f, "{cause}"),
            Self::RecordUnreadable(why) => f.write_str(why),
            Self::Unusable(fault) => write!(f, "{fault}"),
            Self::Oversized(unit) => write!(f, "{unit}"),
            Self::Step(step) => write!(f, "{step}"),
            Self::Rejected(rejected) => write!(f, "{rejected}"),
            Self::Paused(subject, why) if why.is_empty() => write!(f, "{subject} is paused"),
            Self::Paused(subject, why) => write!(f, "{subject} is paused: {why}"),
            Self::OnHold(hold) => write!(f, "{hold}"),
            Self::Prune(cause) | Self::Kept(cause) => write!(f, "{cause}"),
            Self::LeftAlone(ReconcilePolicy::OnlyCreate) => {
                f.write_str("its annotation asks to create it only if it is missing, and it exists")
            }
            Self::LeftAlone(_) => f.write_str("its annotation asks not to reconcile it"),
            Self::OptedOut(word) => {
                write!(f, "{word} is set on the live object: it is neither changed nor repaired until that is removed")
            }
            Self::Confirm(cause) => write!(f, "{cause}; see `rhumb prune list`"),
            Self::ReadingPeers => f.write_str("reading what other sources of the cluster want"),
            Self::Observed => f.write_str("the source has `observe: true`, so nothing is written"),
        }
    }
}

fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs())
    }
}

impl fmt::Display for WatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Message(message) => message,
            Self::Unlisted => "the server does not list this kind now",
            Self::GroupUnavailable => "the server of its API group does not answer",
            Self::OutsideNamespaces => {
                "its source does not watch its namespace: `allow.namespaces` does not name it"
            }
        })
    }
}

impl fmt::Display for FightCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changes(writers) => {
                let who = writers_text(writers);
                write!(f, "{who} keeps changing the same fields: stop it, or leave these fields to it")
            }
            Self::Deletions => f.write_str(
                "somebody deletes it each time it is made: stop that, or take it out of the source",
            ),
        }
    }
}

/// Returns the names of field managers, as a list.
pub(super) fn writers_text(writers: &[Arc<str>]) -> String {
    if writers.is_empty() { "somebody".to_owned() } else { writers.join(", ") }
}

/// As the end of `needs ConfigMap shop/env, which …`.
impl fmt::Display for DependencyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is not there yet"),
            Self::Unnamed => f.write_str("no source names"),
            Self::Deleting => f.write_str("is being deleted"),
            Self::Unhealthy(health) => write!(f, "is {health}"),
            Self::Unchanged => f.write_str("is not changed yet"),
            Self::RollingOut => f.write_str("is rolling out"),
            Self::Soaking => f.write_str("is rolled out"),
            Self::RollingBack => f.write_str("is rolled back first"),
            Self::Refused(why) => write!(f, "is refused: {why}"),
            Self::Unusable(fault) => write!(f, "cannot be used: {fault}"),
            Self::Contested => f.write_str("is wanted by several sources"),
            Self::Paused => f.write_str("is paused"),
        }
    }
}

/// As a predicate: "healthy", or the status with the words about it.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, &*self.message) {
            (HealthStatus::Current, _) => f.write_str("healthy"),
            (status, "") => write!(f, "{status}"),
            (status, message) => write!(f, "{status}: {message}"),
        }
    }
}

impl fmt::Display for IncompleteCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread => f.write_str("it has not been read yet"),
            Self::UnreadableFile(file) => write!(f, "{file} is not understood"),
            Self::Message(message) => f.write_str(message),
        }
    }
}

impl fmt::Display for IncompleteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete(cause) => write!(f, "{cause}"),
            Self::Unrendered(root) => write!(f, "{root}"),
        }
    }
}

impl fmt::Display for CurrentOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(name) => write!(f, "source {name}"),
            Self::FormerSource(name) => {
                write!(f, "source {name}, which no longer wants it and keeps it, as adopt is `never` here")
            }
            Self::ApplySet(set) => write!(
                f,
                "the ApplySet {set}: `kubectl get configmaps,secrets -A -l applyset.kubernetes.io/id={set}` finds its \
                 parent"
            ),
            Self::Tool(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for PauseSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object => f.write_str("it"),
            Self::Source(name) => write!(f, "source {name}"),
        }
    }
}

/// `on hold until 2030-01-01T00:00:00Z: load test; a newer content waits`. Where nobody gave a
/// reason, there is no colon.
impl fmt::Display for ActiveHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.map(|until| until.to_string()).unwrap_or_default();
        let withheld = match self.withheld {
            WithheldWrite::Nothing => "",
            WithheldWrite::Repair => "; it was changed, and is not repaired",
            WithheldWrite::Content => "; a newer content waits",
            WithheldWrite::Deletion => "; its deletion is pending",
        };
        match &*self.reason {
            "" => write!(f, "on hold until {until}{withheld}"),
            why => write!(f, "on hold until {until}: {why}{withheld}"),
        }
    }
}

impl fmt::Display for HeldStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods(wait, None) => write!(f, "{wait}"),
            Self::Pods(wait, Some(why)) => write!(f, "{wait}; {why}"),
            Self::LostNode(node) => {
                write!(f, "all nodes that are Ready have the new pod; node {node} is not Ready")
            }
            Self::Surplus(message) => {
                write!(f, "scaling gave the new template more pods than its step allows: {message}")
            }
        }
    }
}

impl fmt::Display for StepObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reason(reason) => write!(f, "{reason}"),
            Self::EvictionRefused { pod, node, message } => {
                write!(f, "pod {pod} on node {node} cannot be evicted: {message}")
            }
            Self::EvictionDenied(lacks) => write!(f, "no pod of it can be evicted: {lacks}"),
            Self::UnreadableNodes(why) => write!(f, "the nodes cannot be read: {why}"),
            Self::UnlistedNodes => f.write_str("the nodes are being listed"),
        }
    }
}

impl fmt::Display for RejectedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        match &self.outcome {
            RejectionOutcome::Quarantined => Ok(()),
            RejectionOutcome::Unaffected(revision) => {
                write!(f, "; its content stays that of revision {revision}")
            }
            RejectionOutcome::RolledBack(revision) => write!(f, "; it is back at revision {revision}"),
            RejectionOutcome::Unreadable(revision) => {
                write!(f, "; it is back at revision {revision}, which cannot be read any more")
            }
        }
    }
}
