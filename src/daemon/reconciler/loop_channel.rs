//! The one place at which the loop receives. All that wakes it comes by [`LoopChannel::next`].
//!
//! | order | wakes the loop | why it stands there |
//! |---|---|---|
//! | 1 | the kubeconfig names another cluster | neither cluster may be written to any more |
//! | 2 | a task has ended that must not | its events never come |
//! | 3 | an event, the oldest first | all that has happened is known before anything is decided |
//! | 4 | a stop | between two events it would only end the wait for the next one |
//! | 5 | the time | an event may be why nothing is due any more |
//!
//! Informers, sources, tasks and people send their events into one channel, in the order in which
//! they happen. After each wait the loop takes a bounded number of them, and then looks for a stop.
//! So no burst delays a stop, a timer or an answer for long.

use std::time::Instant;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::loop_event::LoopEvent;
use super::super::tasks::{FatalError, TaskSet};
use crate::cluster::Cluster;

/// Events wait here while the loop is busy; a full channel slows the informers down, nothing is
/// lost. It also bounds the events between two decisions.
pub(super) const CHANNEL_CAPACITY: usize = 1024;

/// The channel of all events, and the tasks beside the loop. Its sender is cloned for those who
/// send.
pub(super) struct LoopChannel {
    pub(super) sender: mpsc::Sender<LoopEvent>,
    receiver: mpsc::Receiver<LoopEvent>,
    pub(super) tasks: TaskSet,
    /// The cluster that the kubeconfig must go on naming.
    cluster: Cluster,
}

/// The reason for which the loop wakes.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is alive at a time, and the large one is the frequent one"
)]
pub(super) enum Wakeup {
    /// Something has happened.
    Event(LoopEvent),
    /// A stop is asked for.
    Stop,
    /// The time has come at which something is due.
    Deadline,
}

impl LoopChannel {
    /// Opens the channel of a loop over a cluster.
    pub(super) fn new(cluster: Cluster) -> Self {
        let (sender, receiver) = mpsc::channel(CHANNEL_CAPACITY);
        Self { sender, receiver, tasks: TaskSet::default(), cluster }
    }

    /// Waits for what wakes the loop, in the order of the table above. `stop` is none for a loop
    /// that already stops.
    ///
    /// # Errors
    ///
    /// The loop cannot go on.
    pub(super) async fn next(
        &mut self,
        deadline: Instant,
        stop: Option<&CancellationToken>,
    ) -> Result<Wakeup, FatalError> {
        tokio::select! {
            biased;
            error = self.cluster.wait_for_other_cluster() => Err(FatalError::WrongCluster(error)),
            fatal = self.tasks.first_failure() => Err(fatal),
            Some(event) = self.receiver.recv() => Ok(Wakeup::Event(event)),
            () = wait_for_stop(stop) => Ok(Wakeup::Stop),
            () = tokio::time::sleep_until(deadline.into()) => Ok(Wakeup::Deadline),
        }
    }

    /// Returns the oldest event that has already come.
    pub(super) fn take_ready(&mut self) -> Option<LoopEvent> {
        self.receiver.try_recv().ok()
    }

    /// Starts a task whose result is an event.
    pub(super) fn spawn(&mut self, task: impl Future<Output = LoopEvent> + Send + 'static) {
        let sender = self.sender.clone();
        self.tasks.spawn(async move {
            let _ = sender.send(task.await).await;
        });
    }
}

/// Waits until a stop is asked for; for ever, where that does not matter any more.
async fn wait_for_stop(stop: Option<&CancellationToken>) {
    match stop {
        Some(stop) => stop.cancelled().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::cluster::tests::fake::{FakeApiServer, ScriptedReply};

    /// The things that are ready at once.
    #[derive(Clone, Copy)]
    enum ReadyInput {
        EndedTask,
        Event,
        Stop,
    }

    /// Returns the words for the wakeup of a loop whose deadline is now.
    async fn wakeup(ready: &[ReadyInput], is_stopping: bool) -> String {
        let cluster = FakeApiServer::start(|_, _| ScriptedReply::Silence).await.cluster;
        let mut channel = LoopChannel::new(cluster);
        let stop = CancellationToken::new();
        for ready in ready {
            match ready {
                ReadyInput::EndedTask => {
                    let (sender, ended) = oneshot::channel::<()>();
                    channel.tasks.keep("the reader", async move { drop(sender) });
                    assert!(ended.await.is_err());
                }
                ReadyInput::Event => assert!(channel.sender.try_send(LoopEvent::VersionsUsed).is_ok()),
                ReadyInput::Stop => stop.cancel(),
            }
        }
        match channel.next(Instant::now(), (!is_stopping).then_some(&stop)).await {
            Ok(Wakeup::Event(_)) => "event".to_owned(),
            Ok(Wakeup::Stop) => "stop".to_owned(),
            Ok(Wakeup::Deadline) => "deadline".to_owned(),
            Err(FatalError::Ended(part)) => part.to_owned(),
            Err(other) => other.to_string(),
        }
    }

    #[tokio::test]
    async fn a_loop_is_woken_by_the_first_that_is_ready_in_the_order_of_the_table() {
        async fn check(ready: &[ReadyInput], is_stopping: bool, expected: &str) {
            assert_eq!(wakeup(ready, is_stopping).await, expected);
        }
        check(&[ReadyInput::Stop, ReadyInput::Event, ReadyInput::EndedTask], false, "the reader").await;
        check(&[ReadyInput::Stop, ReadyInput::Event], false, "event").await;
        check(&[ReadyInput::Stop], false, "stop").await;
        check(&[], false, "deadline").await;
        check(&[ReadyInput::Stop, ReadyInput::Event], true, "event").await;
        check(&[ReadyInput::Stop], true, "deadline").await;
    }
}
