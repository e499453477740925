//! The endpoints: a Unix socket, TCP, TCP with encryption.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::connections::{self, OpenListener};
use super::tls::TlsSettings;
use super::{ServeError, bind};
use crate::config::TlsFiles;
use crate::report::EndpointMetrics;

/// The time before an endpoint is tried again, at first and at most.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// A place to answer at.
#[derive(Clone, Debug)]
pub(crate) enum ListenEndpoint {
    /// A Unix socket.
    Socket(PathBuf),
    /// An address, with what it is encrypted with.
    Address(SocketAddr, Option<TlsFiles>),
    /// An address for probes alone.
    Probes(SocketAddr),
}

/// Serves an endpoint until it is stopped. A listener that fails to bind does not stop the daemon,
/// and is tried again.
pub(crate) async fn serve_endpoint(
    endpoint: ListenEndpoint,
    router: Router,
    endpoints: EndpointMetrics,
    stop: CancellationToken,
) {
    let (mut wait, mut logged) = (FIRST_RETRY_DELAY, None);
    loop {
        match open(&endpoint).await {
            Ok(listener) => return connections::serve(listener, router, endpoints, stop).await,
            Err(error) => {
                let why = error.to_string();
                if logged.as_ref() != Some(&why) {
                    tracing::warn!("the HTTP API is not available: {why}; retrying");
                }
                logged = Some(why);
            }
        }
        if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return;
        }
        wait = (wait * 2).min(MAX_RETRY_DELAY);
    }
}

async fn open(endpoint: &ListenEndpoint) -> Result<OpenListener, ServeError> {
    match endpoint {
        ListenEndpoint::Socket(path) => Ok(OpenListener::Unix(bind(path).await?)),
        ListenEndpoint::Address(address, None) => {
            bind_to(*address, "answering on http").await.map(OpenListener::Tcp)
        }
        ListenEndpoint::Address(address, Some(files)) => {
            let tls = TlsSettings::of(files);
            tls.current_config().await.map_err(ServeError::Tls)?;
            Ok(OpenListener::Tls(bind_to(*address, "answering on https").await?, tls))
        }
        ListenEndpoint::Probes(address) => {
            bind_to(*address, "answering probes on http").await.map(OpenListener::Tcp)
        }
    }
}

async fn bind_to(address: SocketAddr, scheme: &str) -> Result<TcpListener, ServeError> {
    let failed = |error| ServeError::Io { endpoint: address.to_string(), error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    tracing::info!("{scheme}://{bound}");
    Ok(listener)
}
