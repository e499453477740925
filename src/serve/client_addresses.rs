//! Connections over TCP by who has them: nobody takes all of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of connections served at a time; the others wait in the kernel's queue.
pub(super) const MAX_CONNECTIONS: usize = 64;

/// The maximum number of one address at a time.
const MAX_CONNECTIONS_PER_ADDRESS: usize = MAX_CONNECTIONS / 4;

/// The number of connections of each address.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerConnections(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection that counts until it is dropped.
#[derive(Debug)]
pub(super) struct PeerConnection {
    peers: PeerConnections,
    address: IpAddr,
}

impl PeerConnections {
    /// Lets one more connection of an address in; none where it has enough.
    ///
    /// All of this host have one address between them, and so no bound of their own.
    pub(super) fn admit(&self, address: IpAddr) -> Option<PeerConnection> {
        let address = network_of(address);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= MAX_CONNECTIONS_PER_ADDRESS && !address.is_loopback() {
            return None;
        }
        *count += 1;
        Some(PeerConnection { peers: self.clone(), address })
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        let mut counts = self.peers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// Returns the network of one host: in IPv6 a host has 64 bits to itself.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_connections() {
        let peers = PeerConnections::default();
        let admit = |address: &str| peers.admit(address.parse().unwrap());
        let mut connections: Vec<_> =
            (0..MAX_CONNECTIONS_PER_ADDRESS).map(|_| admit("192.0.2.1").unwrap()).collect();
        for (address, expected) in
            [("192.0.2.1", false), ("::ffff:192.0.2.1", false), ("192.0.2.2", true), ("2001:db8::1", true)]
        {
            assert_eq!(admit(address).is_some(), expected, "{address}");
        }
        connections.pop();
        assert!(admit("192.0.2.1").is_some(), "one has gone");
        let _network: Vec<_> =
            (0..MAX_CONNECTIONS_PER_ADDRESS).map(|n| admit(&format!("2001:db8::{n}")).unwrap()).collect();
        assert!(admit("2001:db8::ffff").is_none(), "one host has many addresses of a network");
        assert!(admit("2001:db8:0:1::1").is_some());
    }

    #[test]
    fn those_on_this_host_share_an_address_and_no_bound() {
        let peers = PeerConnections::default();
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let connections: Vec<_> =
                (0..2 * MAX_CONNECTIONS_PER_ADDRESS).map(|_| peers.admit(address.parse().unwrap())).collect();
            assert!(connections.iter().all(Option::is_some), "{address}");
        }
        assert!(peers.0.lock().unwrap().is_empty(), "who has gone takes no memory");
    }
}
