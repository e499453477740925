//! The rollouts that count as begun in the last minute.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::engine::rollout::start_rate::StartHistory;
use crate::engine::{RolloutLedger, RolloutStart};
use crate::object::{GroupKind, ObjectId};

const MINUTE: Duration = Duration::from_mins(1);

/// As many as are kept.
const MAX_KEPT_STARTS: usize = 600;

fn web(name: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), name)
}

fn start(name: &str, second: i64) -> RolloutStart {
    let at = Timestamp::from_second(second).unwrap();
    RolloutStart { id: web(name), inventory_id: "a-v1".into(), at, clock: "here".into() }
}

fn ledger(starts: &[RolloutStart]) -> RolloutLedger {
    RolloutLedger { starts: starts.to_vec(), ..RolloutLedger::default() }
}

/// Returns a process that reads the object first at this second of the clock of one host.
fn reader(second: i64) -> (StartHistory, Instant) {
    reader_on("here", second)
}

fn reader_on(clock: &str, second: i64) -> (StartHistory, Instant) {
    let now = Instant::now();
    (reader_at(now, clock, second), now)
}

fn reader_at(now: Instant, clock: &str, second: i64) -> StartHistory {
    let mut starts = StartHistory::default();
    starts.set_clock_mark(clock);
    starts.set_clock(now, Timestamp::from_second(second).unwrap());
    starts
}

/// One of the processes that share the budget.
struct ProcessLife {
    /// The seconds of its life.
    lives: Range<u64>,
    /// The mark of its host's clock.
    clock: &'static str,
    /// The seconds by which that clock is ahead.
    skew: i64,
}

fn process(lives: Range<u64>, clock: &'static str, skew: i64) -> ProcessLife {
    ProcessLife { lives, clock, skew }
}

/// Returns the seconds of five minutes in which these processes claim rollouts, each as soon as
/// fewer than two count.
fn claimed_seconds(processes: &[ProcessLife]) -> Vec<u64> {
    let (begun, mut shared) = (Instant::now(), ledger(&[]));
    let (mut histories, mut claimed) = (BTreeMap::new(), Vec::new());
    for second in 0..300_u64 {
        let now = begun + Duration::from_secs(second);
        let living = processes.iter().enumerate().filter(|(_, process)| process.lives.contains(&second));
        for (number, process) in living {
            let wall = 10_000 + second.cast_signed() + process.skew;
            let history = histories.entry(number).or_insert_with(|| reader_at(now, process.clock, wall));
            history.advance(now);
            history.record_ledger(&shared);
            if history.count(|_| true) < 2 {
                let id = web(&format!("web-{number}-{second}"));
                history.write(&mut shared, vec![(id, "a-v1".into())]);
                history.record_ledger(&shared);
                claimed.push(second);
            }
        }
    }
    claimed
}

#[test]
fn a_start_counts_for_a_minute_whoever_began_it_and_whatever_the_clocks_say() {
    // When it began by its own clock, when it is first read, and for how much longer it counts
    // then.
    let check = |clock: &str, began: i64, read: i64, expected: u64| {
        let (mut starts, now) = reader_on(clock, read);
        starts.record_ledger(&ledger(&[start("web", began)]));
        for (passed, count) in [(expected.saturating_sub(1), expected > 0), (expected, false)] {
            starts.advance(now + Duration::from_secs(passed));
            assert_eq!(starts.count(|_| true), u32::from(count), "{began} {read} {passed}");
        }
    };
    check("here", 100, 100, 60);
    check("here", 100, 140, 20);
    check("here", 100, 160, 0);
    // The clock of another host may be five minutes early.
    check("there", 100, 160, 60);
    check("there", 100, 400, 60);
    check("there", 100, 440, 20);
    check("there", 100, 460, 0);
    // From the future: it counts as one of now.
    check("here", 9000, 100, 60);
    check("there", 9000, 100, 60);
}

