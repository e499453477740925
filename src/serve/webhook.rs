//! Webhooks: a git server says that there is something new. Its message is authenticated and never
//! read, and means only "check now".
//!
//! Where replicas share the sources, a webhook may reach a process that does not serve the source.
//! Nothing informs the one that does: it checks at its next interval. The sender hears no error
//! then, as git servers give up webhooks that fail.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{self, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use hmac::Mac as _;
use sha2::{Digest as _, Sha256};

use super::answer::{ErrorResponse, accepted_response};
use super::process::ProcessHandle;
use crate::config::DnsLabel;
use crate::daemon::FetchResult;
use crate::object::hex_bytes;
use crate::report::WebhookOutcome;
use crate::secret::{Mac, Secret, is_there};

/// The largest body of a webhook, in bytes.
const MAX_WEBHOOK_BYTES: usize = 1 << 20;

/// The longest time that a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The burst of webhooks, and their rate a second: of one source, and of all together.
const RATE_PER_SOURCE: (u32, u32) = (10, 1);
const RATE_OF_ALL_SOURCES: (u32, u32) = (50, 10);

/// The number of counters that sources share by their names: no answer shows whether there is a
/// source of a name.
const RATE_BUCKETS: usize = 64;

/// Headers with the MAC of the body in hexadecimal digits, and the text before these.
///
/// GitHub; Bitbucket; Gitea; Forgejo: as their documentation of webhooks has it.
const SIGNATURE_HEADERS: [(&str, &str); 4] = [
    ("x-hub-signature-256", "sha256="),
    ("x-hub-signature", "sha256="),
    ("x-gitea-signature", ""),
    ("x-forgejo-signature", ""),
];

/// The header in which GitLab sends the secret itself.
const GITLAB_TOKEN_HEADER: &str = "x-gitlab-token";

/// The processes that serve the other sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnservedSources {
    /// Nobody.
    Nobody,
    /// Another replica, where there is such a source at all.
    Replicas,
}

/// The receiver of webhooks.
#[derive(Debug)]
pub(crate) struct WebhookReceiver {
    secret: Option<PathBuf>,
    others: UnservedSources,
    of_all: DefaultDirectRateLimiter,
    of_one: Vec<DefaultDirectRateLimiter>,
    unknown: Secret,
    /// The last log line about a secret that cannot be used.
    logged: Mutex<String>,
}

impl WebhookReceiver {
    /// Creates the receiver with the secret in this file. A file with `.` and the name of a source
    /// behind it has that source's own.
    pub(crate) fn new(secret: Option<PathBuf>, others: UnservedSources) -> Arc<Self> {
        let limiter = |(burst, rate): (u32, u32)| {
            let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
            RateLimiter::direct(Quota::per_second(number(rate)).allow_burst(number(burst)))
        };
        Arc::new(Self {
            secret,
            others,
            of_all: limiter(RATE_OF_ALL_SOURCES),
            of_one: (0..RATE_BUCKETS).map(|_| limiter(RATE_PER_SOURCE)).collect(),
            unknown: Secret::new_unmatchable(),
            logged: Mutex::default(),
        })
    }

    fn is_within_rate(&self, source: &str) -> bool {
        let count = Sha256::digest(source.as_bytes())[0] as usize % self.of_one.len().max(1);
        self.of_one.get(count).is_some_and(|limiter| limiter.check().is_ok()) && self.of_all.check().is_ok()
    }

    /// Returns the secret for a source, or one that nobody knows where it has none. None where no
    /// source has any.
    fn secret_of(&self, source: &str) -> Option<Secret> {
        let common = self.secret.as_deref().filter(|file| has_any(file))?;
        let Ok(name) = source.parse::<DnsLabel>() else { return Some(self.unknown.clone()) };
        let own = source_secret_path(common, name.as_str());
        // One that cannot be read is no leave to take the common one.
        let file = if is_there(&own) { &*own } else { common };
        Some(Secret::read(file).unwrap_or_else(|why| {
            if is_there(file) {
                self.log_once(format!("webhooks for the source {name} are not accepted: {why}"));
            }
            self.unknown.clone()
        }))
    }

    fn log_once(&self, why: String) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if *logged != why {
            tracing::warn!("{why}");
            *logged = why;
        }
    }
}

/// Returns the file with the secret of one source alone.
fn source_secret_path(common: &Path, source: &str) -> PathBuf {
    let mut own = common.as_os_str().to_owned();
    own.push(".");
    own.push(source);
    own.into()
}

fn has_any(common: &Path) -> bool {
    let (Some(folder), Some(name)) = (common.parent(), common.file_name()) else { return false };
    let begin = [name.as_encoded_bytes(), b"."].concat();
    let is_own = |entry: fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(&begin);
    is_there(common) || fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(is_own))
}

