//! The credentials of the host that a source may show to its git server.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::{DnsLabel, SourceLocation, UrlPrefix};

/// The credentials of the host that a source may show to its git server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CredentialUse {
    /// Credentials named after the source, else those of all sources.
    #[default]
    Own,
    /// Credentials of this name, at this address and below it alone.
    Bound(DnsLabel, UrlPrefix),
    /// None.
    Nothing,
}

/// Names of credentials, each with the one address that it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundCredentials(BTreeMap<DnsLabel, UrlPrefix>);

impl BoundCredentials {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the credentials for a location: of the addresses that cover it, those of the
    /// longest.
    pub fn of(&self, location: &SourceLocation) -> CredentialUse {
        let covering = self.0.iter().filter(|(_, prefix)| prefix.covers(location));
        let longest = covering.max_by_key(|(_, prefix)| prefix.depth());
        longest.map_or(CredentialUse::Nothing, |(name, prefix)| {
            CredentialUse::Bound(name.clone(), prefix.clone())
        })
    }
}

impl<'de> Deserialize<'de> for BoundCredentials {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = BTreeMap::<DnsLabel, UrlPrefix>::deserialize(deserializer)?;
        for (name, prefix) in &all {
            if !prefix.can_have_credentials() {
                return Err(de::Error::custom(format!(
                    "the credentials {name} are for no address that begins with https:// or ssh:// and has no `=`"
                )));
            }
            if let Some((other, _)) = all.iter().find(|(other, same)| *other < name && *same == prefix) {
                return Err(de::Error::custom(format!(
                    "the credentials {other} and {name} are for the same address"
                )));
            }
        }
        Ok(Self(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BoundCredentials, String> {
        serde_yaml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn credentials_are_used_at_their_own_address_and_at_no_other() {
        #[track_caller]
        fn check(all: &BoundCredentials, url: &str, expected: Option<&str>) {
            let found = match all.of(&SourceLocation::of_repository(url)) {
                CredentialUse::Bound(name, _) => Some(name.to_string()),
                CredentialUse::Nothing => None,
                CredentialUse::Own => panic!("{url} is shown whatever there is"),
            };
            assert_eq!(found.as_deref(), expected, "{url}");
        }
        let all = read(
            "{a: 'https://git.example.org/team-a/', deep: 'https://git.example.org/team-a/deep', \
             port: 'https://git.example.org:8443/team-a', key: 'git@git.example.org:team-a', \
             root: 'ssh://git@git.example.org/srv/team-a'}",
        )
        .unwrap();
        for (url, expected) in [
            ("https://git.example.org/team-a/shop.git", Some("a")),
            ("HTTPS://Git.Example.ORG:443/team-a/shop.git/", Some("a")),
            ("https://git.example.org/team-a/deep/shop.git", Some("deep")),
            ("https://git.example.org/team-a/deeper/shop.git", Some("a")),
            ("https://git.example.org:8443/team-a/shop.git", Some("port")),
            ("git@git.example.org:team-a/shop.git", Some("key")),
            ("ssh://git@git.example.org:22/~/team-a/shop.git", Some("key")),
            ("git@git.example.org:/srv/team-a/shop.git", Some("root")),
            // Other servers that look alike.
            ("https://git.example.org.evil.example/team-a/shop.git", None),
            ("https://git.example.org@evil.example/team-a/shop.git", None),
            ("https://git.example.org:443@evil.example/team-a/shop.git", None),
            ("https://evil.example/https://git.example.org/team-a/shop.git", None),
            ("https://evil.example\\@git.example.org/team-a/shop.git", None),
            ("https://evil.example#@git.example.org/team-a/shop.git", None),
            ("https://evil.example?@git.example.org/team-a/shop.git", None),
            ("https://git.example.org./team-a/shop.git", None),
            ("https://me@git.example.org/team-a/shop.git", None),
            ("https://git.example.org:8444/team-a/shop.git", None),
            ("https://git.example.org:+443/team-a/shop.git", None),
            ("https://git.example.org:/team-a/shop.git", None),
            ("https://[git.example.org]/team-a/shop.git", None),
            ("http://git.example.org/team-a/shop.git", None),
            ("ssh://git.example.org/team-a/shop.git", None),
            ("ssh://root@git.example.org/srv/team-a/shop.git", None),
            ("root@git.example.org:team-a/shop.git", None),
            ("git@git.example.org.evil.example:team-a/shop.git", None),
            ("git@git.example.org@evil.example:team-a/shop.git", None),
            ("ext::sh -c id https://git.example.org/team-a/", None),
            // Other folders of the same server.
            ("https://git.example.org/team-ab/shop.git", None),
            ("https://git.example.org/Team-A/shop.git", None),
            ("https://git.example.org//team-a/shop.git", None),
            ("https://git.example.org/./team-a/shop.git", None),
            ("https://git.example.org/team-a/../team-b/shop.git", None),
            ("https://git.example.org/team-a/..", None),
            ("https://git.example.org/team-a/..;/team-b/shop.git", None),
            ("https://git.example.org/team-a/%2e%2e/team-b/shop.git", None),
            ("https://git.example.org/team-a%2fshop.git", None),
            ("https://git.example.org/team-b/shop.git", None),
            ("git@git.example.org:team-b/shop.git", None),
            ("git@git.example.org:team-a/../team-b/shop.git", None),
            ("git@git.example.org:~team-a/shop.git", None),
            ("ssh://git@git.example.org/team-a/shop.git", None),
            ("/srv/team-a/shop.git", None),
            ("file:///srv/team-a/shop.git", None),
        ] {
            check(&all, url, expected);
        }
    }

    #[test]
    fn credentials_are_for_one_address_of_a_server_that_shows_who_it_is() {
        for text in [
            "{a: /srv/git}",
            "{a: 'http://git.example.org/a'}",
            "{a: 'git://git.example.org/a'}",
            "{a: 'https://git.example.org/a=b'}",
            "{a: 'https://token@git.example.org/a'}",
            "{a: [https://git.example.org/a, https://git.example.org/b]}",
            "{a: 'https://git.example.org/a', b: 'https://GIT.example.org:443/a/'}",
            "{a.b: 'https://git.example.org/a'}",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read("{}").unwrap().is_empty());
    }
}
