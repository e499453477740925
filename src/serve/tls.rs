//! Encryption: a certificate and its key, as the files have them now.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::reloaded_file::{FileValue, StaleFallback};
use super::slow_clients::TimedStream;
use crate::config::TlsFiles;
use crate::secret::read_regular;

/// The maximum size of a chain of certificates, in bytes.
const MAX_CERTIFICATES_BYTES: u64 = 1 << 20;

/// The longest time that two programs may take to agree on a key.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The encryption of connections.
#[derive(Clone, Debug)]
pub(super) struct TlsSettings {
    files: Arc<FileValue<Arc<ServerConfig>>>,
}

impl TlsSettings {
    /// Reads the certificate and key from these files.
    pub(super) fn of(files: &TlsFiles) -> Self {
        Self {
            files: FileValue::of(
                vec![files.cert.clone(), files.key.clone()],
                StaleFallback::LastUsable,
                read,
            ),
        }
    }

    /// Returns the present certificate. While a newer one cannot be used, as when its key is not
    /// there yet, the one before counts.
    pub(super) async fn current_config(&self) -> Result<Arc<ServerConfig>, String> {
        self.files.current_value().await.map(|config| (*config).clone())
    }

    /// Agrees with who connects; none where that does not come to anything.
    pub(super) async fn accept(
        &self,
        stream: TimedStream<TcpStream>,
    ) -> Option<TlsStream<TimedStream<TcpStream>>> {
        let config = self.current_config().await.ok()?;
        let agreed = TlsAcceptor::from(config).accept(stream);
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, agreed).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!("the TLS handshake failed: {error}");
                None
            }
            Err(_) => None,
        }
    }
}

fn read(files: &[PathBuf]) -> Result<Arc<ServerConfig>, String> {
    let [cert, key] = files else { return Err("a certificate and its key are two files".to_owned()) };
    let wrong = |file: &Path, why: String| format!("{}: {why}", file.display());
    let chain = CertificateDer::pem_slice_iter(&text(cert)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong(cert, describe_pem_error(&error)))?;
    if chain.is_empty() {
        return Err(wrong(cert, "there is no certificate in it".to_owned()));
    }
    let secret =
        PrivateKeyDer::from_pem_slice(&text(key)?).map_err(|error| wrong(key, describe_pem_error(&error)))?;
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map(rustls::ConfigBuilder::<ServerConfig, _>::with_no_client_auth);
    let config = config.and_then(|config| config.with_single_cert(chain, secret));
    let mut config = config.map_err(|error| wrong(cert, format!("with {}: {error}", key.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn text(file: &Path) -> Result<Vec<u8>, String> {
    let shown = file.display();
    let text = read_regular(file, MAX_CERTIFICATES_BYTES + 1).map_err(|error| format!("{shown}: {error}"))?;
    if text.len() as u64 > MAX_CERTIFICATES_BYTES {
        return Err(format!(
            "{shown}: longer than {MAX_CERTIFICATES_BYTES} bytes, so it is neither a certificate nor a key"
        ));
    }
    Ok(text)
}

/// Returns the fault of a file. The parser's own words repeat a line of the file, which may be a
/// key.
fn describe_pem_error(error: &pem::Error) -> String {
    let words = match error {
        pem::Error::NoItemsFound => "there is none in it",
        pem::Error::MissingSectionEnd { .. } => "it has a beginning and no end",
        pem::Error::IllegalSectionStart { .. } => {
            "a line that begins with -----BEGIN does not end with -----"
        }
        pem::Error::Base64Decode(_) => "it is no base64",
        _ => "it is no PEM",
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[tokio::test]
    async fn a_newer_pair_is_used_and_a_broken_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let [cert, key] = ["cert", "key"].map(|name| dir.path().join(name));
        let write = || {
            let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            fs::write(&cert, own.cert.pem()).unwrap();
            fs::write(&key, own.signing_key.serialize_pem()).unwrap();
        };
        let tls = TlsSettings::of(&TlsFiles { cert: cert.clone(), key: key.clone() });
        assert!(tls.current_config().await.unwrap_err().contains("No such file"));
        write();
        let first = tls.current_config().await.unwrap();
        write();
        let second = tls.current_config().await.unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        for file in [&cert, &key] {
            let good = fs::read(file).unwrap();
            fs::write(file, "-----BEGIN").unwrap();
            assert!(Arc::ptr_eq(&second, &tls.current_config().await.unwrap()));
            fs::remove_file(file).unwrap();
            mknodat(CWD, file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            assert!(Arc::ptr_eq(&second, &tls.current_config().await.unwrap()));
            fs::remove_file(file).unwrap();
            fs::write(file, good).unwrap();
        }
        write();
        assert!(!Arc::ptr_eq(&second, &tls.current_config().await.unwrap()));
    }

    #[test]
    fn what_is_wrong_is_reported_without_a_line_of_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let [cert, key] = ["cert", "key"].map(|name| dir.path().join(name));
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (good, lines) = (own.cert.pem(), own.signing_key.serialize_pem());
        fs::write(&cert, &good).unwrap();
        // As a shell without quotes makes it.
        let one_line = lines.replace('\n', " ").replace("KEY-----", "KEY----");
        for (text, expected) in [
            (one_line.clone(), "a line that begins with -----BEGIN does not end with -----"),
            (lines.replace("-----END", "-----FIN"), "it has a beginning and no end"),
            (lines.replace('M', "!"), "it is no base64"),
            (String::new(), "there is none in it"),
            ("x".repeat(2 << 20), "longer than 1048576 bytes"),
        ] {
            fs::write(&key, &text).unwrap();
            let why = read(&[cert.clone(), key.clone()]).unwrap_err();
            assert!(why.contains(expected), "{why}");
            let bytes = format!("{:?}", one_line.as_bytes());
            assert!(!why.contains(&bytes[1..20]) && !why.contains("PRIVATE"), "{why}");
        }
        fs::write(&key, lines).unwrap();
        read(&[cert, key]).unwrap();
    }
}
