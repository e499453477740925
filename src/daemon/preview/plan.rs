//! The plan: what is decided for each object, with what the server makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::super::action_executor::run_blocking;
use super::super::drift;
use super::{CONCURRENT_DRY_RUNS, PreviewRun};
use crate::change::{self, Impact, ImpactKind};
use crate::cluster::{ClusterError, ClusterFault, DryRunAnswer};
use crate::engine::{
    Action, ApplyPurpose, ApplyRequest, ApplyVariant, Decision, DeletionReason, Engine, Plan, PlanBasis,
    PlannedAction, PlannedObject, Precondition, PriorSource, Reason, RecreatePolicy, RefusalCause,
    immutability_cause, units,
};
use crate::object::ObjectId;

impl PreviewRun {
    /// Returns the plan of these decisions.
    pub(super) async fn plan(&self, decisions: BTreeMap<ObjectId, Decision>) -> Plan {
        let source = self.engine.view().source(self.source);
        self.progress.add(decisions.len());
        let mut planned: Vec<PlannedObject> = stream::iter(&decisions)
            .map(|(id, decision)| self.plan_object(id, decision))
            .buffer_unordered(CONCURRENT_DRY_RUNS)
            .inspect(|_| self.progress.finish_object())
            .filter_map(|planned| async { planned })
            .collect()
            .await;
        planned.sort_by_cached_key(|p| {
            let deletion = p.verdict == PlannedAction::Delete;
            let rank = i16::from(crate::graph::rank(&p.id.group_kind()));
            (deletion, p.wave, if deletion { -rank } else { rank }, p.id.clone())
        });
        let changed = planned.iter().filter(|planned| planned.verdict != PlannedAction::Unchanged);
        let changed: Vec<&ObjectId> = changed.map(|planned| &planned.id).collect();
        let units = units(&planned, &self.engine.view().connected_parts(&changed));
        let guarded = |decision: &Decision| matches!(decision.reason, Some(Reason::Confirm(_)));
        Plan {
            basis: PlanBasis::Cluster,
            guarded: decisions.values().any(guarded),
            source: source.declared.name.to_string(),
            revision: source.head.as_ref().map(ToString::to_string).unwrap_or_default(),
            complete: source.incomplete_reason.is_none(),
            objects: planned,
            units,
            notes: self
                .engine
                .view()
                .inventory_notes(self.source)
                .map(|note| note.to_string())
                .chain(self.notes.iter().cloned())
                .collect(),
            diagnostics: source.diagnostics(),
        }
    }

    /// Returns the plan of one object, and its fields that are not compared.
    async fn plan_object(&self, id: &ObjectId, decision: &Decision) -> Option<PlannedObject> {
        let planned = match self.engine.view().prior_source(self.source, id) {
            Some(prior) => {
                let verdict = match prior {
                    PriorSource::Owner(_) => PlannedAction::Refuse,
                    PriorSource::Wanting(_) => PlannedAction::Unchanged,
                };
                PlannedObject { verdict, reason: Some(prior.to_string()), ..self.plan_base(id)? }
            }
            None => self.plan_decision(id, decision).await?,
        };
        let desired = self.engine.view().entry(id).and_then(|entry| entry.target_content());
        let desired = desired.filter(|(source, _)| *source == self.source).map(|(_, desired)| desired);
        let ignored = desired
            .and_then(|desired| desired.ignores.as_deref())
            .map(|paths| format!("left to others: {paths}"));
        let reason = match (planned.reason, ignored) {
            (Some(reason), Some(ignored)) => Some(format!("{reason}; {ignored}")),
            (reason, ignored) => reason.or(ignored),
        };
        Some(PlannedObject { reason, ..planned })
    }

    async fn plan_decision(&self, id: &ObjectId, decision: &Decision) -> Option<PlannedObject> {
        let base = self.plan_base(id)?;
        let reason = decision.reason.as_ref();
        match &decision.action {
            Action::Apply(apply) => Some(self.apply(base, apply, reason).await),
            Action::Delete(_, _, removal) => Some(self.delete(base, *removal).await),
            Action::Nothing => Some(match reason {
                None => base,
                Some(Reason::Unserved(gvk, _)) if self.engine.view().has_definition(&gvk.group_kind()) => {
                    self.plan_unchecked(base, &format!("the definition of {} is applied first", gvk.kind))
                        .await
                }
                Some(reason @ Reason::Kept(_))
                    if self.engine.view().source(self.source).incomplete_reason.is_none() =>
                {
                    with_cause(base, reason)
                }
                Some(reason @ (Reason::LeftAlone(_) | Reason::OptedOut(_))) => with_cause(base, reason),
                Some(reason) => {
                    let verdict =
                        if reason.is_refusal() { PlannedAction::Refuse } else { PlannedAction::Wait };
                    with_cause(PlannedObject { verdict, ..base }, reason)
                }
            }),
            _ => None,
        }
    }

