//! Carrying out what people order, and telling what came of it.
//!
//! An intent is an annotation, and its acknowledgement a line of the source's parent object. Both are states: whatever
//! dies when, an order is carried out until its token stands there, and never again after that. What an order does is
//! written together with its acknowledgement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::action::{Action, Decision, Purpose};
use super::asked::{Acknowledged, Asked, Hold, Verb};
use super::book::{Good, Member, Unit};
use super::entry::{Entry, SourceId};
use super::rejection::{Rejection, Way};
use super::state::Engine;
use super::stepping::under;
use super::{Overlay, Reason, Release, Shared, Want};
use crate::graph::Units;
use crate::object::{Hash, ObjectId, Revision};

/// So many acknowledgements stay, besides those of annotations that are still there.
const MOST: usize = 50;

/// What is known of the intents of people.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Orders {
    /// Objects of which people ask something.
    asked: BTreeSet<ObjectId>,
    /// Wall-clock time at a moment.
    clock: Option<(Instant, Timestamp)>,
    /// When the engine last looked which holds are over.
    looked: Option<Instant>,
    /// Ways back that are being looked up, by token.
    undos: BTreeMap<Arc<str>, Undo>,
    /// What is to be told, until the parent says it.
    answers: Vec<(SourceId, Acknowledged)>,
    /// Rejections that are to be taken out of the parent, once their units are recorded again.
    pub(super) restored: Vec<(SourceId, Rejection)>,
    /// Rejections that are to be taken out of the parent.
    pub(super) dropped: Vec<(SourceId, Rejection)>,
    /// Whether there may be something to do.
    pub(super) stale: bool,
}

/// A way back by hand: what older content is to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undo {
    /// The order's token.
    pub token: Arc<str>,
    /// The object that it names.
    pub id: ObjectId,
    /// Its source.
    pub source: SourceId,
    /// The revision that brought what is in force.
    pub from: Revision,
    /// The revision to go back to, as a person names it; else the parent of `from`.
    pub to: Option<Arc<str>>,
    /// All that goes back.
    pub objects: Vec<ObjectId>,
}

/// What an older revision says.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// The revision.
    pub revision: Revision,
    /// The contents that it has.
    pub contents: BTreeMap<ObjectId, Shared>,
}

/// What stands on an order.
pub(super) enum Answer {
    /// It is done, or nothing was to be done.
    Now(String),
    /// It is answered once more is known.
    Later,
}

/// What people ask of objects.
impl Engine {
    /// Tells the time of day, for holds that end by themselves.
    pub fn clock(&mut self, now: Instant, wall: Timestamp) {
        self.orders.clock = Some((now, wall));
        self.rollouts.starts.set_clock(now, wall);
    }

    pub(super) fn track_asked(&mut self, id: &ObjectId) {
        if self.live(id).is_some_and(|live| live.asked.is_some()) {
            self.orders.asked.insert(id.clone());
            self.orders.stale = true;
        } else if self.orders.asked.remove(id) {
            self.orders.stale = true;
        }
    }

    fn asked(&self, id: &ObjectId) -> Option<&Asked> {
        self.live(id)?.asked.as_deref()
    }

    /// Why no new content of an object is released. What goes back goes on, and so does what is released together
    /// with something that is out already.
    pub(super) fn paused(&self, id: &ObjectId) -> Option<Reason> {
        let own = self.own_pause(id);
        match self.recorded(id) {
            // What shows its content already is kept from going on with it, step by step.
            Some(unit) if self.is_out(unit) => own.filter(|_| {
                let want = self.entry(id).and_then(|entry| entry.want());
                want.is_some_and(|(_, want)| self.shows(id, want.hash))
            }),
            Some(unit) => own.or_else(|| self.pause_within(unit)),
            None => own,
        }
    }

    pub(super) fn own_pause(&self, id: &ObjectId) -> Option<Reason> {
        if self.entry(id).is_some_and(|entry| entry.instead.is_some()) {
            return None;
        }
        let words = |what: &str, reason: &str| {
            let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            Reason::Paused(format!("{what} is paused{because}").into())
        };
        if let Some(paused) = self.asked(id).and_then(|asked| asked.paused.as_ref()) {
            return Some(words("it", &paused.reason));
        }
        let wanting = self.entry(id).and_then(|entry| entry.wants.first()).map(|(source, _)| *source);
        let source = &self.sources[wanting.or_else(|| self.source_of(self.live(id)?))?];
        let paused = source.inventory.as_ref()?.paused.as_ref()?;
        Some(words(&format!("source {}", source.name), &paused.reason))
    }

