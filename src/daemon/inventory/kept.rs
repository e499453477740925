//! The lines about kept objects in an inventory.

use super::{object_words, parse_object};
use crate::cluster::InventoryObject;
use crate::engine::{KeptObjects, KeptTiming, PruneTiming};
use crate::object::ObjectId;

/// Data key with the objects that are kept when nobody wants them: one line an object.
pub(in crate::daemon) const KEPT_KEY: &str = "kept";

/// The most bytes about kept objects: some four thousand lines.
const MAX_KEPT_BYTES: usize = 200_000;

/// The line that stands for those that have no room.
const MORE_KEPT_WORDS: &str = "and others";

/// Returns the objects that an inventory records as kept.
pub(crate) fn kept_objects(inventory: &InventoryObject) -> KeptObjects {
    let mut kept = KeptObjects::default();
    for line in inventory.data.get(KEPT_KEY).into_iter().flat_map(|text| text.lines()) {
        match parse_kept(line) {
            Some((id, kept_timing)) => drop(kept.timings.insert(id, kept_timing)),
            None => kept.is_truncated = true,
        }
    }
    kept
}

/// Reads one line: `never 1764338069 ConfigMap shop/env`. The number may be missing.
fn parse_kept(line: &str) -> Option<(ObjectId, KeptTiming)> {
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
    Some((parse_object(kind, name)?, KeptTiming { timing, serial }))
}

/// Returns the text about kept objects; none where there is none.
pub(in crate::daemon) fn kept_text(kept: &KeptObjects) -> Option<String> {
    let (mut text, mut has_room) = (String::new(), !kept.is_truncated);
    for (id, KeptTiming { timing, serial }) in &kept.timings {
        let word = if *timing == PruneTiming::Never { "never" } else { "confirm" };
        let line = match serial {
            0 => format!("{word} {}\n", object_words(id)),
            serial => format!("{word} {serial} {}\n", object_words(id)),
        };
        if text.len() + line.len() > MAX_KEPT_BYTES {
            has_room = false;
            break;
        }
        text.push_str(&line);
    }
    if !has_room {
        text.push_str(MORE_KEPT_WORDS);
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    #[test]
    fn kept_objects_are_read_as_they_were_written_and_within_bounds() {
        let read = |text: &str| {
            kept_objects(&InventoryObject {
                data: [(KEPT_KEY.to_owned(), text.to_owned())].into(),
                ..InventoryObject::default()
            })
        };
        let kept_as = |timing, serial| KeptTiming { timing, serial };
        let id = |kind: &str, namespace, name: &str| ObjectId::new(&GroupKind::parse(kind), namespace, name);
        let kept = KeptObjects {
            timings: [
                (id("ConfigMap", Some("shop"), "env"), kept_as(PruneTiming::Never, 0)),
                (id("ConfigMap", Some("shop"), "new"), kept_as(PruneTiming::Never, 1_764_338_069)),
                (
                    id("ClusterRole.rbac.authorization.k8s.io", None, "a b\nc"),
                    kept_as(PruneTiming::OnConfirmation, 7),
                ),
            ]
            .into(),
            is_truncated: false,
        };
        let text = kept_text(&kept).unwrap();
        assert!(text.contains("never ConfigMap shop/env\n") && text.lines().count() == 3, "{text}");
        assert_eq!(read(&text), kept);
        assert_eq!(kept_text(&KeptObjects::default()), None);
        // Of what cannot be read nobody knows which object it is.
        for line in [
            "",
            "never",
            "never ConfigMap",
            "never ConfigMap env",
            "never 1x ConfigMap shop/env",
            "always ConfigMap shop/env",
            MORE_KEPT_WORDS,
        ] {
            assert!(read(&format!("{text}{line}\n")).is_truncated, "{line}");
            assert_eq!(read(&format!("{text}{line}\n")).timings, kept.timings, "{line}");
        }
        let many = (0..10_000)
            .map(|n| (id("ConfigMap", Some("shop"), &format!("env-{n}")), kept_as(PruneTiming::Never, 0)));
        let text = kept_text(&KeptObjects { timings: many.collect(), is_truncated: false }).unwrap();
        assert!(text.len() <= MAX_KEPT_BYTES + MORE_KEPT_WORDS.len(), "{} bytes", text.len());
        let back = read(&text);
        assert!(back.is_truncated && back.timings.len() > 4000, "{} objects", back.timings.len());
        // Once there is no room for all, it is not known any more which ones there were.
        assert_eq!(kept_text(&back).as_deref(), Some(&*text));
    }

    #[test]
    fn so_many_kept_objects_are_named_as_have_room() {
        let line_bytes = "never ConfigMap shop/env-000000\n".len();
        let most = MAX_KEPT_BYTES / line_bytes;
        assert_eq!(most * line_bytes, MAX_KEPT_BYTES, "the last one has just enough");
        let kept_as = KeptTiming { timing: PruneTiming::Never, serial: 0 };
        let id = |number| {
            ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), &format!("env-{number:06}"))
        };
        for (count, is_truncated) in [(most, false), (most + 1, true)] {
            let timings = (0..count).map(|number| (id(number), kept_as)).collect();
            let text = kept_text(&KeptObjects { timings, is_truncated: false }).unwrap();
            let named = text.lines().filter(|line| *line != MORE_KEPT_WORDS).count();
            assert_eq!((named, text.ends_with(MORE_KEPT_WORDS)), (most, is_truncated), "{count}");
        }
    }
}
