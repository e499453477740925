//! The text of rejections in the inventory of a source: one line of JSON each.

use serde::{Deserialize, Serialize};

use crate::engine::facts::hash_seal::{HashCipherStatus, HashCiphers};
use crate::engine::facts::records::rejection::{Rejection, RejectionAction};
use crate::engine::rollout::ledger_text::UnitText;
use crate::engine::rollout::rollback::rejection::bound_cause;

#[derive(Serialize, Deserialize)]
struct RejectionText {
    #[serde(rename = "way")]
    action: RejectionAction,
    cause: String,
    unit: UnitText,
}

/// Returns the text of rejections: one line of JSON each. None where the hash of a Secret is to be
/// sealed, and no key is known.
pub(crate) fn rejections_text(rejections: &[Rejection], seals: &HashCiphers) -> Option<String> {
    let line = |rejection: &Rejection| {
        let text = RejectionText {
            action: rejection.action,
            cause: rejection.cause.to_string(),
            unit: UnitText::of(&rejection.unit, seals)?,
        };
        Some(format!("{}\n", serde_json::to_string(&text).ok()?))
    };
    rejections.iter().map(line).collect()
}

/// Returns whether a line of what [`rejections_text`] writes can be read.
pub(crate) fn is_readable_rejection(line: &str) -> bool {
    serde_json::from_str::<RejectionText>(line).is_ok()
}

/// Reads what [`rejections_text`] writes. A line that cannot be read is left out.
pub(crate) fn parse_rejections(text: &str, seals: &HashCiphers) -> Vec<Rejection> {
    let read = |line: &str| {
        let read: RejectionText = serde_json::from_str(line).ok()?;
        Some(Rejection { unit: read.unit.read(seals), action: read.action, cause: bound_cause(read.cause) })
    };
    text.lines().filter_map(read).collect()
}

/// Returns how the hashes of Secrets are written in a text that [`rejections_text`] has written.
pub(crate) fn rejections_seal_status(text: &str, seals: &HashCiphers) -> HashCipherStatus {
    let read = |line| serde_json::from_str::<RejectionText>(line).ok();
    text.lines()
        .filter(|line| HashCiphers::can_be_in(line))
        .filter_map(read)
        .map(|read| read.unit.seal_status(seals))
        .max()
        .unwrap_or_default()
}
