//! Delivers a notification to its recipient.

use std::error::Error;
use std::io;
use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Request, StatusCode, Uri, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use jiff::fmt::rfc2822;

use super::notification::Notification;
use crate::config::{UrlSource, is_sound};
use crate::secret::Secret;

/// The time limit of one attempt.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest pause that a server may ask for.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(5);

/// The reason for a failed delivery.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeliveryError {
    /// A later attempt may succeed.
    Temporary {
        /// The reason, in words.
        why: String,
        /// The pause that the server asks for, within bounds.
        after: Option<Duration>,
    },
    /// No later attempt can succeed, for this reason.
    Permanent(String),
}

impl DeliveryError {
    fn for_now(why: impl Into<String>) -> Self {
        Self::Temporary { why: why.into(), after: None }
    }
}

/// The client that delivers notifications. It follows no redirect: whoever is configured is
/// notified, and nobody else.
#[derive(Debug)]
pub(super) struct NotificationClient {
    client: Result<Client<HttpsConnector<HttpConnector>, Body>, String>,
}

impl NotificationClient {
    /// Returns a client that trusts the authorities that the system trusts.
    pub(super) fn new() -> Self {
        let provider = rustls::crypto::ring::default_provider();
        let trusting = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider);
        let client = trusting.map(|builder| {
            let connector = builder.https_or_http().enable_http1().build();
            Client::builder(TokioExecutor::new()).build(connector)
        });
        Self { client: client.map_err(|error| format!("the system trusts no authority: {error}")) }
    }

    /// Tries once.
    pub(super) async fn deliver(&self, notification: &Notification) -> Result<(), DeliveryError> {
        let client = self.client.as_ref().map_err(DeliveryError::for_now)?;
        let notification = notification.clone();
        // A disk that hangs delays nobody else.
        let request = tokio::task::spawn_blocking(move || request(&notification)).await;
        // A panic message may hold file contents.
        let request = request.map_err(|_| DeliveryError::for_now("its files could not be read"))?;
        let request = request.map_err(DeliveryError::for_now)?;
        match tokio::time::timeout(REQUEST_TIMEOUT, client.request(request)).await {
            Ok(Ok(response)) => delivery_result(response.status(), response.headers(), Timestamp::now()),
            // Its words may hold the URL, which may be a secret.
            Ok(Err(error)) if error.is_connect() => {
                Err(DeliveryError::for_now(format!("it cannot be reached{}", cause(&error))))
            }
            Ok(Err(_)) => Err(DeliveryError::for_now("the connection broke")),
            Err(_) => {
                Err(DeliveryError::for_now(format!("no answer within {} s", REQUEST_TIMEOUT.as_secs())))
            }
        }
    }
}

/// Returns why there is no connection, as the system and TLS say it: they know the host alone, and
/// nothing else of the URL.
fn cause(error: &(dyn Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    let last = chain.filter_map(|error| error.downcast_ref::<io::Error>()).last();
    last.map_or_else(String::new, |error| format!(": {error}"))
}

fn delivery_result(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Result<(), DeliveryError> {
    let why = format!("it answers {status}");
    let after = requested_pause(headers, now).map(|rest| rest.min(MAX_RETRY_DELAY));
    let is_limit = status == StatusCode::FORBIDDEN && (after.is_some() || is_used_up(headers));
    match status {
        _ if status.is_success() => Ok(()),
        // A redirect may lead the token to another host.
        _ if status.is_redirection() => {
            Err(DeliveryError::Permanent(format!("{why}, and redirects are not followed")))
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS | StatusCode::UNAUTHORIZED => {
            Err(DeliveryError::Temporary { why, after })
        }
        _ if is_limit => {
            Err(DeliveryError::Temporary { why: format!("{why}: too much was asked of it"), after })
        }
        _ if status.is_server_error() => Err(DeliveryError::Temporary { why, after }),
        _ => Err(DeliveryError::Permanent(why)),
    }
}

/// Returns whether nothing more may be asked for now, in the words of GitHub.
fn is_used_up(headers: &HeaderMap) -> bool {
    header_text(headers, "x-ratelimit-remaining").is_some_and(|left| left == "0")
}

/// Returns the pause that a server asks for: `Retry-After` (RFC 9110, section 10.2.3), else
/// GitHub's rate limit reset.
fn requested_pause(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let until = |then: Timestamp| Duration::try_from(then.duration_since(now)).unwrap_or_default();
    if let Some(after) = header_text(headers, "retry-after") {
        let seconds = after.parse().ok().map(Duration::from_secs);
        let date = || rfc2822::DateTimeParser::new().parse_timestamp(after).ok().map(until);
        return seconds.or_else(date);
    }
    let reset = header_text(headers, "x-ratelimit-reset").filter(|_| is_used_up(headers))?;
    reset.parse().ok().and_then(|second| Timestamp::from_second(second).ok()).map(until)
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// Checks that its files can be read and used as they are now.
pub(super) fn validate(notification: &Notification) -> Result<(), String> {
    request(notification).map(drop)
}

/// Builds the request of a notification. Its files are read at each try, as they may have been
/// mended.
fn request(notification: &Notification) -> Result<Request<Body>, String> {
    let secret = |file: &Path| Secret::read(file);
    let text = |secret: &Secret| {
        let text = secret.expose().filter(|text| !text.contains(char::is_whitespace));
        text.map(str::to_owned).ok_or_else(|| "its file does not hold a single word".to_owned())
    };
    let url = match &notification.url {
        UrlSource::Url(url) => url.clone(),
        UrlSource::File(file) => text(&secret(file)?)?,
    };
    if !is_sound(&url) {
        let why = "its URL is not https, and not http on this machine";
        return Err(why.to_owned());
    }
    let uri: Uri =
        format!("{url}{}", notification.path).parse().map_err(|_| "its URL cannot be read".to_owned())?;
    let mut request = Request::post(uri)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("rhumb/", env!("CARGO_PKG_VERSION")));
    if let Some((name, before, file)) = &notification.token {
        let value = format!("{before}{}", text(&secret(file)?)?);
        let mut value = http::HeaderValue::try_from(value)
            .map_err(|_| "its token cannot be sent in a header".to_owned())?;
        value.set_sensitive(true);
        request = request.header(*name, value);
    }
    request.body(Body::from(notification.body.to_string())).map_err(|_| "its URL cannot be asked".to_owned())
}

#[cfg(test)]
mod tests;
