//! Prefixes of repositories' addresses: what a source that is in the cluster may name.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::SourceLocation;

/// The ports that need not be named.
const DEFAULT_PORTS: [(&str, u16); 5] =
    [("https", 443), ("http", 80), ("ssh", 22), ("git", 9418), (OCI_SCHEME, 443)];
/// The scheme of registries, which hold no repositories of git.
pub(super) const OCI_SCHEME: &str = "oci";

/// The address of a server and the first folders of a path on it, or folders of this host.
///
/// Two are compared part by part: `https://host/team` covers `https://host/team/shop.git` and
/// nothing of `https://host/team-b`, of another port, scheme or login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPrefix(PrefixAddress);

/// An address taken apart. One that could be read in two ways has no such form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrefixAddress {
    pub(super) scheme: String,
    user: Option<String>,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    /// The folders. Where a path begins at the login's home, the first is `~`.
    pub(super) folders: Vec<String>,
}

/// A text that is no address without doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an address as https://host/folder, ssh://git@host/folder, git@host:folder or /folder, without a \
     password, `..`, `//`, `%`, `?`, `#` and `;`"
)]
pub struct ParseUrlPrefixError;

impl UrlPrefix {
    /// Returns whether a location is at this prefix or below it.
    pub fn covers(&self, location: &SourceLocation) -> bool {
        match location {
            SourceLocation::Git { url, .. } => self.covers_text(url.expose()),
            SourceLocation::Directory(path) => {
                path.to_str().and_then(PrefixAddress::of_path).is_some_and(|found| self.0.covers(&found))
            }
        }
    }

    /// Does the same as [`UrlPrefix::covers`], of the address of a repository.
    pub fn covers_text(&self, url: &str) -> bool {
        PrefixAddress::read(url).is_some_and(|found| self.0.covers(&found))
    }

    /// Returns how many folders it names: of two that cover the same, the one with more is the
    /// narrower one.
    pub fn depth(&self) -> usize {
        self.0.folders.len()
    }

    /// Returns whether credentials can be bound to it: the server shows who it is, and git takes it
    /// for the name of a setting.
    pub fn can_have_credentials(&self) -> bool {
        matches!(&*self.0.scheme, "https" | "ssh") && !self.to_string().contains('=')
    }
}

impl FromStr for UrlPrefix {
    type Err = ParseUrlPrefixError;

    fn from_str(text: &str) -> Result<Self, ParseUrlPrefixError> {
        let address = PrefixAddress::read(text).filter(|address| address.scheme != OCI_SCHEME);
        address.map(Self).ok_or(ParseUrlPrefixError)
    }
}

impl<'de> Deserialize<'de> for UrlPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl fmt::Display for UrlPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for PrefixAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, user, host, port, folders } = self;
        write!(f, "{scheme}://")?;
        if let Some(user) = user {
            write!(f, "{user}@")?;
        }
        f.write_str(host)?;
        if let Some(port) = port {
            write!(f, ":{port}")?;
        }
        write!(f, "/{}", folders.join("/"))
    }
}

impl PrefixAddress {
    pub(super) fn covers(&self, other: &Self) -> bool {
        let server = |address: &Self| {
            (address.scheme.clone(), address.user.clone(), address.host.clone(), address.port)
        };
        server(self) == server(other) && other.folders.starts_with(&self.folders)
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        // Some servers take `..;` for `..`.
        let doubtful = |c: char| c.is_control() || c.is_whitespace() || "\\%?#;".contains(c);
        if text.contains(doubtful) {
            return None;
        }
        match (text.split_once("://"), text.split_once(':')) {
            (Some((scheme, rest)), _) => Self::of_url(&scheme.to_ascii_lowercase(), rest),
            (None, _) if text.starts_with('/') => Self::of_path(text),
            (None, Some((server, path))) => Self::of_scp(server, path),
            (None, None) => None,
        }
    }

