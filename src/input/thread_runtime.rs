//! A runtime on the thread that waits.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// A runtime whose tasks all run on the thread that waits for one of them.
pub(crate) struct ThreadRuntime(Runtime);

impl ThreadRuntime {
    /// Starts a runtime.
    ///
    /// # Errors
    /// Fails where the system has no room for its descriptors.
    pub(crate) fn start() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build().map(Self)
    }

    /// Waits for a task. Behind a pointer there is one copy of its code, and not one for each place
    /// where tokio polls it.
    pub(crate) fn block_on<T>(&self, task: impl Future<Output = T>) -> T {
        let task: Pin<Box<dyn Future<Output = T> + '_>> = Box::pin(task);
        self.0.block_on(task)
    }

    /// Ends the runtime. Threads that still work are waited for so long at most.
    pub(crate) fn shutdown_timeout(self, timeout: Duration) {
        self.0.shutdown_timeout(timeout);
    }
}
