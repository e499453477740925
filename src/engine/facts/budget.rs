//! The rollout budget as it is configured: its bounds over the whole cluster, and narrower ones.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A number of pods: an absolute one, or a percentage of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodAmount {
    /// A number of pods.
    Pods(u32),
    /// Percent of all, from 0 to 100.
    Percent(u8),
}

impl PodAmount {
    /// Returns the number among all pods: a percentage is rounded down, and is at least 1.
    pub fn of(self, all: u32) -> u32 {
        match self {
            Self::Pods(pods) => pods,
            Self::Percent(share) => {
                let pods = u64::from(all) * u64::from(share) / 100;
                u32::try_from(pods).unwrap_or(u32::MAX).max(1)
            }
        }
    }
}

/// `3`, or `10%`.
impl fmt::Display for PodAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods(pods) => write!(f, "{pods}"),
            Self::Percent(share) => write!(f, "{share}%"),
        }
    }
}

/// A text that is neither `3` nor `10%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a number of pods (3) or a percentage from 0% to 100% (10%)")]
pub struct ParsePodAmountError;

impl FromStr for PodAmount {
    type Err = ParsePodAmountError;

    fn from_str(text: &str) -> Result<Self, ParsePodAmountError> {
        let read = match text.strip_suffix('%') {
            Some(share) => share.parse().ok().filter(|share| *share <= 100).map(Self::Percent),
            None => text.parse().ok().map(Self::Pods),
        };
        read.ok_or(ParsePodAmountError)
    }
}

impl Serialize for PodAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Pods(pods) => serializer.serialize_u32(*pods),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for PodAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PodAmountVisitor;
        impl Visitor<'_> for PodAmountVisitor {
            type Value = PodAmount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of pods (3) or a percentage from 0% to 100% (10%)")
            }
            fn visit_u64<E: de::Error>(self, pods: u64) -> Result<PodAmount, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Unsigned(pods), &self);
                u32::try_from(pods).map(PodAmount::Pods).map_err(wrong)
            }
            fn visit_i64<E: de::Error>(self, pods: i64) -> Result<PodAmount, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(pods), &self);
                u32::try_from(pods).map(PodAmount::Pods).map_err(wrong)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<PodAmount, E> {
                text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(PodAmountVisitor)
    }
}

/// The action after a failed rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Its unit goes back to its last good content.
    #[default]
    Rollback,
    /// It stays as it is until git changes the content, or a person orders a retry.
    Quarantine,
}

/// The budget of the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Budget {
    /// Workloads whose pods are being replaced at a time.
    pub max_workloads: u32,
    /// Pods of managed workloads that may be unavailable at a time.
    pub max_unavailable: PodAmount,
    /// Rollouts that may begin in any minute.
    pub starts_per_minute: u32,
    /// The time for which a workload must be healthy before its rollout succeeds.
    pub soak: Duration,
    /// The longest time that a rollout may go without any progress.
    pub deadline: Duration,
    /// The action after a failure.
    pub on_failure: OnFailure,
    /// Narrower bounds, by namespace.
    pub namespaces: BTreeMap<Arc<str>, BudgetNarrowing>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_workloads: 3,
            max_unavailable: PodAmount::Percent(10),
            starts_per_minute: 30,
            soak: Duration::from_secs(10),
            deadline: Duration::from_mins(10),
            on_failure: OnFailure::Rollback,
            namespaces: BTreeMap::new(),
        }
    }
}

/// Bounds that hold beside those of the whole cluster: they narrow, and never widen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BudgetNarrowing {
    /// As [`Budget::max_workloads`].
    pub max_workloads: Option<u32>,
    /// As [`Budget::max_unavailable`], of the pods of this source or namespace.
    pub max_unavailable: Option<PodAmount>,
    /// As [`Budget::starts_per_minute`].
    pub starts_per_minute: Option<u32>,
    /// Longer than [`Budget::soak`].
    pub soak: Option<Duration>,
    /// Shorter than [`Budget::deadline`].
    pub deadline: Option<Duration>,
    /// `Quarantine` where [`Budget::on_failure`] is `Rollback`.
    pub on_failure: Option<OnFailure>,
}
