//! A unit: objects that are released together, and where each goes back to.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::{ConfigStamp, ContentRef};
use crate::object::{ContentHash, ObjectId, Revision};

/// A unit: objects that one revision changes together, and where each goes back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReleaseUnit {
    /// The inventory that they are in.
    pub inventory_id: Arc<str>,
    /// The revision that changes them.
    pub revision: Revision,
    /// The objects.
    pub members: BTreeMap<ObjectId, UnitMember>,
}

/// One object of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitMember {
    /// The content that the revision asks for; none where it removes the object.
    /// [`ContentHash::UNREADABLE`] where nobody here can read which.
    pub content: Option<ContentHash>,
    /// The content that was live before the unit, or before an older unit that this one continues.
    /// Its rollback puts that back, though nobody judged its health.
    pub rollback_target: RollbackTarget,
    /// The data that its pods are started with, where a change of them restarts it.
    pub restarted: Option<ConfigRestart>,
}

/// The data that a workload's pods are started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConfigRestart {
    /// The number of the key under which all of them were hashed; none where nobody knows. Hashes
    /// under different keys cannot be compared.
    pub key: Option<u32>,
    /// The hash over all of them.
    pub data: ContentHash,
    /// The hash over those that are not from git.
    pub foreign: ContentHash,
    /// The hash over all that they were started with before; none where nobody knows.
    pub before: Option<ContentHash>,
}

impl ConfigRestart {
    /// Returns whether data that are not from git are provably others than these.
    pub(in crate::engine) fn is_foreign_changed(self, key: u32, foreign: ContentHash) -> bool {
        self.key == Some(key) && self.foreign != foreign
    }

    /// Returns whether pods are started with these data. Data that were hashed under another key
    /// are taken to be the same.
    pub(crate) fn is_shown_by(self, shown: Option<ConfigStamp>) -> bool {
        let is_other_key = |shown: ConfigStamp| self.key.is_some_and(|key| key != shown.key);
        shown.is_some_and(|shown| shown.data == self.data || is_other_key(shown))
    }

    /// Returns whether its hashes may be under the key of another one.
    fn is_comparable_with(self, other: Self) -> bool {
        self.key.is_none() || other.key.is_none() || self.key == other.key
    }
}

/// The target of a rollback of one object: its last good content, its absence, or that nobody
/// knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RollbackTarget {
    /// There was no such object.
    Absent,
    /// Nobody knows: the unit stays as it is, where any of it cannot go back without this object.
    Unknown,
    /// This one.
    Content(ContentRef),
    /// This one of another inventory, whose source had the object then. The hash of a content is
    /// another one in each inventory.
    FormerContent {
        /// The content, as it was released there.
        content: ContentRef,
        /// That inventory.
        inventory_id: Arc<str>,
    },
}

impl RollbackTarget {
    /// Returns the content to go back to; none where there was no object, or nobody knows.
    pub(in crate::engine) const fn content_ref(&self) -> Option<&ContentRef> {
        match self {
            Self::Content(good) | Self::FormerContent { content: good, .. } => Some(good),
            Self::Absent | Self::Unknown => None,
        }
    }
}

impl UnitMember {
    /// Returns whether nobody here can read which content is asked for.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.content == Some(ContentHash::UNREADABLE)
    }

    /// Returns whether the revision asks for the very content that a rollback puts back.
    pub(in crate::engine) fn has_unchanged_content(&self) -> bool {
        self.rollback_target.content_ref().is_some_and(|good| Some(good.hash) == self.content)
    }

    /// Takes over the rollback target of an older unit that this one comes after.
    fn inherit_from(&mut self, older: &Self) {
        self.rollback_target = older.rollback_target.clone();
        if let (Some(newer), Some(older)) = (&mut self.restarted, older.restarted) {
            newer.before = older.before.filter(|_| newer.is_comparable_with(older));
        }
    }
}

impl ReleaseUnit {
    /// Adds the members of an older unit of the same inventory. The last good content is the older
    /// unit's, the desired content the newer one's.
    pub(in crate::engine) fn merge_older(&mut self, older: &Self) {
        for (id, member) in &older.members {
            self.members
                .entry(id.clone())
                .and_modify(|newer| newer.inherit_from(member))
                .or_insert_with(|| member.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    fn config(name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), name)
    }

    #[test]
    fn a_newer_unit_keeps_what_was_good_before_the_older_one() {
        let member = |content: &str, good: &str| UnitMember {
            content: Some(ContentHash::hash_bytes(content.as_bytes())),
            rollback_target: RollbackTarget::Content(ContentRef {
                hash: ContentHash::hash_bytes(good.as_bytes()),
                revision: Revision::new(good),
            }),
            restarted: None,
        };
        let unit = |members: &[(&str, UnitMember)]| ReleaseUnit {
            inventory_id: "a-v1".into(),
            revision: Revision::new("r"),
            members: members.iter().map(|(name, member)| (config(name), member.clone())).collect(),
        };
        let older = unit(&[("a", member("2", "1")), ("b", member("2", "1"))]);
        let mut newer = unit(&[("a", member("3", "2")), ("c", member("3", "2"))]);
        newer.merge_older(&older);
        let expected = [("a", member("3", "1")), ("b", member("2", "1")), ("c", member("3", "2"))];
        assert_eq!(newer, unit(&expected));
    }

    #[test]
    fn the_data_before_a_restart_are_those_before_the_older_one() {
        let hash = |text: &str| ContentHash::hash_bytes(text.as_bytes());
        let restart = |before: Option<&str>| {
            let (data, foreign) = (hash("data"), hash("foreign"));
            Some(ConfigRestart { key: Some(1), data, foreign, before: before.map(hash) })
        };
        let under = |key: Option<u32>, restart: Option<ConfigRestart>| {
            restart.map(|restart| ConfigRestart { key, ..restart })
        };
        let check = |newer: Option<ConfigRestart>, older: Option<ConfigRestart>, expected| {
            let member =
                |restarted| UnitMember { content: None, rollback_target: RollbackTarget::Absent, restarted };
            let mut found = member(newer);
            found.inherit_from(&member(older));
            assert_eq!(found, member(expected));
        };
        check(restart(Some("2")), restart(Some("1")), restart(Some("1")));
        check(restart(Some("2")), restart(None), restart(None));
        check(restart(Some("2")), None, restart(Some("2")));
        check(None, restart(Some("1")), None);
        check(under(Some(2), restart(Some("2"))), restart(Some("1")), under(Some(2), restart(None)));
        check(restart(Some("2")), under(None, restart(Some("1"))), restart(Some("1")));
    }

    #[test]
    fn a_member_keeps_its_content_where_a_rollback_puts_back_the_same() {
        let hash = |text: &str| ContentHash::hash_bytes(text.as_bytes());
        let good = || ContentRef { hash: hash("1"), revision: Revision::new("r1") };
        let former = RollbackTarget::FormerContent { content: good(), inventory_id: "b-v1".into() };
        for (content, rollback_target, expected) in [
            (Some("1"), RollbackTarget::Content(good()), true),
            (Some("1"), former, true),
            (Some("2"), RollbackTarget::Content(good()), false),
            (None, RollbackTarget::Content(good()), false),
            (None, RollbackTarget::Absent, false),
            (Some("1"), RollbackTarget::Unknown, false),
        ] {
            let member = UnitMember { content: content.map(hash), rollback_target, restarted: None };
            assert_eq!(member.has_unchanged_content(), expected, "{member:?}");
        }
    }
}
