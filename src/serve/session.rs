//! Signing in: a browser sends no header by itself, so it gives the token once and gets a cookie
//! for it.
//!
//! A session is its end and a code over that under the token itself (RFC 2104). So nothing is
//! stored, all replicas with one token know it, and a new token ends it.
//!
//! **Invariant:** the cookie is sent over TLS alone. Browsers hold cookies apart by host and not by
//! port, and any program may listen on another port of a loopback address.

use std::time::Duration;

use axum::Form;
use axum::body::{Body, to_bytes};
use axum::extract::FromRequest as _;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac as _;
use jiff::Timestamp;
use serde::Deserialize;

use crate::secret::Secret;

/// The path of the form.
pub(super) const SIGN_IN_PATH: &str = "/sign-in";
/// The paths that the form needs, open to everybody.
const PUBLIC_PATHS: [&str; 2] = ["/page.css", "/icon.svg"];
/// Browsers take a cookie of this prefix from the very host over TLS, and from nobody else (RFC
/// 6265bis, 4.1.3.2).
const SESSION_COOKIE: &str = "__Host-rhumb";
/// A working day, after which somebody is asked again.
const SESSION_LIFETIME: Duration = Duration::from_hours(12);
/// The maximum size of a form, in bytes. The token has at most 4,096, and each takes three when it
/// is escaped.
const MAX_FORM_BYTES: usize = 16 << 10;
/// The longest time that a form may take to come.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);
/// The form's policy: look like the page, and be sent here.
const FORM_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);
/// Under `no-referrer` a browser names no origin with a form, and what names none is let in
/// nowhere.
const REFERRER_POLICY: HeaderValue = HeaderValue::from_static("same-origin");

/// The fields of the form.
#[derive(Deserialize)]
struct SignInForm {
    token: String,
}

/// Returns whether a request may be answered to everybody who calls the right name.
pub(super) fn is_public(request: &Parts) -> bool {
    request.method == Method::GET && PUBLIC_PATHS.contains(&request.uri.path())
}

/// Returns whether it is the form that is sent.
pub(super) fn is_sign_in(request: &Parts) -> bool {
    request.method == Method::POST && request.uri.path() == SIGN_IN_PATH
}

/// Returns whether somebody opens the page itself in a browser.
pub(super) fn is_page_request(request: &Parts) -> bool {
    let accepted = request.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let takes_html = accepted.into_iter().any(|value| value.contains("text/html"));
    request.method == Method::GET && request.uri.path() == "/" && takes_html
}

/// Returns whether a session in the cookies was begun with this token, and lasts.
pub(super) fn is_signed_in(headers: &HeaderMap, token: &Secret, now: Timestamp) -> bool {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let cookies = lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    cookies
        .filter(|(name, _)| *name == SESSION_COOKIE)
        .any(|(_, session)| is_valid_session(session, token, now))
}

fn is_valid_session(session: &str, token: &Secret, now: Timestamp) -> bool {
    let Some((end, code)) = session.split_once('.') else { return false };
    let (Ok(seconds), Ok(code)) = (end.parse::<i64>(), URL_SAFE_NO_PAD.decode(code)) else { return false };
    // One that ends later than any that begins now was made with another clock, and is asked for
    // anew.
    let left = seconds.checked_sub(now.as_second()).and_then(|left| u64::try_from(left).ok());
    let is_in_time = left.is_some_and(|left| left <= SESSION_LIFETIME.as_secs());
    is_in_time && token.code().chain_update(text(end)).verify_slice(&code).is_ok()
}

/// Returns what a session's code is over; no webhook and no comparison signs such a text.
fn text(end: &str) -> String {
    format!("rhumb session until {end}")
}

fn begin(token: &Secret, now: Timestamp) -> String {
    let end = now.as_second().saturating_add_unsigned(SESSION_LIFETIME.as_secs()).to_string();
    let code = token.code().chain_update(text(&end)).finalize().into_bytes();
    format!("{end}.{}", URL_SAFE_NO_PAD.encode(code))
}

