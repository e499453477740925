//! When a hook runs, by its own words.

use serde_json::Value;

use crate::object::annotation_text;

use super::hook_order::HookPhase;

/// The word of helm that makes an object a hook.
pub(super) const HOOK_ANNOTATION: &str = "helm.sh/hook";

/// The words of helm for other events, at which no hook is run here.
const OTHER_EVENTS: [&str; 4] = ["pre-delete", "post-delete", "pre-rollback", "post-rollback"];

/// An event of helm at which a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookEvent {
    PreInstall,
    PostInstall,
    PreUpgrade,
    PostUpgrade,
    Test,
}

impl HookEvent {
    /// Returns the event of a word in small letters; none for any other one.
    fn of(word: &str) -> Option<Self> {
        match word {
            "pre-install" => Some(Self::PreInstall),
            "post-install" => Some(Self::PostInstall),
            "pre-upgrade" => Some(Self::PreUpgrade),
            "post-upgrade" => Some(Self::PostUpgrade),
            "test" | "test-success" => Some(Self::Test),
            _ => None,
        }
    }
}

/// The events at which one hook runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HookEvents(Vec<HookEvent>);

impl HookEvents {
    /// Returns the events of a hook; none of an object that is no hook.
    ///
    /// A word that helm does not know makes no hook. helm prints no template with one, but the
    /// files in `crds/` as they are: older versions took `crd-install` there.
    pub(super) fn of(body: &Value) -> Option<Self> {
        let text = annotation_text(body, HOOK_ANNOTATION).to_ascii_lowercase();
        let mut events = Vec::new();
        for word in text.split(',').map(str::trim) {
            match HookEvent::of(word) {
                Some(event) => events.push(event),
                None if OTHER_EVENTS.contains(&word) => {}
                None => return None,
            }
        }
        Some(Self(events))
    }

    pub(super) fn has(&self, event: HookEvent) -> bool {
        self.0.contains(&event)
    }

    /// Returns when it runs; none where it never does, as one that is a test alone. The needs of an
    /// installation decide: before a first one there is nothing that an upgrade would find.
    pub(super) fn phase(&self) -> Option<HookPhase> {
        let phases = [
            (HookEvent::PreInstall, HookPhase::Before),
            (HookEvent::PostInstall, HookPhase::After),
            (HookEvent::PreUpgrade, HookPhase::Before),
            (HookEvent::PostUpgrade, HookPhase::After),
        ];
        phases.into_iter().find(|(event, _)| self.has(*event)).map(|(_, phase)| phase)
    }

    /// Returns whether it runs only when the release is new.
    pub(super) fn is_only_installation(&self) -> bool {
        !self.has(HookEvent::PreUpgrade) && !self.has(HookEvent::PostUpgrade)
    }

    /// Returns what is done otherwise than by helm.
    pub(super) fn notice(&self) -> Option<&'static str> {
        let installs = (self.has(HookEvent::PreInstall), self.has(HookEvent::PostInstall));
        let upgrades = (self.has(HookEvent::PreUpgrade), self.has(HookEvent::PostUpgrade));
        match (installs, upgrades) {
            ((true, true), _) => Some("it asks to run before and after the rest, and runs once, before"),
            ((true, false), (false, true)) => {
                Some("it asks to run after an upgrade, and runs before the rest, as at an installation")
            }
            ((false, true), (true, _)) => {
                Some("it asks to run before an upgrade, and runs after the rest, as at an installation")
            }
            ((false, false), _) => {
                Some("it asks to run at upgrades alone, and runs when the release is new too")
            }
            _ => None,
        }
    }
}
