//! Commit statuses: the sources whose statuses a repository shows, and the name of each.
//!
//! **Invariant:** no two sources set one status, and a repository that nobody named sources for
//! shows only those that follow it.

use std::collections::BTreeMap;
use std::fmt;

use super::fault::ConfigFault;
use super::notify::SOURCE_PLACEHOLDER;
use super::prefix::PrefixAddress;
use super::tree::ConfigNodeMark;
use super::{
    Config, DnsLabel, Forge, NotifiedSources, NotifyConfig, Recipient, SourceConfig, SourceLocation,
};

const CONTEXT_HINT: &str = "put {source} into it, for example staging/{source}, or name one source under `sources`, \
                            and let no two contexts begin and end alike";

/// The prefixes of a host that serves an API or ssh beside the web pages of a forge.
const SERVICE_HOST_PREFIXES: [&str; 3] = ["api.", "ssh.", "altssh."];

/// The name of a status on a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StatusName {
    server: String,
    repository: String,
    context: String,
}

impl StatusName {
    fn is_beside(&self, other: &Self) -> bool {
        (&self.server, &self.repository) == (&other.server, &other.repository)
    }
}

/// Returns the faults of contexts that two sources would share on one repository.
pub(super) fn context_faults(
    entries: &[(ConfigNodeMark, NotifyConfig)],
    sources: &[SourceConfig],
    customs: ClusterSources,
) -> Vec<ConfigFault> {
    let mut shown: BTreeMap<StatusName, &str> = BTreeMap::new();
    let mut faults = Vec::new();
    for (mark, entry) in entries {
        let Some(template) = status_template(entry) else { continue };
        for source in notified_sources(entry, sources) {
            let context = template.context.replace(SOURCE_PLACEHOLDER, source);
            let first = *shown.entry(StatusName { context, ..template.clone() }).or_insert(source);
            if first != source {
                let message = format!(
                    "the sources `{first}` and `{source}` have the same `context` at {}, and would overwrite \
                     each other's status",
                    template.repository
                );
                faults.push(context_fault(*mark, message));
                break;
            }
        }
    }
    if customs == ClusterSources::Followed {
        let open = entries.iter().filter(|(_, entry)| entry.sources == NotifiedSources::All);
        let open: Vec<_> = open.filter_map(|(mark, entry)| Some((*mark, status_template(entry)?))).collect();
        for (number, (mark, template)) in open.iter().enumerate() {
            let earlier = open.iter().take(number).map(|(_, earlier)| earlier);
            let message = cluster_source_fault(template, &shown, sources, earlier);
            faults.extend(message.map(|message| context_fault(*mark, message)));
        }
    }
    faults
}

/// Returns why a source of the cluster could get the status of another source by this context.
/// Somebody who creates one chooses its name, and may know the contexts.
fn cluster_source_fault<'a>(
    template: &StatusName,
    shown: &BTreeMap<StatusName, &str>,
    sources: &[SourceConfig],
    mut earlier: impl Iterator<Item = &'a StatusName>,
) -> Option<String> {
    let StatusName { repository, context, .. } = template;
    if !context.contains(SOURCE_PLACEHOLDER) {
        return Some(format!(
            "the `context` `{context}` at {repository} is the same for all sources of the cluster, which would \
             overwrite each other's status"
        ));
    }
    let is_of_file = |name: &str| sources.iter().any(|source| source.name == name);
    let taken = shown.iter().filter(|(name, _)| name.is_beside(template)).find_map(|(name, source)| {
        let other = named_source(context, &name.context)?;
        (other != *source && !is_of_file(other)).then_some((other, *source))
    });
    if let Some((other, source)) = taken {
        return Some(format!(
            "by the `context` `{context}` at {repository}, a source `{other}` of the cluster would overwrite the \
             status of the source `{source}`"
        ));
    }
    let same = earlier.find(|earlier| earlier.is_beside(template) && can_meet(&earlier.context, context))?;
    Some(format!(
        "by the `context` `{context}` at {repository} and by `{}`, two sources of the cluster would overwrite each \
         other's status",
        same.context
    ))
}

fn context_fault(mark: ConfigNodeMark, message: String) -> ConfigFault {
    ConfigFault::new("config-notify-context", message).with_mark(mark).hint(CONTEXT_HINT)
}

/// Returns the name of the statuses of an entry, with the placeholder in it; none where it sets
/// none.
fn status_template(entry: &NotifyConfig) -> Option<StatusName> {
    let Recipient::Forge { forge, url, repository, context, .. } = &entry.to else { return None };
    Some(StatusName {
        server: url.trim_end_matches('/').to_ascii_lowercase(),
        repository: repository.to_ascii_lowercase(),
        // GitHub takes contexts that differ in case alone for one.
        context: match forge {
            Forge::GitHub => context.to_lowercase(),
            Forge::Gitea | Forge::GitLab => context.clone(),
        },
    })
}

