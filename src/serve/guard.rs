//! The checks of requests. A loopback address alone keeps nobody out. A web page that somebody has
//! open may ask there too, under a name of its own that leads to this host. The same holds for a
//! socket to which somebody has led a port.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;

use super::answer::ErrorResponse;
use super::reloaded_file::{FileValue, StaleFallback};
use super::session;
use crate::report::{EndpointMetrics, RequestRejection};
use crate::secret::Secret;

/// The header by which browsers name the site of a request (W3C, Fetch Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The checks of each request.
#[derive(Clone, Debug)]
pub(crate) struct RequestGuard {
    hosts: Arc<[String]>,
    others: OtherNames,
    token: Option<Arc<FileValue<Secret>>>,
    browsers: BrowserAccess,
}

/// The way in which a browser gives the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BrowserAccess {
    /// Not at all, unless something beside it adds the header.
    SendNothing,
    /// A form, for a cookie.
    SignIn,
}

/// The other names that it answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherNames {
    /// None.
    Unknown,
    /// Any without a dot, and none at all. Programs call a socket what they like, and nobody can
    /// have such a name lead a browser here.
    WithoutDot,
}

impl RequestGuard {
    /// Returns a guard that admits requests by an address, `localhost` or one of these names, with
    /// the token in this file, where there is one.
    pub(crate) fn new(hosts: &[String], token: Option<PathBuf>) -> Self {
        let read = |files: &[PathBuf]| match files {
            [file] => Secret::read(file).map_err(|why| format!("no token is accepted: {why}")),
            _ => Err("a token is one file".to_owned()),
        };
        let token = token.map(|file| FileValue::of(vec![file], StaleFallback::Nothing, read));
        Self { hosts: hosts.into(), others: OtherNames::Unknown, token, browsers: BrowserAccess::SendNothing }
    }

    /// Lets browsers in too that were given the token in a form. For doors with encryption alone,
    /// as cookies take that.
    #[must_use]
    pub(crate) fn with_sign_in(self) -> Self {
        Self { browsers: BrowserAccess::SignIn, ..self }
    }

    /// Returns a guard for a socket, where anybody who may connect may ask: it admits all requests
    /// but those of other sites' pages.
    pub(crate) fn of_socket(hosts: &[String]) -> Self {
        let others = OtherNames::WithoutDot;
        Self { hosts: hosts.into(), others, token: None, browsers: BrowserAccess::SendNothing }
    }

    fn has_host(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let other = self.others == OtherNames::WithoutDot && !name.contains('.');
        address.is_ok() || name == "localhost" || other || self.hosts.contains(&name)
    }

    fn is_called_by(&self, called: Option<&str>) -> bool {
        called.map_or(self.others == OtherNames::WithoutDot, |called| self.has_host(strip_port(called)))
    }

    async fn decide_request(&self, request: &Parts) -> Result<RequestDecision, ErrorResponse> {
        let called = host(&request.uri, &request.headers);
        if !self.is_called_by(called.as_deref()) {
            let why = "this name is not known here: serve.hosts lists those that are";
            return Err(ErrorResponse::new(StatusCode::MISDIRECTED_REQUEST, why));
        }
        if !is_from_here(request, &called.unwrap_or_default()) {
            return Err(ErrorResponse::new(StatusCode::FORBIDDEN, "another site's page may not ask here"));
        }
        let Some(token) = &self.token else { return Ok(RequestDecision::Open) };
        // Without a token that can be read nobody is let in.
        let token = token.current_value().await.ok();
        if self.browsers == BrowserAccess::SignIn {
            if session::is_sign_in(request) {
                return Ok(RequestDecision::Form(token));
            }
            let is_known =
                |token: &Arc<Secret>| session::is_signed_in(&request.headers, token, Timestamp::now());
            if session::is_public(request) || token.as_ref().is_some_and(is_known) {
                return Ok(RequestDecision::Open);
            }
        }
        let given = request.headers.get(header::AUTHORIZATION).and_then(bearer_token);
        match (token, given) {
            (Some(token), Some(given)) if token.is(given) => Ok(RequestDecision::Open),
            _ => Err(ErrorResponse::new(
                StatusCode::UNAUTHORIZED,
                "send the token in `Authorization: Bearer TOKEN`",
            )),
        }
    }

    /// Refuses a request; who opens the page in a browser, and may sign in, gets the form.
    fn refuse(&self, request: &Parts, failed: ErrorResponse) -> Response {
        let unknown = failed.0 == StatusCode::UNAUTHORIZED;
        if unknown && self.browsers == BrowserAccess::SignIn && session::is_page_request(request) {
            return session::sign_in_form(StatusCode::UNAUTHORIZED, "");
        }
        failed.into_response()
    }
}

