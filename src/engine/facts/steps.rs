//! The steps that the annotations of a workload ask for: the number of its pods that get a new
//! template before the others.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::facts::label_selector::LabelSelector;
use crate::engine::facts::overlay::RolloutOverlay;
use crate::engine::facts::step_annotations::{self, StepMechanism};
use crate::object::{Diagnostic, Object};

/// The number of pods that get the new template in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StepSize {
    /// A number of pods.
    Pods(u32),
    /// This share of all pods, from 1 to 100, rounded up.
    Percent(u32),
}

impl StepSize {
    fn of(self, replicas: u32) -> u32 {
        let pods = match self {
            Self::Pods(pods) => pods,
            Self::Percent(percent) => {
                let pods = (u64::from(replicas) * u64::from(percent)).div_ceil(100);
                u32::try_from(pods).unwrap_or(u32::MAX)
            }
        };
        pods.min(replicas)
    }
}

/// The way in which a rollout leaves a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum PromotionMode {
    /// It goes on by itself.
    #[default]
    Auto,
    /// A person.
    Manual,
}

/// The steps of a workload. They count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    pub(in crate::engine) sizes: Vec<StepSize>,
    pub(in crate::engine) soak: Duration,
    pub(in crate::engine) promote: PromotionMode,
    pub(in crate::engine) mechanism: StepMechanism,
    pub(in crate::engine) nodes: Option<LabelSelector>,
    /// Pods that the manifest's own partition keeps from a new template, of a StatefulSet.
    pub(in crate::engine) manifest_partition: u32,
}

impl Steps {
    /// Reads the steps of a content; none where it asks for none, or for what it cannot have.
    pub fn of(content: &Value) -> Option<Self> {
        let read = step_annotations::read(content);
        read.steps.filter(|_| !read.found.iter().any(|finding| finding.is_error))
    }

    /// Returns how many steps there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.sizes.len()).unwrap_or(u32::MAX)
    }

    /// Returns the nodes whose pods go first, of a DaemonSet.
    pub fn nodes(&self) -> Option<&LabelSelector> {
        self.nodes.as_ref()
    }

    /// Returns how many pods have the new template in a step; all that may have it, beyond the
    /// last. Never less than in the step before it.
    pub fn target(&self, step: u32, replicas: u32) -> u32 {
        let all = replicas.saturating_sub(self.manifest_partition);
        if step > self.count() {
            return all;
        }
        let until = self.sizes.iter().take(step as usize);
        until.map(|size| size.of(replicas)).max().unwrap_or(0).min(all)
    }

    /// Returns the overlay of a step; none beyond the last, and none where no pod could take the
    /// new template.
    pub fn overlay_of(&self, step: u32, replicas: u32) -> Option<RolloutOverlay> {
        let pods = self.target(step, replicas);
        if step == 0 || step > self.last_step() || pods == 0 {
            return None;
        }
        Some(match self.mechanism {
            StepMechanism::Surge => RolloutOverlay::Surge { pods, step },
            StepMechanism::InPlace => RolloutOverlay::InPlace { pods, step },
            StepMechanism::Partition => {
                RolloutOverlay::Partition { from: replicas.saturating_sub(pods), step }
            }
            StepMechanism::OnDelete => RolloutOverlay::OnDelete { step },
        })
    }

    /// Returns the step that an overlay stands for. It is reported by the overlay and not by its
    /// pods: with other replicas, or other steps, the same pods would stand for another step.
    pub fn step_of(&self, overlay: RolloutOverlay) -> u32 {
        overlay.step().unwrap_or(1).clamp(1, self.last_step())
    }

    /// Returns the last step that has an overlay. Of a DaemonSet that is one beyond its steps, as
    /// its pods are evicted one by one to the end.
    fn last_step(&self) -> u32 {
        self.count().saturating_add(u32::from(self.mechanism == StepMechanism::OnDelete))
    }
}

/// Says what is wrong with the words of an object that ask for steps.
pub(crate) fn check_steps(object: &Object) -> Vec<Diagnostic> {
    let findings = step_annotations::read(&object.body).found.into_iter().map(|finding| {
        let make = if finding.is_error { Diagnostic::error } else { Diagnostic::warning };
        make(object.origin.clone(), "steps", finding.message).hint(finding.hint)
    });
    findings.collect()
}
