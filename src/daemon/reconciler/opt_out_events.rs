//! Reports who takes objects out of rhumb's hands: once when it begins and once when it ends,
//! whichever process does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::super::inventory::InventoryState;
use super::Reconciler;
use crate::engine::{OptOutPolicy, SourceId, SourceWrites};
use crate::object::{ContentHash, ObjectId};
use crate::report::EventReason;

/// Data key with the opt-outs that were reported: one mark a line.
pub(in crate::daemon) const REPORTED_OPT_OUTS_KEY: &str = "told-opt-outs";

/// The maximum number of marks in an inventory: 17 kB of it. Anybody who may write an object can
/// add one, and of more the surplus is reported again by the next process.
const MAX_OPT_OUT_MARKS: usize = 500;

/// The opt-outs of one source, as they were reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OptOutHistory {
    /// The objects that an annotation takes out of our hands, with its key.
    known: BTreeMap<ObjectId, &'static str>,
    /// The marks of what an earlier process reported, as far as it was not seen yet.
    earlier: BTreeSet<ContentHash>,
}

/// The changes in the opt-outs of one source: each with the key of its annotation.
#[derive(Debug, Default, PartialEq, Eq)]
struct OptOutChanges {
    begun: Vec<(ObjectId, &'static str)>,
    ended: Vec<(ObjectId, &'static str)>,
}

/// Returns the mark of an opt-out.
fn opt_out_hash(id: &ObjectId, word: &str) -> ContentHash {
    ContentHash::hash_bytes(format!("{word} {id} {}", id.group()).as_bytes())
}

impl OptOutHistory {
    /// Goes on where an earlier process has ended.
    pub(super) fn of_data(data: &BTreeMap<String, String>) -> Self {
        let reported = data.get(REPORTED_OPT_OUTS_KEY).map(String::as_str).unwrap_or_default();
        let earlier = reported.lines().take(MAX_OPT_OUT_MARKS).filter_map(ContentHash::parse).collect();
        Self { known: BTreeMap::new(), earlier }
    }

    /// Takes over those that are there now, and returns what is new. Before all was seen, what an
    /// earlier process reported may be there still.
    fn note(&mut self, now: BTreeMap<ObjectId, &'static str>, is_all_seen: bool) -> OptOutChanges {
        let begun = now.iter().filter(|(id, word)| self.known.get(*id) != Some(*word));
        let begun = begun.filter(|(id, word)| !self.earlier.contains(&opt_out_hash(id, word)));
        let ended = self.known.iter().filter(|(id, _)| !now.contains_key(*id));
        let copied = |(id, word): (&ObjectId, &&'static str)| (id.clone(), *word);
        let changes =
            OptOutChanges { begun: begun.map(copied).collect(), ended: ended.map(copied).collect() };
        for (id, word) in &now {
            self.earlier.remove(&opt_out_hash(id, word));
        }
        if is_all_seen {
            self.earlier.clear();
        }
        self.known = now;
        changes
    }

    /// Returns the record of what was reported; none where nothing was.
    fn text(&self) -> Option<String> {
        let known = self.known.iter().map(|(id, word)| opt_out_hash(id, word));
        let all: BTreeSet<ContentHash> = known.chain(self.earlier.iter().copied()).collect();
        let marks: Vec<String> = all.iter().take(MAX_OPT_OUT_MARKS).map(ToString::to_string).collect();
        (!marks.is_empty()).then(|| marks.join("\n"))
    }
}

impl Reconciler {
    /// Reports which objects somebody takes out of rhumb's hands.
    pub(super) fn record_opt_out_events(&mut self, source: SourceId) {
        let state = self.engine.view().source(source);
        if state.declared.writes == SourceWrites::Allowed
            && self.records.inventories[source].inventory == InventoryState::Unread
        {
            return;
        }
        let (head, is_denied) = (state.head.clone(), state.declared.opt_out == OptOutPolicy::Denied);
        let now = self.engine.view().opt_outs(source, Instant::now());
        let is_all_seen = self.is_seen(source);
        let changes = self.telemetry.history.opt_outs(source).note(now, is_all_seen);
        for (id, word) in changes.begun {
            let message = if is_denied {
                format!("{word} is set on the live object, without effect: the source has `optOut: denied`")
            } else {
                format!(
                    "{word} is set on the live object: it is neither changed nor repaired until that is removed"
                )
            };
            self.record_event(EventReason::OptedOut, source, Some(&id), message, head.clone());
        }
        for (id, word) in changes.ended {
            let message = format!("{word} does not keep rhumb away any more");
            self.record_event(EventReason::OptOutEnded, source, Some(&id), message, head.clone());
        }
    }

    /// Returns whether an inventory says which opt-outs were reported.
    pub(super) fn has_opt_out_record(&mut self, source: SourceId) -> bool {
        let text = self.telemetry.history.opt_outs(source).text();
        let inventory = self.records.inventories[source].inventory.inventory();
        !self.run_mode.is_daemon()
            || inventory.is_none_or(|inventory| inventory.data.get(REPORTED_OPT_OUTS_KEY) == text.as_ref())
    }

    /// Writes into an inventory which opt-outs were reported. A single pass reports none.
    pub(super) fn record_opt_outs(&mut self, source: SourceId, data: &mut BTreeMap<String, String>) {
        if !self.run_mode.is_daemon() {
            return;
        }
        match self.telemetry.history.opt_outs(source).text() {
            Some(text) => drop(data.insert(REPORTED_OPT_OUTS_KEY.to_owned(), text)),
            None => drop(data.remove(REPORTED_OPT_OUTS_KEY)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;
    use crate::object::annotations::{HOLD, PAUSED};

    fn id(name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), name)
    }

    fn now(all: &[(&str, &'static str)]) -> BTreeMap<ObjectId, &'static str> {
        all.iter().map(|(name, word)| (id(name), *word)).collect()
    }

    fn record(history: &OptOutHistory) -> BTreeMap<String, String> {
        history.text().map(|text| (REPORTED_OPT_OUTS_KEY.to_owned(), text)).into_iter().collect()
    }

    #[track_caller]
    fn check(
        history: &mut OptOutHistory,
        there: &[(&str, &'static str)],
        is_all_seen: bool,
        expected: [&[(&str, &'static str)]; 2],
    ) {
        let changes = history.note(now(there), is_all_seen);
        let [begun, ended] = expected.map(|all| now(all).into_iter().collect::<Vec<_>>());
        assert_eq!(changes, OptOutChanges { begun, ended });
    }

    #[test]
    fn an_opt_out_is_reported_once_by_whichever_process() {
        let mut first = OptOutHistory::default();
        check(&mut first, &[("a", HOLD)], true, [&[("a", HOLD)], &[]]);
        check(&mut first, &[("a", HOLD)], true, [&[], &[]]);
        check(&mut first, &[("a", HOLD), ("b", PAUSED)], true, [&[("b", PAUSED)], &[]]);
        let mut second = OptOutHistory::of_data(&record(&first));
        // The kinds are listed one after another.
        check(&mut second, &[], false, [&[], &[]]);
        assert_eq!(record(&second), record(&first));
        check(&mut second, &[("b", PAUSED)], false, [&[], &[]]);
        // Another word is another opt-out.
        check(&mut second, &[("a", PAUSED), ("b", PAUSED)], true, [&[("a", PAUSED)], &[]]);
        check(&mut second, &[("a", PAUSED)], true, [&[], &[("b", PAUSED)]]);
        // An opt-out that ended and begins again is reported again, by this process and the next
        // one.
        check(&mut second, &[("a", PAUSED), ("b", PAUSED)], true, [&[("b", PAUSED)], &[]]);
        check(&mut second, &[], true, [&[], &[("a", PAUSED), ("b", PAUSED)]]);
        assert_eq!(second.text(), None);
        let mut third = OptOutHistory::of_data(&record(&second));
        check(&mut third, &[("a", PAUSED)], true, [&[("a", PAUSED)], &[]]);
    }

    #[test]
    fn the_record_has_a_bound_and_garbage_in_it_counts_as_nothing() {
        let names: Vec<String> = (0..2000).map(|number| format!("c{number}")).collect();
        let all: Vec<(&str, &'static str)> = names.iter().map(|name| (name.as_str(), HOLD)).collect();
        let mut history = OptOutHistory::default();
        history.note(now(&all), true);
        let text = history.text().unwrap();
        assert!(text.lines().count() == MAX_OPT_OUT_MARKS && text.len() < 20_000, "{}", text.len());
        let garbage = format!("x\n\n{}\n", "f".repeat(300_000));
        let data = BTreeMap::from([(REPORTED_OPT_OUTS_KEY.to_owned(), garbage)]);
        assert_eq!(OptOutHistory::of_data(&data), OptOutHistory::default());
    }
}
