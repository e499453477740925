//! Carries an action out and says what came of it. Makes no choices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::contents::{self, Contents};
use super::drift::{self, Question};
use super::event::{Event, Trouble};
use crate::change;
use crate::cluster::{
    Cluster, Deleted, Denial, Error, Fault, Force, Kind, Looked as Found, Propagation, Reclaimed, Retry,
};
use crate::engine::{
    Action, Apply, Binds, Failure, Foreseen, Form, Guard, Looked, Outcome, Purpose, Removal, Rule, Rv, Uid,
    Written,
};
use crate::object::{ObjectId, at, text_at};
use crate::report::Told;

/// What actions are carried out with. Cheap to clone.
#[derive(Clone)]
pub(super) struct Hands {
    pub(super) cluster: Cluster,
    pub(super) contents: Contents,
}

impl Hands {
    /// Writes a content.
    pub(super) async fn apply(self, kind: Arc<Kind>, id: ObjectId, apply: Apply) -> Event {
        let force = if apply.guard == Guard::Absent { Force::No } else { Force::Yes };
        let (body, guard) = match self.prepared(&kind, &id, &apply).await {
            Ok(prepared) => prepared,
            Err(failure) => return Event::Done(id, Action::Apply(apply), Outcome::Failed(failure), None),
        };
        // Right before the write, as it takes over the entries that tell.
        let drift = drift::of_repair(&self.cluster, &self.contents, &kind, &id, &apply).await;
        let answer = self.cluster.apply(&kind, &id, &body, &guard, force).await;
        let (outcome, told) = match answer {
            Ok(applied) => {
                for warning in &applied.warnings {
                    tracing::warn!(object = %id, "the server warns: {warning}");
                }
                let told = match drift {
                    _ if applied.created => Told::Created,
                    Some(drift) => Told::Repaired(drift.into()),
                    None => Told::Configured,
                };
                (Outcome::Applied(Written { live: applied.live }), Some(told))
            }
            Err(error) => (Outcome::Failed(failure(&error)), None),
        };
        Event::Done(id, Action::Apply(apply), outcome, told)
    }

    /// Asks what a write would do to pods. What it would be is asked without overlay: that only holds it up.
    pub(super) async fn dry_run(self, kind: Arc<Kind>, id: ObjectId, apply: Apply) -> Event {
        let outcome = self.foreseen(&kind, &id, &apply).await;
        let outcome = outcome.map_or_else(Outcome::Failed, Outcome::Foreseen);
        Event::Done(id, Action::DryRun(apply), outcome, None)
    }

