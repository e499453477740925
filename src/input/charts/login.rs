//! A user and a password for one host, and the files in which helm reads them.
//!
//! **Invariant:** they are in no argument and no variable, and no `Debug` shows them.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use zeroize::Zeroizing;

use crate::config::ChartAddress;
use crate::secret::read_regular;

/// The longest file with credentials.
const MAX_CREDENTIALS_BYTES: u64 = 16 << 10;
/// The name under which Docker, and so helm, keeps the credentials for Docker Hub.
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";
/// Stands for what is not shown.
const HIDDEN_TEXT: &str = "***";

/// A user and a password for one host.
pub(super) struct HostLogin {
    user: Zeroizing<String>,
    password: Zeroizing<String>,
}

impl fmt::Debug for HostLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostLogin(..)")
    }
}

impl HostLogin {
    /// Reads `USER:PASSWORD`, the one line of a file. Nothing of it is in the complaint.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let failed = |reason: &dyn fmt::Display| format!("{}: {reason}", path.display());
        let bytes =
            Zeroizing::new(read_regular(path, MAX_CREDENTIALS_BYTES + 1).map_err(|error| failed(&error))?);
        if bytes.len() as u64 > MAX_CREDENTIALS_BYTES {
            return Err(failed(&"it is too long"));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| failed(&"it is no text"))?;
        let line = text.trim_end_matches(['\n', '\r']);
        let (user, password) = line.split_once(':').ok_or_else(|| failed(&"it is not `USER:PASSWORD`"))?;
        if user.is_empty() || password.is_empty() || line.chars().any(char::is_control) {
            return Err(failed(&"it is not `USER:PASSWORD` in one line"));
        }
        Ok(Self { user: user.to_owned().into(), password: password.to_owned().into() })
    }

    fn encoded_login(&self) -> Zeroizing<String> {
        let both = Zeroizing::new(format!("{}:{}", &*self.user, &*self.password));
        STANDARD.encode(both.as_bytes()).into()
    }

    /// Returns a text without anything of it.
    pub(super) fn hide(&self, text: &str) -> String {
        let mut text = text.replace(&**self.encoded_login(), HIDDEN_TEXT);
        let quoted = serde_json::Value::from(&**self.password).to_string();
        for shown in [&**self.password, quoted.trim_matches('"')] {
            text = text.replace(shown, HIDDEN_TEXT);
        }
        text
    }
}

/// Writes the list of repositories: the one that is asked, called by this name.
pub(super) fn write_repositories(
    path: &Path,
    name: &str,
    address: &ChartAddress,
    login: Option<&HostLogin>,
) -> io::Result<()> {
    let mut entry = json!({ "name": name, "url": address.to_string() });
    if let (Some(login), Some(entry)) = (login, entry.as_object_mut()) {
        entry.insert("username".to_owned(), (**login.user).into());
        entry.insert("password".to_owned(), (**login.password).into());
        // An index may name archives of other hosts.
        entry.insert("pass_credentials_all".to_owned(), false.into());
    }
    write_private(path, &json!({ "apiVersion": "", "repositories": [entry] }))
}

/// Writes the credentials for a registry, or that there are none.
pub(super) fn write_registries(
    path: &Path,
    address: &ChartAddress,
    login: Option<&HostLogin>,
) -> io::Result<()> {
    let auths = match login {
        Some(login) => json!({ credentials_key(address): { "auth": &**login.encoded_login() } }),
        None => json!({}),
    };
    write_private(path, &json!({ "auths": auths }))
}

/// Returns the name under which helm looks for the credentials of a registry: its host, but for
/// Docker Hub.
fn credentials_key(registry: &ChartAddress) -> String {
    let host = registry.host();
    if matches!(host.as_str(), "docker.io" | "registry-1.docker.io") {
        DOCKER_HUB_KEY.to_owned()
    } else {
        host
    }
}

fn write_private(path: &Path, content: &serde_json::Value) -> io::Result<()> {
    let text = Zeroizing::new(content.to_string());
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn read(bytes: &[u8]) -> Result<HostLogin, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("chart-credentials.acme");
        fs::write(&path, bytes).unwrap();
        let read = HostLogin::read(&path);
        read.map_err(|error| error.replace(&dir.path().display().to_string(), ""))
    }

    #[test]
    fn a_login_is_a_user_and_a_password() {
        for (text, user, password) in [
            ("ann:secret", "ann", "secret"),
            ("ann:secret\n", "ann", "secret"),
            ("ann:se:cret \r\n", "ann", "se:cret "),
        ] {
            let login = read(text.as_bytes()).unwrap();
            assert_eq!((&**login.user, &**login.password), (user, password));
        }
        let long = [b"ann:".to_vec(), vec![b'a'; MAX_CREDENTIALS_BYTES as usize]].concat();
        for text in [
            &b""[..],
            b"secret-without-user",
            b":secret",
            b"ann:",
            b"ann:secret\nann:other",
            b"ann:\xff",
            &long,
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.starts_with("/chart-credentials.acme: it is ") && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[test]
    fn it_is_shown_nowhere() {
        let login = read(b"ann:pass\"word").unwrap();
        assert_eq!(format!("{login:?}"), "HostLogin(..)");
        let text = "Basic YW5uOnBhc3Mid29yZA== pass\"word \"pass\\\"word\" ann";
        assert_eq!(login.hide(text), "Basic *** *** \"***\" ann");
    }

    #[test]
    fn the_files_are_for_their_owner_alone_and_for_one_host() {
        let dir = tempfile::tempdir().unwrap();
        let login = read(b"ann:secret").unwrap();
        let (one, two) = (dir.path().join("repositories"), dir.path().join("registries"));
        let address: ChartAddress = "https://Charts.example.org:8443/a/".parse().unwrap();
        write_repositories(&one, "charts", &address, Some(&login)).unwrap();
        write_registries(&two, &"oci://ghcr.io/a".parse().unwrap(), Some(&login)).unwrap();
        for path in [&one, &two] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let written: serde_json::Value = serde_json::from_slice(&fs::read(&one).unwrap()).unwrap();
        assert_eq!(
            written["repositories"],
            json!([{
                "name": "charts", "url": "https://charts.example.org:8443/a",
                "username": "ann", "password": "secret", "pass_credentials_all": false,
            }])
        );
        let written = fs::read_to_string(&two).unwrap();
        assert_eq!(written, r#"{"auths":{"ghcr.io":{"auth":"YW5uOnNlY3JldA=="}}}"#);
        // A file that somebody put there is not written over.
        write_registries(&two, &"oci://ghcr.io/a".parse().unwrap(), None).unwrap_err();
    }
    #[test]
    fn helm_finds_the_credentials_of_each_registry() {
        let login = read(b"ann:secret").unwrap();
        for (address, key) in [
            ("oci://ghcr.io/a", "ghcr.io"),
            ("oci://registry.example.org:5000/a", "registry.example.org:5000"),
            ("oci://registry-1.docker.io/a", "https://index.docker.io/v1/"),
            ("oci://docker.io/a", "https://index.docker.io/v1/"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("registries");
            write_registries(&path, &address.parse().unwrap(), Some(&login)).unwrap();
            let written: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert_eq!(written, json!({ "auths": { key: { "auth": "YW5uOnNlY3JldA==" } } }), "{address}");
        }
    }
}
