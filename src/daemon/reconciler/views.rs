//! What an object shows beside what is asked for, for people who look.
//!
//! **Invariant:** the loop only says what is to be compared. Whoever asks waits for the API server, and nobody else
//! does; what leaves here is masked.

use std::sync::Arc;

use serde_json::Value;

use super::super::act::{Hands, blocking};
use super::Reconciler;
use crate::change;
use crate::cluster::Kind;
use crate::engine::{Form, Guard, Release, ReleaseClaim, Replicas, Shared, Uid, Want};
use crate::object::{ObjectId, Revision, text_at};
use crate::report::{Compared, ObjectStatus, Phase};

/// All that it takes to compare an object.
pub(super) struct Glance {
    id: ObjectId,
    hands: Hands,
    kind: Option<Arc<Kind>>,
    want: Wanted,
    form: Form,
}

/// What is asked for.
enum Wanted {
    Content(Shared),
    /// No source asks for it.
    Nothing,
    /// It cannot be told, for this reason.
    Unknown(&'static str),
}

impl Reconciler {
    /// What it takes to compare an object, from the facts of this moment.
    pub(super) fn glance(&self, id: &ObjectId) -> Glance {
        let wants = self.engine.entry(id).map(|entry| &entry.wants[..]).unwrap_or_default();
        // What went back is as its older content has it. People ask what the newest revision wants.
        let newest = match wants {
            [(source, _)] => self.engine.source(*source).catalog.want(id).map(|want| (*source, want)),
            _ => None,
        };
        let wants = newest.as_ref().map_or(wants, std::slice::from_ref);
        let has_owner = self.engine.entry(id).is_some_and(|entry| entry.want().is_some());
        let want = match wants {
            [] => Wanted::Nothing,
            [(_, Want::Object(desired))] => Wanted::Content(desired.clone()),
            [(_, Want::Object(desired)), ..] if has_owner => Wanted::Content(desired.clone()),
            [(_, Want::Held(_))] => Wanted::Unknown("what its manifest asks for cannot be used"),
            _ => Wanted::Unknown("several sources ask for it"),
        };
        let live = self.engine.shown(id);
        let form = Form {
            // Others own it, as an autoscaler does.
            replicas: if live.is_some_and(|live| live.replicas_ceded) {
                Replicas::Left
            } else {
                Replicas::AsWritten
            },
            // A step only holds up what is asked for.
            overlay: None,
            started: live.and_then(|live| live.started),
        };
        Glance { id: id.clone(), hands: self.hands_for(id), kind: self.kind_of(id), want, form }
    }

    /// Whether a write of an object may change anything.
    pub(super) fn may_differ(&self, object: &ObjectStatus) -> bool {
        let differs =
            || self.engine.entry(&object.object.id()).is_some_and(|entry| entry.candidate().is_some());
        match object.phase {
            Phase::LeftAlone => false,
            Phase::Settled | Phase::Progressing | Phase::Failed => differs(),
            _ => true,
        }
    }
}

impl Glance {
    /// Asks the API server.
    pub(super) async fn compare(self) -> Compared {
        let noted = |note: String| Compared { note: Some(note), ..Compared::default() };
        let Some(kind) = self.kind.clone() else {
            return noted("the server has no such kind now".to_owned());
        };
        let live = match self.hands.cluster.get(&kind, &self.id).await {
            Ok(live) => live,
            Err(error) => return noted(error.reason()),
        };
        let (wanted, note) = match &self.want {
            Wanted::Content(want) => self.wanted(&kind, want, live.as_ref()).await,
            Wanted::Nothing => (None, Some("no source asks for it".to_owned())),
            Wanted::Unknown(why) => (None, Some((*why).to_owned())),
        };
        let (before, after) = change::presentable_pair(&self.id, live.as_ref(), wanted.as_ref());
        let side = |side: &Option<Value>| side.clone().unwrap_or_default();
        let difference = match (&self.want, &after) {
            (Wanted::Nothing, _) | (_, Some(_)) => change::unified(&side(&before), &side(&after)),
            // What it would become is not known, and that is not nothing.
            (_, None) => String::new(),
        };
        let text = |side: Option<Value>| side.map(|side| change::yaml(&side));
        Compared { live: text(before), wanted: text(after), difference, note }
    }

    /// The object as a write would make it.
    async fn wanted(
        &self,
        kind: &Kind,
        want: &Shared,
        live: Option<&Value>,
    ) -> (Option<Value>, Option<String>) {
        let release = Release { hash: self.form.hash(want), revision: Revision::new("") };
        let claim = ReleaseClaim { release, seal: None };
        let (contents, content, form, shown) =
            (self.hands.contents.clone(), want.clone(), self.form, live.cloned());
        let body = blocking(move || match shown {
            Some(live) => contents.body_for(&content, &claim, form, &live).map(|(body, _)| body),
            None => contents.body(&content, &claim, form),
        });
        let body = match body.await {
            Ok(body) => body,
            Err(error) => return (None, Some(error.to_string())),
        };
        let uid = live.map(|live| Uid(text_at(live, &["metadata", "uid"]).into()));
        let guard = uid.map_or(Guard::Absent, Guard::Uid);
        match self.hands.cluster.dry_run(kind, &self.id, &body, live, &guard).await {
            Ok(after) => (Some(after), None),
            Err(error) => {
                let laid = live.map_or_else(|| body.clone(), |live| change::laid_over(live, &body));
                (Some(laid), Some(format!("not from the API server, which says: {}", error.reason())))
            }
        }
    }
}
