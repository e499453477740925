//! Connections: so many at a time, each with a deadline for its request, and with one for whoever reads the answer.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::patient::Patient;
use super::peers::{ALL, Peers};
use super::tls::Tls;
use crate::report::{Doors, Unanswered};

/// The longest time that a request's head may take.
const HEAD: Duration = Duration::from_secs(10);

/// A request's head is never larger, in bytes.
const LARGEST_HEAD: usize = 16 << 10;

/// After a failure to accept, as when no file descriptor is free, for so long none is tried.
const REST: Duration = Duration::from_millis(200);

/// An open place.
pub(super) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
    Tls(TcpListener, Tls),
}

/// Whoever has connected.
enum Incoming {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(TcpStream, Tls),
}

impl Incoming {
    /// The address that it comes from, where it has one.
    fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(stream) | Self::Tls(stream, _) => stream.peer_addr().ok().map(|address| address.ip()),
        }
    }
}

impl Listener {
    async fn accept(&self) -> io::Result<Incoming> {
        match self {
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Incoming::Unix(stream)),
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Incoming::Tcp(stream)),
            Self::Tls(listener, tls) => {
                listener.accept().await.map(|(stream, _)| Incoming::Tls(stream, tls.clone()))
            }
        }
    }
}

/// Answers until it is stopped. What is being answered then is broken off.
pub(super) async fn serve(listener: Listener, router: Router, doors: Doors, stop: CancellationToken) {
    let (free, peers) = (Arc::new(Semaphore::new(ALL)), Peers::default());
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let accepted = async {
            let permit = free.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        let Some((accepted, permit)) = stop.run_until_cancelled(accepted).await else { return };
        match accepted {
            Ok(incoming) => {
                let place = incoming.address().map(|address| peers.admit(address));
                if matches!(place, Some(None)) {
                    // Closed without a word: an answer would wait for whoever does not read it.
                    doors.unanswered(Unanswered::Connections);
                    continue;
                }
                let router = router.clone();
                open.spawn(async move {
                    answer(incoming, router).await;
                    drop((permit, place));
                });
            }
            Err(error) => {
                tracing::debug!("nobody can connect: {error}");
                tokio::time::sleep(REST).await;
            }
        }
    }
}

async fn answer(incoming: Incoming, router: Router) {
    match incoming {
        Incoming::Unix(stream) => converse(Patient::new(stream), router).await,
        Incoming::Tcp(stream) => {
            // Answers are short: one that waits for an acknowledgement is a slow one.
            let _ = stream.set_nodelay(true);
            converse(Patient::new(stream), router).await;
        }
        Incoming::Tls(stream, tls) => {
            let _ = stream.set_nodelay(true);
            if let Some(stream) = tls.accept(Patient::new(stream)).await {
                converse(stream, router).await;
            }
        }
    }
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(stream: S, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = connection.await {
        tracing::debug!("a connection: {error}");
    }
}
