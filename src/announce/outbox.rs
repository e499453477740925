//! The outbox: the notifications that wait for one recipient.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::notification::Notification;

/// The maximum number of notifications that wait for a recipient that does not answer. Beyond it
/// the oldest is dropped.
const MAX_PENDING_NOTIFICATIONS: usize = 64;

/// Notifications, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    notifications: Mutex<VecDeque<Notification>>,
    arrived: Notify,
}

impl Outbox {
    /// Adds a notification, in place of all that it makes void. Returns the number of dropped ones.
    pub(super) fn add(&self, notification: Notification) -> usize {
        let mut notifications = self.notifications();
        notifications.retain(|old| !notification.supersedes(old));
        let lost = usize::from(notifications.len() >= MAX_PENDING_NOTIFICATIONS);
        notifications.drain(..lost);
        notifications.push_back(notification);
        self.arrived.notify_one();
        lost
    }

    /// Waits for the oldest notification, and removes it. Only one caller may wait.
    pub(super) async fn next(&self) -> Notification {
        loop {
            let oldest = self.notifications().pop_front();
            if let Some(notification) = oldest {
                return notification;
            }
            self.arrived.notified().await;
        }
    }

    /// Returns whether a pending notification makes this one void.
    pub(super) fn supersedes(&self, notification: &Notification) -> bool {
        self.notifications().iter().any(|newer| newer.supersedes(notification))
    }

    /// Returns the number of pending notifications.
    pub(super) fn len(&self) -> usize {
        self.notifications().len()
    }

    fn notifications(&self) -> MutexGuard<'_, VecDeque<Notification>> {
        self.notifications.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::UrlSource;

    fn notification(status: Option<&str>, number: usize) -> Notification {
        Notification {
            url: UrlSource::Url("https://h".to_owned()),
            path: String::new(),
            token: None,
            body: json!(number),
            status: status.map(str::to_owned),
        }
    }

    fn numbers(outbox: &Outbox) -> Vec<u64> {
        outbox.notifications().iter().map(|notification| notification.body.as_u64().unwrap()).collect()
    }

    // The newest commit status is the one that counts.
    #[test]
    fn a_full_bag_lets_the_oldest_go() {
        let outbox = Outbox::default();
        let lost: usize =
            (0..MAX_PENDING_NOTIFICATIONS + 2).map(|number| outbox.add(notification(None, number))).sum();
        let left = numbers(&outbox);
        assert_eq!(
            (lost, left.len(), left[0], *left.last().unwrap()),
            (2, MAX_PENDING_NOTIFICATIONS, 2, MAX_PENDING_NOTIFICATIONS as u64 + 1)
        );
    }

    #[test]
    fn a_newer_status_of_a_commit_takes_the_place_of_the_older() {
        let outbox = Outbox::default();
        for (number, status) in ["a", "b", "a"].into_iter().enumerate() {
            assert_eq!(outbox.add(notification(Some(status), number)), 0);
        }
        assert_eq!(numbers(&outbox), [1, 2]);
        assert!(
            outbox.supersedes(&notification(Some("a"), 0)) && !outbox.supersedes(&notification(Some("c"), 0))
        );
        // Messages for people are each news of their own.
        assert_eq!((outbox.add(notification(None, 3)), outbox.add(notification(None, 4))), (0, 0));
        assert!(!outbox.supersedes(&notification(None, 3)));
        assert_eq!(numbers(&outbox), [1, 2, 3, 4]);
    }
}
