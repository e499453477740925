//! The user of a request through the proxy, by the token in its kubeconfig, which says it in plain
//! text.
//!
//! That is safe as far as the whole cluster is: a reader of `admin`'s kubeconfig may be anybody
//! anyway.

use hyper::header::{HeaderMap, HeaderValue, InvalidHeaderValue};

use crate::pki::MASTERS;
use crate::programs::hex;

/// The rights of a user: everything, or only as RBAC grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserRights {
    Master,
    Limited,
}

/// A user as the proxy knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyUser {
    pub(super) user: String,
    pub(super) rank: UserRights,
}

impl ProxyUser {
    /// Writes the bearer token, with the name in hexadecimal since it may have any character.
    pub(super) fn token(&self) -> String {
        let hex = hex(self.user.as_bytes());
        let rank = if self.rank == UserRights::Master { "master" } else { "limited" };
        format!("proxy.{rank}.{hex}")
    }

    /// Reads an Authorization header; somebody else's token is `None` and goes to the server as it
    /// is.
    pub(super) fn from_header(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?.strip_prefix("Bearer proxy.")?;
        let (rank, hex) = text.split_once('.')?;
        let rank = match rank {
            "master" => UserRights::Master,
            "limited" => UserRights::Limited,
            _ => return None,
        };
        let byte = |at: usize| hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
        Some(Self { user: String::from_utf8(bytes?).ok()?, rank })
    }

    /// Adds the headers by which the API server believes a front proxy.
    pub(super) fn assert(&self, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
        headers.insert("x-remote-user", HeaderValue::from_str(&self.user)?);
        if self.rank == UserRights::Master {
            headers.insert("x-remote-group", HeaderValue::from_static(MASTERS));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_carry_names() {
        for user in ["rhumb", "system:serviceaccount:a:b", ""] {
            let identity = ProxyUser { user: user.to_owned(), rank: UserRights::Limited };
            let header = format!("Bearer {}", identity.token());
            assert_eq!(ProxyUser::from_header(header.as_bytes()), Some(identity));
        }
        for foreign in ["Bearer eyJ.a.b", "Bearer proxy.master.6", "Basic x"] {
            assert_eq!(ProxyUser::from_header(foreign.as_bytes()), None, "{foreign}");
        }
    }
}
