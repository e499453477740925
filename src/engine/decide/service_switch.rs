//! Switches a Service from one workload to another, only once the new one is healthy.

use crate::engine::decide::blockers::{health_words, is_healthy};
use crate::engine::rollout::rollouts::ServiceSwitch;
use crate::engine::state::Engine;
use crate::engine::{DesiredObject, Reason, SourceId, is_workload};
use crate::object::ObjectId;

impl Engine {
    /// Returns why a Service is not switched yet to the workloads that its desired content selects.
    pub(in crate::engine) fn switch_blocker(
        &self,
        source: SourceId,
        service: &DesiredObject,
    ) -> Option<Reason> {
        let selects = service.selects.as_deref().filter(|_| self.is_switch(service))?;
        let namespace = service.id.namespace().unwrap_or_default();
        let wanted = self.entries.iter().filter_map(|(id, entry)| Some((id, &**entry.target_content()?.1)));
        let targets = wanted.filter(|(id, desired)| {
            let place = id.namespace().unwrap_or_default();
            is_workload(id)
                && desired.labels.as_deref().is_some_and(|labels| selects.matches(namespace, labels, place))
        });
        // One that needs the Service cannot be waited for.
        let mut targets = targets
            .filter(|(id, desired)| !desired.needs.contains(&service.id) && self.counts_for(source, id));
        targets.find_map(|(id, _)| self.not_ready_reason(id))
    }

    /// Returns whether the desired content of a Service selects others than the content that is
    /// there.
    fn is_switch(&self, service: &DesiredObject) -> bool {
        let accepted = self.entry(&service.id).and_then(|entry| entry.accepted.content());
        service.id.is("", "Service") && accepted.is_some_and(|accepted| accepted.selects != service.selects)
    }

    fn not_ready_reason(&self, id: &ObjectId) -> Option<Reason> {
        let because = |why: String| Some(Reason::Needs(id.clone(), why.into()));
        let Some(live) = self.live_object(id) else { return because("is not there yet".to_owned()) };
        if self.entry(id).is_some_and(|entry| entry.unreleased_content().is_some()) {
            return because("is not changed yet".to_owned());
        }
        if !is_healthy(live) {
            return because(format!("is {}", health_words(live)));
        }
        let soaks =
            self.rollouts.in_flight.get(id).is_some_and(|rollout| rollout.switch != ServiceSwitch::Waiting);
        if soaks { because("is rolled out".to_owned()) } else { None }
    }

    /// Returns whether a Service waits to be switched to a workload.
    pub(in crate::engine) fn awaits_service_switch(&self, id: &ObjectId) -> bool {
        let Some((source, desired)) = self.entry(id).and_then(|entry| entry.target_content()) else {
            return false;
        };
        let Some(labels) = desired.labels.as_deref() else { return false };
        let unit =
            self.rollouts.ledger.as_ref().and_then(|ledger| ledger.unit_of(&self.inventory_ids[source], id));
        let place = id.namespace().unwrap_or_default();
        unit.is_some_and(|unit| {
            unit.members.keys().any(|member| {
                let entry = self.entry(member);
                let Some(service) = entry.and_then(|entry| entry.unreleased_content()) else { return false };
                let namespace = member.namespace().unwrap_or_default();
                let selected =
                    service.selects.as_deref().is_some_and(|s| s.matches(namespace, labels, place));
                selected && self.is_switch(service) && !service.needs.contains(id)
            })
        })
    }
}