    /// The hold that is on an object now, with the time that it still lasts.
    fn held(&self, id: &ObjectId, now: Instant) -> Option<(&Hold, Duration)> {
        let hold = self.asked(id)?.hold.as_ref()?;
        let (at, wall) = self.orders.clock?;
        let end = Duration::try_from(hold.until?.duration_since(wall)).ok()?;
        let left = (at + end).checked_duration_since(now).filter(|left| !left.is_zero())?;
        Some((hold, left))
    }

    /// Whether a person keeps a new content of an object from being released.
    pub(super) fn is_suspended(&self, id: &ObjectId) -> bool {
        let held = || self.held(id, self.orders.looked?);
        held().is_some() || self.paused(id).is_some()
    }

    /// Lets time pass: what waits for an object whose hold is over goes on.
    pub(super) fn end_holds(&mut self, now: Instant) {
        let Some(before) = self.orders.looked.replace(now) else { return };
        let ended = |id: &&ObjectId| self.held(id, before).is_some() && self.held(id, now).is_none();
        let ended: Vec<ObjectId> = self.orders.asked.iter().filter(ended).cloned().collect();
        for id in ended {
            self.changed(&id);
        }
    }

    /// Takes out of a decision what a person does not want to happen.
    pub(super) fn suspended(&self, id: &ObjectId, decision: Decision, now: Instant) -> Decision {
        if let Some((hold, left)) = self.held(id, now) {
            let differs = match &decision.action {
                Action::Apply(apply) if apply.purpose == Purpose::Repair => {
                    "; it was changed, and is not repaired"
                }
                Action::Apply(_) => "; a newer content waits",
                Action::Delete(..) => "; its deletion waits",
                Action::Nothing if decision.reason.is_none() => "",
                _ => {
                    let again = decision.again.map_or(left, |again| again.min(left));
                    return Decision { again: Some(again), ..decision };
                }
            };
            let until = hold.until.map(|until| until.to_string()).unwrap_or_default();
            let why = format!("on hold until {until}: {}{differs}", hold.reason);
            return Decision { again: Some(left), ..Decision::wait(Reason::OnHold(why.into())) };
        }
        match (&decision.action, self.paused(id)) {
            (Action::Delete(..), Some(reason)) => Decision::wait(reason),
            _ => decision,
        }
    }
}

/// Carrying out.
impl Engine {
    /// Does what people have ordered, where that can be done now. To be called at the beginning of each turn.
    pub fn carry_out_orders(&mut self) {
        if !std::mem::take(&mut self.orders.stale) {
            return;
        }
        for id in self.orders.asked.clone() {
            let Some(source) = self.live(&id).and_then(|live| self.source_of(live)) else { continue };
            if !self.knows_enough(source) {
                self.orders.stale = true;
                continue;
            }
            let Some(asked) = self.asked(&id).cloned() else { continue };
            if let Some(paused) = asked.paused
                && !self.is_answered(&paused.token)
            {
                self.answer(source, &paused.token, format!("paused: {id}"));
            }
            if let Some(hold) = asked.hold
                && !self.is_answered(&hold.token)
            {
                self.answer(source, &hold.token, held_words(&id, &hold));
            }
            let Some(order) = asked.order.filter(|order| !self.is_answered(&order.token)) else { continue };
            if self.orders.undos.contains_key(&order.token) {
                continue;
            }
            if let Answer::Now(words) = self.carry_out(source, &id, &order.token, order.verb) {
                self.answer(source, &order.token, words);
            }
        }
        for source in 0..self.sources.len() {
            self.answer_source(source);
        }
    }

    /// Whether enough has been read to carry out an order on an object of this source.
    fn knows_enough(&self, source: SourceId) -> bool {
        let state = &self.sources[source];
        let synced = |kinds: &BTreeSet<_>| kinds.iter().all(|kind| self.is_synced(kind));
        state.head.is_some()
            && self.rollouts.book.is_some()
            && state.inventory.as_ref().is_some_and(|inventory| synced(&inventory.kinds))
    }

