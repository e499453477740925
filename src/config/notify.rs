//! The recipients of notifications: webhooks, and forges as the status of a commit.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use super::fault::ConfigFault;
use super::tree::{ConfigNode, ConfigNodeMark};
use super::{
    DnsLabel, Environment, Forge, NotificationEvent, NotifiedSources, NotifyConfig, Recipient, UrlSource,
};

const GITHUB_API_URL: &str = "https://api.github.com";

/// The placeholder of the source in a context, and the default context.
pub(super) const SOURCE_PLACEHOLDER: &str = "{source}";
const DEFAULT_CONTEXT: &str = "rhumb/{source}";

/// Forges keep 255 characters of a context; the name of a source needs its room.
const MAX_CONTEXT_BYTES: usize = 128;

/// One entry of the key `notify` of a `Configuration`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(
    rename_all = "camelCase",
    default,
    deny_unknown_fields,
    expecting = "a mapping with webhook, slack, github, gitea or gitlab"
)]
pub(super) struct NotifySpec {
    webhook: Option<WebhookRecipientSpec>,
    slack: Option<SlackSpec>,
    github: Option<ForgeSpec>,
    gitea: Option<ForgeSpec>,
    gitlab: Option<ForgeSpec>,
    sources: Vec<DnsLabel>,
    on: Option<BTreeSet<NotificationEvent>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields, expecting = "a mapping with url or urlFile")]
pub(super) struct WebhookRecipientSpec {
    url: Option<String>,
    url_file: Option<PathBuf>,
    token: Option<PathBuf>,
}

/// A Slack webhook. Anybody with the URL can write there, so it is in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping with urlFile")]
pub(super) struct SlackSpec {
    url_file: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping with repository and token")]
pub(super) struct ForgeSpec {
    url: Option<String>,
    repository: ForgeRepository,
    token: PathBuf,
    context: Option<String>,
}

/// Owner and name; a number, where the forge has one for it.
#[derive(Clone, Debug)]
struct ForgeRepository(String);

impl<'de> Deserialize<'de> for ForgeRepository {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ForgeRepositoryVisitor)
    }
}

struct ForgeRepositoryVisitor;

