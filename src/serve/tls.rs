//! Encryption: a certificate and its key, as the files have them now.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::kept::Kept;
use super::patient::Patient;
use crate::config::TlsFiles;

/// The longest time that two programs may take to agree on a key.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What connections are encrypted with.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    files: Arc<Kept<Arc<ServerConfig>>>,
    good: Arc<Mutex<Option<Arc<ServerConfig>>>>,
}

impl Tls {
    /// With these files.
    pub(super) fn of(files: &TlsFiles) -> Self {
        Self { files: Kept::of(vec![files.cert.clone(), files.key.clone()], read), good: Arc::default() }
    }

    /// What counts now. While a newer certificate cannot be used, as when its key is not there yet, the one before
    /// does.
    pub(super) async fn now(&self) -> Result<Arc<ServerConfig>, String> {
        let now = self.files.now().await;
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        match now {
            Ok(config) => {
                *good = Some((*config).clone());
                Ok((*config).clone())
            }
            Err(why) => good.clone().ok_or(why),
        }
    }

    /// Agrees with who connects; none where that does not come to anything.
    pub(super) async fn accept(&self, stream: Patient<TcpStream>) -> Option<TlsStream<Patient<TcpStream>>> {
        let config = self.now().await.ok()?;
        let agreed = TlsAcceptor::from(config).accept(stream);
        match tokio::time::timeout(HANDSHAKE, agreed).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!("no encryption with who connects: {error}");
                None
            }
            Err(_) => None,
        }
    }
}

fn read(files: &[PathBuf]) -> Result<Arc<ServerConfig>, String> {
    let [cert, key] = files else { return Err("a certificate and its key are two files".to_owned()) };
    let wrong = |file: &PathBuf, why: String| format!("{}: {why}", file.display());
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| wrong(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(cert, "there is no certificate in it".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map(rustls::ConfigBuilder::<ServerConfig, _>::with_no_client_auth);
    let config = config.and_then(|config| config.with_single_cert(chain, secret));
    let mut config = config.map_err(|error| wrong(cert, format!("with {}: {error}", key.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
