use prometheus_client::registry::Registry;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn drain(queue: &mut WorkQueue<&'static str>, now: Instant) -> Vec<&'static str> {
    std::iter::from_fn(|| queue.take(now)).collect()
}

#[test]
fn a_key_is_taken_once_however_often_it_was_added() {
    let (mut queue, now) = (WorkQueue::default(), Instant::now());
    for key in ["a", "b", "a", "c", "b"] {
        queue.add(key);
    }
    assert_eq!(drain(&mut queue, now), ["a", "b", "c"]);
}

#[test]
fn a_key_added_while_processed_comes_back_when_done_and_not_before() {
    let (mut queue, now) = (WorkQueue::default(), Instant::now());
    queue.add("a");
    assert_eq!(queue.take(now), Some("a"));
    queue.add("a");
    assert_eq!(queue.take(now), None);
    queue.finish(&"a");
    assert_eq!(queue.take(now), Some("a"));
    queue.finish(&"a");
    assert_eq!(queue.take(now), None);
    assert_eq!(queue.depth(), QueueDepth::default());
}

#[test]
fn a_delayed_key_waits_and_its_earliest_time_counts() {
    let (mut queue, now) = (WorkQueue::default(), Instant::now());
    queue.add_at("a", now + SECOND * 5);
    queue.add_at("a", now + SECOND);
    queue.add_at("a", now + SECOND * 3);
    assert_eq!(queue.next_due(), Some(now + SECOND));
    assert_eq!(drain(&mut queue, now), [""; 0]);
    assert_eq!(drain(&mut queue, now + SECOND), ["a"]);
    queue.finish(&"a");
    assert_eq!(drain(&mut queue, now + SECOND * 9), [""; 0], "the later times are gone");
    assert_eq!(queue.next_due(), None);
}

#[test]
fn what_is_counted_is_what_happened() {
    let (mut queue, now) = (WorkQueue::default(), Instant::now());
    queue.tick(now);
    for key in ["a", "b", "a"] {
        queue.add(key);
    }
    queue.add_at("c", now + SECOND);
    assert_eq!(queue.take(now + SECOND * 2), Some("a"));
    assert_eq!(queue.take(now + SECOND * 4), Some("b"));
    queue.tick(now + SECOND * 5);
    assert_eq!(queue.processing_times(now + SECOND * 5), (SECOND * 4, SECOND * 3));
    queue.finish(&"a");
    queue.next_backoff(&"a", 0.0);
    queue.finish(&"a");
    let (mut registry, mut text) = (Registry::default(), String::new());
    queue.metrics().register(&mut registry);
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    // a and b waited 2 s and 4 s; a was worked on for 3 s.
    for line in [
        "workqueue_adds_total 3",
        "workqueue_retries_total 1",
        "workqueue_queue_duration_seconds_sum 6.0",
        "workqueue_queue_duration_seconds_count 2",
        "workqueue_work_duration_seconds_sum 3.0",
        "workqueue_work_duration_seconds_count 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert_eq!(queue.processing_times(now + SECOND * 5), (SECOND, SECOND));
}

#[test]
fn backoff_doubles_to_five_minutes_and_is_forgotten() {
    let mut queue = WorkQueue::default();
    let rests: Vec<u64> = (0..13).map(|_| queue.next_backoff(&"a", 0.0).as_millis() as u64).collect();
    assert_eq!(rests[..5], [200, 400, 800, 1600, 3200]);
    assert_eq!(rests[12], 300_000);
    for _ in 0..100 {
        assert!(queue.next_backoff(&"a", 1.0) >= SECOND * 240);
    }
    queue.forget(&"a");
    assert_eq!(queue.failures(&"a"), 0);
    assert_eq!(queue.next_backoff(&"a", 0.0), FIRST_BACKOFF);
}