    /// The source's own pause, and states that are over.
    fn answer_source(&mut self, source: SourceId) {
        if !self.knows_enough(source) {
            return;
        }
        let Some(inventory) = &self.sources[source].inventory else { return };
        let paused = inventory.paused.clone().filter(|paused| !self.is_answered(&paused.token));
        let there = self.tokens(source);
        let over = |one: &&Acknowledged| !there.contains(&one.token);
        let over: Vec<Acknowledged> = inventory.acknowledged.iter().filter(over).cloned().collect();
        if let Some(paused) = paused {
            let name = self.sources[source].name.clone();
            self.answer(source, &paused.token, format!("paused: source {name}"));
        }
        for one in over {
            let ended = [("paused: ", "resumed: "), ("held: ", "released: ")];
            let ended = ended.iter().find_map(|(was, is)| Some((is, one.outcome.strip_prefix(was)?)));
            let known = self.orders.answers.iter().any(|(_, answer)| answer.token == one.token);
            if let Some((is, rest)) = ended.filter(|_| !known) {
                // Until when it would have been held says nothing any more.
                let what = rest.split_once(" until ").map_or(rest, |(what, _)| what);
                self.answer(source, &one.token, format!("{is}{what}"));
            }
        }
    }

    /// The tokens of all intents that stand on objects of a source, and on its parent.
    fn tokens(&self, source: SourceId) -> BTreeSet<Arc<str>> {
        let of_source = |id: &&ObjectId| self.live(id).and_then(|live| self.source_of(live)) == Some(source);
        let asked = self.orders.asked.iter().filter(of_source).filter_map(|id| self.asked(id));
        let tokens = asked.flat_map(|asked| {
            let order = asked.order.iter().map(|order| &order.token);
            let paused = asked.paused.iter().map(|paused| &paused.token);
            order.chain(paused).chain(asked.hold.iter().map(|hold| &hold.token)).cloned()
        });
        let inventory = self.sources[source].inventory.as_ref();
        let paused = inventory.and_then(|inventory| Some(inventory.paused.as_ref()?.token.clone()));
        tokens.chain(paused).collect()
    }

    /// An object may have come from another source, and its order with it.
    fn is_answered(&self, token: &str) -> bool {
        let told = self.sources.iter().filter_map(|source| source.inventory.as_ref());
        let told = told.flat_map(|inventory| &inventory.acknowledged);
        let answers = self.orders.answers.iter().map(|(_, answer)| answer);
        told.chain(answers).any(|one| *one.token == *token)
    }

    fn answer(&mut self, source: SourceId, token: &Arc<str>, outcome: String) {
        let answer = Acknowledged { token: token.clone(), outcome: outcome.into() };
        self.orders.answers.push((source, answer));
    }

    fn carry_out(&mut self, source: SourceId, id: &ObjectId, token: &Arc<str>, verb: Verb) -> Answer {
        match verb {
            Verb::Undo(to) => self.undo(source, id, token, to),
            Verb::Retry => self.retry(source, id),
            Verb::Abort => Answer::Now(self.abort(source, id)),
            Verb::Promote(content, _) | Verb::PromoteFull(content) => Answer::Now(self.promote(id, content)),
            Verb::Unknown(word) => Answer::Now(format!("nothing was done: no order is called {word:?}")),
        }
    }

    /// Only says what comes of it: the order itself lets the steps go on, for as long as they stand where it says.
    fn promote(&self, id: &ObjectId, content: Hash) -> String {
        let step = self.shown(id).and_then(under).and_then(Overlay::step);
        match step.filter(|_| self.shows(id, content)) {
            Some(step) => format!("promoted: {id} goes on from step {step}"),
            None => format!("nothing to promote: {id} is not stepping"),
        }
    }

    fn abort(&mut self, source: SourceId, id: &ObjectId) -> String {
        let entry = self.entry(id);
        let rejected = entry.is_some_and(|entry| entry.instead.is_some());
        let waits = entry.and_then(Entry::candidate).is_some();
        let recorded =
            self.rollouts.book.as_ref().and_then(|book| book.unit_of(&self.applysets[source], id)).cloned();
        let unit = recorded.or_else(|| waits.then(|| self.unit(source, id)));
        let Some(unit) = unit.filter(|_| !rejected) else {
            return format!("nothing to abort: no rollout of {id} is under way");
        };
        let revision = unit.revision.short().to_owned();
        let words = format!("aborted: revision {revision} of {id} ({}) goes back", objects(&unit));
        let cause = format!("revision {revision} aborted by hand").into();
        self.reject_by_hand(source, Rejection { unit, way: Way::Back, cause });
        words
    }

