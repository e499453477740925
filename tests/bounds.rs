//! The comparison of a benchmark's ratios with their bounds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its own functions")]

#[path = "../benches/bench/bounds.rs"]
mod bounds;

use bounds::{Ratio, missed_bounds, parse_bounds};

const BOUNDS: &str = r#"[
    { "scenario": "s1", "ratio": "apply-pace", "atLeast": 0.7 },
    { "scenario": "s2", "ratio": "commit-growth", "atMost": 1.3 }
]"#;

fn check(chosen: &[&str], measured: &[(Ratio, f64)], expected: &[&str]) {
    let bounds = parse_bounds(BOUNDS).unwrap();
    let missed = missed_bounds(&bounds, |scenario| chosen.contains(&scenario), measured);
    let words: Vec<String> = missed.iter().map(ToString::to_string).collect();
    assert_eq!(words, expected, "{chosen:?} {measured:?}");
}

#[test]
fn a_ratio_beyond_its_bound_is_named() {
    let of = |pace, growth| [(Ratio::ApplyPace, pace), (Ratio::CommitGrowth, growth)];
    let both = ["s1", "s2"];
    check(&both, &of(0.7, 1.3), &[]);
    check(&both, &of(0.69, 1.3), &["s1 ApplyPace is 0.69, at least 0.7"]);
    check(&both, &of(0.7, 1.31), &["s2 CommitGrowth is 1.31, at most 1.3"]);
    check(&both, &of(0.8, f64::NAN), &["s2 CommitGrowth is NaN, at most 1.3"]);
    let twice = [(Ratio::ApplyPace, 0.9), (Ratio::ApplyPace, 0.5)];
    check(&["s1"], &twice, &["s1 ApplyPace is 0.50, at least 0.7"]);
}

#[test]
fn a_chosen_scenario_without_a_number_misses_its_bound_and_others_do_not_count() {
    check(&["s1"], &[], &["s1 ApplyPace was not measured, at least 0.7"]);
    check(&["s3"], &[(Ratio::ApplyPace, 0.1)], &[]);
}

#[test]
fn a_word_that_is_none_of_a_bound_is_an_error() {
    for text in [
        r#"[{ "scenario": "s1", "ratio": "speed", "atMost": 1 }]"#,
        r#"[{ "scenario": "s1", "ratio": "apply-pace", "atmost": 1 }]"#,
        r#"[{ "ratio": "apply-pace", "atMost": 1 }]"#,
    ] {
        assert!(parse_bounds(text).is_err(), "{text}");
    }
}

#[test]
fn each_ratio_has_a_bound_in_the_file() {
    let bounds = parse_bounds(include_str!("../benches/bounds.json")).unwrap();
    let all = [
        Ratio::ApplyPace,
        Ratio::CallsForEachObject,
        Ratio::ApplyGrowth,
        Ratio::SyncGrowth,
        Ratio::CommitGrowth,
        Ratio::IdleMemory,
        Ratio::DiffSpeed,
        Ratio::RolloutTime,
        Ratio::RenderTime,
        Ratio::RenderedRoots,
        Ratio::RenderedCharts,
    ];
    for ratio in all {
        let has_limit = |bound: &bounds::Bound| bound.at_most.is_some() || bound.at_least.is_some();
        let found = bounds.iter().find(|bound| bound.ratio == ratio);
        assert!(found.is_some_and(has_limit), "{ratio:?}");
    }
}
