//! Inventories: texts of ConfigMaps that whoever may write them may write.

use super::*;
use crate::fuzz_tests::{FuzzTarget, fuzz, seeds, shape};

const WORDS: &[&str] = &[
    "never ",
    "confirm ",
    "1764338069 ",
    "ConfigMap shop/env",
    "ClusterRole.rbac.authorization.k8s.io /a:b",
    "%20",
    "%0A",
    "%",
    "and others",
    "{\"others\":true}",
    "\"object\":\"ConfigMap/shop/env\",",
    "\"prune\":\"confirm\",",
    "\"serial\":18446744073709551615,",
    "\"failed\":true,",
    "\\n",
    "00112233445566778899aabbccddeeff",
    " ",
    "  ",
    "/",
    ".",
    "\n",
    "\r",
    "\u{2028}",
    " and ",
];

/// Returns an inventory that has this text wherever one is.
fn inventory_of(text: &str) -> InventoryObject {
    let keys = [
        PENDING_PRUNES_KEY,
        FINISHED_JOBS_KEY,
        REJECTED_KEY,
        ACKNOWLEDGED_KEY,
        CONFIRMED_PRUNES_KEY,
        UNLISTED_PENDING_KEY,
        PRUNE_CLOSED_KEY,
        KEPT_KEY,
        handover::STATEMENT_KEY,
    ];
    InventoryObject {
        data: keys.map(|key| (key.to_owned(), text.to_owned())).into(),
        annotations: [annotations::SOURCE, annotations::PAUSED]
            .map(|key| (key.to_owned(), text.to_owned()))
            .into(),
        ..InventoryObject::default()
    }
}

fn check(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let inventory = inventory_of(&text);
    let read = read(Some(&inventory), "git+https://x/y", &HashCiphers::default());
    let pending = inventory.pending_prunes();
    for prune in &pending {
        let line = prune.line();
        assert_eq!(line.lines().count(), 1, "{line:?}");
        assert_eq!(PendingPrune::parse(&line).as_ref(), Some(prune), "{line:?}");
    }
    let kept = kept_text(&read.kept).map(|text| inventory_of(&text).kept_objects());
    assert_eq!(kept.unwrap_or_default(), read.kept, "{:?}", kept_text(&read.kept));
    assert_eq!(parse_finished_jobs(&finished_jobs_text(&read.finished)), read.finished);
    let unreadable = UnreadableRecords::find(&inventory, "rhumb", "shop").into_texts();
    assert!(unreadable.iter().all(|text| text.len() < 1000), "{unreadable:?}");
    let stays = [
        unreadable_records::kept_rejections(Some(&inventory)),
        unreadable_records::kept_finished_jobs(Some(&inventory)),
    ];
    assert!(stays.iter().all(|kept| kept.len() <= text.len() + 1), "{stays:?}");
    assert!(join_locations("a", &text).matches(LOCATION_SEPARATOR).count() < MAX_LOCATIONS);
    shape((
        pending.len(),
        read.kept.timings.len(),
        read.kept.is_truncated,
        read.finished.len(),
        read.confirmed.len(),
        read.acknowledged.len(),
        (unreadable.len(), inventory.unlisted_prune_count() > 0, read.paused.is_some()),
    ))
}

#[test]
fn inventory_texts() {
    let hash = "00112233445566778899aabbccddeeff";
    let seeds = seeds(&[
        "u-1 ConfigMap shop/env nobody wants it\nu-2 ClusterRole.rbac.authorization.k8s.io /a%20b it is first\n".to_owned(),
        "never 1764338069 ConfigMap shop/env\nconfirm Secret shop/a\nand others".to_owned(),
        format!("Job.batch shop/migrate {hash}\n"),
        "{\"uid\":\"u-1\",\"object\":\"ConfigMap/shop/env\",\"reason\":\"nobody wants it\"}\n".to_owned(),
        "{\"object\":\"ConfigMap/shop/env\",\"prune\":\"never\",\"serial\":1764338069}\n{\"others\":true}".to_owned(),
        format!("{{\"object\":\"Job.batch/shop/migrate\",\"content\":\"{hash}\",\"failed\":true}}\n"),
        "git+https://x/y and /srv/manifests and /srv/b".to_owned(),
        "since 2030-01-01 00:00:00 UTC: why".to_owned(),
        "17".to_owned(),
    ]);
    fuzz(&FuzzTarget { name: "inventory_texts", seeds, words: WORDS, inputs: 2000 }, check);
}
