//! Reports to the service manager that all parts make progress, or which one does not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::sd_notify::{StatusTopic, SystemdService};
use crate::heartbeat::{HeartbeatStatus, Heartbeats};

/// The interval of checks: a late part is named at most this much later.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The handle of the watch, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct WatchdogGuard {
    _end: Sender<()>,
}

/// Watches over all parts on a thread of its own, which nothing that hangs elsewhere can stop.
/// While each part is in time, the manager hears so at half of the interval in which it expects
/// that. Otherwise it hears only who is late, and ends the service by itself.
///
/// # Errors
///
/// The thread cannot be started.
pub(crate) fn start_watchdog(
    service: SystemdService,
    heartbeats: Heartbeats,
    interval: Option<Duration>,
) -> std::io::Result<WatchdogGuard> {
    let (end, ended) = channel();
    let pause = interval.map_or(MAX_CHECK_INTERVAL, |interval| (interval / 2).min(MAX_CHECK_INTERVAL));
    let mut watch = Watchdog { service, heartbeats, late: BTreeSet::new(), expected: interval.is_some() };
    std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
        loop {
            watch.check(Instant::now());
            if ended.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    })?;
    Ok(WatchdogGuard { _end: end })
}

struct Watchdog {
    service: SystemdService,
    heartbeats: Heartbeats,
    /// The parts that were late at the last check.
    late: BTreeSet<Arc<str>>,
    /// Indicates whether the manager waits for heartbeats.
    expected: bool,
}

impl Watchdog {
    fn check(&mut self, now: Instant) {
        let late = self.heartbeats.overdue_parts(now);
        let names: BTreeSet<Arc<str>> = late.iter().map(|sign| sign.name.clone()).collect();
        for sign in late.iter().filter(|sign| !self.late.contains(&sign.name)) {
            let (silent, due) = (seconds_since(now, sign.last), seconds_since(now, sign.due));
            tracing::error!("{} is stuck: no heartbeat for {silent} s, due {due} s ago", sign.name);
        }
        for name in self.late.difference(&names) {
            tracing::warn!("{name} is running again");
        }
        if names != self.late {
            self.service.set_topic(StatusTopic::Progress, overdue_text(&late));
            // The tasks that would send it otherwise may be the ones that hang.
            self.service.flush();
            self.late = names;
        }
        if self.late.is_empty() && self.expected {
            self.service.notify_alive();
        }
    }
}

fn seconds_since(now: Instant, then: Instant) -> u64 {
    now.saturating_duration_since(then).as_secs()
}

fn overdue_text(late: &[HeartbeatStatus]) -> String {
    match late {
        [] => String::new(),
        [one] => format!("{} is stuck", one.name),
        [first, rest @ ..] => format!("{} and {} more are stuck", first.name, rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sd_notify::tests::Manager;
    use super::*;

    const LONG_INTERVAL: Duration = Duration::from_hours(1);

    #[test]
    fn the_manager_hears_of_life_only_while_each_part_makes_progress() {
        let (manager, service) = Manager::with_service();
        let heartbeats = Heartbeats::default();
        let (first, second) = (
            heartbeats.expect_part("the loop", LONG_INTERVAL),
            heartbeats.expect_part("source shop", LONG_INTERVAL),
        );
        let mut watch = Watchdog { service, heartbeats, late: BTreeSet::new(), expected: true };
        let mut check = |expected: &[&str]| {
            watch.check(Instant::now());
            assert_eq!(manager.heard(), expected);
        };
        check(&["WATCHDOG=1"]);
        second.stall();
        check(&["STATUS=source shop is stuck"]);
        check(&[]);
        first.stall();
        check(&["STATUS=source shop and 1 more are stuck"]);
        first.record(LONG_INTERVAL);
        check(&["STATUS=source shop is stuck"]);
        second.record(LONG_INTERVAL);
        check(&["STATUS=", "WATCHDOG=1"]);
        // A part that is gone on purpose is not waited for.
        second.stall();
        drop(second);
        check(&["WATCHDOG=1"]);
    }

    #[test]
    fn a_manager_that_expects_nothing_hears_only_who_is_late() {
        let (manager, service) = Manager::with_service();
        let heartbeats = Heartbeats::default();
        let heartbeat = heartbeats.expect_part("the loop", LONG_INTERVAL);
        let mut watch = Watchdog { service, heartbeats, late: BTreeSet::new(), expected: false };
        watch.check(Instant::now());
        assert_eq!(manager.heard(), [""; 0]);
        heartbeat.stall();
        watch.check(Instant::now());
        assert_eq!(manager.heard(), ["STATUS=the loop is stuck"]);
    }

    #[test]
    fn the_thread_repeats_it_within_the_interval_and_ends() {
        let (manager, service) = Manager::with_service();
        let heartbeats = Heartbeats::default();
        let heartbeat = heartbeats.expect_part("the loop", LONG_INTERVAL);
        let begun = Instant::now();
        let watched = start_watchdog(service, heartbeats, Some(Duration::from_millis(40))).unwrap();
        for _ in 0..3 {
            assert_eq!(manager.hears(), "WATCHDOG=1");
        }
        // Two pauses of half of the interval lie between three signs.
        assert!(begun.elapsed() >= Duration::from_millis(40));
        heartbeat.stall();
        while manager.hears() != "STATUS=the loop is stuck" {}
        drop(watched);
    }
}
