//! Who is told of what happens: webhooks, and forges as the status of a commit.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Deserialize;

use super::fault::Fault;
use super::tree::Node;
use super::{Environment, Forge, Name, NotifyConfig, Occasion, Recipient, UrlAt};

const GITHUB: &str = "https://api.github.com";

/// One entry of the key `notify` of a `Configuration`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(
    rename_all = "camelCase",
    default,
    deny_unknown_fields,
    expecting = "a mapping with webhook, slack, github, gitea or gitlab"
)]
pub(super) struct NotifySpec {
    webhook: Option<WebhookSpec>,
    slack: Option<SlackSpec>,
    github: Option<ForgeSpec>,
    gitea: Option<ForgeSpec>,
    gitlab: Option<ForgeSpec>,
    sources: Vec<Name>,
    on: Option<BTreeSet<Occasion>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields, expecting = "a mapping with url or urlFile")]
pub(super) struct WebhookSpec {
    url: Option<String>,
    url_file: Option<PathBuf>,
    token: Option<PathBuf>,
}

/// Whoever has the URL can write there, so that it stands in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping with urlFile")]
pub(super) struct SlackSpec {
    url_file: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping with repository and token")]
pub(super) struct ForgeSpec {
    url: Option<String>,
    repository: String,
    token: PathBuf,
}

impl NotifySpec {
    /// The checked form; notes what is wrong with it at this document's entry of this number.
    pub(super) fn checked(
        self,
        environment: &Environment,
        (document, number): (&Node, usize),
        faults: &mut Vec<Fault>,
    ) -> Option<NotifyConfig> {
        let mark = document.get("notify").and_then(|notify| notify.at(number)).unwrap_or(document).mark;
        let mut recipients = Vec::new();
        let mut wrong = |fault: (&'static str, String), hint: &str| {
            faults.push(Fault::new(fault.0, fault.1).at(mark).hint(hint.to_owned()));
        };
        let resolve = |path: PathBuf| environment.resolve(&path);
        if let Some(webhook) = self.webhook {
            let url = match (webhook.url, webhook.url_file) {
                (Some(url), None) => Some(UrlAt::Url(url)),
                (None, Some(file)) => Some(UrlAt::File(resolve(file))),
                _ => None,
            };
            if let Some(url) = url {
                recipients.push(Recipient::Webhook { url, token: webhook.token.map(resolve) });
            } else {
                let hint =
                    "url stands in this file; urlFile names a file that holds it, for one that is a secret";
                wrong(("config-notify-url", "a webhook has either `url` or `urlFile`".to_owned()), hint);
                return None;
            }
        }
        recipients.extend(self.slack.map(|slack| Recipient::Slack { url: resolve(slack.url_file) }));
        for (spec, forge, default) in [
            (self.github, Forge::GitHub, Some(GITHUB)),
            (self.gitea, Forge::Gitea, None),
            (self.gitlab, Forge::GitLab, Some("https://gitlab.com")),
        ] {
            let Some(spec) = spec else { continue };
            let Some(url) = spec.url.or_else(|| default.map(str::to_owned)) else {
                wrong(
                    ("config-notify-url", "the forge has no `url`".to_owned()),
                    "its address, as https://git.example.org",
                );
                return None;
            };
            let (repository, token) = (spec.repository, resolve(spec.token));
            if !is_repository(&repository) {
                let message = format!("`{repository}` is no repository");
                wrong(("config-notify-repository", message), "its owner and name, as acme/shop");
                return None;
            }
            recipients.push(Recipient::Forge { forge, url, repository, token });
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
        let on = self.on.unwrap_or_else(|| Occasion::ALL.into());
        Some(NotifyConfig { to, sources: self.sources.into_iter().map(Into::into).collect(), on })
    }
}

impl Recipient {
    fn url(&self) -> Option<&str> {
        match self {
            Self::Webhook { url: UrlAt::Url(url), .. } | Self::Forge { url, .. } => Some(url),
            Self::Webhook { .. } | Self::Slack { .. } => None,
        }
    }
}

/// `owner/name`, with groups before it where the forge has them.
fn is_repository(text: &str) -> bool {
    let part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    text.contains('/') && text.split('/').all(part)
}

/// Whether what is sent there can be read by nobody else: encrypted, or on this machine. Nothing in it is a secret.
pub fn is_sound(url: &str) -> bool {
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
