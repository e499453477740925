//! What came of a write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::action::{Action, Apply, Purpose, Removal, Restarts};
use super::decide::FIGHT_WINDOW;
use super::entry::{Accepted, Looked, Refusal, Rule, Verified};
use super::state::Engine;
use super::{Cover, Foreseen, Live, RollPhase, Rv, is_workload};
use crate::object::{Class, GroupKind, ObjectId};

/// What the server answered to an apply that it carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The object after it.
    pub live: Live,
}

/// Why a write was not carried out.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Somebody wrote first, or what was to be changed is not there, or what was to be created is: decided
    /// again on a newer view, after this time.
    Conflict(Duration),
    /// The server refuses the content; the time after which it may accept it, none if never.
    Refused(Arc<str>, Rule, Option<Duration>),
    /// Nobody knows whether it was carried out; the time to wait.
    Unknown(Arc<str>, Duration),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Conflict(_) => f.write_str("somebody else wrote first"),
            Self::Refused(why, ..) | Self::Unknown(why, _) => f.write_str(why),
        }
    }
}

impl Failure {
    /// What kind of trouble it is.
    pub fn class(&self) -> Class {
        match self {
            Self::Conflict(_) => Class::Conflict,
            Self::Refused(_, Rule::Rights, _) => Class::Forbidden,
            Self::Refused(_, Rule::Webhook, _) | Self::Unknown(..) => Class::Transient,
            Self::Refused(_, Rule::Immutable | Rule::Other, _) => Class::Invalid,
        }
    }
}

/// What came of an action.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "few are alive at once, and the large one is the frequent one")]
pub enum Outcome {
    /// An apply was carried out, or changed nothing.
    Applied(Written),
    /// What an apply would do.
    Foreseen(Foreseen),
    /// A deletion was accepted.
    Deleted,
    /// It was not carried out.
    Failed(Failure),
}

impl Engine {
    /// Takes over what came of a write.
    pub fn outcome(&mut self, id: &ObjectId, action: &Action, outcome: Outcome, now: Instant) {
        if !matches!(action, Action::DryRun(_)) {
            self.rollouts.writing.remove(id);
        }
        match (action, outcome) {
            (Action::Apply(apply), Outcome::Applied(written)) => self.applied(id, apply, &written.live, now),
            (Action::Delete(_, rv, removal), Outcome::Deleted) => self.deleted(id, *rv, *removal, now),
            (_, Outcome::Failed(failure)) => self.failed(id, action, failure, now),
            (Action::DryRun(_), Outcome::Foreseen(foreseen)) => self.foresees(id, foreseen),
            (_, Outcome::Applied(_) | Outcome::Deleted | Outcome::Foreseen(_)) => {}
        }
        self.changed(id);
    }

    fn applied(&mut self, id: &ObjectId, apply: &Apply, answer: &Live, now: Instant) {
        let mut proven = answer.clone();
        self.prove(id, &mut proven);
        let nothing = apply.seen == Some(answer.rv);
        if apply.restarts == Restarts::Maybe {
            // An answer that changed nothing has nothing to come back whole from, unless another process wrote the
            // same before.
            let rolls = answer.rolling.is_some_and(|rolling| rolling.phase == RollPhase::Replacing);
            self.roll_answered(id, (!nothing || rolls).then_some(answer.rv));
            if nothing && !rolls {
                self.is_over_with(id);
            }
        }
        if is_workload(id) && apply.purpose != Purpose::Repair {
            self.released(id, apply);
        }
        self.permitted(id);
        let Some(entry) = self.entries.get_mut(id) else { return };
        if apply.purpose == Purpose::Create {
            entry.before = Some(apply.want.clone());
        }
        match std::mem::replace(&mut entry.accepted, Accepted::Known(apply.want.clone())) {
            Accepted::Known(before) if before.hash != apply.want.hash => entry.before = Some(before),
            _ => {}
        }
        entry.brought = Some(apply.revision.clone());
        entry.incarnation = Some(answer.uid.clone());
        (entry.refused, entry.failed, entry.foreseen) = (None, None, None);
        // Whatever the server tracks of our own apply is all that it will ever track of this content.
        entry.verified = Some(Verified {
            content: apply.form.hash(&apply.want),
            overlay: apply.form.overlay,
            started: apply.form.started,
            shape: answer.ours.clone(),
            values: answer.values,
            cover: Cover::Whole,
        });
        if nothing {
            return;
        }
        if apply.purpose == Purpose::Repair {
            entry.repairs.retain(|at| now.duration_since(*at) < FIGHT_WINDOW);
            entry.repairs.push(now);
        }
        entry.written = Some((answer.rv, now));
        entry.looked = Some(Looked::Found(Box::new(proven)));
    }

