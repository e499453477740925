//! A client of a Service that counts for itself.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::site::{RealSite, SLOW_TIMEOUT};
use crate::support::eventually;

/// The count of a client's requests.
#[derive(Debug, Default)]
pub(crate) struct Count {
    /// Answers by version.
    pub(crate) answers: BTreeMap<String, usize>,
    /// Failures by reason.
    pub(crate) failures: BTreeMap<String, usize>,
}

impl Count {
    /// Fails where a request failed, and unless these versions answered and no other.
    #[track_caller]
    pub(crate) fn is_served_by(&self, versions: &[&str]) {
        assert!(self.failures.is_empty(), "{self:#?}");
        assert_eq!(self.answers.keys().collect::<Vec<_>>(), versions, "{self:#?}");
    }
}

/// A client that sends one request after another, each by a connection of its own.
pub(crate) struct Client {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Count>,
}

/// Asks an address inside the cluster, and returns the answer's body.
pub(crate) fn ask(place: &RealSite, address: &str) -> Result<String, String> {
    ask_cluster(place.site.cluster, address)
}

fn ask_cluster(cluster: &controlplane::Cluster, address: &str) -> Result<String, String> {
    let mut stream = cluster.connect_inside(address).map_err(|error| error.to_string())?;
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    stream
        .write_all(request.as_bytes())
        .and_then(|()| stream.read_to_string(&mut answer))
        .map_err(|error| error.to_string())?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.trim().to_owned()),
        _ => Err(format!("it answers {answer:?}")),
    }
}

/// Waits until a Service answers, and returns its address.
#[track_caller]
pub(crate) fn address_of(place: &RealSite, service: &str) -> String {
    eventually(&format!("Service {service} answers"), SLOW_TIMEOUT, || {
        match place.site.value("Service", service, "/spec/clusterIP") {
            Value::String(ip) => {
                let address = format!("{ip}:80");
                ask(place, &address).map(|_| address)
            }
            other => Err(format!("its address is {other}")),
        }
    })
}

impl Client {
    pub(crate) fn start(place: &RealSite, address: &str) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (cluster, address, flag) = (place.site.cluster, address.to_owned(), is_over.clone());
        let thread = thread::spawn(move || {
            let mut count = Count::default();
            while !flag.load(Ordering::Relaxed) {
                match ask_cluster(cluster, &address) {
                    Ok(body) => {
                        let version = body.split_whitespace().next().unwrap_or_default().to_owned();
                        *count.answers.entry(version).or_default() += 1;
                    }
                    Err(why) => *count.failures.entry(why).or_default() += 1,
                }
            }
            count
        });
        Self { is_over, thread }
    }

    /// Ends it after the request that it has begun.
    pub(crate) fn stop(self) -> Count {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
