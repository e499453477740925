//! The sentences of why rollouts and writes fail.

use std::fmt;

use crate::engine::{
    OversizedUnit, RetryCause, RolloutFailure, RolloutFailureCause, StalledRollout, StalledState, UnreadyPod,
    WriteFailure,
};
use crate::object::{count_text, duration_text, verb_to_be};

impl fmt::Display for RolloutFailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods(failure) => write!(f, "{failure}"),
            Self::Status(message) => f.write_str(message),
            Self::RecreationRefused(cause) => write!(f, "{cause}"),
            Self::Stalled(stalled) => write!(f, "{stalled}"),
            Self::WorkloadMissing(time) => write!(
                f,
                "it was deleted to be created again, and has been missing for {}",
                duration_text(*time)
            ),
        }
    }
}

impl fmt::Display for RolloutFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.pod, &self.container) {
            (Some(pod), Some(container)) => write!(f, "pod {pod}, container {container}: ")?,
            (Some(pod), None) => write!(f, "pod {pod}: ")?,
            (None, _) => f.write_str("no new pod can be created: ")?,
        }
        f.write_str(&self.reason)?;
        match (self.restarts, &*self.message) {
            (Some(restarts), _) => write!(f, ": it has restarted {}", count_text(restarts, "time")),
            (None, "") => Ok(()),
            (None, message) => write!(f, ": {message}"),
        }
    }
}

impl fmt::Display for StalledRollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no progress for {}: {}", duration_text(self.timeout), self.state)?;
        match &self.unready {
            Some(pod) => write!(f, "; {pod}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for StalledState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step) => write!(f, "{step}"),
            Self::Health(health) => write!(f, "{health}"),
        }
    }
}

impl fmt::Display for UnreadyPod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pod {}: {}", self.name, self.message.as_deref().unwrap_or("it is not ready"))
    }
}

impl fmt::Display for WriteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict(_) => write!(f, "{}", RetryCause::Conflict),
            Self::Refused(why, ..) | Self::Unknown(why, _) => f.write_str(why),
        }
    }
}

impl fmt::Display for RetryCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict => f.write_str("another client wrote first"),
            Self::LedgerFull { workload, used, limit } => write!(
                f,
                "the rollout ledger has no room for what is released together with {workload}: rollouts that are \
                 not over take {used} of {limit} kB"
            ),
            Self::Message(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for OversizedUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, objects, used, limit } = self;
        let (count, verb) = (count_text(*objects, "object"), verb_to_be(*objects));
        write!(
            f,
            "{count} {verb} released together with {workload}, and the record of what was good before ({used} kB) is \
             larger than one may be ({limit} kB); change fewer of them in one commit"
        )
    }
}