    /// The user may write one object: all of its kind and namespace that he was not allowed to are tried again.
    fn permitted(&mut self, id: &ObjectId) {
        for id in self.denied.remove(&rights(id)).unwrap_or_default() {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.refused = entry.refused.take().filter(|refusal| refusal.rule != Rule::Rights);
                self.dirty.push(id);
            }
        }
    }

    /// How many objects the user may not write.
    pub fn denied(&self) -> usize {
        self.denied.values().map(std::collections::BTreeSet::len).sum()
    }

    fn deleted(&mut self, id: &ObjectId, rv: Rv, removal: Removal, now: Instant) {
        let is_shown = self.live.contains_key(id);
        let Some(entry) = self.entries.get_mut(id) else { return };
        entry.failed = None;
        // Where the watch has told it before the answer, or never will, a look tells what is there now.
        entry.written = is_shown.then_some((Rv(rv.0 + 1), now));
        entry.looked = entry.looked.take().filter(|_| is_shown);
        entry.accepted = Accepted::Nothing;
        if removal == Removal::Recreate {
            entry.refused = None;
            // What comes after it gives the token back, also where nobody tells that it was gone.
            self.roll_answered(id, Some(Rv(rv.0 + 1)));
        }
    }

    fn failed(&mut self, id: &ObjectId, action: &Action, failure: Failure, now: Instant) {
        let seen = self.live.get(id).map(|live| live.rv);
        let written = match (&failure, seen) {
            // It may be rolling: the next view, or the next try, tells.
            (Failure::Unknown(..), Some(seen)) => Some(Rv(seen.0 + 1)),
            _ => None,
        };
        if !matches!(action, Action::DryRun(_)) {
            self.roll_unanswered(id, written);
        }
        let Some(entry) = self.entries.get_mut(id) else { return };
        match failure {
            Failure::Conflict(rest) => {
                // The view that this was decided on is known to be old: only a newer one decides again.
                entry.looked = None;
                entry.written = seen.map(|rv| (Rv(rv.0 + 1), now));
                entry.failed = (!rest.is_zero()).then(|| (now + rest, "somebody else wrote first".into()));
            }
            Failure::Refused(text, rule, after) => match action {
                Action::Apply(apply) | Action::DryRun(apply) => {
                    let retry = after.map(|after| now + after);
                    let text = if rule == Rule::Immutable { replaceable(&text) } else { text };
                    let content = apply.want.hash;
                    let before = entry.refused.take().filter(|before| before.content == content);
                    let times = before.map_or(0, |before| before.times).saturating_add(1);
                    entry.refused = Some(Box::new(Refusal { content, text, retry, rule, times }));
                    if rule == Rule::Rights {
                        self.denied.entry(rights(id)).or_default().insert(id.clone());
                    }
                    self.end_refused_return(id);
                }
                _ => entry.failed = after.map(|after| (now + after, text)),
            },
            Failure::Unknown(why, after) => {
                // The write may have been carried out: look before anything is repeated.
                if matches!(action, Action::Apply(apply) if apply.purpose == Purpose::Create) {
                    entry.looked = None;
                }
                entry.failed = Some((now + after, why));
            }
        }
    }
}

/// What roles speak of.
fn rights(id: &ObjectId) -> (GroupKind, Option<Arc<str>>) {
    (id.group_kind(), id.namespace().map(Arc::from))
}

/// What to do about a field that never changes stands in the reason itself.
pub fn replaceable(text: &str) -> Arc<str> {
    format!("{text}; with the annotation rhumb.dev/recreate: \"true\" it is deleted and created again").into()
}
