//! The reason for which a workload stays in a step of its rollout, with its values.

use std::sync::Arc;
use std::time::Duration;

/// The reason for which a workload stays in its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepWait {
    /// The step, from 1; beyond the last, the rest of a DaemonSet.
    pub step: u32,
    /// The number of steps.
    pub of: u32,
    /// The missing requirement.
    pub lacks: StepRequirement,
    /// Pods beyond those of the step that have the new template.
    pub surplus: SurplusPods,
}

/// The fate of pods beyond those of a step that a scale gave to a held template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SurplusOutcome {
    /// They are removed as old pods become available.
    Removed,
    /// They cannot be removed, for this reason.
    Kept(Arc<str>),
}

/// Pods that came by a scale to a template that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurplusPods {
    /// None did.
    None,
    /// The number of pods by the shares in which the controller of a Deployment adds them.
    Shared(u32),
    /// The number of highest pods that a StatefulSet creates with the new template. One of them
    /// that is deleted gets the old one.
    Made(u32),
}

/// A requirement for leaving a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRequirement {
    /// Pods of the new template that are Ready.
    Pods {
        /// The number of Ready pods.
        ready: u32,
        /// The number of Ready pods that the step needs.
        target: u32,
    },
    /// Time.
    Soak(Duration),
    /// A person's word.
    Promotion,
}
