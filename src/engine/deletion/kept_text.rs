//! The kept objects of a source, as its inventory lists them: one line of JSON each.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::engine::deletion::pending_prune::parse_older_object;
use crate::engine::facts::records::json_lines::try_add_line;
use crate::engine::facts::records::kept_objects::{KeptObjects, KeptTiming};
use crate::engine::{PruneTiming, object_word, parse_object_word};
use crate::object::ObjectId;

/// The most bytes about kept objects: some four thousand lines.
const MAX_KEPT_BYTES: usize = 220_000;

/// The line that stands for those that have no room. It names no object, so it cannot be read.
const MORE_KEPT_LINE: &str = r#"{"others":true}"#;

/// The form of one kept object in JSON.
#[derive(Serialize, Deserialize)]
struct KeptText<'a> {
    object: Cow<'a, str>,
    #[serde(rename = "prune")]
    timing: KeptTimingText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    serial: Option<u64>,
}

/// The form of the time of a deletion in JSON.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KeptTimingText {
    Never,
    Confirm,
}

impl KeptTimingText {
    fn of(timing: PruneTiming) -> Self {
        if timing == PruneTiming::Never { Self::Never } else { Self::Confirm }
    }

    fn timing(self) -> PruneTiming {
        match self {
            Self::Never => PruneTiming::Never,
            Self::Confirm => PruneTiming::OnConfirmation,
        }
    }
}

/// Reads the objects that an inventory records as kept.
pub(crate) fn parse_kept_objects(text: &str) -> KeptObjects {
    let mut kept = KeptObjects::default();
    for line in text.lines() {
        match parse_kept_object(line) {
            Some((id, kept_timing)) => drop(kept.timings.insert(id, kept_timing)),
            None => kept.is_truncated = true,
        }
    }
    kept
}

fn parse_kept_object(line: &str) -> Option<(ObjectId, KeptTiming)> {
    if !line.starts_with('{') {
        return parse_older_line(line);
    }
    let read: KeptText<'_> = serde_json::from_str(line).ok()?;
    let kept = KeptTiming { timing: read.timing.timing(), serial: read.serial.unwrap_or_default() };
    Some((parse_object_word(&read.object)?, kept))
}

/// Reads the line of an earlier version: `never 1764338069 ConfigMap shop/env`. The number may be
/// missing.
fn parse_older_line(line: &str) -> Option<(ObjectId, KeptTiming)> {
    let (timing, rest) = line.split_once(' ')?;
    let (serial, object) = match rest.split_once(' ') {
        Some((number, object)) if number.starts_with(|first: char| first.is_ascii_digit()) => {
            (number.parse().ok()?, object)
        }
        _ => (0, rest),
    };
    let timing = match timing {
        "never" => PruneTiming::Never,
        "confirm" => PruneTiming::OnConfirmation,
        _ => return None,
    };
    let (kind, name) = object.split_once(' ')?;
    Some((parse_older_object(kind, name)?, KeptTiming { timing, serial }))
}

