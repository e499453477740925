use serde_json::{Value, json};

use super::*;

#[test]
fn the_default_allows_a_tenth_but_at_most_ten() {
    fn check(total: u32, most: u32) {
        let radius = BlastRadius::default();
        assert!((0..=most).all(|pruned| radius.has_room_for(pruned, total)), "{most} of {total}");
        assert!((most + 1..most + 20).all(|pruned| !radius.has_room_for(pruned, total)), "{most} of {total}");
    }
    check(0, 1);
    check(1, 1);
    check(9, 1);
    check(19, 1);
    check(20, 2);
    check(99, 9);
    check(100, 10);
    check(1000, 10);
    check(u32::MAX, 10);
}

#[test]
fn a_bound_of_zero_lets_every_prune_wait() {
    for radius in ["0", "0%"] {
        let radius: BlastRadius = radius.parse().unwrap();
        assert!(radius.has_room_for(0, 100));
        assert!(!radius.has_room_for(1, 100));
    }
}

#[test]
fn a_blast_radius_reads_in_three_forms() {
    fn check(form: Value, expected: Option<(u32, u8)>) {
        let read: Option<BlastRadius> = serde_json::from_value(form.clone()).ok();
        assert_eq!(read.map(|radius| (radius.count, radius.percent)), expected, "{form}");
        if let Some(radius) = read {
            assert_eq!(serde_json::to_value(radius).unwrap(), form);
        }
    }
    check(json!(10), Some((10, 100)));
    check(json!("10%"), Some((u32::MAX, 10)));
    check(json!({"count": 5, "percent": 20}), Some((5, 20)));
    check(json!({"count": 5, "percent": 101}), None);
    check(json!({"count": 5}), None);
    check(json!({"count": 5, "percent": 1, "share": 1}), None);
    check(json!("101%"), None);
    check(json!(-1), None);
    check(json!("ten"), None);
    check(json!(true), None);
}

#[test]
fn the_words_of_adoption_are_those_of_the_file() {
    for adopt in AdoptPolicy::ALL {
        assert_eq!(serde_json::to_value(adopt).unwrap(), json!(adopt.label()));
    }
}
