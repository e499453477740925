//! Connections: so many at a time, each with a deadline for its request.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// So many are answered at a time; the others wait in the kernel's queue.
const MOST: usize = 64;

/// The longest time that a request's head may take.
const HEAD: Duration = Duration::from_secs(10);

/// A request's head is never larger, in bytes.
const LARGEST_HEAD: usize = 16 << 10;

/// After a failure to accept, as when no file descriptor is free, for so long none is tried.
const REST: Duration = Duration::from_millis(200);

/// Answers on a socket until it is stopped. What is being answered then is broken off.
pub async fn serve(listener: UnixListener, router: Router, stop: CancellationToken) {
    let free = Arc::new(Semaphore::new(MOST));
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let accepted = async {
            let permit = free.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        let Some((accepted, permit)) = stop.run_until_cancelled(accepted).await else { return };
        match accepted {
            Ok((stream, _)) => {
                let service = TowerToHyperService::new(router.clone());
                open.spawn(async move {
                    let connection = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(HEAD)
                        .max_buf_size(LARGEST_HEAD)
                        .serve_connection(TokioIo::new(stream), service);
                    if let Err(error) = connection.await {
                        tracing::debug!("a connection to the socket: {error}");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!("no connection to the socket: {error}");
                tokio::time::sleep(REST).await;
            }
        }
    }
}
