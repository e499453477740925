//! The rejections that inventories record, and the contents in place of rejected ones.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::facts::records::release_unit::{ReleaseUnit, RollbackTarget, UnitMember};
use crate::engine::{ContentRef, SharedDesiredObject};

/// A rejection: contents that are not wanted here though the newest revision asks for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rejection {
    /// The contents, each with its last good one.
    pub unit: ReleaseUnit,
    /// The action.
    pub action: RejectionAction,
    /// The reason, in words.
    pub cause: Arc<str>,
}

/// The action in place of a rejected content. In an inventory it is called `way`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RejectionAction {
    /// The last good content is put back.
    #[serde(rename = "back")]
    RollBack,
    /// Nothing, until git changes the content, a person orders a retry, or data change that are
    /// not from git.
    #[serde(rename = "held")]
    Quarantine,
}

/// The rejection of the newest revision's content of one object, by a rejection of its unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObjectRejection {
    /// The content in its place.
    pub replacement: ReplacementContent,
    /// The reason, in words.
    pub cause: Arc<str>,
    /// Indicates whether the replacement is the content that the newest revision asks for: others
    /// of its unit go back, or its pods have been restarted.
    pub is_newest_content: bool,
}

/// The content in place of a rejected one, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReplacementContent {
    /// The live content stays.
    Quarantined,
    /// None: the object is deleted.
    Delete,
    /// The content of this reference, which is being read.
    Unread(ContentRef),
    /// This one, of this reference.
    Read(SharedDesiredObject, ContentRef),
    /// The content of this reference, which cannot be read any more. It is kept where it is live; else
    /// the unit is quarantined.
    Unreadable(ContentRef),
    /// This one, once all that goes back together with it has been read. Until then whatever is
    /// there stays.
    AwaitingUnit(Box<ReplacementContent>),
}

impl ReplacementContent {
    /// Returns the replacement itself, without the wait for its unit.
    fn awaited_content(&self) -> &Self {
        match self {
            Self::AwaitingUnit(later) => later,
            _ => self,
        }
    }

    pub(in crate::engine) fn content_ref(&self) -> Option<&ContentRef> {
        match self.awaited_content() {
            Self::Unread(content_ref) | Self::Read(_, content_ref) | Self::Unreadable(content_ref) => {
                Some(content_ref)
            }
            Self::Quarantined | Self::Delete | Self::AwaitingUnit(_) => None,
        }
    }

    /// Returns whether something else is to be read first.
    pub(in crate::engine) fn is_awaited(&self) -> bool {
        matches!(self, Self::Unread(_) | Self::AwaitingUnit(_))
    }
}

impl ObjectRejection {
    pub(in crate::engine) fn of(rejection: &Rejection, member: &UnitMember) -> Self {
        let replacement = match (&member.rollback_target, rejection.action) {
            (_, RejectionAction::Quarantine) => ReplacementContent::Quarantined,
            (RollbackTarget::Unknown, RejectionAction::RollBack) => {
                ReplacementContent::AwaitingUnit(Box::new(ReplacementContent::Quarantined))
            }
            (RollbackTarget::Absent, RejectionAction::RollBack) => {
                ReplacementContent::AwaitingUnit(Box::new(ReplacementContent::Delete))
            }
            (
                RollbackTarget::Content(content_ref)
                | RollbackTarget::FormerContent { content: content_ref, .. },
                RejectionAction::RollBack,
            ) => ReplacementContent::Unread(content_ref.clone()),
        };
        let is_newest_content = member.has_unchanged_content();
        Self { replacement, cause: rejection.cause.clone(), is_newest_content }
    }

    /// Returns whether it means the same as another one, as far as that has been read.
    pub(in crate::engine) fn is_equivalent(&self, other: &Self) -> bool {
        let (one, two) = (self.replacement.awaited_content(), other.replacement.awaited_content());
        let same = one.content_ref() == two.content_ref() && (one.content_ref().is_some() || one == two);
        self.cause == other.cause && same
    }
}

#[cfg(test)]
mod tests {
    use super::ReplacementContent::{AwaitingUnit, Delete, Quarantined, Read, Unread, Unreadable};
    use super::*;
    use crate::engine::tests::world::{SET, config, desired};
    use crate::object::{ContentHash, Revision};

    fn content_ref(revision: &str) -> ContentRef {
        let hash = ContentHash::hash_bytes(revision.as_bytes());
        ContentRef { hash, revision: Revision::new(revision) }
    }

    fn later(replacement: ReplacementContent) -> ReplacementContent {
        AwaitingUnit(Box::new(replacement))
    }

    #[test]
    fn a_rejected_object_gets_what_its_unit_and_its_target_give() {
        let rejected = |action: RejectionAction, rollback_target: RollbackTarget| {
            let member =
                UnitMember { content: Some(content_ref("r1").hash), rollback_target, restarted: None };
            let members = [(config("a"), member.clone())].into();
            let unit = ReleaseUnit { inventory_id: SET.into(), revision: Revision::new("r2"), members };
            ObjectRejection::of(&Rejection { unit, action, cause: "it failed".into() }, &member)
        };
        let former =
            RollbackTarget::FormerContent { content: content_ref("r0"), inventory_id: "b-v1".into() };
        for (target, replacement, is_newest_content) in [
            (RollbackTarget::Unknown, later(Quarantined), false),
            (RollbackTarget::Absent, later(Delete), false),
            (RollbackTarget::Content(content_ref("r0")), Unread(content_ref("r0")), false),
            (former, Unread(content_ref("r0")), false),
            (RollbackTarget::Content(content_ref("r1")), Unread(content_ref("r1")), true),
        ] {
            let cause: Arc<str> = "it failed".into();
            let held = rejected(RejectionAction::Quarantine, target.clone());
            let expected = ObjectRejection { replacement: Quarantined, cause, is_newest_content };
            assert_eq!(held, expected, "{target:?}");
            let back = rejected(RejectionAction::RollBack, target.clone());
            assert_eq!(back, ObjectRejection { replacement, ..expected }, "{target:?}");
        }
    }

    #[test]
    fn a_rejection_means_the_same_while_its_content_is_read_and_awaited() {
        let of = |replacement: &ReplacementContent, cause: &str| ObjectRejection {
            replacement: replacement.clone(),
            cause: cause.into(),
            is_newest_content: false,
        };
        let content = desired(&config("a"), 1, "a");
        // Replacements with one number mean the same.
        let all = [
            (1, Unread(content_ref("r1"))),
            (1, Read(content, content_ref("r1"))),
            (1, Unreadable(content_ref("r1"))),
            (1, later(Unreadable(content_ref("r1")))),
            (2, Unread(content_ref("r2"))),
            (3, Quarantined),
            (3, later(Quarantined)),
            (4, Delete),
            (4, later(Delete)),
        ];
        for (number, one) in &all {
            for (other_number, other) in &all {
                let same = of(one, "it failed").is_equivalent(&of(other, "it failed"));
                assert_eq!(same, number == other_number, "{one:?} {other:?}");
                assert!(!of(one, "it failed").is_equivalent(&of(other, "it crashed")), "{one:?} {other:?}");
            }
        }
    }
}