    /// Returns the object as it is in the plan when nothing is to be done.
    fn plan_base(&self, id: &ObjectId) -> Option<PlannedObject> {
        let entry = self.engine.view().entry(id)?;
        let state = self.desired_state(id);
        let gvk = match state {
            Some(state) => state.gvk().clone(),
            None => self.engine.view().informer_object(id)?.gvk.clone(),
        };
        Some(PlannedObject {
            origin: state.map(|state| state.origin().clone()),
            wave: entry.target_content().map_or(0, |(_, desired)| desired.wave),
            ..PlannedObject::new(id.clone(), gvk, PlannedAction::Unchanged)
        })
    }

    async fn apply(
        &self,
        base: PlannedObject,
        apply: &ApplyRequest,
        reason: Option<&Reason>,
    ) -> PlannedObject {
        let Some(kind) = self.served_kind_of_version(&apply.desired.gvk) else { return base };
        let annotation = apply.release_annotation();
        let (contents, desired, variant) = (self.contents.clone(), apply.desired.clone(), apply.variant);
        let before = match apply.precondition {
            Precondition::Absent => Ok(None),
            Precondition::Uid(_) | Precondition::Exact(..) => {
                self.source_view().acting.get(&kind, &base.id).await
            }
        };
        let live = before.as_ref().ok().cloned().flatten();
        let body = run_blocking(move || contents.body(&desired, &annotation, variant, live.as_ref()));
        let body = match body.await {
            Ok(body) => body,
            Err(error) => {
                return PlannedObject {
                    verdict: PlannedAction::Refuse,
                    reason: Some(error.to_string()),
                    ..base
                };
            }
        };
        // Nothing is written, so what changes meanwhile is no conflict.
        let precondition = match &apply.precondition {
            Precondition::Exact(uid, _) => Precondition::Uid(uid.clone()),
            precondition => precondition.clone(),
        };
        let shown_now = before.as_ref().ok().and_then(Option::as_ref);
        let answer = self
            .source_view()
            .acting
            .dry_run_replacing(&kind, &apply.desired, &body, shown_now, &precondition)
            .await;
        match (before, answer) {
            (Ok(before), Ok(DryRunAnswer { after, replaced })) => {
                let who = match &before {
                    Some(shown) if apply.purpose == ApplyPurpose::Repair => {
                        let shown = shown.clone();
                        drift::describe_writers(&self.contents, &base.id, apply, shown, replaced).await
                    }
                    _ => None,
                };
                plan_differences(base, before, Some(after), who.or_else(|| note(&self.engine, apply, reason)))
            }
            (_, Err(error)) if self.is_missing_own_namespace(&base.id, &error) => {
                let namespace = base.id.namespace().unwrap_or_default();
                let why = format!("the namespace {namespace} is created first");
                self.plan_unchecked(base, &why).await
            }
            (before, Err(error)) => self.plan_refused(base, apply, &error, before.ok().flatten(), &body),
            (Err(error), _) => self.plan_refused(base, apply, &error, None, &body),
        }
    }

    /// Returns the plan of an object that the server does not accept as it is: deleted and created
    /// again where the manifest allows it.
    fn plan_refused(
        &self,
        base: PlannedObject,
        apply: &ApplyRequest,
        error: &ClusterError,
        before: Option<Value>,
        body: &Value,
    ) -> PlannedObject {
        let reason = error.reason();
        let message: Arc<str> = reason.as_str().into();
        let refuse = |base: PlannedObject, why: RefusalCause| {
            let refused = PlannedObject { verdict: PlannedAction::Refuse, ..base };
            with_cause(refused, &Reason::Refused(why, None))
        };
        if !matches!(error.fault(), ClusterFault::Immutable { .. }) {
            return refuse(base, RefusalCause::Message(message));
        }
        if apply.desired.traits.recreate != RecreatePolicy::Allowed {
            let cause = immutability_cause(&base.id, message);
            return refuse(base, cause);
        }
        if let Some(blocker) = self.engine.view().recreation_blocker(&base.id, &apply.desired) {
            return refuse(base, RefusalCause::Kept(Box::new(RefusalCause::Message(message)), blocker));
        }
        let pods = self
            .engine
            .view()
            .informer_object(&base.id)
            .and_then(|live| live.replica_status)
            .map_or(0, |rolling| rolling.replicas);
        // The server shows no object that would be made anew: what the manifest asks for is in
        // for it.
        let after = before.as_ref().map(|before| change::merge_content(before, body));
        let impact = Impact { kind: ImpactKind::Recreate, pods };
        PlannedObject {
            verdict: PlannedAction::Recreate,
            impact,
            ..plan_differences(base, before, after, Some(reason))
        }
    }

