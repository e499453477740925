//! The overlay: changes laid over a workload's content while its rollout is held or narrowed.
//!
//! It never touches the pod template, so laying it on or taking it off restarts nothing that the
//! content itself would not restart. An annotation on the object records it, so that later readers
//! know how far the rollout was let.

use crate::object::annotations;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::engine::facts::effective_content::set_metadata;
use crate::object::{annotation_text, text_at, value_at};

/// A `minReadySeconds` that no new pod ever reaches: held pods never count as available.
/// Old pods keep the figure of their own template, and stay available.
pub(crate) const HELD_MIN_READY_SECONDS: u32 = 2_147_483_646;
/// The API wants more than [`HELD_MIN_READY_SECONDS`], and knows no more than this.
const NO_PROGRESS_DEADLINE_SECONDS: i64 = 2_147_483_647;

/// The overlay on a workload's content. Steps count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RolloutOverlay {
    /// A Deployment makes this number of new pods beside its old ones, and waits.
    Surge {
        /// New pods, at least 1.
        pods: u32,
        /// The step that it stands for.
        step: u32,
    },
    /// A Deployment replaces this number of its pods, and waits.
    InPlace {
        /// New pods, at least 1.
        pods: u32,
        /// The step that it stands for.
        step: u32,
    },
    /// A StatefulSet replaces its pods from this position on; those before stay.
    Partition {
        /// The first position that gets the new template, from 0.
        from: u32,
        /// The step that it stands for.
        step: u32,
    },
    /// A DaemonSet replaces a pod when somebody takes the old one away, and only then.
    OnDelete {
        /// The step that it stands for.
        step: u32,
    },
    /// A Deployment or DaemonSet rolls out by itself, with at most this many pods unavailable. For
    /// a content whose own strategy takes more, as a percentage there is replaced
    /// ([`UpdateStrategy::max_loss`](crate::engine::UpdateStrategy::max_loss)).
    Narrow(u32),
}

impl RolloutOverlay {
    /// Returns the step that it stands for; none for one that holds nothing.
    pub fn step(self) -> Option<u32> {
        match self {
            Self::Surge { step, .. }
            | Self::InPlace { step, .. }
            | Self::Partition { step, .. }
            | Self::OnDelete { step } => Some(step),
            Self::Narrow(_) => None,
        }
    }

    /// Returns the overlay of two that lets fewer pods go; none where they are not the same kind of
    /// overlay of the same step.
    pub fn tightest(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Surge { pods, step }, Self::Surge { pods: others, step: same }) if step == same => {
                Some(Self::Surge { pods: pods.min(others), step })
            }
            (Self::InPlace { pods, step }, Self::InPlace { pods: others, step: same }) if step == same => {
                Some(Self::InPlace { pods: pods.min(others), step })
            }
            (Self::Partition { from, step }, Self::Partition { from: other, step: same }) if step == same => {
                Some(Self::Partition { from: from.max(other), step })
            }
            _ => None,
        }
    }
}

/// `surge=2 step=1`, `in-place=2 step=1`, `partition=3 step=1`, `on-delete step=1`, `narrow=1`.
impl fmt::Display for RolloutOverlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Surge { pods, step } => write!(f, "surge={pods} step={step}"),
            Self::InPlace { pods, step } => write!(f, "in-place={pods} step={step}"),
            Self::Partition { from, step } => write!(f, "partition={from} step={step}"),
            Self::OnDelete { step } => write!(f, "on-delete step={step}"),
            Self::Narrow(pods) => write!(f, "narrow={pods}"),
        }
    }
}

/// A text that is no overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an overlay (for example \"surge=2 step=1\")")]
pub struct ParseOverlayError;

impl FromStr for RolloutOverlay {
    type Err = ParseOverlayError;

    fn from_str(text: &str) -> Result<Self, ParseOverlayError> {
        read(text).ok_or(ParseOverlayError)
    }
}

fn read(text: &str) -> Option<RolloutOverlay> {
    let Some((kind, step)) = text.split_once(" step=") else {
        return Some(RolloutOverlay::Narrow(text.strip_prefix("narrow=")?.parse().ok()?));
    };
    let step = step.parse().ok().filter(|step| *step > 0)?;
    let Some((word, number)) = kind.split_once('=') else {
        return (kind == "on-delete").then_some(RolloutOverlay::OnDelete { step });
    };
    let number: u32 = number.parse().ok()?;
    match word {
        "surge" if number > 0 => Some(RolloutOverlay::Surge { pods: number, step }),
        "in-place" if number > 0 => Some(RolloutOverlay::InPlace { pods: number, step }),
        "partition" => Some(RolloutOverlay::Partition { from: number, step }),
        _ => None,
    }
}

/// Lays an overlay and its annotation over an effective content; without one, takes the annotation
/// out.
///
/// A content that cannot have the overlay stays as it is. That is one of another kind, a Deployment
/// that recreates its pods, or a StatefulSet whose pods wait to be deleted.
pub fn apply_overlay(mut content: Value, overlay: Option<RolloutOverlay>) -> Value {
    if let Some(annotations) = content.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(annotations::OVERLAY);
    }
    let Some(overlay) = overlay else { return content };
    if set_overlay(&mut content, overlay).is_some() {
        set_metadata(&mut content, "annotations", annotations::OVERLAY, &overlay.to_string());
    }
    content
}

