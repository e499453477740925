//! Telling what happens, each thing once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::super::feed::LastLook;
use super::super::inventory::{Known, pending_prunes};
use super::{Reconciler, Until};
use crate::cluster::Parent;
use crate::engine::{Authored, Course, Judgement, MOST_STATES, OptOut, Reason, SourceId, Turn, Writes};
use crate::object::{Hash, ObjectId, Revision, duration_text};
use crate::report::{
    Draft, Ended, Happening, Recorder, Regarding, SourceStatus, SourceTimes, Stand, Status, Tale, Told,
    brief, deletions_wait, well_words,
};

/// What was told, and to whom.
#[derive(Debug, Default)]
pub(super) struct Chronicle {
    recorder: Option<Recorder>,
    /// Rollouts that go on, since when.
    began: HashMap<ObjectId, (Hash, Instant)>,
    /// Why the last rollout of a workload failed, as it was told.
    failed: HashMap<ObjectId, Arc<str>>,
    sources: Vec<SourceTold>,
}

/// What was told of one source.
#[derive(Debug, Default)]
struct SourceTold {
    /// When it was last looked at.
    looked: LastLook,
    /// Since when its revision is in force.
    since: Option<Timestamp>,
    /// The revision of which all was as wanted.
    settled: Option<Revision>,
    /// Whether this process has done anything for the revision: what an earlier one has settled is no news.
    worked: bool,
    /// What an earlier process has told.
    earlier: Earlier,
    /// Why it was not read whole.
    incomplete: Option<String>,
    /// What is to be deleted, and waits for a person.
    pending: BTreeSet<ObjectId>,
    /// What somebody's annotation takes out of our hands, with its key.
    opted_out: BTreeMap<ObjectId, &'static str>,
    /// Whether more is paused or held than its parent says.
    is_crowded: bool,
}

/// What an earlier process has told of a source.
#[derive(Debug, Default)]
enum Earlier {
    /// There was none.
    #[default]
    Nobody,
    /// That all of this revision was as wanted, if of any.
    Settled(Option<Revision>),
}

impl Earlier {
    /// The revision, if there was a process that told it.
    fn settled(&self) -> Option<&Revision> {
        match self {
            Self::Settled(revision) => revision.as_ref(),
            Self::Nobody => None,
        }
    }
}

impl SourceTold {
    /// That all was as wanted holds no longer: when it does again, it is news.
    fn unsettle(&mut self) {
        (self.settled, self.earlier, self.worked) = (None, Earlier::Settled(None), true);
    }

    /// Another revision is in force than before.
    fn moves_on(&mut self, before: Option<&Revision>) {
        // A commit that comes while it runs is worth an answer, even where it changes nothing, or was in force before.
        if before.is_some() {
            self.unsettle();
        } else {
            (self.settled, self.worked) = (None, false);
        }
    }

    /// Pods are being replaced, or were. A process that was killed may have told of a failure and not written it down:
    /// success is told once too often rather than not at all.
    fn rolls(&mut self) {
        if self.settled.is_none() {
            self.unsettle();
        }
    }

    /// Whether it is news that all of a revision is as wanted, which is told then.
    fn is_news(&mut self, head: &Revision, is_seen: bool) -> bool {
        if self.settled.as_ref() == Some(head) {
            return false;
        }
        if self.earlier.settled() == Some(head) {
            self.settled = Some(head.clone());
            return false;
        }
        // An earlier process has ended in the middle, or had not seen the revision.
        let is_left = matches!(self.earlier, Earlier::Settled(_));
        if !self.worked && is_left && !is_seen {
            return false;
        }
        self.settled = Some(head.clone());
        self.worked || is_left
    }
}

impl Chronicle {
    /// Of so many sources.
    pub(super) fn of(sources: usize) -> Self {
        Self { sources: (0..sources).map(|_| SourceTold::default()).collect(), ..Self::default() }
    }

    /// Where the reader of a source says when it has looked.
    pub(super) fn last_look(&self, source: SourceId) -> LastLook {
        self.sources[source].looked.clone()
    }

    /// What an earlier process has told is not told again, and what it left to tell is told.
    pub(super) fn go_on(&mut self, source: SourceId, parent: Option<&Parent>) {
        let (Some(told), Some(parent)) = (self.sources.get_mut(source), parent) else { return };
        told.earlier = Earlier::Settled(Stand::settled_in(&parent.data));
        told.pending = pending_prunes(parent).into_iter().map(|pending| pending.id).collect();
    }

