//! Connections: so many at a time, each with a deadline for its request, and with one for whoever
//! reads the answer.

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

use super::client_addresses::{MAX_CONNECTIONS, PeerConnections};
use super::slow_clients::TimedStream;
use super::tls::TlsSettings;
use crate::report::{EndpointMetrics, RequestRejection};

/// The longest time that a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A request's head is never larger, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// The pause after a failure to accept, as when no file descriptor is free.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// An open place.
pub(super) enum OpenListener {
    Unix(UnixListener),
    Tcp(TcpListener),
    Tls(TcpListener, TlsSettings),
}

/// An incoming connection.
enum IncomingConnection {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(TcpStream, TlsSettings),
}

impl IncomingConnection {
    /// Returns the address that it comes from, where it has one.
    fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(stream) | Self::Tls(stream, _) => stream.peer_addr().ok().map(|address| address.ip()),
        }
    }
}

impl OpenListener {
    async fn accept(&self) -> io::Result<IncomingConnection> {
        match self {
            Self::Unix(listener) => {
                listener.accept().await.map(|(stream, _)| IncomingConnection::Unix(stream))
            }
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| IncomingConnection::Tcp(stream)),
            Self::Tls(listener, tls) => {
                listener.accept().await.map(|(stream, _)| IncomingConnection::Tls(stream, tls.clone()))
            }
        }
    }
}

/// Serves until it is stopped. Responses in progress are broken off then.
pub(super) async fn serve(
    listener: OpenListener,
    router: Router,
    endpoints: EndpointMetrics,
    stop: CancellationToken,
) {
    let (free, peers) = (Arc::new(Semaphore::new(MAX_CONNECTIONS)), PeerConnections::default());
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
                let admission = incoming.address().map(|address| peers.admit(address));
                if matches!(admission, Some(None)) {
                    // Closed without a word: an answer would wait for whoever does not read it.
                    endpoints.count_rejection(RequestRejection::Connections);
                    continue;
                }
                let router = router.clone();
                open.spawn(async move {
                    serve_connection(incoming, router).await;
                    drop((permit, admission));
                });
            }
            Err(error) => {
                tracing::debug!("no connections are accepted: {error}");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

async fn serve_connection(incoming: IncomingConnection, router: Router) {
    match incoming {
        IncomingConnection::Unix(stream) => serve_http(TimedStream::new(stream), router).await,
        IncomingConnection::Tcp(stream) => {
            // Answers are short: one that waits for an acknowledgement is a slow one.
            let _ = stream.set_nodelay(true);
            serve_http(TimedStream::new(stream), router).await;
        }
        IncomingConnection::Tls(stream, tls) => {
            let _ = stream.set_nodelay(true);
            if let Some(stream) = tls.accept(TimedStream::new(stream)).await {
                serve_http(stream, router).await;
            }
        }
    }
}

async fn serve_http<S: AsyncRead + AsyncWrite + Unpin>(stream: S, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = connection.await {
        tracing::debug!("a connection: {error}");
    }
}
