//! The files and ports that a program needs to find servers and trust them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variables of rhumb that helm sees too: where certificates are, and which proxy is between. A
/// proxy's address may hold a password.
pub const PASSED_VARIABLES: [&str; 8] = [
    CERTIFICATE_FILE,
    CERTIFICATE_FOLDERS_VARIABLE,
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "NO_PROXY",
    "no_proxy",
];
const CERTIFICATE_FILE: &str = "SSL_CERT_FILE";
const CERTIFICATE_FOLDERS_VARIABLE: &str = "SSL_CERT_DIR";

/// The files with names of hosts, and with the authorities that Go trusts, on all systems. None of
/// them holds a secret.
const READABLE_PATHS: [&str; 14] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/ssl/certs",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/usr/share/pki/ca-trust-source",
];

/// Returns the files and folders that helm may read, of those that are there.
pub(super) fn readable_files(
    variables: &[(OsString, OsString)],
    exists: impl Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let named = |variable: &str| {
        let found = variables.iter().filter(move |(name, _)| name == variable);
        found.flat_map(|(_, value)| std::env::split_paths(value)).collect::<Vec<_>>()
    };
    let file = named(CERTIFICATE_FILE);
    let all = READABLE_PATHS.iter().map(PathBuf::from).chain(file).chain(named(CERTIFICATE_FOLDERS_VARIABLE));
    // The root is no folder of certificates, whatever a variable says.
    all.filter(|path| path.is_absolute() && path.parent().is_some() && exists(path)).collect()
}

/// Returns the ports of the proxies that the variables name.
pub(super) fn proxy_ports(variables: &[(OsString, OsString)]) -> Vec<u16> {
    let is_proxy = |name: &OsString| {
        let name = name.to_string_lossy().to_ascii_uppercase();
        name == "HTTPS_PROXY" || name == "HTTP_PROXY"
    };
    let proxies = variables.iter().filter(|(name, _)| is_proxy(name));
    proxies.filter_map(|(_, value)| port(value.to_str()?)).collect()
}

/// Returns the port of a proxy, as Go reads it.
fn port(proxy: &str) -> Option<u16> {
    let (scheme, rest) = proxy.split_once("://").unwrap_or(("http", proxy));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let named = host.rsplit_once(':').filter(|_| !host.ends_with(']'));
    match (named, scheme) {
        (Some((_, port)), _) => port.parse().ok(),
        (None, _) if host.is_empty() => None,
        (None, "http") => Some(80),
        (None, "https") => Some(443),
        (None, "socks5" | "socks5h") => Some(1080),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(all: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        all.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn certificates_and_names_of_hosts_are_read_and_nothing_else() {
        let named = variables(&[
            ("SSL_CERT_FILE", "/opt/ca.pem"),
            ("SSL_CERT_DIR", "/opt/certs:relative:/:/opt/none"),
            ("HTTPS_PROXY", "/opt/proxy"),
        ]);
        let there =
            ["/etc/hosts", "/etc/ssl/certs", "/opt/ca.pem", "/opt/certs", "/", "relative", "/opt/proxy"];
        let found = readable_files(&named, |path| there.iter().any(|one| Path::new(one) == path));
        assert_eq!(found, ["/etc/hosts", "/etc/ssl/certs", "/opt/ca.pem", "/opt/certs"].map(PathBuf::from));
        for secret in ["/etc/ssl", "/etc/ssl/private", "/etc/pki/tls", "/etc/pki/tls/private"] {
            assert!(!READABLE_PATHS.contains(&secret));
        }
    }

    #[test]
    fn the_port_of_a_proxy_is_reached() {
        #[track_caller]
        fn check(value: &str, expected: Option<u16>) {
            let found = proxy_ports(&variables(&[("https_proxy", value), ("NO_PROXY", "a:1")]));
            assert_eq!(found, Vec::from_iter(expected), "{value}");
        }
        check("http://proxy.example.org:3128", Some(3128));
        check("proxy.example.org:3128", Some(3128));
        check("http://ann:secret@proxy.example.org:3128/", Some(3128));
        check("http://ann:1080@proxy.example.org", Some(80));
        check("https://[::1]", Some(443));
        check("https://[::1]:8443", Some(8443));
        check("socks5://proxy", Some(1080));
        check("", None);
        check("http://proxy:many", None);
    }
}
