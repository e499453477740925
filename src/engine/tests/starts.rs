//! The rollouts that count as begun in the last minute.

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
    let (mut starts, now) = (StartHistory::default(), Instant::now());
    starts.set_clock_mark(clock);
    starts.set_clock(now, Timestamp::from_second(second).unwrap());
    (starts, now)
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
    assert_eq!(starts.due(), Some(now + MINUTE));
    let (mut starts, now) = reader_on("there", 1000);
    starts.record_ledger(&ledger(&[]));
    starts.advance(now + Duration::from_secs(5));
    starts.record_ledger(&ledger(&[start("web", 900)]));
    assert_eq!(starts.due(), Some(now + Duration::from_secs(5) + MINUTE), "its clock proves nothing");
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

#[test]
fn a_start_is_taken_once_and_those_of_an_earlier_process_never() {
    let (mut starts, _) = reader(100);
    let (early, late) = (start("web", 90), start("web", 100));
    starts.record_ledger(&ledger(std::slice::from_ref(&early)));
    assert!(!starts.take_newest(&ledger(std::slice::from_ref(&early)), &web("web")));
    let both = ledger(&[early, late]);
    starts.record_ledger(&both);
    assert!(starts.take_newest(&both, &web("web")));
    assert!(!starts.take_newest(&both, &web("web")));
    assert!(!starts.take_newest(&both, &web("other")));
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
}
