//! The charts of servers that may be fetched, and the credentials for their hosts.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::DnsLabel;
use super::prefix::{OCI_SCHEME, PrefixAddress};

/// The address of a chart repository, or of the first folders of one.
///
/// Two are compared part by part, as prefixes of git repositories are: `oci://ghcr.io/org` covers
/// `oci://ghcr.io/org/charts/web` and nothing of `oci://ghcr.io/org-b`, of another port or scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartAddress(PrefixAddress);

/// A text that is no address of charts without doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an address as https://host/folder or oci://host/folder, without a user, a password, `..`, `//`, `%`, `?`, \
     `#` and `;`"
)]
pub struct ParseChartAddressError;

impl ChartAddress {
    /// Returns whether an address is at this one or below it.
    pub fn covers(&self, other: &Self) -> bool {
        self.0.covers(&other.0)
    }

    /// Returns the address of a chart of this name in the repository; none where no chart has the
    /// name.
    pub fn chart(&self, name: &str) -> Option<Self> {
        format!("{}/{name}", self.to_string().trim_end_matches('/')).parse().ok()
    }

    /// Returns whether it is an OCI registry; else it is a server with an index.
    pub fn is_registry(&self) -> bool {
        self.0.scheme == OCI_SCHEME
    }

    /// Returns the host, with its port where that is not the usual one.
    pub fn host(&self) -> String {
        let port = self.0.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", self.0.host)
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.0.port.unwrap_or(DEFAULT_PORT)
    }
}

/// The port of both schemes.
const DEFAULT_PORT: u16 = 443;

impl FromStr for ChartAddress {
    type Err = ParseChartAddressError;

    fn from_str(text: &str) -> Result<Self, ParseChartAddressError> {
        let is_of_charts = |address: &PrefixAddress| matches!(&*address.scheme, "https" | OCI_SCHEME);
        PrefixAddress::read(text).filter(is_of_charts).map(Self).ok_or(ParseChartAddressError)
    }
}

impl fmt::Display for ChartAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for ChartAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChartAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A text that is no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a host as ghcr.io or registry.example.org:5000")]
pub struct ParseChartHostError;

/// The host of a chart server, with its port where that is not the usual one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChartHost(String);

impl ChartHost {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ChartHost {
    type Err = ParseChartHostError;

    fn from_str(text: &str) -> Result<Self, ParseChartHostError> {
        let address = format!("https://{text}").parse::<ChartAddress>().ok();
        let host = address.filter(|address| address.0.folders.is_empty() && !text.ends_with('/'));
        host.map(|address| Self(address.host())).ok_or(ParseChartHostError)
    }
}

impl Serialize for ChartHost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ChartHost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The credentials for one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping with host and credential")]
pub struct HostCredential {
    /// The host, which alone is shown them.
    pub host: ChartHost,
    /// Their name.
    pub credential: DnsLabel,
}

/// The key `fetch` of a source, and of the policy for those in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields, expecting = "a mapping with allow")]
pub(crate) struct FetchSpec {
    /// The places that charts may be fetched from.
    pub allow: Vec<ChartAddress>,
    /// The credentials that are shown to hosts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "deserialize_host_credentials")]
    pub credentials: Vec<HostCredential>,
}

impl FetchSpec {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns it as a source has it whose file is rhumb's own.
    pub(super) fn of_file(self) -> FetchConfig {
        FetchConfig { allow: self.allow, credentials: self.credentials, setting: FetchSetting::Source }
    }

    /// Returns it as each source in the cluster has it.
    pub(super) fn of_custom_sources(self) -> FetchConfig {
        FetchConfig { setting: FetchSetting::CustomSources, ..self.of_file() }
    }
}

fn deserialize_host_credentials<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<HostCredential>, D::Error> {
    let all = Vec::<HostCredential>::deserialize(deserializer)?;
    for (number, one) in all.iter().enumerate() {
        if all.iter().take(number).any(|other| other.host == one.host) {
            let host = one.host.as_str();
            return Err(de::Error::custom(format!("there are two credentials for the host {host}")));
        }
    }
    Ok(all)
}

/// The setting of rhumb's own configuration that allows places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FetchSetting {
    /// `spec.fetch` of a source in the file.
    Source,
    /// `customSources.fetch`, for all sources in the cluster.
    CustomSources,
    /// None, as no configuration was given.
    #[default]
    Unconfigured,
}

/// The charts of servers that a source may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchConfig {
    /// The places that charts may be fetched from.
    pub allow: Vec<ChartAddress>,
    /// The credentials that are shown to hosts.
    pub credentials: Vec<HostCredential>,
    /// The setting of rhumb's own configuration that allows a place.
    pub setting: FetchSetting,
}