    /// Why a rollout failed, as it was told, where these words repeat it.
    fn told_in(&self, words: &str) -> Option<Arc<str>> {
        self.failed.values().find(|why| words.contains(&***why)).cloned()
    }

    /// What is known of the sources' times.
    pub(super) fn times(&self) -> Vec<SourceTimes> {
        let times = |told: &SourceTold| SourceTimes { since: told.since, looked: told.looked.get() };
        self.sources.iter().map(times).collect()
    }
}

impl Reconciler {
    /// Records what happens.
    #[must_use]
    pub fn recorded(mut self, recorder: Recorder) -> Self {
        self.chronicle.recorder = Some(recorder);
        self
    }

    /// Tells what became of rollouts.
    pub(super) fn tell_turns(&mut self, now: Instant) {
        for turn in self.engine.take_turns() {
            let revision = self.engine.entry(&turn.id).and_then(|entry| entry.brought.clone());
            let words = revision.as_ref().map_or_else(String::new, |revision| revision.short().to_owned());
            let is_known = turn.back.as_deref().is_some_and(|why| self.chronicle.told_in(why).is_some());
            let (happening, message) = turn_words(&turn, &words, is_known);
            if let Course::Failed(why) = &turn.course {
                self.chronicle.failed.insert(turn.id.clone(), why.clone());
            } else if matches!((&turn.course, &turn.back), (Course::Succeeded, None)) {
                self.chronicle.failed.remove(&turn.id);
            }
            let took = self.time_turn(&turn, now);
            let message = match took {
                Some(took) => format!("{message}, after {}", duration_text(took)),
                None => message,
            };
            let told = &mut self.chronicle.sources[turn.source];
            told.rolls();
            if happening.is_warning() {
                told.unsettle();
            }
            // What goes back is news of the commit that failed.
            let head = self.engine.source(turn.source).head.clone();
            let about = if turn.back.is_some() { head } else { revision };
            self.notice(happening, turn.source, Some(&turn.id), (message, about));
        }
    }

    /// Measures how long a rollout took that has ended now.
    fn time_turn(&mut self, turn: &Turn, now: Instant) -> Option<std::time::Duration> {
        let name = self.engine.source(turn.source).name.clone();
        let ended = match (&turn.course, &turn.back) {
            (Course::Began, _) => {
                if self.chronicle.began.insert(turn.id.clone(), (turn.content, now)).is_some() {
                    self.metrics.rolled(&name, Ended::Superseded, None);
                }
                return None;
            }
            (Course::Succeeded, None) => Ended::Succeeded,
            (Course::Succeeded, Some(_)) => Ended::RolledBack,
            (Course::Failed(_), _) => Ended::Failed,
        };
        let began = self.chronicle.began.remove(&turn.id).filter(|(content, _)| *content == turn.content);
        // What an earlier process began has no beginning here.
        let took = began.map(|(_, began)| now.duration_since(began));
        self.metrics.rolled(&name, ended, took);
        took.map(|took| std::time::Duration::from_secs(took.as_secs()))
    }

    /// Tells what became of an object: all who are told of it as it happens, and who listens to this loop alone.
    pub(super) fn tell(&mut self, id: &ObjectId, told: Told) {
        let happening = happening_of(&told);
        self.tell_as(id, told, happening);
    }

    /// Tells that somebody else's change was undone.
    pub(super) fn tell_repair(&mut self, id: &ObjectId, told: Told) {
        self.tell_as(id, told, Some(Happening::DriftRepaired));
    }

    fn tell_as(&mut self, id: &ObjectId, told: Told, happening: Option<Happening>) {
        let again = told == Told::Created && self.told.get(id) == Some(&Told::Recreating);
        let told = if again { Told::Recreated } else { told };
        if self.until != Until::Stopped && !matches!(told, Told::Waiting(_) | Told::Unhealthy(_)) {
            self.told.insert(id.clone(), told.clone());
        }
        let (source, revision) = self.whence(happening, id);
        if let (Some(happening), Some(source)) = (happening, source) {
            self.chronicle.sources[source].worked |= is_work(happening);
            self.notice(happening, source, Some(id), (message(happening, &told), revision.clone()));
        }
        let source = source.map(|source| self.engine.source(source).name.clone());
        let known = match &told {
            Told::Refused(Reason::Rejected(words)) => self.chronicle.told_in(words),
            _ => None,
        };
        let _ = self.listener.send(Tale { id: id.clone(), told, happening, source, revision, known });
    }

