//! The sentences of why units are rejected, and do not go back. The inventory records them.

use std::fmt;

use crate::engine::{ChangedData, FailedChange, FailedRelease, RejectionCause, RollbackObstacle};

impl fmt::Display for RejectionCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted(revision, by) => {
                write!(f, "revision {} aborted by {}", revision.short_name(), actor_words(by))
            }
            Self::Undone(revision, by) => {
                write!(f, "revision {} undone by {}", revision.short_name(), actor_words(by))
            }
            Self::RolloutFailed(failed) => write!(f, "{failed}"),
            Self::NewerRefused(failed, refused, why) => {
                write!(f, "{failed}; nothing newer replaces it, as {refused} is refused: {why}")
            }
        }
    }
}

/// Returns whose hand it was, in words.
fn actor_words(by: &str) -> &str {
    if by.is_empty() { "hand" } else { by }
}

impl fmt::Display for FailedRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, workload, restarted_for, why } = self;
        if let FailedChange::Revision(revision) | FailedChange::RevisionWithForeignData(revision) = change {
            write!(f, "revision {} failed: ", revision.short_name())?;
        }
        write!(f, "{workload}")?;
        if let Some(data) = restarted_for {
            write!(f, ", restarted as the data of {data} changed")?;
        }
        match change {
            FailedChange::Revision(_) => write!(f, ": {why}"),
            FailedChange::RevisionWithForeignData(_) => {
                write!(f, ": {why}; rhumb cannot bring back what is not in git")
            }
            FailedChange::ForeignData => write!(
                f,
                ", failed: {why}; rhumb cannot bring back what is not in git; change it again to retry"
            ),
        }
    }
}

/// As a noun: "ConfigMap env and Secret tls".
impl fmt::Display for ChangedData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ids, joint) = match self {
            Self::All(ids) => (ids, " and "),
            Self::AnyOf(ids) => (ids, " or "),
        };
        let words: Vec<String> = ids.iter().map(|id| format!("{} {}", id.kind(), id.name())).collect();
        f.write_str(&words.join(joint))
    }
}

/// As what follows the cause of a rejection.
impl fmt::Display for RollbackObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(id, why) => write!(f, "going back failed too: {id}: {why}"),
            Self::Refused(id, why) => write!(f, "going back failed too: {id}: refused: {why}"),
            Self::Unreadable(id, revision) => write!(
                f,
                "it cannot go back, as revision {} of {id} cannot be read any more",
                revision.short_name()
            ),
            Self::UnreadableHere(id, revision) => write!(
                f,
                "it cannot go back, as revision {} of {id} of another source is not in the repository of this one",
                revision.short_name()
            ),
            Self::UnknownContent(id) => {
                write!(f, "it cannot go back, as the earlier content of {id} is not known")
            }
            Self::UnknownKey(id) => {
                write!(f, "the record of {id} is sealed by a key that is not known here")
            }
            Self::BackAtUnread(revision) => {
                write!(f, "it is back at revision {}, which a dry run does not read", revision.short_name())
            }
            Self::BoundForUnread(revision) => {
                write!(f, "it goes back to revision {}, which a dry run does not read", revision.short_name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RefusalCause;
    use crate::object::{GroupKind, ObjectId, Revision};

    fn id(kind: &str, name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::parse(kind), Some("shop"), name)
    }

    fn denied() -> RefusalCause {
        RefusalCause::Message("denied".into())
    }

    fn web() -> ObjectId {
        id("Deployment.apps", "web")
    }

    #[test]
    fn each_rejection_says_its_cause() {
        let check = |cause: RejectionCause, expected: &str| assert_eq!(cause.to_string(), expected);
        let revision = || Revision::new("r2");
        let failed = |change: FailedChange, restarted_for: Option<ChangedData>| {
            let (workload, why) = (web(), "it crashes".into());
            RejectionCause::RolloutFailed(FailedRelease { change, workload, restarted_for, why })
        };
        let data = || Some(ChangedData::All(vec![id("ConfigMap", "env"), id("Secret", "tls")]));
        let unsure = Some(ChangedData::AnyOf(vec![id("ConfigMap", "env"), id("Secret", "tls")]));
        check(RejectionCause::Aborted(revision(), "ann".into()), "revision r2 aborted by ann");
        check(RejectionCause::Aborted(revision(), "".into()), "revision r2 aborted by hand");
        check(RejectionCause::Undone(revision(), "ann".into()), "revision r2 undone by ann");
        check(RejectionCause::Undone(revision(), "".into()), "revision r2 undone by hand");
        check(
            failed(FailedChange::Revision(revision()), None),
            "revision r2 failed: Deployment shop/web: it crashes",
        );
        let (change, workload, why) = (FailedChange::Revision(revision()), web(), "it crashes".into());
        let release = FailedRelease { change, workload, restarted_for: None, why };
        check(
            RejectionCause::NewerRefused(release, id("ConfigMap", "env"), denied()),
            "revision r2 failed: Deployment shop/web: it crashes; nothing newer replaces it, as ConfigMap shop/env is \
             refused: denied",
        );
        check(
            failed(FailedChange::Revision(revision()), data()),
            "revision r2 failed: Deployment shop/web, restarted as the data of ConfigMap env and Secret tls changed: \
             it crashes",
        );
        check(
            failed(FailedChange::RevisionWithForeignData(revision()), unsure),
            "revision r2 failed: Deployment shop/web, restarted as the data of ConfigMap env or Secret tls changed: it \
             crashes; rhumb cannot bring back what is not in git",
        );
        check(
            failed(FailedChange::ForeignData, data()),
            "Deployment shop/web, restarted as the data of ConfigMap env and Secret tls changed, failed: it crashes; \
             rhumb cannot bring back what is not in git; change it again to retry",
        );
    }

    #[test]
    fn what_does_not_go_back_says_why() {
        let check = |obstacle: RollbackObstacle, expected: &str| assert_eq!(obstacle.to_string(), expected);
        let revision = || Revision::new("r1");
        check(
            RollbackObstacle::Failed(web(), "it crashes".into()),
            "going back failed too: Deployment shop/web: it crashes",
        );
        check(
            RollbackObstacle::Refused(web(), denied()),
            "going back failed too: Deployment shop/web: refused: denied",
        );
        check(
            RollbackObstacle::Unreadable(web(), revision()),
            "it cannot go back, as revision r1 of Deployment shop/web cannot be read any more",
        );
        check(
            RollbackObstacle::UnreadableHere(web(), revision()),
            "it cannot go back, as revision r1 of Deployment shop/web of another source is not in the repository of \
             this one",
        );
        check(
            RollbackObstacle::UnknownContent(web()),
            "it cannot go back, as the earlier content of Deployment shop/web is not known",
        );
        check(
            RollbackObstacle::UnknownKey(web()),
            "the record of Deployment shop/web is sealed by a key that is not known here",
        );
        check(
            RollbackObstacle::BackAtUnread(revision()),
            "it is back at revision r1, which a dry run does not read",
        );
        check(
            RollbackObstacle::BoundForUnread(revision()),
            "it goes back to revision r1, which a dry run does not read",
        );
    }
}
