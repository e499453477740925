//! The annotations by which a workload asks for steps, and what is wrong with them.

use crate::object::annotations::{STEP_MODE, STEP_NODES, STEP_PROMOTE, STEP_SOAK, STEPS};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::facts::label_selector::LabelSelector;
use crate::engine::{PromotionMode, StepSize, Steps};
use crate::object::{parse_duration, text_at, value_at};

/// All annotations about steps.
pub(in crate::engine) const STEP_ANNOTATIONS: [&str; 5] =
    [STEPS, STEP_SOAK, STEP_PROMOTE, STEP_MODE, STEP_NODES];

/// The mechanism that holds a workload in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::engine) enum StepMechanism {
    Surge,
    InPlace,
    Partition,
    OnDelete,
}

/// A fault in the annotations.
pub(in crate::engine) struct StepFinding {
    pub(in crate::engine) is_error: bool,
    pub(in crate::engine) message: String,
    pub(in crate::engine) hint: String,
}

/// The steps in a content's annotations.
#[derive(Default)]
pub(in crate::engine) struct ParsedSteps {
    pub(in crate::engine) steps: Option<Steps>,
    pub(in crate::engine) found: Vec<StepFinding>,
}

impl ParsedSteps {
    fn add_error(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.found.push(StepFinding { is_error: true, message: message.into(), hint: hint.into() });
    }

    fn add_warning(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.found.push(StepFinding { is_error: false, message: message.into(), hint: hint.into() });
    }
}

fn annotation_text<'a>(content: &'a Value, key: &str) -> Option<&'a str> {
    value_at(content, &["metadata", "annotations", key])?.as_str()
}

pub(in crate::engine) fn read(content: &Value) -> ParsedSteps {
    let mut read = ParsedSteps::default();
    let used = STEP_ANNOTATIONS.into_iter().filter(|key| annotation_text(content, key).is_some());
    let Some(text) = annotation_text(content, STEPS) else {
        for key in used {
            read.add_warning(
                format!("{key} has no effect without {STEPS}"),
                format!("add {STEPS}, for example \"1, 25%, 50%\""),
            );
        }
        return read;
    };
    let kind = text_at(content, &["kind"]);
    let is_apps = text_at(content, &["apiVersion"]).starts_with("apps/");
    let mechanism = match kind {
        "Deployment" if is_apps => StepMechanism::Surge,
        "StatefulSet" if is_apps => StepMechanism::Partition,
        "DaemonSet" if is_apps => StepMechanism::OnDelete,
        _ => {
            let message =
                format!("{STEPS} is for Deployments, StatefulSets and DaemonSets, and this is a {kind}");
            read.add_error(message, "take it out");
            return read;
        }
    };
    let sizes = parse_sizes(text, &mut read);
    let steps = Steps {
        sizes,
        soak: parse_soak(content, &mut read),
        promote: parse_promotion(content, &mut read),
        mechanism: parse_mode(content, mechanism, &mut read),
        nodes: parse_node_selector(content, mechanism, &mut read),
        manifest_partition: partition_size(content, mechanism),
    };
    read.steps = has_effect(content, kind, &mut read).then_some(steps);
    read
}

/// Returns whether the workload's own strategy lets steps work.
fn has_effect(content: &Value, kind: &str, read: &mut ParsedSteps) -> bool {
    if kind == "Deployment" {
        if text_at(content, &["spec", "strategy", "type"]) == "Recreate" {
            read.add_error(
                format!("{STEPS} cannot work with spec.strategy.type Recreate, which ends all old pods before the first new one"),
                format!("take {STEPS} out, or use the strategy RollingUpdate"),
            );
            return false;
        }
        if value_at(content, &["spec", "paused"]).and_then(Value::as_bool) == Some(true) {
            read.add_warning(
                format!("{STEPS} does not advance while spec.paused is true: no new pod is made in any step"),
                "take spec.paused out: a step holds the rollout by itself",
            );
        }
        return true;
    }
    if text_at(content, &["spec", "updateStrategy", "type"]) == "OnDelete" {
        read.add_warning(
            format!("{STEPS} has no effect with spec.updateStrategy.type OnDelete: a pod gets the new template when somebody deletes the old one"),
            format!("take {STEPS} out, or use the strategy RollingUpdate"),
        );
        return false;
    }
    true
}