    /// The source and the revision that what became of an object follows from.
    fn whence(&self, happening: Option<Happening>, id: &ObjectId) -> (Option<SourceId>, Option<Revision>) {
        let entry = self.engine.entry(id);
        let wanting = entry.and_then(|entry| entry.wants.first()).map(|(source, _)| *source);
        let source = wanting.or_else(|| self.engine.source_of(self.engine.live(id)?));
        let head = || self.engine.source(source?).head.clone();
        let brought = || entry.and_then(|entry| entry.brought.clone());
        let revision = match happening {
            Some(
                Happening::Created | Happening::Configured | Happening::DriftRepaired | Happening::Recreated,
            ) => brought().or_else(head),
            _ => head(),
        };
        (source, revision)
    }

    /// Tells that a source was read, and whether whole.
    pub(super) fn notice_read(&mut self, source: SourceId, before: Option<&Revision>) {
        let state = self.engine.source(source);
        let (head, incomplete) = (state.head.clone(), state.incomplete.as_ref().map(ToString::to_string));
        let told = &mut self.chronicle.sources[source];
        let incomplete = if told.incomplete == incomplete {
            None
        } else {
            told.incomplete.clone_from(&incomplete);
            incomplete
        };
        if head.as_ref() != before {
            told.since = Some(Timestamp::now());
            told.moves_on(before);
            let words = head.as_ref().map_or_else(String::new, |head| head.short().to_owned());
            let from = before.map_or_else(String::new, |before| format!(", after {}", before.short()));
            let message = format!("revision {words} is in force{from}");
            self.notice(Happening::RevisionRead, source, None, (message, head.clone()));
        }
        if let Some(why) = incomplete {
            self.notice(Happening::SourceIncomplete, source, None, (why, head));
        }
    }

    /// Tells that what rhumb keeps for itself cannot be read.
    pub(super) fn notice_unreadable(&self, source: SourceId, why: String) {
        self.notice(
            Happening::RecordUnreadable,
            source,
            None,
            (why, self.engine.source(source).head.clone()),
        );
    }

    /// Tells what holds for sources as a whole, and is new.
    pub(super) fn notice_stand(&mut self, status: &Status) {
        for (source, stand) in status.sources.iter().enumerate() {
            self.notice_settled(source, stand);
            self.notice_pending(source, stand);
            self.notice_opt_outs(source);
            self.tell_crowd(source);
        }
    }

    /// The revision in force, where it was told that all of it is as wanted.
    pub(super) fn settled(&self, source: SourceId) -> Option<&Revision> {
        let (told, head) = (&self.chronicle.sources[source], self.engine.source(source).head.as_ref()?);
        [told.settled.as_ref(), told.earlier.settled()].into_iter().flatten().find(|settled| *settled == head)
    }

    fn notice_settled(&mut self, source: SourceId, stand: &SourceStatus) {
        let Some(head) = self.engine.source(source).head.clone() else { return };
        let is_seen = self.is_seen(source);
        let is_unread = self.ledgers[source].parent == Known::Unread;
        if !stand.healthy || is_unread || self.engine.is_anything_moving(source) {
            return;
        }
        if !self.chronicle.sources[source].is_news(&head, is_seen) {
            return;
        }
        let message = format!("revision {}: all {}", head.short(), well_words(&stand.objects));
        self.notice(Happening::RevisionSettled, source, None, (message, Some(head)));
    }

    fn notice_pending(&mut self, source: SourceId, stand: &SourceStatus) {
        let is_seen = self.is_seen(source);
        let told = &mut self.chronicle.sources[source].pending;
        let waiting: BTreeMap<_, _> = self
            .engine
            .judgements(source)
            .filter_map(|(id, judged)| match judged {
                Judgement::Confirm(why) => Some((id, why)),
                _ => None,
            })
            .collect();
        if is_seen {
            // What is not seen yet waits as before.
            told.retain(|id| waiting.contains_key(id));
        }
        let new = waiting.iter().find(|(id, _)| !told.contains(**id));
        let Some(first) = new.map(|(id, why)| format!("{id}: {why}")) else { return };
        told.extend(waiting.into_keys().cloned());
        let (count, name) = (stand.prune_waiting, &stand.name);
        let deletions = deletions_wait(count);
        let message = format!(
            "{deletions} for a person ({first}); `rhumb prune list --name {name}` shows them, `rhumb prune confirm --name {name} OBJECT...` confirms them"
        );
        let head = self.engine.source(source).head.clone();
        self.notice(Happening::PruneWaiting, source, None, (message, head));
    }

