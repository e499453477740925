//! The rules that are in force, how often each was used, and the answers that are under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::rule::{Fault, RequestShape, Requests, ResponseCut, Rule};
use crate::random::Random;

/// The id of a rule of one proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(u64);

/// The use of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleUsage {
    /// The number of requests that it matches, also those that it spared.
    pub matched: u64,
    /// The number of requests that got its fault.
    pub fired: u64,
}

/// The state shared by the proxy's handle and its connections.
#[derive(Debug)]
pub(super) struct ProxyState {
    inner: Mutex<LedgerState>,
}

#[derive(Debug)]
struct LedgerState {
    rules: BTreeMap<RuleId, (Rule, RuleUsage)>,
    open: BTreeMap<u64, (RequestShape, watch::Sender<Option<ResponseCut>>)>,
    next: u64,
    random: Random,
}

/// An answer under way; dropping it takes it off the ledger.
#[derive(Debug)]
pub(super) struct AnswerGuard {
    ledger: Arc<ProxyState>,
    number: u64,
    /// Changes once somebody wants the answer to end.
    pub(super) ending: watch::Receiver<Option<ResponseCut>>,
}

impl ProxyState {
    pub(super) fn new(seed: u64) -> Self {
        let (rules, open) = (BTreeMap::new(), BTreeMap::new());
        Self { inner: Mutex::new(LedgerState { rules, open, next: 0, random: Random::new(seed) }) }
    }

    fn lock(&self) -> MutexGuard<'_, LedgerState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, rule: Rule) -> RuleId {
        let mut inner = self.lock();
        inner.next += 1;
        let id = RuleId(inner.next);
        inner.rules.insert(id, (rule, RuleUsage::default()));
        id
    }

    /// Ends a rule and returns how often it was used.
    pub(super) fn remove(&self, id: RuleId) -> RuleUsage {
        self.lock().rules.remove(&id).map_or_else(RuleUsage::default, |(_, hits)| hits)
    }

    pub(super) fn clear(&self) {
        self.lock().rules.clear();
    }

    pub(super) fn hits(&self, id: RuleId) -> RuleUsage {
        self.lock().rules.get(&id).map_or_else(RuleUsage::default, |(_, hits)| *hits)
    }

    /// Finds what happens to a request: the first rule that wants it decides.
    pub(super) fn decide(&self, shape: &RequestShape) -> Fault {
        let mut guard = self.lock();
        let LedgerState { rules, random, .. } = &mut *guard;
        for (rule, hits) in rules.values_mut() {
            if hits.fired >= rule.times || !rule.requests.holds(shape) {
                continue;
            }
            hits.matched += 1;
            if hits.matched <= rule.skip || (rule.chance < 1.0 && random.fraction() >= rule.chance) {
                continue;
            }
            hits.fired += 1;
            return rule.fault.clone();
        }
        Fault::Pass
    }

    /// Draws a time between two.
    pub(super) fn draw(&self, least: Duration, most: Duration) -> Duration {
        least + most.saturating_sub(least).mul_f64(self.lock().random.fraction())
    }

    /// Notes an answer that gets under way.
    pub(super) fn open(self: &Arc<Self>, shape: RequestShape) -> AnswerGuard {
        let (sender, ending) = watch::channel(None);
        let mut inner = self.lock();
        inner.next += 1;
        let number = inner.next;
        inner.open.insert(number, (shape, sender));
        AnswerGuard { ledger: Arc::clone(self), number, ending }
    }

    /// Counts the answers under way.
    pub(super) fn count_open(&self, requests: &Requests) -> usize {
        self.lock().open.values().filter(|(shape, _)| requests.holds(shape)).count()
    }

    /// Ends answers under way, and returns how many.
    pub(super) fn end_open(&self, requests: &Requests, ending: ResponseCut) -> usize {
        let inner = self.lock();
        let hit = inner.open.values().filter(|(shape, _)| requests.holds(shape));
        hit.map(|(_, sender)| sender.send_replace(Some(ending))).filter(Option::is_none).count()
    }
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        self.ledger.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(path: &str) -> RequestShape {
        RequestShape { method: "GET".into(), path: path.into(), query: String::new(), user: "u".into() }
    }

    fn faults(ledger: &ProxyState, count: usize) -> String {
        let mark = |fault| if matches!(fault, Fault::Pass) { '.' } else { 'x' };
        (0..count).map(|_| mark(ledger.decide(&shape("/a")))).collect()
    }

    #[test]
    fn rules_count() {
        let ledger = ProxyState::new(1);
        let id = ledger.add(Rule::new(Requests::any(), Fault::Duplicate).skip(1).times(2));
        assert_eq!(faults(&ledger, 5), ".xx..");
        assert_eq!(ledger.hits(id), RuleUsage { matched: 3, fired: 2 });
        ledger.clear();
        assert_eq!(ledger.hits(id), RuleUsage::default());
    }

    #[test]
    fn the_first_rule_decides() {
        let ledger = ProxyState::new(1);
        ledger.add(Rule::new(Requests::any().path_contains("/spared"), Fault::Pass));
        ledger.add(Rule::new(Requests::any(), Fault::Duplicate));
        assert!(matches!(ledger.decide(&shape("/spared")), Fault::Pass));
        assert!(matches!(ledger.decide(&shape("/other")), Fault::Duplicate));
    }

    #[test]
    fn the_same_seed_draws_the_same_lots() {
        let drawn = |seed| {
            let ledger = ProxyState::new(seed);
            ledger.add(Rule::new(Requests::any(), Fault::Duplicate).chance(0.5));
            faults(&ledger, 64)
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        let hit = drawn(7).matches('x').count();
        assert!((16..48).contains(&hit), "{hit} of 64");
    }
}