/// Returns the source that gets this context by a template; none where no source does.
fn named_source<'t>(template: &str, context: &'t str) -> Option<&'t str> {
    let (before, _) = template.split_once(SOURCE_PLACEHOLDER)?;
    let count = template.matches(SOURCE_PLACEHOLDER).count();
    let rest = context.len().checked_sub(template.len() - count * SOURCE_PLACEHOLDER.len())?;
    let name = context.get(before.len()..before.len() + rest / count)?;
    let is_name = name.parse::<DnsLabel>().is_ok();
    (is_name && template.replace(SOURCE_PLACEHOLDER, name) == context).then_some(name)
}

/// Returns whether two templates may give two sources one context: their beginnings go together,
/// and so do their ends.
fn can_meet(one: &str, other: &str) -> bool {
    let ends = |template: &str| {
        let begin = template.split(SOURCE_PLACEHOLDER).next().unwrap_or_default().to_owned();
        (begin, template.rsplit(SOURCE_PLACEHOLDER).next().unwrap_or_default().to_owned())
    };
    let ((begin, end), (other_begin, other_end)) = (ends(one), ends(other));
    one != other
        && (begin.starts_with(&other_begin) || other_begin.starts_with(&begin))
        && (end.ends_with(&other_end) || other_end.ends_with(&end))
}

/// Indicates whether sources of the cluster are followed beside those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClusterSources {
    /// They are.
    Followed,
    /// They are not.
    Ignored,
}

/// Returns the sources that an entry is about: those that it names, else those that a forge's
/// repository is followed by.
fn notified_sources<'a>(entry: &'a NotifyConfig, sources: &'a [SourceConfig]) -> Vec<&'a str> {
    match &entry.sources {
        NotifiedSources::Named(names) => names.iter().map(String::as_str).collect(),
        NotifiedSources::All => {
            let followed = sources.iter().filter(|source| entry.to.is_for(&source.location));
            followed.map(|source| source.name.as_str()).collect()
        }
    }
}

/// The reason why a repository shows no commit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitStatusError {
    /// A named source is a directory, which has no commit.
    Directory {
        /// The source.
        source: String,
        /// The repository that is to show its status.
        repository: String,
    },
    /// No source is named, and none follows the repository.
    NotFollowed {
        /// The repository.
        repository: String,
    },
}

/// `no commit status of the source shop at acme/shop: it is a directory, and has no commits`.
impl fmt::Display for CommitStatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { source, repository } => write!(
                f,
                "no commit status of the source {source} at {repository}: it is a directory, and has no commits"
            ),
            Self::NotFollowed { repository } => write!(
                f,
                "no commit status at {repository}: no source follows it by an address of its server, and \
                 `sources` names none"
            ),
        }
    }
}

impl Config {
    /// Returns the recipients, each with the sources that it is notified of. A commit status whose
    /// entry names no source is that of the sources here that follow the repository.
    pub(crate) fn recipients(&self) -> Vec<NotifyConfig> {
        let resolved = |entry: &NotifyConfig| {
            if !matches!(entry.to, Recipient::Forge { .. }) {
                return entry.clone();
            }
            let names = notified_sources(entry, &self.sources).into_iter().map(str::to_owned).collect();
            NotifyConfig { sources: NotifiedSources::Named(names), ..entry.clone() }
        };
        self.notify.iter().map(resolved).collect()
    }

    /// Returns the commit statuses that nobody will see.
    pub fn commit_status_errors(&self) -> Vec<CommitStatusError> {
        self.notify.iter().flat_map(|entry| self.errors_of_entry(entry)).collect()
    }

    fn errors_of_entry(&self, entry: &NotifyConfig) -> Vec<CommitStatusError> {
        let Recipient::Forge { repository, .. } = &entry.to else { return Vec::new() };
        let is_directory = |name: &&String| {
            let mut named = self.sources.iter().filter(|source| source.name == **name);
            named.any(|source| matches!(source.location, SourceLocation::Directory(_)))
        };
        let repository = repository.clone();
        match &entry.sources {
            NotifiedSources::Named(names) => {
                let directories = names.iter().filter(is_directory).cloned();
                directories
                    .map(|source| CommitStatusError::Directory { source, repository: repository.clone() })
                    .collect()
            }
            NotifiedSources::All
                if !self.custom_sources.is_open() && notified_sources(entry, &self.sources).is_empty() =>
            {
                vec![CommitStatusError::NotFollowed { repository }]
            }
            NotifiedSources::All => Vec::new(),
        }
    }
}

