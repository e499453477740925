//! Where it answers: a Unix socket, TCP, TCP with encryption.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::connections::{self, Listener};
use super::tls::Tls;
use super::{Error, bind};
use crate::config::TlsFiles;
use crate::report::Doors;

/// How long is waited before a place is tried again, at first and at most.
const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(30);

/// A place to answer at.
#[derive(Clone, Debug)]
pub enum Place {
    /// A Unix socket.
    Socket(PathBuf),
    /// An address, with what it is encrypted with.
    Address(SocketAddr, Option<TlsFiles>),
    /// An address for probes alone.
    Probes(SocketAddr),
}

/// Answers at a place until it is stopped. What keeps the place from opening keeps nothing else from running, and it
/// is tried again.
pub async fn listen(place: Place, router: Router, doors: Doors, stop: CancellationToken) {
    let (mut wait, mut told) = (FIRST, None);
    loop {
        match open(&place).await {
            Ok(listener) => return connections::serve(listener, router, doors, stop).await,
            Err(error) => {
                let why = error.to_string();
                if told.as_ref() != Some(&why) {
                    tracing::warn!("nothing is answered about the status: {why}; it is tried again");
                }
                told = Some(why);
            }
        }
        if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return;
        }
        wait = (wait * 2).min(LAST);
    }
}

async fn open(place: &Place) -> Result<Listener, Error> {
    match place {
        Place::Socket(path) => Ok(Listener::Unix(bind(path).await?)),
        Place::Address(address, None) => bind_to(*address, "answering on http").await.map(Listener::Tcp),
        Place::Address(address, Some(files)) => {
            let tls = Tls::of(files);
            tls.now().await.map_err(Error::Tls)?;
            Ok(Listener::Tls(bind_to(*address, "answering on https").await?, tls))
        }
        Place::Probes(address) => bind_to(*address, "answering probes on http").await.map(Listener::Tcp),
    }
}

async fn bind_to(address: SocketAddr, what: &str) -> Result<TcpListener, Error> {
    let failed = |error| Error::Io { place: address.to_string(), error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    tracing::info!("{what}://{bound}");
    Ok(listener)
}
