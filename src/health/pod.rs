//! Pod.

use serde_json::Value;

use super::view::{HealthView, failed_health, in_progress_health};
use super::{Health, HealthStatus};
use crate::object::{text_at, value_at};

/// Reasons of a waiting container that do not pass while the pod stays as it is. (A registry that
/// comes back heals an image pull; a rollout waits a minute for it.)
const STUCK_REASONS: [&str; 8] = [
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

pub(super) fn of(view: &HealthView<'_>) -> Health {
    match view.status_text("phase") {
        "Succeeded" => Health::current(),
        "Failed" => failed_health(&failure_reason(view)),
        "Unknown" => Health::new(HealthStatus::Unknown, "its node does not report"),
        "Running" if view.holds("Ready").is_some() => Health::current(),
        phase => stuck_reason(view).map_or_else(
            || in_progress_health(&pending_reason(view, phase)),
            |message| failed_health(&message),
        ),
    }
}

fn containers<'a>(view: &HealthView<'a>) -> impl Iterator<Item = &'a Value> {
    view.status_list("initContainerStatuses").iter().chain(view.status_list("containerStatuses"))
}

fn stuck_reason(view: &HealthView<'_>) -> Option<String> {
    containers(view).find_map(|container| {
        let waiting = value_at(container, &["state", "waiting"])?;
        let reason = text_at(waiting, &["reason"]);
        let name = text_at(container, &["name"]);
        let colon = if text_at(waiting, &["message"]).is_empty() { "" } else { ": " };
        STUCK_REASONS
            .contains(&reason)
            .then(|| format!("container {name} is in {reason}{colon}{}", text_at(waiting, &["message"])))
    })
}

fn pending_reason(view: &HealthView<'_>, phase: &str) -> String {
    if let Some(condition) = view.condition("PodScheduled").filter(|condition| condition.has_status("False"))
    {
        return format!("is not scheduled: {}", condition.message_or("no reason given"));
    }
    if phase == "Running" {
        let condition = view.condition("Ready").map(|condition| condition.message_or("")).unwrap_or_default();
        let colon = if condition.is_empty() { "" } else { ": " };
        return format!("is running but not ready{colon}{condition}");
    }
    let waiting = containers(view).find_map(|container| {
        let reason = text_at(container, &["state", "waiting", "reason"]);
        (!reason.is_empty()).then(|| format!("container {} is in {reason}", text_at(container, &["name"])))
    });
    waiting.unwrap_or_else(|| "has not started yet".to_owned())
}

fn failure_reason(view: &HealthView<'_>) -> String {
    let (reason, message) = (view.status_text("reason"), view.status_text("message"));
    if !reason.is_empty() || !message.is_empty() {
        let colon = if reason.is_empty() || message.is_empty() { "" } else { ": " };
        return format!("{reason}{colon}{message}");
    }
    let ended = containers(view).find_map(|container| {
        let terminated = value_at(container, &["state", "terminated"])?;
        let code = terminated.get("exitCode")?.as_i64().filter(|code| *code != 0)?;
        let (name, reason) = (text_at(container, &["name"]), text_at(terminated, &["reason"]));
        Some(format!("container {name} exited with code {code} {reason}"))
    });
    ended.unwrap_or_else(|| "has failed".to_owned())
}