/// Answers a webhook, and counts it.
pub(super) async fn answer_webhook(
    State((webhooks, process)): State<(Arc<WebhookReceiver>, ProcessHandle)>,
    source: Result<extract::Path<String>, PathRejection>,
    request: Request,
) -> Response {
    // A path that is not UTF-8 names no source.
    let source = source.map(|extract::Path(source)| source).unwrap_or_default();
    let answer = receive(&webhooks, &process, &source, request).await.into_response();
    let outcome = match answer.status() {
        StatusCode::ACCEPTED => WebhookOutcome::Taken,
        StatusCode::FORBIDDEN => WebhookOutcome::Refused,
        StatusCode::TOO_MANY_REQUESTS => WebhookOutcome::TooMany,
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT | StatusCode::BAD_REQUEST => {
            WebhookOutcome::Unreadable
        }
        // No webhook.
        _ => return answer,
    };
    // The loop is not asked for those that are too many.
    let known = outcome != WebhookOutcome::TooMany && process.has_source(&source).await;
    process.endpoints.count_webhook(Some(source.as_str()).filter(|_| known), outcome);
    answer
}

async fn receive(
    webhooks: &Arc<WebhookReceiver>,
    process: &ProcessHandle,
    source: &str,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let nowhere = || ErrorResponse::new(StatusCode::NOT_FOUND, "there is no such page");
    if webhooks.secret.is_none() {
        return Err(nowhere());
    }
    if *request.method() != Method::POST {
        let only = [(header::ALLOW, HeaderValue::from_static("POST"))];
        let why = ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, "webhooks are sent by POST");
        return Ok((only, why).into_response());
    }
    if !webhooks.is_within_rate(source) {
        let later = [(header::RETRY_AFTER, HeaderValue::from_static("10"))];
        let why = ErrorResponse::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many webhooks; the source is fetched anyway",
        );
        return Ok((later, why).into_response());
    }
    let (known, name) = (webhooks.clone(), source.to_owned());
    let secret = tokio::task::spawn_blocking(move || known.secret_of(&name)).await;
    let secret = secret.ok().flatten().ok_or_else(nowhere)?;
    let (head, body) = request.into_parts();
    let code = match tokio::time::timeout(BODY_TIMEOUT, body_code(&secret, &head.headers, body)).await {
        Ok(code) => code?,
        Err(_) => return Err(ErrorResponse::new(StatusCode::REQUEST_TIMEOUT, "the body takes too long")),
    };
    let refused = || {
        ErrorResponse::new(StatusCode::FORBIDDEN, "the signature is not right, or there is no such source")
    };
    if !is_right(&secret, &head.headers, &code) {
        return Err(refused());
    }
    let message = answer_text(process.fetch(source).await, webhooks.others).ok_or_else(refused)?;
    tracing::debug!(source, "webhook: {message}");
    Ok((StatusCode::ACCEPTED, accepted_response(message)).into_response())
}

/// Returns the answer for a sender that knows the secret; none where there is no such source.
fn answer_text(fetched: Option<FetchResult>, others: UnservedSources) -> Option<&'static str> {
    match (fetched, others) {
        (Some(FetchResult::NoSource), UnservedSources::Nobody) => None,
        (Some(FetchResult::NoSource), UnservedSources::Replicas) => {
            Some("this replica does not serve the source; the one that does polls it at its interval")
        }
        // A loop that has not begun begins with a check.
        (Some(FetchResult::Begun) | None, _) => Some("the source is fetched"),
    }
}

/// Returns the MAC of a body, of which nothing is kept.
async fn body_code(secret: &Secret, headers: &HeaderMap, body: Body) -> Result<Mac, ErrorResponse> {
    let too_large = || ErrorResponse::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 1 MiB");
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if announced
        .and_then(|text| text.parse::<u64>().ok())
        .is_some_and(|length| length > MAX_WEBHOOK_BYTES as u64)
    {
        return Err(too_large());
    }
    let (mut code, mut length) = (secret.code(), 0);
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk =
            chunk.map_err(|_| ErrorResponse::new(StatusCode::BAD_REQUEST, "the body cannot be read"))?;
        length += chunk.len();
        if length > MAX_WEBHOOK_BYTES {
            return Err(too_large());
        }
        code.update(&chunk);
    }
    Ok(code)
}

/// Returns whether any of the headers shows that the sender knows the secret.
fn is_right(secret: &Secret, headers: &HeaderMap, code: &Mac) -> bool {
    let signed = |(name, begin): &(&str, &str)| {
        let value = headers.get(*name).and_then(|value| value.to_str().ok());
        let digits = value.and_then(|value| value.strip_prefix(begin)).and_then(hex_bytes::<32>);
        digits.is_some_and(|digits| code.clone().verify_slice(&digits).is_ok())
    };
    SIGNATURE_HEADERS.iter().any(signed)
        || headers.get(GITLAB_TOKEN_HEADER).is_some_and(|token| secret.is(token.as_bytes()))
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