    /// What was rejected before, and has a part in it, goes on being rejected.
    fn reject_by_hand(&mut self, source: SourceId, mut rejection: Rejection) {
        let state = &self.sources[source];
        let known = state.inventory.iter().flat_map(|inventory| &inventory.rejections);
        let known = known.filter(|known| !self.is_void(source, known));
        for older in known.chain(&state.rejecting) {
            let shares = older.unit.members.keys().any(|id| rejection.unit.members.contains_key(id));
            for (id, member) in older.unit.members.iter().filter(|_| shares) {
                rejection.unit.members.entry(id.clone()).or_insert_with(|| member.clone());
            }
        }
        let members = &rejection.unit.members;
        let state = &mut self.sources[source];
        state.rejecting.retain(|other| other.unit.members.keys().all(|id| !members.contains_key(id)));
        state.rejecting.push(rejection);
    }
}

pub(super) fn objects(unit: &Unit) -> String {
    match unit.members.len() {
        1 => "1 object".to_owned(),
        count => format!("{count} objects"),
    }
}

fn held_words(id: &ObjectId, hold: &Hold) -> String {
    match hold.until {
        Some(until) => format!("held: {id} until {until}"),
        None => format!("not held: {id}: until when cannot be read"),
    }
}

/// Ways back by hand.
impl Engine {
    fn undo(&mut self, source: SourceId, id: &ObjectId, token: &Arc<str>, to: Option<Arc<str>>) -> Answer {
        let release = self.shown(id).and_then(|live| live.release.as_ref());
        let Some(from) = release.map(|release| release.revision.clone()) else {
            return Answer::Now(format!("nothing to undo: {id} shows no content of a revision"));
        };
        if let Some(unit) = self.replaced(source, id).filter(|_| to.is_none()) {
            return Answer::Now(self.take_back(source, id, unit));
        }
        let objects = self.brought_together(source, id, &from);
        let undo = Undo { token: token.clone(), id: id.clone(), source, from, to, objects };
        self.orders.undos.insert(token.clone(), undo);
        Answer::Later
    }

    /// The unit that brought the content that an object shows, as far as its contents are still there.
    fn replaced(&self, source: SourceId, id: &ObjectId) -> Option<Unit> {
        let shows = |id: &ObjectId, member: &Member| match member.content {
            Some(content) => self.shows(id, content),
            None => self.shown(id).is_none(),
        };
        let past = &self.rollouts.book.as_ref()?.past;
        let brought = |unit: &&Unit| {
            let member = unit.members.get(id).filter(|member| member.content.is_some());
            let readable = !unit.members.values().any(Member::is_unreadable);
            unit.applyset == self.applysets[source]
                && readable
                && member.is_some_and(|member| shows(id, member))
        };
        let mut unit = past.iter().rev().find(brought)?.clone();
        unit.members.retain(|id, member| shows(id, member));
        Some(unit)
    }

    /// Goes back to what was in force before a unit.
    fn take_back(&mut self, source: SourceId, id: &ObjectId, mut unit: Unit) -> String {
        let unknown =
            |(id, member): &(&ObjectId, &Member)| member.good == Good::Unknown && self.has_left(id, member);
        if let Some((lost, _)) = unit.members.iter().find(unknown) {
            return format!("nothing to undo: nobody knows what {lost} was before; name a revision");
        }
        let to = match unit.members.get(id).map(|member| &member.good) {
            Some(Good::Release(good)) => good.revision.short().to_owned(),
            _ => format!("what was before {}", unit.revision.short()),
        };
        for (id, member) in &mut unit.members {
            member.content = self.wanted_hash(source, id);
        }
        let is_asked_for = |member: &Member| matches!(&member.good, Good::Release(good) if Some(good.hash) == member.content);
        if unit.members.get(id).is_some_and(is_asked_for) {
            return format!("nothing to undo: the newest revision asks for {id} as it was in {to}");
        }
        self.undone(source, id, unit, &to)
    }

    pub(super) fn wanted_hash(&self, source: SourceId, id: &ObjectId) -> Option<Hash> {
        match self.sources[source].catalog.want(id) {
            Some(Want::Object(desired)) => Some(desired.hash),
            _ => None,
        }
    }

    fn undone(&mut self, source: SourceId, id: &ObjectId, unit: Unit, to: &str) -> String {
        let from = unit.revision.short().to_owned();
        let words = format!("undone: revision {from} of {id} ({}) goes back to {to}", objects(&unit));
        let cause = format!("revision {from} undone by hand").into();
        self.reject_by_hand(source, Rejection { unit, way: Way::Back, cause });
        words
    }

