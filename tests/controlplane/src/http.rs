//! A blocking HTTP client that is just enough to ask the parts whether they are ready and to set up
//! objects.
//!
//! HTTP/1.0, one connection a request: answers are then never chunked and end with the connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use crate::error::Error;
use crate::pki::Pair;

/// The time limit of one request; a longer wait is the caller's loop.
const LIMIT: Duration = Duration::from_secs(60);

/// A status and a body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Builds the TLS settings of a client that trusts the cluster's authority and shows a certificate,
/// if it has one.
pub(crate) fn client_tls(ca: &str, pair: Option<&Pair>) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        roots.add(certificate.map_err(pem)?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match pair {
        Some(pair) => {
            let (certificates, key) = identity(pair)?;
            builder.with_client_auth_cert(certificates, key)?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

/// Reads a certificate and its key for rustls.
pub(crate) fn identity(pair: &Pair) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    let certificates =
        CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect::<Result<_, _>>().map_err(pem)?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(pem)?;
    Ok((certificates, key))
}

fn pem(error: rustls::pki_types::pem::Error) -> Error {
    Error::Tls(rustls::Error::General(error.to_string()))
}

/// One server on a loopback port.
#[derive(Clone)]
pub(crate) struct Client {
    port: u16,
    tls: Option<Arc<ClientConfig>>,
}

impl Client {
    /// Returns a client that speaks plain HTTP.
    pub(crate) const fn plain(port: u16) -> Self {
        Self { port, tls: None }
    }

    /// Returns a client that speaks TLS.
    pub(crate) const fn tls(port: u16, config: Arc<ClientConfig>) -> Self {
        Self { port, tls: Some(config) }
    }

    /// Asks for a path.
    pub(crate) fn get(&self, path: &str) -> io::Result<Answer> {
        self.send("GET", path, None)
    }

    /// Sends a request and reads the whole answer.
    pub(crate) fn send(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)), LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nUser-Agent: controlplane\r\nAccept: application/json\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        match &self.tls {
            None => exchange(stream, &request),
            Some(config) => {
                let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
                let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
                exchange(StreamOwned::new(connection, stream), &request)
            }
        }
    }

    /// Sends a request that must succeed, and reads its JSON answer.
    pub(crate) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let failed = |answer: String| Error::Api { request: format!("{method} {path}"), answer };
        let answer = self.send(method, path, body).map_err(|error| failed(error.to_string()))?;
        if !(200..300).contains(&answer.status) {
            return Err(failed(format!("{} {}", answer.status, answer.body.trim())));
        }
        serde_json::from_str(&answer.body).map_err(|error| failed(format!("not JSON: {error}")))
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<Answer> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    parse(&String::from_utf8_lossy(&bytes))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP answer"))
}

fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some(Answer { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let answer = parse("HTTP/1.0 201 Created\r\nA: b\r\n\r\n{}").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (201, "{}"));
        assert!(parse("HTTP/1.0 20").is_none());
    }
}