    fn of_url(scheme: &str, rest: &str) -> Option<Self> {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if scheme == "file" {
            return if matches!(authority, "" | "localhost") {
                Self::of_path(&format!("/{path}"))
            } else {
                None
            };
        }
        let (_, default) = DEFAULT_PORTS.iter().find(|(known, _)| *known == scheme)?;
        let (user, host) = server(authority)?;
        // Elsewhere it is a password, or looks like another host.
        if user.is_some() && scheme != "ssh" {
            return None;
        }
        let (host, port) = match host.rsplit_once(':').filter(|_| !host.ends_with(']')) {
            Some((host, port)) => (host, Some(number(port)?)),
            None => (host, None),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let literal = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_literal = literal.is_some_and(|literal| literal.parse::<Ipv6Addr>().is_ok());
        if host.is_empty() || !(is_literal || host.chars().all(is_name)) {
            return None;
        }
        Some(Self {
            scheme: scheme.to_owned(),
            user: user.map(str::to_owned),
            host: host.to_ascii_lowercase(),
            port: port.filter(|port| port != default),
            folders: folders(path)?,
        })
    }

    /// Parses `user@host:path`, from the login's home where it does not begin at the root.
    fn of_scp(authority: &str, path: &str) -> Option<Self> {
        // A remote helper of git's, for example `ext::sh`.
        if path.starts_with(':') {
            return None;
        }
        let home = if path.starts_with(['/', '~']) { "" } else { "~/" };
        Self::of_url("ssh", &format!("{authority}/{}", format!("{home}{path}").trim_start_matches('/')))
    }

    fn of_path(text: &str) -> Option<Self> {
        let path = Path::new(text).is_absolute().then(|| text.trim_start_matches('/'))?;
        Some(Self {
            scheme: "file".to_owned(),
            user: None,
            host: String::new(),
            port: None,
            folders: folders(path)?,
        })
    }
}

/// Returns the login and the host of an authority; none where a login has a password or there are
/// two.
fn server(authority: &str) -> Option<(Option<&str>, &str)> {
    match authority.split_once('@') {
        None => Some((None, authority)),
        Some((user, host)) if !user.is_empty() && !user.contains(':') && !host.contains('@') => {
            Some((Some(user), host))
        }
        Some(_) => None,
    }
}

/// Returns a port, written in digits and nothing else.
fn number(port: &str) -> Option<u16> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|_| digits)
}

/// Returns the folders of a path, which may end with a slash; none for what another program could
/// read otherwise.
fn folders(path: &str) -> Option<Vec<String>> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(Vec::new());
    }
    let plain = |folder: &&str| !matches!(*folder, "" | "." | "..");
    path.split('/').map(|folder| Some(folder).filter(plain).map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_covered_folder_by_folder() {
        #[track_caller]
        fn check(prefix: &str, covered: &[&str], others: &[&str]) {
            let prefix: UrlPrefix = prefix.parse().unwrap();
            for url in covered {
                assert!(prefix.covers(&SourceLocation::of_repository(url)), "{url}");
            }
            for url in others {
                assert!(!prefix.covers(&SourceLocation::of_repository(url)), "{url}");
            }
        }
        check(
            "https://git.example.org/team-a/",
            &[
                "https://git.example.org/team-a/shop.git",
                "HTTPS://GIT.example.org:443/team-a/shop",
                "https://git.example.org/team-a",
            ],
            &[
                "https://git.example.org/team-ab/shop.git",
                "https://git.example.org/Team-a/shop.git",
                "https://git.example.org/team-b/shop.git",
                "https://git.example.org/team-a/../team-b/shop.git",
                "https://git.example.org/team-a/%2e%2e/team-b/shop.git",
                "https://git.example.org//team-a/shop.git",
                "https://git.example.org/team-a/./shop.git",
                "https://git.example.org:8443/team-a/shop.git",
                "https://git.example.org:+443/team-a/shop.git",
                "https://git.example.org/team-a/..;/team-b/shop.git",
                "https://[git.example.org]/team-a/shop.git",
                "http://git.example.org/team-a/shop.git",
                "ssh://git.example.org/team-a/shop.git",
                "https://git.example.org.evil.example/team-a/shop.git",
                "https://git.example.org@evil.example/team-a/shop.git",
                "https://evil.example\\@git.example.org/team-a/shop.git",
                "https://me@git.example.org/team-a/shop.git",
                "https://git.example.org?/team-a/shop.git",
                "https://evil.example#@git.example.org/team-a/shop.git",
                "git.example.org:team-a/shop.git",
                "/team-a/shop.git",
            ],
        );
        check(
            "https://[2001:db8::1]/a",
            &["https://[2001:DB8::1]:443/a/b"],
            &["https://[2001:db8::2]/a/b", "https://[2001:db8::1@evil.example]/a/b"],
        );
        check("https://git.example.org", &["https://git.example.org/a"], &["https://git.example.com/a"]);
        check(
            "git@host:team",
            &["git@host:team/a.git", "ssh://git@HOST:22/~/team/a.git"],
            &["root@host:team/a.git", "host:team/a.git", "git@host:/team/a.git", "ssh://git@host/team/a.git"],
        );
        check(
            "/srv/git",
            &["/srv/git/a", "file:///srv/git/a", "file://localhost/srv/git/a"],
            &["/srv/git/../etc", "/srv/gitolite", "srv/git/a", "file://other/srv/git/a", "host:/srv/git/a"],
        );
        let prefix: UrlPrefix = "/srv/git".parse().unwrap();
        assert!(prefix.covers(&SourceLocation::Directory("/srv/git/a".into())));
        assert!(!prefix.covers(&SourceLocation::Directory("/etc".into())));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_no_prefix() {
        for text in [
            "",
            "a/b",
            "https://",
            "https://a:b@host/",
            "https://host/../",
            "https://host/a?b",
            "ext::sh",
            "ftp://h/a",
            "oci://h/a",
            "https://host:0x1bb/",
            "https://[host]/",
            "https://host/a;b",
        ] {
            assert_eq!(text.parse::<UrlPrefix>(), Err(ParseUrlPrefixError), "{text}");
        }
    }
}