    /// The objects of a source that one revision brought and that are connected with this one.
    fn brought_together(&self, source: SourceId, id: &ObjectId, revision: &Revision) -> Vec<ObjectId> {
        let brought = |other: &ObjectId| {
            let live = self.shown(other)?;
            let same = live.release.as_ref().is_some_and(|release| release.revision == *revision);
            (same && self.source_of(live) == Some(source)).then_some(())
        };
        let mut units = Units::default();
        let nodes: Vec<(&ObjectId, &Entry)> =
            self.entries().filter(|(other, _)| brought(other).is_some()).collect();
        for (other, _) in &nodes {
            units.add(other);
        }
        for (other, entry) in &nodes {
            let contents = entry.want().map(|(_, want)| want).into_iter().chain(entry.accepted.known());
            for need in contents.flat_map(|content| content.needs.iter().chain(&content.after)) {
                if units.has(need) {
                    units.join(other, need);
                }
            }
        }
        let mut found: Vec<ObjectId> = nodes
            .iter()
            .map(|(other, _)| *other)
            .filter(|other| units.together(other, id))
            .cloned()
            .collect();
        found.sort();
        found
    }

    /// The ways back whose contents are to be looked up.
    pub fn undos(&self) -> impl Iterator<Item = &Undo> {
        self.orders.undos.values()
    }

    /// What a way back leads to was looked up, or why it cannot be had, in words.
    pub fn looked_back(&mut self, token: &str, past: Result<Past, String>) {
        let Some(undo) = self.orders.undos.remove(token) else { return };
        let release = self.shown(&undo.id).and_then(|live| live.release.clone());
        let Some(release) = release.filter(|release| release.revision == undo.from) else {
            // Something else is in force by now: it is looked up again.
            self.orders.stale = true;
            return;
        };
        let words = match past {
            Ok(past) => self.go_back(&undo, &release, &past),
            Err(why) => format!("nothing to undo: {why}"),
        };
        self.answer(undo.source, &undo.token, words);
    }

    fn go_back(&mut self, undo: &Undo, shown: &Release, past: &Past) -> String {
        let (id, to) = (&undo.id, past.revision.short());
        let wanted = |id: &ObjectId| self.wanted_hash(undo.source, id);
        let target = past.contents.get(id);
        if target.is_some_and(|target| target.is_release(shown.hash)) {
            return format!("nothing to undo: {id} is in revision {to} as it is now");
        }
        if target.is_some_and(|target| wanted(id) == Some(target.hash)) {
            return format!("nothing to undo: the newest revision asks for {id} as it is in revision {to}");
        }
        let member = |id: &ObjectId| {
            let good = past.contents.get(id).map_or(Good::Absent, |desired| {
                Good::Release(Release { hash: desired.hash, revision: past.revision.clone() })
            });
            (id.clone(), Member { content: wanted(id), good, restarted: None })
        };
        let unit = Unit {
            applyset: self.applysets[undo.source].clone(),
            revision: undo.from.clone(),
            members: undo.objects.iter().map(member).collect(),
        };
        self.undone(undo.source, id, unit, to)
    }
}

/// What the parent is to say.
impl Engine {
    /// The acknowledgements that a source's parent should say, where those are not the ones that it says.
    pub fn next_acknowledged(&self, source: SourceId) -> Option<Vec<Acknowledged>> {
        let known = &self.sources[source].inventory.as_ref()?.acknowledged;
        let mut answers = self.orders.answers.iter().filter(|(of, _)| *of == source).peekable();
        answers.peek()?;
        let mut next = known.clone();
        for (_, answer) in answers {
            next.retain(|one| one.token != answer.token);
            next.push(answer.clone());
        }
        if next.len() > MOST && self.knows_enough(source) {
            // What still stands on an object would be done again, were it forgotten.
            let there = self.tokens(source);
            let mut surplus = next.len() - MOST;
            next.retain(|one| {
                let goes = surplus > 0 && !there.contains(&one.token);
                surplus -= usize::from(goes);
                !goes
            });
        }
        (next != *known).then_some(next)
    }

    /// The parent says something new.
    pub(super) fn told_by_parent(&mut self, source: SourceId) {
        self.orders.stale = true;
        let Some(inventory) = &self.sources[source].inventory else { return };
        let told = |answer: &Acknowledged| inventory.acknowledged.contains(answer);
        self.orders.answers.retain(|(of, answer)| *of != source || !told(answer));
    }
}
