//! The number of pods that a workload's own update strategy may take down at a time.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::{GroupKind, text_at, value_at};

/// A count or a share, as Kubernetes' `IntOrString`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum CountOrPercent {
    Count(u32),
    Percent(u32),
}

impl CountOrPercent {
    fn read(value: Option<&Value>) -> Option<Self> {
        match value? {
            Value::Number(number) => Some(Self::Count(u32::try_from(number.as_u64()?).unwrap_or(u32::MAX))),
            Value::String(text) => Some(Self::Percent(text.strip_suffix('%')?.parse().ok()?)),
            _ => None,
        }
    }

    fn round_down(self, all: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(share) => scale_part(all, share, 0),
        }
    }

    fn round_up(self, all: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(share) => scale_part(all, share, 99),
        }
    }
}

fn scale_part(all: u32, share: u32, round: u64) -> u32 {
    u32::try_from((u64::from(all) * u64::from(share) + round) / 100).unwrap_or(u32::MAX)
}

/// The way in which a workload's controller replaces its pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UpdateStrategy(PodReplacement);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum PodReplacement {
    /// No pod moves by itself.
    #[default]
    OnDelete,
    /// All at once.
    All,
    /// `Deployment`: by the shares of pods that may be too few and too many.
    Surge(CountOrPercent, CountOrPercent),
    /// `StatefulSet` and `DaemonSet`: the pods at a time.
    MaxUnavailable(CountOrPercent),
}

impl UpdateStrategy {
    /// Reads it off a content or a live object; of these only `spec.strategy`,
    /// `spec.updateStrategy` and `spec.paused` are read.
    pub(crate) fn of(kind: &GroupKind, content: &Value) -> Self {
        let kind = if &*kind.group == "apps" { &*kind.kind } else { "" };
        Self(match kind {
            "Deployment" => deployment(content),
            "StatefulSet" | "DaemonSet"
                if text_at(content, &["spec", "updateStrategy", "type"]) == "OnDelete" =>
            {
                PodReplacement::OnDelete
            }
            "DaemonSet" => daemon_set(content),
            "StatefulSet" => PodReplacement::MaxUnavailable(
                rolling_parameter(content, "updateStrategy", "maxUnavailable")
                    .unwrap_or(CountOrPercent::Count(1)),
            ),
            _ => PodReplacement::OnDelete,
        })
    }

    /// Returns the most pods that it takes down at a time, of so many.
    pub(crate) fn max_loss(self, replicas: u32) -> u32 {
        match self.0 {
            PodReplacement::OnDelete => 0,
            PodReplacement::All => replicas,
            // `ResolveFenceposts` of the Deployment controller: both may not be zero.
            PodReplacement::Surge(unavailable, surge) => match unavailable.round_down(replicas) {
                0 if surge.round_up(replicas) == 0 => replicas.min(1),
                unavailable => unavailable.min(replicas),
            },
            PodReplacement::MaxUnavailable(unavailable) => unavailable.round_up(replicas).min(replicas),
        }
    }

    /// Returns whether it takes down all pods before it makes new ones.
    pub(crate) fn is_recreate(self) -> bool {
        self.0 == PodReplacement::All
    }
}

fn deployment(content: &Value) -> PodReplacement {
    if value_at(content, &["spec", "paused"]).and_then(Value::as_bool) == Some(true) {
        return PodReplacement::OnDelete;
    }
    if text_at(content, &["spec", "strategy", "type"]) == "Recreate" {
        return PodReplacement::All;
    }
    // The API's defaults.
    let quarter = CountOrPercent::Percent(25);
    let share = |key| rolling_parameter(content, "strategy", key).unwrap_or(quarter);
    PodReplacement::Surge(share("maxUnavailable"), share("maxSurge"))
}

fn daemon_set(content: &Value) -> PodReplacement {
    // With a surge the API allows none to be unavailable.
    let surge = rolling_parameter(content, "updateStrategy", "maxSurge");
    match rolling_parameter(content, "updateStrategy", "maxUnavailable") {
        Some(unavailable) => PodReplacement::MaxUnavailable(unavailable),
        None if surge.is_some_and(|surge| surge.round_up(100) > 0) => PodReplacement::OnDelete,
        None => PodReplacement::MaxUnavailable(CountOrPercent::Count(1)),
    }
}

fn rolling_parameter(content: &Value, strategy: &str, key: &str) -> Option<CountOrPercent> {
    CountOrPercent::read(value_at(content, &["spec", strategy, "rollingUpdate", key]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_strategy_takes_down_as_many_as_its_controller_does() {
        fn check(kind: &str, spec: &Value, replicas: u32, expected: u32) {
            let strategy = UpdateStrategy::of(&GroupKind::new("apps", kind), &json!({ "spec": spec }));
            assert_eq!(strategy.max_loss(replicas), expected, "{kind} {spec} {replicas}");
        }
        let rolling = |strategy: &str, unavailable: Value, surge: Value| json!({ strategy: { "rollingUpdate": { "maxUnavailable": unavailable, "maxSurge": surge } } });
        check("Deployment", &json!({}), 3, 0);
        check("Deployment", &json!({}), 4, 1);
        check("Deployment", &json!({}), 10, 2);
        check("Deployment", &rolling("strategy", json!(0), json!(0)), 3, 1);
        check("Deployment", &rolling("strategy", json!("50%"), json!(1)), 5, 2);
        check("Deployment", &rolling("strategy", json!(9), json!(1)), 5, 5);
        check("Deployment", &json!({ "strategy": { "type": "Recreate" } }), 5, 5);
        check("Deployment", &json!({ "paused": true, "strategy": { "type": "Recreate" } }), 5, 0);
        check("StatefulSet", &json!({}), 5, 1);
        check("StatefulSet", &rolling("updateStrategy", json!("50%"), json!(null)), 5, 3);
        check("StatefulSet", &json!({ "updateStrategy": { "type": "OnDelete" } }), 5, 0);
        check("StatefulSet", &json!({}), 0, 0);
        check("DaemonSet", &json!({}), 5, 1);
        check("DaemonSet", &rolling("updateStrategy", json!("10%"), json!(0)), 11, 2);
        check("DaemonSet", &rolling("updateStrategy", json!(null), json!(1)), 11, 0);
        check("Service", &json!({}), 3, 0);
    }
}