/// The decision about a request.
#[derive(Debug)]
enum RequestDecision {
    /// It is answered.
    Open,
    /// It brings the form, to be held against the token, where that can be read.
    Form(Option<Arc<Secret>>),
}

/// Lets a request through, or answers why not.
pub(super) async fn check_request(
    State((guard, endpoints)): State<(RequestGuard, EndpointMetrics)>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let mut response = match guard.decide_request(&head).await {
        Ok(RequestDecision::Open) => return next.run(Request::from_parts(head, body)).await,
        Ok(RequestDecision::Form(token)) => {
            let form = Request::from_parts(head, body);
            let answer = session::sign_in(form, token.as_deref(), Timestamp::now()).await;
            if answer.status() == StatusCode::SEE_OTHER {
                return answer;
            }
            answer
        }
        Err(failed) => guard.refuse(&head, failed),
    };
    endpoints.count_rejection(match response.status() {
        StatusCode::FORBIDDEN => RequestRejection::Site,
        StatusCode::MISDIRECTED_REQUEST => RequestRejection::Name,
        _ => RequestRejection::Token,
    });
    if response.status() == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer realm=\"rhumb\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    // A refused client holds no connection either.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Returns the host name of a request. A target with its own host comes before the header (RFC
/// 9112, 3.2.2), and two headers count as none.
fn host(target: &Uri, headers: &HeaderMap) -> Option<String> {
    if let Some(authority) = target.authority() {
        return Some(authority.as_str().to_owned());
    }
    let mut all = headers.get_all(header::HOST).iter();
    let (only, None) = (all.next()?, all.next()) else { return None };
    only.to_str().ok().map(str::to_owned)
}

fn strip_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    }
}

/// Returns whether no page of another site asks. A program that is no browser sends no such header.
/// Of several headers each counts: a proxy may have added one.
fn is_from_here(request: &Parts, called: &str) -> bool {
    let all = |name: &HeaderName| request.headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let is = |name: &HeaderName, text: &[u8]| all(name).eq([text]);
    let same = |origin: &[u8]| {
        let origin = std::str::from_utf8(origin).ok();
        let authority = origin.and_then(|origin| origin.split_once("://"));
        authority.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(called))
    };
    // Somebody follows a link to the page: it is shown to them, and to nobody else.
    let follows = request.uri.path() == "/" && is(&FETCH_MODE, b"navigate") && is(&FETCH_DEST, b"document");
    let near = |site: &[u8]| matches!(site, b"same-origin" | b"none");
    all(&header::ORIGIN).all(same) && (follows || all(&FETCH_SITE).all(near))
}

