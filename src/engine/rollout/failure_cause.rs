//! The cause for which a rollout failed, with the values that it is about. `render` has the
//! sentence of each.

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::engine::facts::causes::reason_code::CauseCode;
use crate::engine::rollout::pods::RolloutFailure;
use crate::engine::{HeldStep, RefusalCause};
use crate::health::Health;

/// The cause for which a rollout failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RolloutFailureCause {
    /// A new pod fails, or none can be created.
    Pods(RolloutFailure),
    /// The status of the workload says so, in these words.
    Status(Arc<str>),
    /// It made no progress in time.
    Stalled(Box<StalledRollout>),
    /// Its workload was deleted, and the server refuses to create it again, for this cause.
    RecreationRefused(RefusalCause),
    /// Its workload was deleted to be created again, and has been missing for this time.
    WorkloadMissing(Duration),
}

impl RolloutFailureCause {
    /// Returns its code.
    pub(crate) fn code(&self) -> CauseCode {
        match self {
            Self::Pods(RolloutFailure { pod: Some(_), .. }) => CauseCode::PodFailing,
            Self::Pods(RolloutFailure { pod: None, .. }) => CauseCode::PodRefused,
            Self::Status(_) => CauseCode::StatusFailed,
            Self::Stalled(_) => CauseCode::ProgressStalled,
            Self::RecreationRefused(_) => CauseCode::RecreationRefused,
            Self::WorkloadMissing(_) => CauseCode::WorkloadMissing,
        }
    }

    /// Returns what the status of the workload says, where that is the cause.
    pub(in crate::engine) fn status_message(&self) -> Option<&Arc<str>> {
        match self {
            Self::Status(message) => Some(message),
            Self::Pods(_) | Self::Stalled(_) | Self::RecreationRefused(_) | Self::WorkloadMissing(_) => None,
        }
    }
}

/// In a trace it is its sentence.
impl Serialize for RolloutFailureCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A rollout that made no progress in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StalledRollout {
    /// The time that it had.
    pub timeout: Duration,
    /// The state of its workload.
    pub state: StalledState,
    /// The oldest of its new pods that are not Ready.
    pub unready: Option<UnreadyPod>,
}

/// The state of a workload whose rollout makes no progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StalledState {
    /// It is a DaemonSet, and this step holds it.
    Step(HeldStep),
    /// It has this health.
    Health(Health),
}

/// A pod that is not Ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadyPod {
    /// Its name.
    pub name: Arc<str>,
    /// The words of its kubelet about it, where there are any.
    pub message: Option<Arc<str>>,
}