impl Visitor<'_> for ForgeRepositoryVisitor {
    type Value = ForgeRepository;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text (for example acme/shop)")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ForgeRepository, E> {
        Ok(ForgeRepository(text.to_owned()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<ForgeRepository, E> {
        Ok(ForgeRepository(number.to_string()))
    }
}

/// Returns the place of a document's entry of this number.
pub(super) fn entry_mark(document: &ConfigNode, number: usize) -> ConfigNodeMark {
    document.get("notify").and_then(|notify| notify.at(number)).unwrap_or(document).mark
}

impl NotifySpec {
    /// Returns the checked form; adds its faults to this document's entry of this number.
    pub(super) fn validate(
        self,
        environment: &Environment,
        document: &ConfigNode,
        number: usize,
        faults: &mut Vec<ConfigFault>,
    ) -> Option<NotifyConfig> {
        let mark = entry_mark(document, number);
        let mut recipients = Vec::new();
        let mut wrong = |fault: (&'static str, String), hint: &str| {
            faults.push(ConfigFault::new(fault.0, fault.1).with_mark(mark).hint(hint.to_owned()));
        };
        let resolve = |path: PathBuf| environment.resolve(&path);
        if let Some(webhook) = self.webhook {
            let url = match (webhook.url, webhook.url_file) {
                (Some(url), None) => Some(UrlSource::Url(url)),
                (None, Some(file)) => Some(UrlSource::File(resolve(file))),
                _ => None,
            };
            if let Some(url) = url {
                recipients.push(Recipient::Webhook { url, token: webhook.token.map(resolve) });
            } else {
                let hint =
                    "url is given in this file; urlFile names a file that holds it, for one that is a secret";
                wrong(("config-notify-url", "a webhook has either `url` or `urlFile`".to_owned()), hint);
                return None;
            }
        }
        recipients.extend(self.slack.map(|slack| Recipient::Slack { url: resolve(slack.url_file) }));
        for (spec, forge) in
            [(self.github, Forge::GitHub), (self.gitea, Forge::Gitea), (self.gitlab, Forge::GitLab)]
        {
            match spec.map(|spec| spec.validate(forge, environment)).transpose() {
                Ok(recipient) => recipients.extend(recipient),
                Err((code, message, hint)) => {
                    wrong((code, message), hint);
                    return None;
                }
            }
        }
        let one = (recipients.len() == 1).then(|| recipients.pop()).flatten();
        let Some(to) = one else {
            let message = "an entry of `notify` has exactly one of webhook, slack, github, gitea and gitlab";
            wrong(("config-notify", message.to_owned()), "give each its own entry");
            return None;
        };
        if let Some(url) = to.url()
            && !is_sound(url)
        {
            let message =
                "a notification goes to an https URL without credentials, or to http on this machine";
            wrong(
                ("config-notify-url", message.to_owned()),
                "put a token into a file, and name it with `token`",
            );
            return None;
        }
        let on = self.on.unwrap_or_else(|| NotificationEvent::ALL.into());
        let sources = if self.sources.is_empty() {
            NotifiedSources::All
        } else {
            NotifiedSources::Named(self.sources.into_iter().map(Into::into).collect())
        };
        Some(NotifyConfig { to, sources, on })
    }
}

/// The code of a fault, what is wrong, and what to do.
type NotifyFault = (&'static str, String, &'static str);

impl ForgeSpec {
    fn validate(self, forge: Forge, environment: &Environment) -> Result<Recipient, NotifyFault> {
        let default = match forge {
            Forge::GitHub => Some(GITHUB_API_URL),
            Forge::Gitea => None,
            Forge::GitLab => Some("https://gitlab.com"),
        };
        let Some(url) = self.url.or_else(|| default.map(str::to_owned)) else {
            let message = "the forge has no `url`".to_owned();
            return Err(("config-notify-url", message, "its address, for example https://git.example.org"));
        };
        if url.contains(['?', '#']) {
            let message = "the `url` of a forge has a query or a fragment".to_owned();
            return Err((
                "config-notify-url",
                message,
                "its address alone, for example https://git.example.org",
            ));
        }
        let ForgeRepository(repository) = self.repository;
        let is_number = !repository.is_empty() && repository.bytes().all(|byte| byte.is_ascii_digit());
        if !(is_repository(&repository) || forge == Forge::GitLab && is_number) {
            let message = format!("`{repository}` is no repository");
            return Err(("config-notify-repository", message, "its owner and name, for example acme/shop"));
        }
        let context = self.context.unwrap_or_else(|| DEFAULT_CONTEXT.to_owned());
        if !is_context(&context) {
            let message = "the `context` cannot be that of a status".to_owned();
            let hint =
                "a short line, for example staging/{source}; {source} stands for the name of the source";
            return Err(("config-notify-context", message, hint));
        }
        Ok(Recipient::Forge { forge, url, repository, token: environment.resolve(&self.token), context })
    }
}

/// Returns whether a text is a line that a forge shows as it is.
fn is_context(text: &str) -> bool {
    !text.is_empty()
        && text.trim() == text
        && text.chars().count() <= MAX_CONTEXT_BYTES
        && !text.contains(char::is_control)
        && !text.replace(SOURCE_PLACEHOLDER, "").contains(['{', '}'])
}

impl Recipient {
    fn url(&self) -> Option<&str> {
        match self {
            Self::Webhook { url: UrlSource::Url(url), .. } | Self::Forge { url, .. } => Some(url),
            Self::Webhook { .. } | Self::Slack { .. } => None,
        }
    }
}

/// Returns whether a text is `owner/name`, with groups before it where the forge has them.
fn is_repository(text: &str) -> bool {
    let part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    text.contains('/') && text.split('/').all(part)
}

/// Returns whether nobody else can read a request there: it is encrypted, or stays on this machine.
/// Nothing in it is a secret.
pub(crate) fn is_sound(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let here =
        host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    !host.is_empty()
        && !authority.contains('@')
        && !url.chars().any(|c| c.is_whitespace() || c.is_control())
        && (scheme == "https" || scheme == "http" && here)
}