    async fn foreseen(&self, kind: &Kind, id: &ObjectId, apply: &Apply) -> Result<Foreseen, Failure> {
        let before = self.cluster.get(kind, id).await.map_err(|error| failure(&error))?;
        let before = before.ok_or(Failure::Conflict(Duration::ZERO))?;
        let claim = apply.claim();
        let (contents, want) = (self.contents.clone(), apply.want.clone());
        let (form, live) = (Form { overlay: None, ..apply.form }, before.clone());
        let body = blocking(move || contents.body_for(&want, &claim, form, &live)).await;
        let (body, _) = body.map_err(|error| Failure::Unknown(error.to_string().into(), Duration::ZERO))?;
        let uid = Uid(text_at(&before, &["metadata", "uid"]).into());
        let generation = at(&before, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
        let guard = Guard::Uid(uid.clone());
        let after = self.cluster.dry_run(kind, id, &body, Some(&before), &guard).await;
        let after = after.map_err(|error| failure(&error))?;
        let impact = change::impact(&id.group_kind(), Some(&before), Some(&after));
        Ok(Foreseen { content: apply.want.hash, uid, generation, impact })
    }

    /// What is sent, and what it must find.
    async fn prepared(&self, kind: &Kind, id: &ObjectId, apply: &Apply) -> Result<(Value, Guard), Failure> {
        let unreadable = |error: contents::Error| Failure::Unknown(error.to_string().into(), Duration::ZERO);
        if apply.want.ignores.is_none() || apply.guard == Guard::Absent {
            let body = self.body(apply).await.map_err(unreadable)?;
            let guard = self.reclaim(kind, id, apply).await.map_err(|error| failure(&error))?;
            let guard = self.cluster.own_strategy(kind, id, &body, guard).await;
            return Ok((body, guard.map_err(|error| failure(&error))?));
        }
        // Who owns what is read after fields were taken over, as those would be reset.
        let guard = self.reclaim(kind, id, apply).await.map_err(|error| failure(&error))?;
        let live = self.cluster.get(kind, id).await.map_err(|error| failure(&error))?;
        let Some(live) = live else { return Err(Failure::Conflict(Duration::ZERO)) };
        let version = text_at(&live, &["metadata", "resourceVersion"]).parse().ok().map(Rv);
        let claim = apply.claim();
        let (contents, want, form) = (self.contents.clone(), apply.want.clone(), apply.form);
        let prepared = blocking(move || contents.body_for(&want, &claim, form, &live)).await;
        let (body, binds) = prepared.map_err(unreadable)?;
        // What is repeated from one version would undo what somebody changes meanwhile.
        let guard = match (guard, version, binds) {
            (Guard::Uid(uid), Some(version), Binds::ToVersion) => Guard::Exact(uid, version),
            (guard, ..) => guard,
        };
        let guard =
            self.cluster.own_strategy(kind, id, &body, guard).await.map_err(|error| failure(&error))?;
        Ok((body, guard))
    }

    /// An object that is taken over may have been made by client-side `kubectl apply`: what that owned must
    /// be ours, or a field that leaves the manifest would stay for ever. Returns what the write must find.
    async fn reclaim(&self, kind: &Kind, id: &ObjectId, apply: &Apply) -> Result<Guard, Error> {
        let Guard::Exact(uid, _) = apply.guard.clone() else { return Ok(apply.guard.clone()) };
        if apply.purpose != Purpose::Adopt {
            return Ok(apply.guard.clone());
        }
        match self.cluster.reclaim(kind, id, &uid).await? {
            Reclaimed::Nothing => Ok(apply.guard.clone()),
            Reclaimed::Taken => Ok(Guard::Uid(uid)),
        }
    }

    async fn body(&self, apply: &Apply) -> Result<Value, contents::Error> {
        let claim = apply.claim();
        if self.contents.are_in_memory(&apply.want) {
            return self.contents.body(&apply.want, &claim, apply.form);
        }
        let (contents, want, form) = (self.contents.clone(), apply.want.clone(), apply.form);
        blocking(move || contents.body(&want, &claim, form)).await
    }

    /// Deletes one incarnation in one version.
    pub(super) async fn delete(self, kind: Arc<Kind>, id: ObjectId, action: Action) -> Event {
        let Action::Delete(uid, rv, removal) = &action else {
            return Event::Looked(BTreeMap::new());
        };
        let answer = self.cluster.delete(&kind, &id, uid, *rv, Propagation::Background).await;
        let (outcome, told) = match answer {
            Ok(Deleted::Gone | Deleted::Accepted) => {
                let told = match removal {
                    Removal::Prune => Told::Pruned,
                    Removal::Recreate => Told::Recreating,
                };
                (Outcome::Deleted, Some(told))
            }
            Err(error) => (Outcome::Failed(failure(&error)), None),
        };
        Event::Done(id, action, outcome, told)
    }

    /// Looks whether objects of one kind and namespace exist.
    pub(super) async fn look(self, kind: Arc<Kind>, namespace: Option<String>, ids: Vec<ObjectId>) -> Event {
        let names: BTreeSet<String> = ids.iter().map(|id| id.name().to_owned()).collect();
        let answer = self.cluster.look(&kind, namespace.as_deref(), &names).await;
        let answers = ids.into_iter().map(|id| {
            let looked = match &answer {
                Ok(found) => match found.get(id.name()) {
                    Some(Found::Found(live)) => Ok(Looked::Found(live.clone())),
                    Some(Found::Absent) | None => Ok(Looked::Absent),
                },
                Err(error) => Err(Trouble(error.reason().into())),
            };
            (id, looked)
        });
        Event::Looked(answers.collect())
    }

    /// Compares contents with what our entries cover.
    pub(super) async fn compare(self, questions: Vec<Question>) -> Event {
        let answered = blocking(move || {
            questions
                .into_iter()
                .map(|question| {
                    let verified =
                        self.contents.defended(&question.want).map(|content| question.answer(content));
                    (question.id, verified.map_err(|error| Trouble(error.to_string().into())))
                })
                .collect()
        });
        Event::Compared(answered.await)
    }

    /// Looks at the values that the cluster shows.
    pub(super) async fn inspect(self, kind: Arc<Kind>, question: Question) -> Event {
        let verified = drift::inspected(&self.cluster, &self.contents, &kind, &question).await;
        Event::Compared(vec![(question.id, verified)])
    }
}

/// What an error of the API server means for the object. The wait is what the server asks for; the
/// backoff is the queue's.
fn failure(error: &Error) -> Failure {
    let text: Arc<str> = error.reason().into();
    let wait = error.retry_after().unwrap_or(Duration::ZERO);
    match (error.fault(), error.retry()) {
        (Fault::Owned { .. } | Fault::NoObject, _) | (_, Retry::Decide) => Failure::Conflict(wait),
        // Credentials that cannot be had now say nothing about the content.
        (Fault::Config { .. }, _) => Failure::Unknown(text, wait),
        (Fault::Immutable { .. }, _) => Failure::Refused(text, Rule::Immutable, None),
        (Fault::Denied { by: Denial::Rbac | Denial::Impersonation, .. }, _) => {
            Failure::Refused(text, Rule::Rights, Some(wait))
        }
        (Fault::Webhook { .. }, _) => Failure::Refused(text, Rule::Webhook, Some(wait)),
        (_, Retry::Never) => Failure::Refused(text, Rule::Other, None),
        (_, Retry::Slowly) => Failure::Refused(text, Rule::Other, Some(wait)),
        (_, Retry::Soon) => Failure::Unknown(text, wait),
    }
}

/// Runs a function that blocks on the disk. A panic in it is passed on.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Blocking work is cancelled only when the runtime ends, and with it whoever waits here.
            Err(_) => std::future::pending().await,
        },
    }
}