fn parse_sizes(text: &str, read: &mut ParsedSteps) -> Vec<StepSize> {
    let hint = "write counts of pods, then percentages, each larger than the one before, for example \"1, 25%, 50%\"";
    let mut sizes = Vec::new();
    for part in text.split(',').map(str::trim) {
        let Some(size) = parse_size(part) else {
            read.add_error(
                format!(
                    "{STEPS} names {part:?}, which is neither a count from 1 nor a percentage from 1% to 100%"
                ),
                hint,
            );
            continue;
        };
        let is_more = match (sizes.last(), size) {
            (Some(StepSize::Pods(before)), StepSize::Pods(pods)) => pods > *before,
            (Some(StepSize::Percent(before)), StepSize::Percent(percent)) => percent > *before,
            // The order of the two depends on the replicas.
            (Some(StepSize::Percent(_)), StepSize::Pods(_)) => false,
            _ => true,
        };
        if !is_more {
            read.add_error(
                format!("{STEPS} is {text:?}, and {part} is not more than the step before it"),
                hint,
            );
        }
        sizes.push(size);
    }
    sizes
}

fn parse_size(part: &str) -> Option<StepSize> {
    let number = part.strip_suffix('%').unwrap_or(part);
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u32>().ok().filter(|number| is_plain && *number > 0)?;
    if part.ends_with('%') {
        return (number <= 100).then_some(StepSize::Percent(number));
    }
    Some(StepSize::Pods(number))
}

fn parse_soak(content: &Value, read: &mut ParsedSteps) -> Duration {
    let Some(text) = annotation_text(content, STEP_SOAK) else { return Duration::ZERO };
    parse_duration(text).unwrap_or_else(|| {
        read.add_error(
            format!("{STEP_SOAK} is {text:?}, which is no duration"),
            "write it as 90s, 5m, 1h30m or 500ms",
        );
        Duration::ZERO
    })
}

fn parse_promotion(content: &Value, read: &mut ParsedSteps) -> PromotionMode {
    match annotation_text(content, STEP_PROMOTE) {
        None | Some("auto") => PromotionMode::Auto,
        Some("manual") => PromotionMode::Manual,
        Some(text) => {
            read.add_error(format!("{STEP_PROMOTE} is {text:?}"), "it may be auto or manual");
            PromotionMode::Manual
        }
    }
}

fn parse_mode(content: &Value, mechanism: StepMechanism, read: &mut ParsedSteps) -> StepMechanism {
    let Some(text) = annotation_text(content, STEP_MODE) else { return mechanism };
    match (mechanism, text) {
        (StepMechanism::Surge, "surge") => StepMechanism::Surge,
        (StepMechanism::Surge, "in-place") => StepMechanism::InPlace,
        (StepMechanism::Surge, _) => {
            read.add_error(format!("{STEP_MODE} is {text:?}"), "it may be in-place or surge");
            mechanism
        }
        _ => {
            read.add_error(
                format!(
                    "{STEP_MODE} is for Deployments: the pods of other kinds are always replaced in place"
                ),
                "take it out",
            );
            mechanism
        }
    }
}

fn parse_node_selector(
    content: &Value,
    mechanism: StepMechanism,
    read: &mut ParsedSteps,
) -> Option<LabelSelector> {
    let text = annotation_text(content, STEP_NODES)?;
    if mechanism != StepMechanism::OnDelete {
        read.add_error(
            format!("{STEP_NODES} is for DaemonSets: other pods are not bound to nodes"),
            "take it out",
        );
        return None;
    }
    let selector = LabelSelector::parse(text);
    if selector.is_none() {
        read.add_error(
            format!("{STEP_NODES} is {text:?}, which is no label selector"),
            "write a selector of kubectl's -l, for example \"canary=true\" or \"zone in (a, b)\"",
        );
    }
    selector
}

/// Returns the number of pods that the manifest's own partition keeps back.
fn partition_size(content: &Value, mechanism: StepMechanism) -> u32 {
    let partition = value_at(content, &["spec", "updateStrategy", "rollingUpdate", "partition"]);
    let partition = partition.and_then(Value::as_u64).filter(|_| mechanism == StepMechanism::Partition);
    partition.map_or(0, |partition| u32::try_from(partition).unwrap_or(u32::MAX))
}
