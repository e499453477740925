//! What a write would do to pods, by the server's own word: asked before the budget is.
//!
//! A manifest alone cannot tell. A field that is spelled out where the server filled it in before restarts nothing;
//! a change beside the template, put there together with what somebody else changed in it, does. So each change of a
//! workload that serves is tried by a dry run first. The answer holds for one content, one incarnation and one
//! generation of the object, and the write that relies on it is bound to the version that shows them.

use super::action::{Action, Apply, Decision, Guard, Purpose, Restarts};
use super::decide::serving;
use super::state::{Engine, Foresight};
use super::stepping::under;
use super::{Desired, Live, Uid};
use crate::change::{Impact, ImpactKind};
use crate::object::{Hash, ObjectId};

/// The server's answer about one content.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreseen {
    /// The content.
    pub content: Hash,
    /// The incarnation.
    pub uid: Uid,
    /// The generation of the object that it was compared with.
    pub generation: i64,
    /// What it would do.
    pub impact: Impact,
}

impl Engine {
    /// Turns a write whose effect on pods is not known yet into the question for it, and says of one that is known
    /// whether it takes from the budget.
    pub(super) fn foreseen(&self, id: &ObjectId, decision: Decision) -> Decision {
        let Decision { action: Action::Apply(apply), reason, again } = decision else { return decision };
        let decided = |action| Decision { action, reason, again };
        let live = self.shown(id).filter(|live| self.is_asked_about(id, live, &apply));
        let Some(live) = live else { return decided(Action::Apply(apply)) };
        match self.impact(id, &apply.want, live) {
            None => decided(Action::DryRun(apply)),
            Some(impact) => {
                let guard = Guard::Exact(live.uid.clone(), live.rv);
                let restarts = if restarts(impact) { Restarts::Maybe } else { Restarts::No };
                decided(Action::Apply(Apply { guard, restarts, ..apply }))
            }
        }
    }

    /// Whether the server is asked what a write does: not in the middle of a step, whose overlay alone holds the pods
    /// back, nor about a repair, which somebody who writes again and again would keep from ever going out.
    fn is_asked_about(&self, id: &ObjectId, live: &Live, apply: &Apply) -> bool {
        let asks = matches!(apply.purpose, Purpose::Change | Purpose::Adopt | Purpose::Transfer);
        // Other data in the template are another template.
        asks && !live.is_restarted_by(apply.form.started)
            && self.foresight == Foresight::Now
            && serving(id, live)
            && !is_stepped(live)
    }

    /// What the server says that a content would do to an object as it is now; none where it was not asked.
    pub(super) fn impact(&self, id: &ObjectId, want: &Desired, live: &Live) -> Option<Impact> {
        let foreseen = self.entry(id)?.foreseen.as_deref().filter(|_| !is_stepped(live))?;
        let speaks = foreseen.content == want.hash
            && foreseen.uid == live.uid
            && foreseen.generation == live.generation;
        speaks.then_some(foreseen.impact)
    }

    /// Whether a content restarts pods of a workload that serves: by the server's answer, and by the contents as long
    /// as there is none.
    pub(super) fn would_restart(&self, id: &ObjectId, want: &Desired, live: &Live) -> bool {
        match self.impact(id, want, live) {
            Some(impact) => restarts(impact),
            None => self.entry(id).is_none_or(|entry| !entry.accepted.has_template_of(want)),
        }
    }

    /// Whether the server says that a content changes no pod, so that nothing holds its rollout.
    pub(super) fn leaves_pods(&self, id: &ObjectId, want: &Desired, live: &Live) -> bool {
        self.reconfigured(id).is_none() && self.impact(id, want, live).is_some_and(|impact| !restarts(impact))
    }

    /// Pods that the last content of which the server was asked restarts.
    pub(super) fn foreseen_pods(&self, id: &ObjectId) -> u32 {
        let foreseen = self.entry(id).and_then(|entry| entry.foreseen.as_deref());
        foreseen.map_or(0, |foreseen| foreseen.impact.pods)
    }

    /// The server has said what a content would do.
    pub(super) fn foresees(&mut self, id: &ObjectId, foreseen: Foreseen) {
        let guess = |engine: &Self| {
            let (live, entry) = (engine.shown(id)?, engine.entry(id)?);
            entry.want().map(|(_, want)| engine.would_restart(id, want, live))
        };
        let before = guess(self);
        if let Some(entry) = self.entries.get_mut(id) {
            entry.foreseen = Some(Box::new(foreseen));
            entry.failed = None;
        }
        if before != guess(self) {
            // Other objects may be released together now.
            self.restarting.clear();
        }
    }
}

fn restarts(impact: Impact) -> bool {
    matches!(impact.kind, ImpactKind::Restart | ImpactKind::Recreate)
}

fn is_stepped(live: &Live) -> bool {
    under(live).is_some_and(|overlay| overlay.step().is_some())
}