/// Returns the text about kept objects; none where there is none.
pub(crate) fn kept_text(kept: &KeptObjects) -> Option<String> {
    let (mut text, mut has_room) = (String::new(), !kept.is_truncated);
    for (id, KeptTiming { timing, serial }) in &kept.timings {
        let line = KeptText {
            object: object_word(id).into(),
            timing: KeptTimingText::of(*timing),
            serial: (*serial != 0).then_some(*serial),
        };
        if !try_add_line(&mut text, &line, MAX_KEPT_BYTES) {
            has_room = false;
            break;
        }
    }
    if !has_room {
        text.push_str(MORE_KEPT_LINE);
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    fn id(kind: &str, namespace: Option<&str>, name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::parse(kind), namespace, name)
    }

    fn kept_as(timing: PruneTiming, serial: u64) -> KeptTiming {
        KeptTiming { timing, serial }
    }

    /// Returns three kept objects, one of them with a name that no line of words could hold.
    fn three_objects() -> KeptObjects {
        let role = id("ClusterRole.rbac.authorization.k8s.io", None, "a b\nc");
        let timings = [
            (id("ConfigMap", Some("shop"), "env"), kept_as(PruneTiming::Never, 0)),
            (id("ConfigMap", Some("shop"), "new"), kept_as(PruneTiming::Never, 1_764_338_069)),
            (role, kept_as(PruneTiming::OnConfirmation, 7)),
        ];
        KeptObjects { timings: timings.into(), is_truncated: false }
    }

    #[test]
    fn kept_objects_are_read_as_they_were_written() {
        let text = kept_text(&three_objects()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        let expected = [
            r#"{"object":"ClusterRole.rbac.authorization.k8s.io//a b\nc","prune":"confirm","serial":7}"#,
            r#"{"object":"ConfigMap/shop/env","prune":"never"}"#,
            r#"{"object":"ConfigMap/shop/new","prune":"never","serial":1764338069}"#,
        ];
        assert_eq!(lines, expected);
        assert_eq!(parse_kept_objects(&text), three_objects());
        assert_eq!(kept_text(&KeptObjects::default()), None);
    }

    #[test]
    fn lines_of_an_earlier_version_are_read() {
        let text = "never ConfigMap shop/env\nnever 1764338069 ConfigMap shop/new\n\
                    confirm 7 ClusterRole.rbac.authorization.k8s.io /a%20b%0Ac\n";
        assert_eq!(parse_kept_objects(text), three_objects());
        assert!(parse_kept_objects("and others").is_truncated);
    }

    // Of what cannot be read nobody knows which object it is.
    #[test]
    fn a_line_that_cannot_be_read_may_keep_any_object() {
        let text = kept_text(&three_objects()).unwrap();
        for line in [
            "",
            "never",
            "never ConfigMap",
            "never ConfigMap env",
            "never 1x ConfigMap shop/env",
            "always ConfigMap shop/env",
            "{}",
            r#"{"object":"ConfigMap/shop/env"}"#,
            r#"{"object":"env","prune":"never"}"#,
            r#"{"object":"ConfigMap/shop/env","prune":"always"}"#,
            r#"{"object":"ConfigMap/shop/env","prune":"never","serial":-1}"#,
            MORE_KEPT_LINE,
        ] {
            let read = parse_kept_objects(&format!("{text}{line}\n"));
            assert!(read.is_truncated, "{line}");
            assert_eq!(read.timings, three_objects().timings, "{line}");
        }
    }

    #[test]
    fn where_there_was_no_room_for_all_it_stays_unknown_which_ones_there_were() {
        let many = (0..10_000)
            .map(|n| (id("ConfigMap", Some("shop"), &format!("env-{n}")), kept_as(PruneTiming::Never, 0)));
        let text = kept_text(&KeptObjects { timings: many.collect(), is_truncated: false }).unwrap();
        assert!(text.len() <= MAX_KEPT_BYTES + MORE_KEPT_LINE.len(), "{} bytes", text.len());
        let back = parse_kept_objects(&text);
        assert!(back.is_truncated && back.timings.len() > 4000, "{} objects", back.timings.len());
        assert_eq!(kept_text(&back).as_deref(), Some(&*text));
    }

    #[test]
    fn so_many_kept_objects_are_named_as_have_room() {
        let line_bytes = "{\"object\":\"ConfigMap/shop/env-000000\",\"prune\":\"never\"}\n".len();
        let most = MAX_KEPT_BYTES / line_bytes;
        assert_eq!(most * line_bytes, MAX_KEPT_BYTES, "the last one has just enough");
        for (count, is_truncated) in [(most, false), (most + 1, true)] {
            let name = |number| id("ConfigMap", Some("shop"), &format!("env-{number:06}"));
            let timings = (0..count).map(|number| (name(number), kept_as(PruneTiming::Never, 0))).collect();
            let text = kept_text(&KeptObjects { timings, is_truncated: false }).unwrap();
            let named = text.lines().filter(|line| *line != MORE_KEPT_LINE).count();
            assert_eq!((named, text.ends_with(MORE_KEPT_LINE)), (most, is_truncated), "{count}");
        }
    }
}