fn bearer_token(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    async fn status_of(guard: &RequestGuard, target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let judged = guard.decide_request(&request.body(Body::empty()).unwrap().into_parts().0).await;
        judged.map_or_else(|failed| failed.into_response().status().as_u16(), |_| 200)
    }

    #[tokio::test]
    async fn only_known_names_are_answered() {
        let guard = RequestGuard::new(&["rhumb.example.org".to_owned()], None);
        for (host, expected) in [
            ("127.0.0.1:9090", 200),
            ("10.1.2.3", 200),
            ("[::1]:9090", 200),
            ("[::1]", 200),
            ("localhost", 200),
            ("LocalHost:80", 200),
            ("rhumb.example.org", 200),
            ("Rhumb.Example.Org.:443", 200),
            ("evil.example.org", 421),
            ("127.0.0.1.example.org", 421),
            ("localhost.example.org", 421),
            ("rhumb.example.org.evil.net", 421),
            ("me@localhost", 421),
            ("", 421),
            (":80", 421),
        ] {
            assert_eq!(status_of(&guard, "/", &[("host", host)]).await, expected, "{host}");
        }
        assert_eq!(status_of(&guard, "/", &[]).await, 421);
        assert_eq!(status_of(&guard, "/", &[("host", "localhost"), ("host", "evil.org")]).await, 421);
        assert_eq!(status_of(&guard, "http://evil.org/", &[("host", "localhost")]).await, 421);
    }

    #[tokio::test]
    async fn a_socket_has_many_names_and_none_of_the_web() {
        let guard = RequestGuard::of_socket(&["rhumb.example.org".to_owned()]);
        for (host, expected) in [
            ("rhumb", 200),
            ("localhost:9090", 200),
            ("127.0.0.1", 200),
            ("rhumb.example.org", 200),
            ("evil.example.org", 421),
            ("evil.:80", 200),
        ] {
            assert_eq!(status_of(&guard, "/", &[("host", host)]).await, expected, "{host}");
        }
        assert_eq!(status_of(&guard, "/", &[]).await, 200);
        assert_eq!(status_of(&guard, "/", &[("host", "rhumb"), ("origin", "http://evil.org")]).await, 403);
    }

    #[tokio::test]
    async fn no_other_site_asks() {
        let guard = RequestGuard::new(&[], None);
        for (target, name, value, expected) in [
            ("/v1/status", "origin", "http://localhost:9090", 200),
            ("/v1/status", "origin", "https://LOCALHOST:9090", 200),
            ("/v1/status", "origin", "http://localhost:9091", 403),
            ("/v1/status", "origin", "http://evil.org", 403),
            ("/v1/status", "origin", "null", 403),
            ("/v1/status", "sec-fetch-site", "same-origin", 200),
            ("/v1/status", "sec-fetch-site", "none", 200),
            ("/v1/status", "sec-fetch-site", "same-site", 403),
            ("/v1/status", "sec-fetch-site", "cross-site", 403),
            ("/", "sec-fetch-site", "cross-site", 403),
        ] {
            let headers = [("host", "localhost:9090"), (name, value)];
            assert_eq!(status_of(&guard, target, &headers).await, expected, "{target} {name} {value}");
        }
        for name in ["origin", "sec-fetch-site"] {
            let [here, there] = match name {
                "origin" => ["http://localhost:9090", "http://evil.org"],
                _ => ["same-origin", "cross-site"],
            };
            for both in [[here, there], [there, here]] {
                let headers = [("host", "localhost:9090"), (name, both[0]), (name, both[1])];
                assert_eq!(status_of(&guard, "/v1/status", &headers).await, 403, "{name} {both:?}");
            }
        }
        let link = [
            ("host", "localhost"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_eq!(status_of(&guard, "/", &link).await, 200);
        assert_eq!(status_of(&guard, "/v1/status", &link).await, 403);
        let frame = [link[0], link[1], link[2], ("sec-fetch-dest", "iframe")];
        assert_eq!(status_of(&guard, "/", &frame).await, 403);
    }

    #[tokio::test]
    async fn the_token_is_that_of_the_file_now() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let guard = RequestGuard::new(&[], Some(file.clone()));
        let with = |value: &'static str| [("host", "localhost"), ("authorization", value)];
        assert_eq!(status_of(&guard, "/", &with("Bearer 0123456789abcdef")).await, 401, "there is no file");
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        for (given, expected) in [
            ("Bearer 0123456789abcdef", 200),
            ("bearer  0123456789abcdef ", 200),
            ("Bearer 0123456789abcde", 401),
            ("Bearer 0123456789abcdef0", 401),
            ("Bearer", 401),
            ("Bearer ", 401),
            ("Basic 0123456789abcdef", 401),
            ("", 401),
        ] {
            assert_eq!(status_of(&guard, "/", &with(given)).await, expected, "{given:?}");
        }
        assert_eq!(status_of(&guard, "/", &[("host", "localhost")]).await, 401);
        std::fs::write(&file, "another-token-of-the-day").unwrap();
        assert_eq!(status_of(&guard, "/", &with("Bearer 0123456789abcdef")).await, 401);
        assert_eq!(status_of(&guard, "/", &with("Bearer another-token-of-the-day")).await, 200);
        std::fs::write(&file, " 0123456789abcdef \t\r\n").unwrap();
        assert_eq!(
            status_of(&guard, "/", &with("Bearer 0123456789abcdef")).await,
            200,
            "blanks come in no header"
        );
        // A file of blanks lets nobody in, and an empty one neither.
        std::fs::write(&file, " ".repeat(32)).unwrap();
        assert_eq!(status_of(&guard, "/", &with("Bearer                                 ")).await, 401);
        std::fs::write(&file, "\n").unwrap();
        assert_eq!(status_of(&guard, "/", &with("Bearer ")).await, 401);
        assert_eq!(status_of(&guard, "/", &with("Bearer another-token-of-the-day")).await, 401);
        assert!(!format!("{guard:?}").contains("another"));
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_read_lets_nobody_in() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for file in [dir.path(), &file] {
            let guard = RequestGuard::new(&[], Some(file.to_owned()));
            for given in ["", "Bearer ", "Bearer 0123456789abcdef"] {
                let headers = [("host", "localhost"), ("authorization", given)];
                assert_eq!(status_of(&guard, "/v1/status", &headers).await, 401, "{}", file.display());
            }
        }
    }
}
