//! The text of a notification, in the form that its recipient reads.
//!
//! **Invariant:** does no I/O; a secret is in a notification only as the name of its file.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use crate::config::{Forge, NotificationEvent, Recipient, UrlSource};
use crate::fields::mask_likely_secrets;
use crate::render::sanitize;
use crate::report::{EventReason, EventRecord};

/// The version of a notification in JSON.
const NOTIFICATION_VERSION: &str = "notification.rhumb.dev/v1";

/// The longest description of a status that GitHub takes, in characters.
const MAX_DESCRIPTION_CHARS: usize = 140;

/// One request to a recipient.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Notification {
    /// The base URL.
    pub(super) url: UrlSource,
    /// The path after the URL.
    pub(super) path: String,
    /// The header that a token goes into, what is before it there, and its file.
    pub(super) token: Option<(&'static str, &'static str, PathBuf)>,
    /// JSON.
    pub(super) body: Value,
    /// The status that it sets, if it sets one: a newer notification about the same makes it void.
    pub(super) status: Option<String>,
}

impl Notification {
    /// Returns whether it makes an older notification void.
    pub(super) fn supersedes(&self, older: &Self) -> bool {
        self.status.is_some() && self.status == older.status
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookBody<'a> {
    api_version: &'static str,
    kind: &'static str,
    occasion: &'static str,
    text: String,
    #[serde(flatten)]
    event: &'a EventRecord,
}

/// Returns the notification event of an event reason.
pub(super) fn notification_event(reason: EventReason) -> Option<NotificationEvent> {
    match reason {
        EventReason::RevisionSettled => Some(NotificationEvent::Succeeded),
        EventReason::RolloutFailed => Some(NotificationEvent::Failed),
        EventReason::RolledBack => Some(NotificationEvent::RolledBack),
        EventReason::PruneWaiting => Some(NotificationEvent::PruneWaiting),
        _ => None,
    }
}

/// Returns a recipient as the log names it: without what may be a secret.
pub(super) fn name(to: &Recipient) -> String {
    let host = |url: &str| {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned()
    };
    // Somebody may have written the URL in place of its file's name.
    let shown = |file: &Path| mask_likely_secrets(&file.display().to_string());
    match to {
        Recipient::Webhook { url: UrlSource::Url(url), .. } => format!("the webhook at {}", host(url)),
        Recipient::Webhook { url: UrlSource::File(file), .. } => format!("the webhook of {}", shown(file)),
        Recipient::Slack { url } => format!("the channel of {}", shown(url)),
        Recipient::Forge { url, repository, .. } => format!("{repository} at {}", host(url)),
    }
}

/// Returns an empty notification for it.
pub(super) fn empty_notification(to: &Recipient) -> Notification {
    let (url, token) = match to {
        Recipient::Webhook { url, token } => {
            (url.clone(), token.clone().map(|file| ("authorization", "Bearer ", file)))
        }
        Recipient::Slack { url } => (UrlSource::File(url.clone()), None),
        Recipient::Forge { forge, url, token, .. } => {
            let token = match forge {
                Forge::GitHub => ("authorization", "Bearer ", token.clone()),
                Forge::Gitea => ("authorization", "token ", token.clone()),
                Forge::GitLab => ("private-token", "", token.clone()),
            };
            (UrlSource::Url(url.trim_end_matches('/').to_owned()), Some(token))
        }
    };
    Notification { url, path: String::new(), token, body: Value::Null, status: None }
}

/// Returns the notification for an event; none where its recipient is not to hear of it.
pub(super) fn notification(
    to: &Recipient,
    occasion: NotificationEvent,
    event: &EventRecord,
) -> Option<Notification> {
    match to {
        Recipient::Webhook { .. } => {
            let body = WebhookBody {
                api_version: NOTIFICATION_VERSION,
                kind: "Notification",
                occasion: event_word(occasion),
                text: text(event),
                event,
            };
            Some(Notification { body: serde_json::to_value(body).ok()?, ..empty_notification(to) })
        }
        Recipient::Slack { .. } => {
            let mark =
                if occasion == NotificationEvent::Succeeded { ":white_check_mark:" } else { ":warning:" };
            let body = json!({ "text": format!("{mark} {}", escape_for_slack(&sanitize(&text(event)))) });
            Some(Notification { body, ..empty_notification(to) })
        }
        Recipient::Forge { forge, repository, context, .. } => {
            let context = context.replace("{source}", &event.source);
            status(*forge, &context, occasion, event).map(|(path, body)| Notification {
                status: Some(format!("{path} {context}")),
                path: path.replace("{repository}", &encode_repository(*forge, repository)),
                body,
                ..empty_notification(to)
            })
        }
    }
}

const fn event_word(occasion: NotificationEvent) -> &'static str {
    match occasion {
        NotificationEvent::Succeeded => "succeeded",
        NotificationEvent::Failed => "failed",
        NotificationEvent::RolledBack => "rolled-back",
        NotificationEvent::PruneWaiting => "prune-waiting",
    }
}

/// Returns the text of an event, as `shop: Deployment shop/web: revision 1a2b failed: … (Ann: Two
/// replicas)`.
fn text(event: &EventRecord) -> String {
    let object = event.object.as_ref().map(|object| format!("{object}: "));
    let made = match (&event.author, &event.subject) {
        (Some(author), Some(subject)) => format!(" ({author}: {subject})"),
        _ => String::new(),
    };
    format!("{}: {}{}{made}", event.source, object.unwrap_or_default(), event.message)
}

/// Escapes the three characters that mean something to Slack.
fn escape_for_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the status of a commit, and where it goes. The snapshot of a folder is nobody's commit,
/// and what waits for a person is not the commit's fault.
fn status(
    forge: Forge,
    context: &str,
    occasion: NotificationEvent,
    event: &EventRecord,
) -> Option<(String, Value)> {
    event.author.as_ref()?;
    let revision = event.revision.as_ref().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let succeeded = match occasion {
        NotificationEvent::Succeeded => true,
        NotificationEvent::Failed | NotificationEvent::RolledBack => false,
        NotificationEvent::PruneWaiting => return None,
    };
    let about = event.object.as_ref().map(|object| format!("{object}: "));
    // The rollback names it.
    let about = about.filter(|about| !event.message.contains(&**about)).unwrap_or_default();
    let words = format!("{about}{}", event.message);
    let description: String = sanitize(&words).chars().take(MAX_DESCRIPTION_CHARS).collect();
    let state = match (succeeded, forge) {
        (true, _) => "success",
        (false, Forge::GitLab) => "failed",
        (false, _) => "failure",
    };
    let (path, key) = match forge {
        Forge::GitHub => (format!("/repos/{{repository}}/statuses/{revision}"), "context"),
        Forge::Gitea => (format!("/api/v1/repos/{{repository}}/statuses/{revision}"), "context"),
        Forge::GitLab => (format!("/api/v4/projects/{{repository}}/statuses/{revision}"), "name"),
    };
    Some((path, json!({ "state": state, key: context, "description": description })))
}

/// Returns a repository in a path: GitLab takes its whole name as one part.
fn encode_repository(forge: Forge, repository: &str) -> String {
    if forge == Forge::GitLab { repository.replace('/', "%2F") } else { repository.to_owned() }
}
