//! The sentences of what rollouts wait for: the budget, a step, the queue.

use std::fmt;
use std::time::Duration;

use crate::engine::{
    BudgetHolding, BudgetScope, BudgetShortage, ClaimHolder, CurrentStep, HolderProcess, QueuedObject,
    StepRequirement, StepWait, SurplusOutcome, SurplusPods,
};
use crate::object::{ObjectId, count_text, duration_text, verb_to_be};

impl fmt::Display for BudgetShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workloads(scope, most, rolling) => {
                // Claims that cannot be read name none.
                let count = rolling.len().max(*most as usize);
                write!(f, "{count} of {most} workloads{scope} are rolling out: ")?;
                if rolling.is_empty() {
                    f.write_str("their claims cannot be read")
                } else {
                    write_names(f, rolling)
                }
            }
            Self::SlowStart(most, rolling) => {
                write!(f, "slow start: at most {most} at a time until rollouts succeed: ")?;
                write_names(f, rolling)
            }
            Self::Pods(scope, cost, away, most) if away > most => {
                let (pods, verb) = (count_text(*away, "pod"), verb_to_be(*away));
                write!(
                    f,
                    "{pods}{scope} {verb} unavailable, at most {most} may be, and this one takes down {cost} more"
                )
            }
            Self::Pods(scope, cost, away, most) => write!(
                f,
                "{away} of at most {most} pods{scope} are unavailable, and this one takes down {cost} more"
            ),
            Self::TooMany(scope, cost, most) => {
                let pods = count_text(*cost, "pod");
                write!(
                    f,
                    "it takes down {pods} at once, and at most {most}{scope} may be unavailable (maxUnavailable)"
                )
            }
            Self::Starts(scope, most) => {
                let verb = if *most == 1 { "has" } else { "have" };
                write!(f, "{}{scope} {verb} started in the last minute", count_text(*most, "rollout"))
            }
            Self::Behind(first) => write!(f, "{first} goes first"),
            Self::Hidden(short, claimed, why) => {
                write!(f, "{short}; it is not known whether {claimed} is still rolling out: {why}")
            }
            Self::Shared(short, holdings) => write!(f, "{short}; {}", holdings_text(holdings)),
            Self::Recovering(seconds) => write!(
                f,
                "the rollout ledger was recreated; other daemons have {seconds} s to write their claims again"
            ),
        }
    }
}

/// Returns the parts of the budget that others hold, as a list.
pub(super) fn holdings_text(holdings: &[BudgetHolding]) -> String {
    holdings.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// As a clause: "Deployment shop/api is claimed by source ops".
impl fmt::Display for BudgetHolding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnreadableClaims(remedy) => f.write_str(remedy),
            Self::Claim(id, holder) => write!(f, "{id} is claimed by {holder}"),
            Self::UnavailablePods { workload, pods, source } => {
                let (count, verb) = (count_text(*pods, "pod"), verb_to_be(*pods));
                write!(f, "{count} of {workload} of {} {verb} unavailable", source_text(source.as_deref()))
            }
        }
    }
}

/// As a noun: "source ops, process 12 on host, which has ended".
impl fmt::Display for ClaimHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&source_text(self.source.as_deref()))?;
        if let Some(process) = &self.process {
            write!(f, ", {process}")?;
        }
        if self.has_ended { f.write_str(", which has ended") } else { Ok(()) }
    }
}

impl fmt::Display for HolderProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.number, self.host)
    }
}

fn source_text(name: Option<&str>) -> String {
    name.map_or_else(|| "another source".to_owned(), |name| format!("source {name}"))
}

fn write_names(f: &mut fmt::Formatter<'_>, ids: &[ObjectId]) -> fmt::Result {
    let names: Vec<String> = ids.iter().take(3).map(ToString::to_string).collect();
    f.write_str(&names.join(", "))?;
    match ids.len().saturating_sub(3) {
        0 => Ok(()),
        rest => write!(f, " and {rest} more"),
    }
}

/// Words that follow a noun, as in "2 workloads of source shop"; none for the cluster.
impl fmt::Display for BudgetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => Ok(()),
            Self::Source(_, name) => write!(f, " of source {name}"),
            Self::Namespace(name) => write!(f, " in namespace {name}"),
        }
    }
}

impl fmt::Display for CurrentStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stays(wait, None) => write!(f, "{wait}"),
            Self::Stays(wait, Some(surplus)) => write!(f, "{wait}; {surplus}"),
            Self::AwaitsBudget => f.write_str("its next step waits for the rollout budget"),
        }
    }
}

impl fmt::Display for SurplusOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed => f.write_str("they are removed as old pods become available"),
            Self::Kept(why) => write!(f, "they cannot be removed: {why}"),
        }
    }
}

impl fmt::Display for StepWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.step, self.of) {
            (step, of) if step > of => write!(f, "after its last step: ")?,
            (step, of) => write!(f, "step {step} of {of}: ")?,
        }
        match self.lacks {
            StepRequirement::Pods { ready, target } => write!(f, "{ready} of {target} new pods are ready"),
            StepRequirement::Soak(left) => {
                write!(f, "soaks {} more", duration_text(round_up_to_seconds(left)))
            }
            StepRequirement::Promotion => write!(f, "waits for `rhumb rollout promote`"),
        }?;
        match self.surplus {
            SurplusPods::None => Ok(()),
            SurplusPods::Shared(more) => write!(
                f,
                "; it was scaled meanwhile, and its controller gave the new template {} more than the step has",
                count_text(more, "pod")
            ),
            SurplusPods::Made(more) => write!(
                f,
                "; it was scaled meanwhile, and {} more than the step has {} of the new template: each keeps it until somebody deletes it",
                count_text(more, "pod"),
                verb_to_be(more)
            ),
        }
    }
}

/// Rounds a time up to whole seconds, so that the text never says that nothing is left.
fn round_up_to_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

/// As a predicate: "waiting in the rollout queue: 3rd of 17, as …".
impl fmt::Display for QueuedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((position, of)) => {
                write!(
                    f,
                    "waiting in the rollout queue: {} of {of}, as {}",
                    ordinal_text(position),
                    self.reason
                )
            }
            None => write!(f, "waiting: {}", self.reason),
        }
    }
}

fn ordinal_text(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}