    /// Tells which objects somebody takes out of our hands, once when it begins and once when it ends.
    fn notice_opt_outs(&mut self, source: SourceId) {
        let now = self.engine.opt_outs(source, Instant::now());
        let known = std::mem::replace(&mut self.chronicle.sources[source].opted_out, now.clone());
        let head = self.engine.source(source).head.clone();
        let is_denied = self.engine.source(source).opt_out == OptOut::Denied;
        for (id, word) in now.iter().filter(|(id, word)| known.get(*id) != Some(*word)) {
            let message = if is_denied {
                format!("somebody put {word} on it, without effect: optOut of the source is denied")
            } else {
                format!(
                    "somebody put {word} on it: it is neither changed nor repaired while that stands there"
                )
            };
            self.notice(Happening::OptedOut, source, Some(id), (message, head.clone()));
        }
        for (id, word) in known.iter().filter(|(id, _)| !now.contains_key(*id)) {
            let message = format!("{word} does not keep rhumb away any more");
            self.notice(Happening::OptOutEnded, source, Some(id), (message, head.clone()));
        }
    }

    /// Says once that more pauses and holds stand than are acknowledged.
    fn tell_crowd(&mut self, source: SourceId) {
        let untold = self.engine.untold_states(source);
        let was_crowded = std::mem::replace(&mut self.chronicle.sources[source].is_crowded, untold > 0);
        if untold > 0 && !was_crowded {
            let name = &self.engine.source(source).name;
            tracing::warn!(
                source = %name,
                "{untold} pauses and holds of its objects are in effect and not acknowledged: {MOST_STATES} are at most"
            );
        }
    }

    pub(super) fn notice(
        &self,
        reason: Happening,
        source: SourceId,
        id: Option<&ObjectId>,
        (message, revision): (String, Option<Revision>),
    ) {
        let Some(recorder) = &self.chronicle.recorder else { return };
        let regarding = || {
            let parent = self.ledgers[source].parent.parent().and_then(|parent| parent.known.as_ref());
            let object = id.and_then(|id| {
                let uid = self.engine.shown(id).map(|live| live.uid.clone());
                Some((id.clone(), self.version(&id.group_kind())?, uid))
            });
            Regarding { object, parent: parent.map(|(uid, _)| uid.clone()) }
        };
        let writes = self.engine.source(source).writes == Writes::Allowed;
        // Whoever made the commit did not do what somebody else did in the cluster.
        let is_of_commit = !matches!(
            reason,
            Happening::DriftRepaired
                | Happening::OptedOut
                | Happening::OptOutEnded
                | Happening::OrderDone
                | Happening::OrderIgnored
                | Happening::RecordUnreadable
        );
        let authored = revision.as_ref().filter(|_| is_of_commit);
        let authored = authored.and_then(|revision| self.engine.author(source, revision)).cloned();
        let (author, subject) = authored.map(|Authored { author, subject }| (author, subject)).unzip();
        let draft = Draft {
            reason,
            source: self.engine.source(source).name.clone(),
            object: id.cloned(),
            regarding: writes.then(regarding),
            message,
            revision: revision.as_ref().map(ToString::to_string),
            author,
            subject,
        };
        recorder.record(Timestamp::now(), draft);
    }
}

/// What is told of a rollout, of which these words name the revision. Why it goes back is told once.
fn turn_words(turn: &Turn, revision: &str, is_known: bool) -> (Happening, String) {
    match (&turn.course, &turn.back) {
        (Course::Began, None) => (Happening::RolloutStarted, format!("revision {revision}")),
        (Course::Began, Some(_)) if is_known => {
            (Happening::RolloutStarted, format!("it goes back to revision {revision}"))
        }
        (Course::Began, Some(why)) => {
            (Happening::RolloutStarted, format!("{why}; it goes back to revision {revision}"))
        }
        (Course::Succeeded, None) => {
            (Happening::RolloutSucceeded, format!("revision {revision} is rolled out"))
        }
        (Course::Succeeded, Some(why)) => {
            let why = if is_known { brief(why) } else { why.as_ref().into() };
            (Happening::RolledBack, format!("{why}; it is back at revision {revision}"))
        }
        (Course::Failed(why), None) => (Happening::RolloutFailed, format!("revision {revision}: {why}")),
        (Course::Failed(why), Some(_)) => {
            (Happening::RolloutFailed, format!("going back failed too: revision {revision}: {why}"))
        }
    }
}

