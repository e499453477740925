//! Kinds that discovery does not list, and the question to the server whether they are gone.
//!
//! **Invariant:** one question at a time. Discovery may answer many times before the server does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::object::GroupKind;

/// The time for which discovery must not have listed a kind before its absence is asked about.
const ABSENCE_CONFIRMATION: Duration = Duration::from_secs(30);

/// The kinds of inventories that discovery does not list.
#[derive(Debug, Default)]
pub(super) struct MissingKinds {
    /// The time since which it does not list them.
    since: BTreeMap<GroupKind, Instant>,
    /// The missing kinds that the server certainly does not have.
    absent: BTreeSet<GroupKind>,
    /// The missing kinds that a single pass has asked about, each once.
    questioned: BTreeSet<GroupKind>,
    /// Indicates whether an answer is on its way.
    is_asking: bool,
}

impl MissingKinds {
    /// Records a kind that discovery does not list.
    pub(super) fn add(&mut self, kind: &GroupKind, now: Instant) {
        self.since.entry(kind.clone()).or_insert(now);
    }

    /// Records a kind that is there, or may be.
    pub(super) fn remove(&mut self, kind: &GroupKind) {
        self.since.remove(kind);
        self.absent.remove(kind);
    }

    /// Returns whether the server certainly does not have a kind.
    pub(super) fn is_absent(&self, kind: &GroupKind) -> bool {
        self.absent.contains(kind)
    }

    /// Returns whether an answer is on its way.
    pub(super) const fn is_asking(&self) -> bool {
        self.is_asking
    }

    /// Returns the kinds to ask about that have been missing for so long that they may be gone.
    /// Returns none while an answer is on its way.
    pub(super) fn begin_absence_lookup(&mut self, now: Instant) -> BTreeSet<GroupKind> {
        if self.is_asking {
            return BTreeSet::new();
        }
        let is_long = |since: &Instant| now.duration_since(*since) >= ABSENCE_CONFIRMATION;
        let long = self.since.iter().filter(|(_, since)| is_long(since)).map(|(kind, _)| kind);
        let long: BTreeSet<GroupKind> = long.filter(|kind| !self.is_absent(kind)).cloned().collect();
        self.is_asking = !long.is_empty();
        long
    }

    /// Returns the kinds to ask about at once, each once, for a pass that cannot wait. Kinds
    /// that the source itself defines count as present.
    pub(super) fn begin_urgent_question(
        &mut self,
        is_defined: impl Fn(&GroupKind) -> bool,
    ) -> BTreeSet<GroupKind> {
        let open = self.since.keys().filter(|kind| !self.is_absent(kind) && !is_defined(kind));
        let new: BTreeSet<GroupKind> = open.filter(|kind| !self.questioned.contains(kind)).cloned().collect();
        self.questioned.extend(new.iter().cloned());
        self.is_asking |= !new.is_empty();
        new
    }

    /// Records that the question has no answer.
    pub(super) fn note_no_answer(&mut self) {
        self.is_asking = false;
    }

    /// Records kinds that the server certainly does not have. Returns those of which that is news.
    /// A kind that was listed meanwhile is there.
    pub(super) fn set_absent(&mut self, kinds: BTreeSet<GroupKind>) -> Vec<GroupKind> {
        self.is_asking = false;
        let missing = kinds.into_iter().filter(|kind| self.since.contains_key(kind));
        missing.filter(|kind| self.absent.insert(kind.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(names: &[&str]) -> BTreeSet<GroupKind> {
        names.iter().map(|name| GroupKind::parse(name)).collect()
    }

    #[test]
    fn one_question_is_asked_at_a_time_and_each_answer_is_news_once() {
        let start = Instant::now();
        let later = start + ABSENCE_CONFIRMATION;
        let (rollout, order) = (GroupKind::parse("Rollout.argoproj.io"), GroupKind::parse("Order.shop"));
        let mut missing = MissingKinds::default();
        missing.add(&rollout, start);
        assert_eq!(missing.begin_absence_lookup(start), kinds(&[]), "it may come yet");
        missing.add(&rollout, later);
        assert_eq!(missing.begin_absence_lookup(later), kinds(&["Rollout.argoproj.io"]));
        missing.add(&order, start);
        assert_eq!(missing.begin_absence_lookup(later), kinds(&[]), "an answer is on its way");
        assert!(missing.is_asking());
        let answer = || kinds(&["Rollout.argoproj.io", "Widget.shop"]);
        assert_eq!(missing.set_absent(answer()), std::slice::from_ref(&rollout));
        assert_eq!(missing.set_absent(answer()), []);
        assert!(missing.is_absent(&rollout) && !missing.is_asking());
        assert_eq!(missing.begin_absence_lookup(later), kinds(&["Order.shop"]));
        missing.note_no_answer();
        assert_eq!(missing.begin_absence_lookup(later), kinds(&["Order.shop"]));
        missing.remove(&rollout);
        assert!(!missing.is_absent(&rollout));
        assert_eq!(missing.set_absent(answer()), [], "it was listed meanwhile");
    }

    #[test]
    fn a_pass_that_cannot_wait_asks_about_each_kind_once() {
        let now = Instant::now();
        let mut missing = MissingKinds::default();
        for kind in kinds(&["A.shop", "B.shop"]) {
            missing.add(&kind, now);
        }
        let is_b = |kind: &GroupKind| *kind == GroupKind::parse("B.shop");
        assert_eq!(missing.begin_urgent_question(is_b), kinds(&["A.shop"]));
        assert_eq!(missing.begin_urgent_question(|_| false), kinds(&["B.shop"]));
        assert_eq!(missing.begin_urgent_question(|_| false), kinds(&[]));
        assert!(missing.is_asking());
    }
}