#[test]
fn what_appears_between_two_readings_is_no_older_than_the_first_whatever_its_clock_says() {
    let (mut starts, now) = reader(1000);
    starts.record_ledger(&ledger(&[]));
    starts.advance(now + Duration::from_secs(5));
    starts.record_ledger(&ledger(&[start("web", 900)]));
    assert_eq!(starts.count(|_| true), 1, "its clock is late");
    assert_eq!(starts.next_expiry(), Some(now + MINUTE));
    let (mut starts, now) = reader_on("there", 1000);
    starts.record_ledger(&ledger(&[]));
    starts.advance(now + Duration::from_secs(5));
    starts.record_ledger(&ledger(&[start("web", 900)]));
    assert_eq!(starts.next_expiry(), Some(now + Duration::from_secs(5) + MINUTE), "its clock proves nothing");
    // A start that was too old before is no news.
    let (mut starts, now) = reader(1000);
    for second in 0..3 {
        starts.advance(now + Duration::from_secs(second));
        starts.record_ledger(&ledger(&[start("web", 600)]));
        assert_eq!(starts.count(|_| true), 0, "{second}");
    }
}

#[test]
fn a_start_counts_for_a_minute_though_a_host_whose_clock_is_early_writes_the_object_meanwhile() {
    let (mut late, now) = reader(100);
    let mut ledger_now = ledger(&[]);
    late.record_ledger(&ledger_now);
    late.write(&mut ledger_now, vec![(web("web"), "a-v1".into())]);
    late.record_ledger(&ledger_now);
    // Five minutes later by its own clock, it has seen the start come.
    let (mut early, began) = reader(400);
    early.record_ledger(&ledger(&[]));
    early.advance(began + Duration::from_secs(3));
    early.record_ledger(&ledger_now);
    early.write(&mut ledger_now, Vec::new());
    assert_eq!((early.count(|_| true), ledger_now.starts.len()), (1, 1));
    early.advance(began + Duration::from_secs(61));
    early.write(&mut ledger_now, Vec::new());
    assert_eq!((early.count(|_| true), ledger_now.starts.len()), (0, 0));
    // A process with that clock takes it for an old one; the process that began it knows better.
    late.record_ledger(&ledger_now);
    assert_eq!(late.count(|_| true), 1);
    late.advance(now + Duration::from_mins(1));
    assert_eq!(late.count(|_| true), 0);
}

#[test]
fn no_skew_of_minutes_lets_whoever_takes_over_begin_more_in_a_minute() {
    let minutes = Duration::from_mins(5).as_secs().cast_signed();
    for skew in -minutes..=minutes {
        let (mut first, _) = reader(10_000);
        let mut reported = ledger(&[]);
        first.record_ledger(&reported);
        first.write(&mut reported, vec![(web("web"), "a-v1".into())]);
        // Half a minute later, by another clock.
        let (mut next, now) = reader_on("there", 10_030 + skew);
        next.record_ledger(&reported);
        for passed in [0, 29] {
            next.advance(now + Duration::from_secs(passed));
            assert_eq!(next.count(|_| true), 1, "{skew} {passed}");
        }
        next.advance(now + MINUTE);
        assert_eq!(next.count(|_| true), 0, "{skew}: it is slower, and not for good");
    }
}

// A claim is written before its pods restart, so they may be seen to restart closer to each other.
#[test]
fn no_minute_has_more_claims_than_allowed_although_processes_end_and_others_take_over_in_it() {
    let check = |processes: &[ProcessLife], expected: [u64; 10]| {
        assert_eq!(claimed_seconds(processes), expected);
    };
    let steady = [0, 1, 60, 61, 120, 121, 180, 181, 240, 241];
    check(&[process(0..300, "here", 0)], steady);
    // The next process of the same host knows what time it is.
    check(&[process(0..30, "here", 0), process(30..300, "here", 0)], steady);
    // Two at a time, one of them with a clock that is as early as it may be.
    let two = [process(0..300, "here", 0), process(0..300, "there", 300)];
    check(&two, [0, 0, 60, 60, 120, 120, 180, 180, 240, 240]);
    // Another host takes over, and the first one takes back.
    let early = process(30..70, "there", 300);
    let three = [process(0..30, "here", 0), early, process(70..300, "here", 0)];
    check(&three, [0, 1, 60, 61, 130, 131, 190, 191, 250, 251]);
    let minutes = 5 * 60;
    for skew in -minutes..=minutes {
        let claimed = claimed_seconds(&[process(0..30, "here", 0), process(30..300, "there", skew)]);
        assert_eq!(claimed.len(), 10, "{skew}: it goes on: {claimed:?}");
        for three in claimed.windows(3) {
            assert!(three[2] - three[0] >= MINUTE.as_secs(), "{skew}: {claimed:?}");
        }
    }
}