impl Recipient {
    /// Returns whether it is notified of a source at this location that its entry does not name. A
    /// forge is notified only where the source follows the repository.
    fn is_for(&self, location: &SourceLocation) -> bool {
        let Self::Forge { forge, url, repository, .. } = self else { return true };
        let SourceLocation::Git { url: followed, .. } = location else { return false };
        let (Some(server), Some(followed)) = (address_of(url), address_of(followed.expose())) else {
            return false;
        };
        // GitLab may have a number in place of the name: its commits are looked for there alone.
        let is_number = !repository.contains('/');
        is_same_server(&followed, &server)
            && (is_number || is_repository_at(&followed, &server, *forge, repository))
    }
}

/// Returns whether an address is on the server of a forge. Over ssh it has a port of its own, and
/// elsewhere another port is another server.
fn is_same_server(followed: &PrefixAddress, server: &PrefixAddress) -> bool {
    web_host(&server.host) == web_host(&followed.host)
        && (followed.scheme == "ssh" || followed.port == server.port)
}

/// Returns whether an address is that of a repository on the server of a forge. Over ssh the folder
/// of the server's pages does not count.
fn is_repository_at(
    followed: &PrefixAddress,
    server: &PrefixAddress,
    forge: Forge,
    repository: &str,
) -> bool {
    let base = server.folders.join("/");
    let base = match forge {
        Forge::GitHub => base.strip_suffix("api/v3").unwrap_or(&base),
        Forge::Gitea | Forge::GitLab => base.as_str(),
    };
    let path = followed.folders.join("/");
    let path = path.strip_prefix("~/").unwrap_or(&path);
    let path = path.strip_suffix(".git").unwrap_or(path);
    let below_base = format!("{}/{repository}", base.trim_end_matches('/'));
    path.eq_ignore_ascii_case(below_base.trim_start_matches('/'))
        || followed.scheme == "ssh" && path.eq_ignore_ascii_case(repository)
}

/// Returns an address without its login, which does not decide what is there.
fn address_of(url: &str) -> Option<PrefixAddress> {
    let without_login = url.split_once("://").and_then(|(scheme, rest)| {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (_, host) = authority.rsplit_once('@')?;
        Some(format!("{scheme}://{host}/{path}"))
    });
    PrefixAddress::read(without_login.as_deref().unwrap_or(url))
}

fn web_host(host: &str) -> &str {
    SERVICE_HOST_PREFIXES.iter().find_map(|prefix| host.strip_prefix(prefix)).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(forge: Forge, url: &str, repository: &str, followed: &[&str], others: &[&str]) {
        let to = Recipient::Forge {
            forge,
            url: url.to_owned(),
            repository: repository.to_owned(),
            token: "t".into(),
            context: "c".to_owned(),
        };
        for address in followed {
            assert!(to.is_for(&SourceLocation::of_repository(address)), "{repository} at {url}: {address}");
        }
        for address in others {
            assert!(!to.is_for(&SourceLocation::of_repository(address)), "{repository} at {url}: {address}");
        }
    }

    #[test]
    fn a_repository_shows_the_status_of_sources_that_follow_it() {
        check(
            Forge::GitHub,
            "https://api.github.com",
            "acme/shop",
            &[
                "https://github.com/acme/shop.git",
                "https://github.com/Acme/Shop/",
                "https://ann:hunter2@github.com/acme/shop",
                "git@github.com:acme/shop.git",
                "ssh://git@ssh.github.com:443/acme/shop.git",
            ],
            &[
                "https://github.com/acme/site.git",
                "https://github.com/other/acme/shop.git",
                "https://github.com.example.org/acme/shop.git",
                "https://example.org/acme/shop.git",
                "https://github.com@example.org/acme/shop.git",
                "/srv/acme/shop",
                "file:///acme/shop",
            ],
        );
        check(
            Forge::GitHub,
            "https://git.example.org/api/v3",
            "acme/shop",
            &["https://git.example.org/acme/shop.git"],
            &["https://git.example.org/api/v3/acme/shop.git"],
        );
        check(
            Forge::Gitea,
            "https://example.org/git/",
            "acme/shop",
            &["https://example.org/git/acme/shop", "git@example.org:acme/shop.git"],
            &["https://example.org/acme/shop"],
        );
        check(
            Forge::Gitea,
            "https://example.org:3000",
            "acme/shop",
            &[
                "https://example.org:3000/acme/shop",
                "git@example.org:acme/shop.git",
                "ssh://git@example.org:2222/acme/shop.git",
            ],
            &["https://example.org/acme/shop", "https://example.org:8443/acme/shop"],
        );
        check(
            Forge::GitLab,
            "https://gitlab.com",
            "42",
            &["https://gitlab.com/acme/shop.git", "https://gitlab.com:443/acme/shop.git"],
            &["https://example.org/acme/shop.git", "https://gitlab.com:8443/acme/shop.git"],
        );
        let slack = Recipient::Slack { url: "u".into() };
        assert!(slack.is_for(&SourceLocation::Directory("/srv".into())));
    }
}
