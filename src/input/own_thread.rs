//! Waits on threads of their own: the caller's thread may be one of a runtime, which must not wait
//! for another.

use std::io;
use std::thread;

use super::thread_runtime::ThreadRuntime;

/// Waits for a task on a thread of its own.
///
/// # Errors
/// Fails where the runtime of the thread cannot be made.
pub(super) fn wait_for<T: Send>(task: impl AsyncFnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| Ok(ThreadRuntime::start()?.block_on(task())));
        waiter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