#[test]
fn a_start_is_taken_once_and_those_of_an_earlier_process_never() {
    let (mut starts, _) = reader(100);
    let (early, late) = (start("web", 90), start("web", 100));
    starts.record_ledger(&ledger(std::slice::from_ref(&early)));
    assert!(!starts.try_take_newest(&ledger(std::slice::from_ref(&early)), &web("web")));
    let both = ledger(&[early, late]);
    starts.record_ledger(&both);
    assert!(starts.try_take_newest(&both, &web("web")));
    assert!(!starts.try_take_newest(&both, &web("web")));
    assert!(!starts.try_take_newest(&both, &web("other")));
}

#[test]
fn what_is_written_is_of_now_and_bounded() {
    let (starts, _) = reader(1000);
    let mut one = ledger(&[start("old", 879), start("kept", 881), start("web", 5000)]);
    starts.write(&mut one, vec![(web("web"), "a-v1".into()), (web("new"), "a-v1".into())]);
    let written: Vec<_> =
        one.starts.iter().map(|start| (start.id.name(), start.at.as_millisecond())).collect();
    let expected = [("kept", 881_000), ("new", 1_000_000), ("web", 5_000_000), ("web", 5_000_001)];
    assert_eq!(written, expected);
    let mut many = ledger(&vec![start("web", 1000); MAX_KEPT_STARTS]);
    starts.write(&mut many, vec![(web("new"), "a-v1".into())]);
    assert_eq!(many.starts.len(), MAX_KEPT_STARTS);
    let newest = many.starts.last().map(|start| start.id.name());
    assert_eq!(newest, Some("new"), "an older one has made room");
}

// A start is known by its time.
#[test]
fn a_start_is_later_than_all_others_of_its_workload() {
    let (starts, _) = reader(1000);
    let mut shared = ledger(&[start("web", 5000), start("web", 6000), start("other", 7000)]);
    starts.write(&mut shared, vec![(web("web"), "a-v1".into())]);
    let of_web = shared.starts.iter().filter(|start| start.id == web("web"));
    let of_web: Vec<_> = of_web.map(|start| start.at.as_millisecond()).collect();
    assert_eq!(of_web, [5_000_000, 6_000_000, 6_000_001]);
}

#[test]
fn the_oldest_start_is_the_next_that_counts_no_longer() {
    let (mut starts, now) = reader(100);
    starts.record_ledger(&ledger(&[start("late", 100), start("early", 90)]));
    assert_eq!(starts.next_expiry(), Some(now + Duration::from_secs(50)));
}

#[test]
fn it_is_reported_once_that_a_start_counts_no_longer() {
    let (mut starts, now) = reader(100);
    starts.record_ledger(&ledger(&[start("web", 100)]));
    for (passed, expected) in [(0, false), (59, false), (60, true), (61, false)] {
        assert_eq!(starts.advance(now + Duration::from_secs(passed)), expected, "{passed}");
    }
}

#[test]
fn a_start_of_a_minute_ago_does_not_count_when_the_ledger_is_read_again() {
    let (mut starts, now) = reader(1000);
    let known = ledger(&[start("web", 1000)]);
    starts.record_ledger(&known);
    for (passed, expected) in [(59_u64, 1), (60, 0)] {
        let wall = Timestamp::from_second(1000 + passed.cast_signed()).unwrap();
        starts.set_clock(now + Duration::from_secs(passed), wall);
        starts.record_ledger(&known);
        assert_eq!(starts.count(|_| true), expected, "{passed}");
    }
}

#[test]
fn both_clocks_go_on_together_and_never_back() {
    let (mut starts, now) = reader(100);
    let later = now + Duration::from_secs(5);
    for moment in [later, now, later] {
        starts.advance(moment);
        assert_eq!(starts.clock(), Some((later, Timestamp::from_second(105).unwrap())));
        assert_eq!(starts.current_time(), Some(later));
    }
}

#[test]
fn a_start_of_two_minutes_ago_is_taken_out_of_the_ledger() {
    let (starts, _) = reader(1000);
    let mut shared = ledger(&[start("old", 880), start("young", 881)]);
    starts.write(&mut shared, Vec::new());
    assert_eq!(shared.starts, [start("young", 881)]);
}