impl FetchConfig {
    /// Returns what any of these sources of a file may use. Of two credentials for a host the first
    /// counts.
    pub fn union<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut union = Self { setting: FetchSetting::Source, ..Self::default() };
        for one in all {
            union.allow.extend(one.allow.iter().cloned());
            for credential in &one.credentials {
                if union.credentials.iter().all(|known| known.host != credential.host) {
                    union.credentials.push(credential.clone());
                }
            }
        }
        union
    }

    /// Returns whether charts at this address may be fetched.
    pub fn is_allowed(&self, chart: &ChartAddress) -> bool {
        self.allow.iter().any(|prefix| prefix.covers(chart))
    }

    /// Returns the credentials for the host of an address.
    pub fn credential(&self, address: &ChartAddress) -> Option<&HostCredential> {
        let host = address.host();
        self.credentials.iter().find(|one| one.host.as_str() == host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_allowed_folder_by_folder() {
        #[track_caller]
        fn check(prefix: &str, repository: &str, name: &str, expected: bool) {
            let config = FetchConfig { allow: vec![prefix.parse().unwrap()], ..FetchConfig::default() };
            let chart = repository.parse::<ChartAddress>().ok().and_then(|address| address.chart(name));
            let found = chart.is_some_and(|chart| config.is_allowed(&chart));
            assert_eq!(found, expected, "{prefix}: {repository} {name}");
        }
        let https = "https://charts.example.com/stable/";
        for (repository, expected) in [
            ("https://charts.example.com/stable", true),
            ("https://charts.example.com/stable/", true),
            ("https://charts.example.com/stable/deep", true),
            ("HTTPS://Charts.Example.COM:443/stable", true),
            // Other servers that look alike.
            ("https://charts.example.com.evil/stable", false),
            ("https://charts.example.com@evil.example/stable", false),
            ("https://charts.example.com:443@evil.example/stable", false),
            ("https://evil.example/charts.example.com/stable", false),
            ("https://evil.example#@charts.example.com/stable", false),
            ("https://evil.example?@charts.example.com/stable", false),
            ("https://evil.example\\@charts.example.com/stable", false),
            ("https://charts.example.com./stable", false),
            ("https://charts.example.com:8443/stable", false),
            ("https://charts.example.com:+443/stable", false),
            ("https://user@charts.example.com/stable", false),
            ("https://user:password@charts.example.com/stable", false),
            ("http://charts.example.com/stable", false),
            ("oci://charts.example.com/stable", false),
            ("file:///charts.example.com/stable", false),
            ("https:/charts.example.com/stable", false),
            ("//charts.example.com/stable", false),
            // Other folders of the same server.
            ("https://charts.example.com/stable-b", false),
            ("https://charts.example.com/Stable", false),
            ("https://charts.example.com", false),
            ("https://charts.example.com/", false),
            ("https://charts.example.com/stable/../other", false),
            ("https://charts.example.com/stable/%2e%2e/other", false),
            ("https://charts.example.com/stable/..;/other", false),
            ("https://charts.example.com//stable", false),
            ("https://charts.example.com/./stable", false),
            ("https://charts.example.com/stable?x=1", false),
            ("https://charts.example.com/sta\tble", false),
        ] {
            check(https, repository, "web", expected);
        }
        for (prefix, repository, name, expected) in [
            ("oci://ghcr.io/org", "oci://ghcr.io/org", "web", true),
            ("oci://ghcr.io/org/", "OCI://GHCR.io:443/org/charts", "web", true),
            ("oci://ghcr.io/org/web", "oci://ghcr.io/org", "web", true),
            ("oci://ghcr.io/org/web", "oci://ghcr.io/org", "web-b", false),
            ("oci://ghcr.io/org", "oci://ghcr.io/organisation", "web", false),
            ("oci://ghcr.io/org", "oci://ghcr.io", "org", true),
            ("oci://ghcr.io/org", "oci://ghcr.io/org", "..", false),
            ("oci://ghcr.io/org", "oci://ghcr.io/org", "../other", false),
            ("oci://ghcr.io/org", "https://ghcr.io/org", "web", false),
            ("oci://127.0.0.1:5000", "oci://127.0.0.1:5000/a", "web", true),
            ("oci://127.0.0.1:5000", "oci://127.0.0.1:5001/a", "web", false),
            ("oci://[::1]:5000", "oci://[::1]:5000/a", "web", true),
        ] {
            check(prefix, repository, name, expected);
        }
    }

    #[test]
    fn a_mistake_is_no_place_and_no_host() {
        #[track_caller]
        fn check(text: &str) {
            let read = serde_yaml::from_str::<FetchSpec>(text);
            assert!(read.is_err(), "{read:?}");
        }
        check("{allow: [charts.example.com]}");
        check("{allow: ['http://charts.example.com']}");
        check("{allow: ['https://user:password@charts.example.com']}");
        check("{allow: ['https://*.example.com']}");
        check("{allow: ['https://']}");
        check("{allow: 'https://charts.example.com'}");
        check("{allow: null}");
        check("{allowed: []}");
        check("{credentials: [{host: ghcr.io/org, credential: a}]}");
        check("{credentials: [{host: ghcr.io/, credential: a}]}");
        check("{credentials: [{host: 'https://ghcr.io', credential: a}]}");
        check("{credentials: [{host: 'me@ghcr.io', credential: a}]}");
        check("{credentials: [{host: '*', credential: a}]}");
        check("{credentials: [{host: ghcr.io, credential: ../a}]}");
        check("{credentials: [{host: ghcr.io}]}");
        check("{credentials: [{host: ghcr.io, credential: a}, {host: 'GHCR.IO:443', credential: b}]}");
    }

    #[test]
    fn credentials_are_for_one_host_and_port() {
        let spec: FetchSpec = serde_yaml::from_str(
            "{allow: ['oci://ghcr.io'], credentials: [{host: GHCR.io, credential: a}, {host: 'h:5000', credential: b}]}",
        )
        .unwrap();
        let config = spec.of_file();
        for (address, expected) in [
            ("oci://ghcr.io/org", Some("a")),
            ("https://ghcr.io:443/org", Some("a")),
            ("https://ghcr.io:8443/org", None),
            ("https://ghcr.io.evil/org", None),
            ("https://a.ghcr.io/org", None),
            ("oci://h:5000", Some("b")),
            ("oci://h", None),
        ] {
            let found = config.credential(&address.parse().unwrap()).map(|one| one.credential.as_str());
            assert_eq!(found, expected, "{address}");
        }
    }
}
