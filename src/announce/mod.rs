//! Notifications over HTTP: to webhooks, to Slack, and to forges as the status of a commit.
//!
//! Owns the mapping from events to notifications (`notification`), the outbox of each recipient
//! (`outbox`), and delivery with retries (`client`).
//!
//! **Invariant:** decides nothing, and holds nobody up: a failed delivery is logged, and that is
//! all.

mod client;
mod notification;
mod outbox;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use self::client::{DeliveryError, NotificationClient};
use self::notification::{Notification, empty_notification, notification};
use self::outbox::Outbox;
use crate::config::{NotifyConfig, Recipient};
use crate::report::{EventRecord, EventRecorder, LosslessSubscription};

/// The pauses between the attempts, in seconds: some ten minutes altogether. A recipient that asks
/// for a longer pause gets it.
const RETRY_DELAYS_SECONDS: [u64; 8] = [1, 2, 5, 15, 30, 60, 120, 300];

/// Sends each recorded event to these recipients from now on. A recipient that stays in the
/// configuration keeps its outbox; the outbox of any other is dropped.
pub(crate) async fn announce(recipients: watch::Receiver<Vec<NotifyConfig>>, recorder: EventRecorder) {
    announce_with(recipients, &recorder, &RETRY_DELAYS_SECONDS.map(Duration::from_secs)).await;
}

/// Returns why nothing can be delivered to a recipient: its token or URL cannot be read or used.
/// Reads the files of both.
pub(crate) fn delivery_obstacle(to: &Recipient) -> Option<String> {
    client::validate(&empty_notification(to))
        .err()
        .map(|why| format!("{} cannot be notified: {why}", notification::name(to)))
}

async fn announce_with(
    mut recipients: watch::Receiver<Vec<NotifyConfig>>,
    recorder: &EventRecorder,
    retry_pauses: &[Duration],
) {
    let LosslessSubscription { live: mut coming, .. } =
        recorder.follow(|reason| notification::notification_event(reason).is_some());
    let mut workers = Vec::new();
    loop {
        let now = recipients.borrow_and_update().clone();
        workers = assign_workers(now, workers, retry_pauses);
        loop {
            tokio::select! {
                biased;
                // First: whoever is configured before something happens is notified of it.
                changed = recipients.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                event = coming.recv() => match event {
                    Some(event) => hand_out(&workers, event, &mut coming),
                    None => return,
                },
            }
        }
    }
}

/// One recipient and its worker. Entries that name the same recipient share it, so their
/// notifications keep one order and are sent once.
struct NotificationWorker {
    to: Recipient,
    entries: Vec<NotifyConfig>,
    name: String,
    outbox: Arc<Outbox>,
    _task: AbortOnDropHandle<()>,
}

/// Returns a worker for each recipient: the one that it has, where it has one.
fn assign_workers(
    recipients: Vec<NotifyConfig>,
    mut known: Vec<NotificationWorker>,
    retry_pauses: &[Duration],
) -> Vec<NotificationWorker> {
    let client = Arc::new(NotificationClient::new());
    let mut workers: Vec<NotificationWorker> = Vec::new();
    for entry in recipients {
        if let Some(shared) = workers.iter_mut().find(|worker| worker.to == entry.to) {
            shared.entries.push(entry);
            continue;
        }
        let kept = known.iter().position(|worker| worker.to == entry.to).map(|at| known.swap_remove(at));
        workers.push(match kept {
            Some(kept) => NotificationWorker { entries: vec![entry], ..kept },
            None => NotificationWorker::new(entry, client.clone(), retry_pauses.to_vec()),
        });
    }
    workers
}

impl NotificationWorker {
    fn new(entry: NotifyConfig, client: Arc<NotificationClient>, retry_pauses: Vec<Duration>) -> Self {
        let (to, name, outbox) =
            (entry.to.clone(), notification::name(&entry.to), Arc::new(Outbox::default()));
        let (looked_at, left) =
            (to.clone(), PendingDeliveries { name: name.clone(), outbox: outbox.clone(), in_flight: 0 });
        let task = async move {
            // A panic message may hold file contents.
            if let Ok(Some(why)) = tokio::task::spawn_blocking(move || delivery_obstacle(&looked_at)).await {
                tracing::warn!("{why}");
            }
            deliver_in_turn(left, &client, &retry_pauses).await;
        };
        Self { to, entries: vec![entry], name, outbox, _task: AbortOnDropHandle::new(tokio::spawn(task)) }
    }
}

/// Hands out this event, and those that came after it.
fn hand_out(
    workers: &[NotificationWorker],
    first: Arc<EventRecord>,
    coming: &mut mpsc::UnboundedReceiver<Arc<EventRecord>>,
) {
    let mut lost = vec![0; workers.len()];
    let behind = std::iter::from_fn(|| coming.try_recv().ok());
    for event in std::iter::once(first).chain(behind) {
        for (worker, lost) in workers.iter().zip(&mut lost) {
            let notification = worker.entries.iter().find_map(|entry| notification_for(entry, &event));
            *lost += notification.map_or(0, |notification| worker.outbox.add(notification));
        }
    }
    for (NotificationWorker { name, .. }, lost) in workers.iter().zip(lost).filter(|(_, lost)| *lost > 0) {
        tracing::warn!(lost, "{name}: too many notifications are waiting, the oldest are dropped");
    }
}

fn notification_for(recipient: &NotifyConfig, event: &EventRecord) -> Option<Notification> {
    let of_source = recipient.sources.contains(&event.source);
    let occasion =
        notification::notification_event(event.reason).filter(|occasion| recipient.on.contains(occasion))?;
    of_source.then(|| notification(&recipient.to, occasion, event)).flatten()
}

/// The notifications to one recipient. Logs how many are left when their delivery ends.
struct PendingDeliveries {
    name: String,
    outbox: Arc<Outbox>,
    /// The number of deliveries in flight.
    in_flight: usize,
}

impl Drop for PendingDeliveries {
    fn drop(&mut self) {
        let left = self.outbox.len() + self.in_flight;
        if left > 0 {
            let name = &self.name;
            tracing::warn!(
                left,
                "{name}: a notification was not delivered before rhumb stopped or the recipients changed"
            );
        }
    }
}

/// Delivers notifications to one recipient, one after another.
async fn deliver_in_turn(
    mut left: PendingDeliveries,
    client: &NotificationClient,
    retry_pauses: &[Duration],
) {
    loop {
        let notification = left.outbox.next().await;
        left.in_flight = 1;
        deliver(&notification, &left, client, retry_pauses).await;
        left.in_flight = 0;
    }
}

async fn deliver(
    notification: &Notification,
    PendingDeliveries { name, outbox, .. }: &PendingDeliveries,
    client: &NotificationClient,
    retry_pauses: &[Duration],
) {
    let mut retry_pauses = retry_pauses.iter();
    while !outbox.supersedes(notification) {
        match (client.deliver(notification).await, retry_pauses.next()) {
            (Ok(()), _) => return,
            (Err(DeliveryError::Temporary { why, after }), Some(pause)) => {
                let pause = after.unwrap_or_default().max(*pause);
                tracing::debug!("{name}: {why}; again in {} s", pause.as_secs());
                tokio::time::sleep(pause).await;
            }
            (Err(DeliveryError::Temporary { why, .. } | DeliveryError::Permanent(why)), _) => {
                return tracing::warn!("{name}: a notification was not delivered: {why}");
            }
        }
    }
}

#[cfg(test)]
mod tests;