/// What kind of event it is that this became of an object; none where nobody else need be told.
fn happening_of(told: &Told) -> Option<Happening> {
    Some(match told {
        Told::Created => Happening::Created,
        Told::Configured | Told::Repaired(_) => Happening::Configured,
        Told::Pruned => Happening::Pruned,
        Told::Recreating => Happening::Recreated,
        Told::Waiting(Reason::Fight(..)) | Told::Refused(Reason::Owned(_) | Reason::NotAdopted) => {
            Happening::Conflict
        }
        // Its rollout has told it.
        Told::Refused(Reason::Rejected(_)) => return None,
        Told::Refused(_) => Happening::Refused,
        _ => return None,
    })
}

fn message(happening: Happening, told: &Told) -> String {
    match told {
        Told::Created if happening == Happening::DriftRepaired => "somebody else had deleted it".to_owned(),
        Told::Repaired(who) => format!("{who}; put back"),
        _ if happening == Happening::DriftRepaired => "somebody else had changed it".to_owned(),
        Told::Waiting(reason) | Told::Refused(reason) => reason.to_string(),
        done => done.to_string(),
    }
}

/// Whether an object was brought nearer to what its revision asks for.
fn is_work(happening: Happening) -> bool {
    matches!(happening, Happening::Created | Happening::Configured | Happening::Pruned | Happening::Recreated)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source of which an earlier process has told that this revision had settled.
    fn after(settled: &str) -> SourceTold {
        let settled = Some(settled).filter(|text| !text.is_empty()).map(Revision::new);
        let mut told = SourceTold { earlier: Earlier::Settled(settled), ..SourceTold::default() };
        told.moves_on(None);
        told
    }

    fn settles(told: &mut SourceTold, head: &str) -> bool {
        told.is_news(&Revision::new(head), true)
    }

    #[test]
    fn a_success_is_told_once_whoever_told_it() {
        // The same process.
        let mut told = after("");
        assert!(settles(&mut told, "a"));
        assert!(!settles(&mut told, "a"), "it was told");
        // One that finds nothing to do.
        assert!(!settles(&mut after("a"), "a"));
        // One that makes again what somebody has deleted meanwhile, as the same process does without a word.
        let mut told = after("a");
        told.worked = true;
        assert!(!settles(&mut told, "a"));
        // What was left to tell.
        assert!(settles(&mut after("a"), "b"));
        // Nobody knows yet whether all of it is there.
        assert!(!after("a").is_news(&Revision::new("b"), false));
    }

    #[test]
    fn success_after_a_failure_is_told_again() {
        for mut told in [after(""), after("a")] {
            settles(&mut told, "a");
            told.unsettle();
            assert!(settles(&mut told, "a"));
            assert!(!settles(&mut told, "a"));
        }
        // One that fails before anything was found to be well.
        let mut told = after("a");
        told.unsettle();
        assert!(settles(&mut told, "a"));
        // The process before may have been killed between a failure and writing it down.
        let mut told = after("a");
        told.rolls();
        assert!(settles(&mut told, "a"));
        // A repair of pods after all was told is no failure.
        told.rolls();
        assert!(!settles(&mut told, "a"));
    }

    #[test]
    fn a_revision_that_comes_back_is_told_again() {
        for mut told in [after(""), after("a")] {
            settles(&mut told, "a");
            for (before, head) in [("a", "b"), ("b", "a")] {
                told.moves_on(Some(&Revision::new(before)));
                assert!(settles(&mut told, head), "{head}");
            }
            // Also where the one between never settled.
            told.moves_on(Some(&Revision::new("a")));
            told.moves_on(Some(&Revision::new("b")));
            assert_eq!(told.earlier.settled(), None, "what is written down says so");
            assert!(settles(&mut told, "a"));
        }
    }
}
