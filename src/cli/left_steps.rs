//! Workloads that stay at a step of their rollout when nobody serves their source any more, and the
//! command that lets each go.
//!
//! rhumb lets none of them go by itself: the step waits for somebody's judgement of the new pods.

use serde_json::json;

use super::object_argument::ObjectArgument;
use crate::engine::RolloutOverlayState;
use crate::object::{ObjectId, annotations};

/// Returns the words about a workload that is left at a step; none where nothing holds it.
pub(super) fn left_step_text(id: &ObjectId, shown: RolloutOverlayState) -> Option<String> {
    let step = match shown {
        RolloutOverlayState::Overlaid(overlay) => format!("step {}", overlay.step()?),
        RolloutOverlayState::Unreadable => "a step".to_owned(),
        RolloutOverlayState::Plain | RolloutOverlayState::Other => return None,
    };
    let command = release_command(id)?;
    Some(format!(
        "{} stays at {step} of its rollout; this lets it go, by the default strategy of its kind: {command}",
        ObjectArgument::of(id)
    ))
}

/// Returns the command that takes the marks of a step off. The values of the manifest are not known
/// then, so the defaults of the API take their place.
fn release_command(id: &ObjectId) -> Option<String> {
    let spec = match id.kind() {
        "Deployment" => json!({
            "minReadySeconds": null,
            "progressDeadlineSeconds": null,
            "strategy": { "rollingUpdate": null },
        }),
        "StatefulSet" => json!({ "updateStrategy": { "rollingUpdate": { "partition": null } } }),
        "DaemonSet" => json!({ "updateStrategy": null }),
        _ => return None,
    };
    let patch = json!({ "metadata": { "annotations": { annotations::OVERLAY: null } }, "spec": spec });
    let (namespace, kind) = (id.namespace().unwrap_or_default(), id.kind().to_ascii_lowercase());
    Some(format!("kubectl -n {namespace} patch {kind} {} --type=merge -p '{patch}'", id.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    #[test]
    fn only_a_workload_at_a_step_is_named_with_the_command_that_lets_it_go() {
        let check = |kind: &str, overlay: &str, expected: Option<(&str, &str)>| {
            let id = ObjectId::new(&GroupKind::new("apps", kind), Some("shop"), "web");
            let text = left_step_text(&id, RolloutOverlayState::read(Some(overlay)));
            let expected = expected.map(|(step, spec)| {
                let kind = kind.to_ascii_lowercase();
                format!(
                    "shop/{kind}.apps/web stays at {step} of its rollout; this lets it go, by the default \
                     strategy of its kind: kubectl -n shop patch {kind} web --type=merge -p \
                     '{{\"metadata\":{{\"annotations\":{{\"rhumb.dev/overlay\":null}}}},\"spec\":{spec}}}'"
                )
            });
            assert_eq!(text, expected);
        };
        let deployment =
            r#"{"minReadySeconds":null,"progressDeadlineSeconds":null,"strategy":{"rollingUpdate":null}}"#;
        check("Deployment", "surge=2 step=1", Some(("step 1", deployment)));
        check("Deployment", "in-place=1 step=2", Some(("step 2", deployment)));
        check("Deployment", "garbled", Some(("a step", deployment)));
        check("Deployment", "narrow=1", None);
        let set = r#"{"updateStrategy":{"rollingUpdate":{"partition":null}}}"#;
        check("StatefulSet", "partition=3 step=1", Some(("step 1", set)));
        check("DaemonSet", "on-delete step=1", Some(("step 1", r#"{"updateStrategy":null}"#)));
        let id = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
        assert_eq!(left_step_text(&id, RolloutOverlayState::Plain), None);
    }
}