/// Puts an overlay into a content. Returns none, and changes nothing, where the overlay does not
/// fit.
fn set_overlay(content: &mut Value, overlay: RolloutOverlay) -> Option<()> {
    let kind = text_at(content, &["kind"]).to_owned();
    match (&*kind, overlay) {
        ("Deployment", RolloutOverlay::Surge { pods, .. }) => hold(content, pods.max(1), 0),
        ("Deployment", RolloutOverlay::InPlace { pods, .. }) => hold(content, 0, pods.max(1)),
        ("StatefulSet", RolloutOverlay::Partition { from, .. }) => {
            let rolling = rolling_update_parameters(content, "updateStrategy")?;
            // Pods below a partition that the manifest asks for stay, whatever the step.
            let requested = rolling.get("partition").and_then(Value::as_u64).unwrap_or(0);
            rolling.insert("partition".to_owned(), requested.max(from.into()).into());
            Some(())
        }
        ("DaemonSet", RolloutOverlay::OnDelete { .. }) => {
            let spec = content.get_mut("spec")?.as_object_mut()?;
            spec.insert("updateStrategy".to_owned(), json!({ "type": "OnDelete" }));
            Some(())
        }
        ("Deployment", RolloutOverlay::Narrow(pods)) => {
            let rolling = rolling_update_parameters(content, "strategy")?;
            narrow(rolling, pods);
            // The API wants one of the two: without room for either, no pod could ever be replaced.
            if is_zero(rolling.get("maxSurge")) && is_zero(rolling.get("maxUnavailable")) {
                rolling.insert("maxSurge".to_owned(), 1.into());
            }
            Some(())
        }
        ("DaemonSet", RolloutOverlay::Narrow(pods)) => {
            let rolling = rolling_update_parameters(content, "updateStrategy")?;
            // With a surge, the API wants no unavailable pod at all, which is narrow enough.
            // Without, it wants one, and a second pod on a node is not ours to ask for.
            if is_zero(rolling.get("maxSurge").or(Some(&json!(0)))) {
                narrow(rolling, pods.max(1));
            }
            Some(())
        }
        _ => None,
    }
}

fn hold(content: &mut Value, surge: u32, unavailable: u32) -> Option<()> {
    let rolling = rolling_update_parameters(content, "strategy")?;
    rolling.insert("maxSurge".to_owned(), surge.into());
    rolling.insert("maxUnavailable".to_owned(), unavailable.into());
    let spec = content.get_mut("spec")?.as_object_mut()?;
    spec.insert("minReadySeconds".to_owned(), HELD_MIN_READY_SECONDS.into());
    spec.insert("progressDeadlineSeconds".to_owned(), NO_PROGRESS_DEADLINE_SECONDS.into());
    Some(())
}

/// Sets what may be unavailable; a lower number of the manifest's own stays.
fn narrow(rolling: &mut Map<String, Value>, pods: u32) {
    let own = rolling.get("maxUnavailable").and_then(Value::as_u64).unwrap_or(u64::MAX);
    if own > pods.into() && !is_zero(rolling.get("maxUnavailable")) {
        rolling.insert("maxUnavailable".to_owned(), pods.into());
    }
}

/// Returns the parameters of a rolling update, made where there are none; none for any other
/// strategy.
fn rolling_update_parameters<'a>(
    content: &'a mut Value,
    strategy: &str,
) -> Option<&'a mut Map<String, Value>> {
    if !matches!(text_at(content, &["spec", strategy, "type"]), "" | "RollingUpdate") {
        return None;
    }
    let spec = content.get_mut("spec")?.as_object_mut()?;
    child_map(child_map(spec, strategy)?, "rollingUpdate")
}

fn child_map<'a>(parent: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    parent.entry(key).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

/// Returns whether a count or a percentage is nothing.
fn is_zero(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value.as_u64() == Some(0) || value.as_str().is_some_and(|text| text == "0%"))
}

/// The state of the overlay for the template that is to be rolled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RolloutOverlayState {
    /// Another template: its rollout has not begun.
    Other,
    /// This template, and nothing holds it.
    Plain,
    /// This template under an overlay.
    Overlaid(RolloutOverlay),
    /// This template under an overlay that cannot be read.
    Unreadable,
}

impl RolloutOverlayState {
    /// Reads the annotations of a live object that has the template.
    pub fn of(object: &Value) -> Self {
        let is_there = value_at(object, &["metadata", "annotations", annotations::OVERLAY]).is_some();
        Self::read(is_there.then(|| annotation_text(object, annotations::OVERLAY)))
    }

    /// Reads the annotation [`annotations::OVERLAY`] of a live object that has the template.
    pub fn read(annotation: Option<&str>) -> Self {
        annotation.map_or(Self::Plain, |text| text.parse().map_or(Self::Unreadable, Self::Overlaid))
    }
}

impl From<Option<RolloutOverlay>> for RolloutOverlayState {
    fn from(overlay: Option<RolloutOverlay>) -> Self {
        overlay.map_or(Self::Plain, Self::Overlaid)
    }
}

/// Returns whether an overlay lets no more pods go than the one that is shown, and holds the same
/// step.
pub(in crate::engine) fn is_tightening(shown: RolloutOverlayState, overlay: Option<RolloutOverlay>) -> bool {
    match (shown, overlay) {
        (RolloutOverlayState::Overlaid(shown), Some(overlay)) => {
            shown != overlay && shown.tightest(overlay) == Some(overlay)
        }
        _ => false,
    }
}