/// Answers what was sent by the form: with a session and the way to the page, or with the form
/// again and why.
pub(super) async fn sign_in(request: Request<Body>, token: Option<&Secret>, now: Timestamp) -> Response {
    let (head, body) = request.into_parts();
    let bytes = match tokio::time::timeout(FORM_TIMEOUT, to_bytes(body, MAX_FORM_BYTES)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return sign_in_form(StatusCode::PAYLOAD_TOO_LARGE, "This is longer than any token."),
        Err(_) => return sign_in_form(StatusCode::REQUEST_TIMEOUT, "The token took too long to come."),
    };
    let given = Form::<SignInForm>::from_request(Request::from_parts(head, Body::from(bytes)), &()).await;
    let Ok(Form(given)) = given else {
        return sign_in_form(StatusCode::BAD_REQUEST, "No token was given.");
    };
    match token {
        None => sign_in_form(
            StatusCode::UNAUTHORIZED,
            "The token of this rhumb cannot be read; its log says why.",
        ),
        Some(token) if token.is(given.token.as_bytes()) => start_session(&begin(token, now)),
        Some(_) => sign_in_form(StatusCode::UNAUTHORIZED, "This is not the token."),
    }
}

fn start_session(session: &str) -> Response {
    // Without an age it goes when the browser is closed.
    let cookie = format!("{SESSION_COOKIE}={session}; Path=/; Secure; HttpOnly; SameSite=Strict");
    let headers: [(HeaderName, String); 2] =
        [(header::LOCATION, "/".to_owned()), (header::SET_COOKIE, cookie)];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Returns the form, with a message about the error.
pub(super) fn sign_in_form(status: StatusCode, message: &'static str) -> Response {
    let page = include_str!("page/sign-in.html").replace("<!-- message -->", message);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, FORM_SECURITY_POLICY),
        (header::REFERRER_POLICY, REFERRER_POLICY),
    ];
    (status, headers, page).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef-of-the-day";

    fn token(text: &str) -> Secret {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Secret::read(file.path()).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    async fn signed_in(form: &str) -> Response {
        let kind = "application/x-www-form-urlencoded";
        let request =
            Request::post(SIGN_IN_PATH).header(header::CONTENT_TYPE, kind).body(Body::from(form.to_owned()));
        sign_in(request.unwrap(), Some(&token(TOKEN)), at(1_000)).await
    }

    #[tokio::test]
    async fn the_token_alone_begins_a_session() {
        for (form, expected) in [
            (format!("token={TOKEN}"), 303),
            (format!("token=%30{}%20", &TOKEN[1..]), 303),
            ("token=".to_owned(), 401),
            (format!("token={TOKEN}0"), 401),
            ("word=0123456789abcdef-of-the-day".to_owned(), 400),
            (format!("token={}", "a".repeat(MAX_FORM_BYTES)), 413),
        ] {
            let answer = signed_in(&form).await;
            assert_eq!(answer.status().as_u16(), expected, "{form:.40}");
            assert_eq!(answer.headers().contains_key(header::SET_COOKIE), expected == 303, "{form:.40}");
        }
        let answer = signed_in(&format!("token={TOKEN}")).await;
        let cookie = answer.headers()[header::SET_COOKIE].to_str().unwrap();
        assert!(cookie.ends_with("; Path=/; Secure; HttpOnly; SameSite=Strict"), "{cookie}");
        assert!(cookie.starts_with("__Host-rhumb=44200.") && !cookie.contains(TOKEN), "{cookie}");
    }

    #[test]
    fn a_session_lasts_for_its_time_under_its_token() {
        let (mine, other) = (token(TOKEN), token("another-token-of-today"));
        let session = begin(&mine, at(1_000));
        let (end, code) = session.split_once('.').unwrap();
        let later = end.parse::<i64>().unwrap() + 1;
        let check = |cookie: &str, token: &Secret, seconds: i64, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, cookie.parse().unwrap());
            assert_eq!(is_signed_in(&headers, token, at(seconds)), expected, "{cookie} at {seconds}");
        };
        let cookie = format!("{SESSION_COOKIE}={session}");
        check(&cookie, &mine, 1_000, true);
        check(&format!("a=b; {cookie}; c=d"), &mine, 44_199, true);
        check(&format!("{SESSION_COOKIE}=0.aa; {cookie}"), &mine, 1_000, true);
        check(&cookie, &mine, 44_201, false);
        check(&cookie, &mine, 999, false);
        check(&cookie, &other, 1_000, false);
        check(&format!("{SESSION_COOKIE}={later}.{code}"), &mine, 1_001, false);
        check(&format!("{SESSION_COOKIE}={end}.{}", &code[2..]), &mine, 1_000, false);
        check(&format!("{SESSION_COOKIE}={end}.{}", "A".repeat(43)), &mine, 1_000, false);
        check(&format!("{SESSION_COOKIE}={end}."), &mine, 1_000, false);
        check(&format!("{SESSION_COOKIE}={}.{code}", i64::MAX), &mine, 1_000, false);
        check(&format!("rhumb={session}"), &mine, 1_000, false);
        check(&format!("{SESSION_COOKIE}={TOKEN}"), &mine, 1_000, false);
    }
}
