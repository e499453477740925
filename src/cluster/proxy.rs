//! The proxy between us and the API server, from the environment, as Go programs read it.
//!
//! kube asks `NO_PROXY` about the proxy's own address instead of the server's. A cluster on this
//! host would be looked for behind the proxy.

use std::net::IpAddr;

use http::Uri;

/// Returns the proxy for a server; `variable` reads the environment.
///
/// A server on this host never has one. `NO_PROXY` lists `*`, addresses, networks (`10.0.0.0/8`),
/// and domains: `example.com` with all below it, `.example.com` without itself. Each has a port or
/// none. An entry of another form matches nothing.
pub(super) fn of(server: &Uri, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let read = |upper: &str, lower: &str| {
        [upper, lower].into_iter().filter_map(&variable).find(|value| !value.trim().is_empty())
    };
    let proxy = if server.scheme_str() == Some("http") {
        read("HTTP_PROXY", "http_proxy")
    } else {
        read("HTTPS_PROXY", "https_proxy")
    }?;
    let host = server.host()?.trim_matches(['[', ']']).to_ascii_lowercase();
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return None;
    }
    let exceptions = read("NO_PROXY", "no_proxy").unwrap_or_default();
    let is_direct = exceptions.split(',').map(str::trim).any(|entry| is_match(entry, &host, address, port));
    (!is_direct).then(|| if proxy.contains("://") { proxy } else { format!("http://{proxy}") })
}

fn is_match(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some((network, length)) = entry.split_once('/') {
        return is_in_network(network, length, address).unwrap_or(false);
    }
    if let Ok(entry) = entry.trim_matches(['[', ']']).parse::<IpAddr>() {
        return address == Some(entry);
    }
    let (name, wanted) = match entry.rsplit_once(':') {
        Some((name, digits)) => match digits.parse::<u16>() {
            Ok(wanted) => (name, Some(wanted)),
            Err(_) => return false,
        },
        None => (entry, None),
    };
    if wanted.is_some_and(|wanted| wanted != port) {
        return false;
    }
    if let Ok(name) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
        return address == Some(name);
    }
    let name =
        name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name).to_ascii_lowercase();
    match name.strip_prefix('.') {
        Some("") => false,
        Some(domain) => is_below(host, domain),
        None => !name.is_empty() && (host == name || is_below(host, &name)),
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

fn is_in_network(network: &str, length: &str, address: Option<IpAddr>) -> Option<bool> {
    let length: u32 = length.parse().ok()?;
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32_u32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let ((network, width), (address, same)) = (bits(network.parse().ok()?), bits(address?));
    let rest = width.checked_sub(length)?;
    // A shift by all 128 bits leaves nothing to compare.
    Some(width == same && network.checked_shr(rest) == address.checked_shr(rest))
}