    /// Returns whether the server misses a namespace that the source brings.
    fn is_missing_own_namespace(&self, id: &ObjectId, error: &ClusterError) -> bool {
        let missing = matches!(error.fault(), ClusterFault::NoNamespace { .. });
        let Some(namespace) = id.namespace().filter(|_| missing) else { return false };
        let namespace = ObjectId::of_namespace(namespace);
        self.engine.view().entry(&namespace).is_some_and(|entry| entry.target_content().is_some())
    }

    /// Returns a creation that the server cannot check yet.
    async fn plan_unchecked(&self, base: PlannedObject, why: &str) -> PlannedObject {
        let desired = self
            .engine
            .view()
            .entry(&base.id)
            .and_then(|entry| entry.target_content())
            .map(|(_, desired)| desired.clone());
        let after = match &desired {
            Some(desired) => self.content(desired, ApplyVariant::PLAIN).await,
            None => None,
        };
        let note = format!("not checked by the API server yet, as {why}");
        PlannedObject { verdict: PlannedAction::Create, ..plan_differences(base, None, after, Some(note)) }
    }

    async fn delete(&self, base: PlannedObject, removal: DeletionReason) -> PlannedObject {
        let before = match self.kind(&base.id.group_kind()) {
            Some(kind) => self.source_view().acting.get(&kind, &base.id).await.ok().flatten(),
            None => None,
        };
        let (verdict, reason) = match removal {
            DeletionReason::Prune => {
                let other = self.engine.view().possible_competitor(self.source, &base.id);
                let other = other.map(|name| format!("; source {name} may still come to want it"));
                (PlannedAction::Delete, Some(format!("no longer wanted{}", other.unwrap_or_default())))
            }
            DeletionReason::Recreate => (PlannedAction::Recreate, None),
        };
        PlannedObject { verdict, ..plan_differences(base, before, None, reason) }
    }
}

fn note(engine: &Engine, apply: &ApplyRequest, reason: Option<&Reason>) -> Option<String> {
    let own = match apply.purpose {
        ApplyPurpose::Adopt | ApplyPurpose::Transfer => Some(match engine.view().previous_owner(apply) {
            Some(owner) => format!("it exists and is adopted from {owner}"),
            None => "it exists and is adopted".to_owned(),
        }),
        ApplyPurpose::Repair => Some("somebody changed it".to_owned()),
        ApplyPurpose::Step => Some("its rollout continues".to_owned()),
        ApplyPurpose::Restart => {
            let words = apply
                .variant
                .config_stamp
                .map(|started| engine.view().changed_data(&apply.desired.id, started).to_string());
            Some(format!("its pods are restarted, as the data of {} change", words.unwrap_or_default()))
        }
        ApplyPurpose::Create | ApplyPurpose::Change => None,
    };
    own.or_else(|| reason.map(ToString::to_string))
}

/// Returns an object of a plan with the reason for its action.
fn with_cause(planned: PlannedObject, reason: &Reason) -> PlannedObject {
    PlannedObject { reason: Some(reason.to_string()), cause: Some(reason.clone()), ..planned }
}

/// Returns the differences between the live object and the server's answer.
fn plan_differences(
    base: PlannedObject,
    before: Option<Value>,
    after: Option<Value>,
    reason: Option<String>,
) -> PlannedObject {
    let fields = change::diff_fields(&base.id, before.as_ref(), after.as_ref());
    let impact = change::change_impact(&base.id.group_kind(), before.as_ref(), after.as_ref());
    let verdict = if before.is_none() { PlannedAction::Create } else { PlannedAction::Configure };
    let (before, after) = change::present_pair(&base.id, before.as_ref(), after.as_ref());
    let (before, after) = (before.map(Arc::new), after.map(Arc::new));
    PlannedObject { verdict, impact, fields, reason, before, after, ..base }
}
