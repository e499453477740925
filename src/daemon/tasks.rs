//! The tasks beside the loop. None of them ends unseen: what a lost task would have reported never
//! comes, and the loop would wait for it for ever.

use tokio::task::JoinSet;

use crate::cluster;
use crate::object::ErrorClass;

/// The reason for which the loop cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FatalError {
    /// The kubeconfig names another cluster now.
    #[error(transparent)]
    WrongCluster(cluster::ClusterError),
    /// An informer ended, or one pass cannot go on.
    #[error(transparent)]
    Cluster(#[from] cluster::ClusterError),
    /// Another process serves the source of a single pass, and undoes what that writes.
    #[error("{0}")]
    Contested(String),
    /// A task beside the loop ended that must not.
    #[error("{0} ended, which is a bug in rhumb; a restart loses nothing")]
    Ended(&'static str),
}

impl FatalError {
    /// Returns the class of the error.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::WrongCluster(error) | Self::Cluster(error) => error.class(),
            Self::Contested(_) => ErrorClass::Conflict,
            Self::Ended(_) => ErrorClass::Internal,
        }
    }
}

/// Running tasks. Dropped, all are ended.
#[derive(Debug, Default)]
pub(super) struct TaskSet {
    running: JoinSet<Option<&'static str>>,
}

impl TaskSet {
    /// Starts one that ends by itself.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(async move {
            task.await;
            None
        });
    }

    /// Starts one that goes on as long as the loop.
    pub(super) fn keep(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(async move {
            task.await;
            Some(name)
        });
    }

    /// Waits until one ends that must not, or in a panic: for ever, where none does. Nothing is
    /// lost when the wait is given up.
    pub(super) async fn first_failure(&mut self) -> FatalError {
        while let Some(ended) = self.running.join_next().await {
            match ended {
                Ok(Some(name)) => return FatalError::Ended(name),
                Err(error) if error.is_panic() => return FatalError::Ended("a task of the loop"),
                Ok(None) | Err(_) => {}
            }
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn check(expected: Option<&str>, start: impl FnOnce(&mut TaskSet)) {
        let mut tasks = TaskSet::default();
        start(&mut tasks);
        let broken = tokio::time::timeout(Duration::from_secs(5), tasks.first_failure()).await;
        let words = broken.ok().map(|fatal| {
            assert_eq!(fatal.class(), ErrorClass::Internal);
            fatal.to_string()
        });
        let panic_text = words.as_deref().and_then(|words| words.split(" ended, which is a bug").next());
        assert_eq!(panic_text, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_must_not_end_and_a_panic_are_noticed() {
        check(None, |_| {}).await;
        check(None, |tasks| {
            tasks.spawn(async {});
            tasks.keep("the reader", std::future::pending());
        })
        .await;
        check(Some("the reader"), |tasks| {
            tasks.spawn(async {});
            tasks.keep("the reader", async {});
        })
        .await;
        check(Some("a task of the loop"), |tasks| {
            tasks.keep("the reader", std::future::pending());
            tasks.spawn(async { panic!("on purpose") });
        })
        .await;
    }
}
