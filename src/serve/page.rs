//! The page: three files that are a part of the program, and ask the same questions as everybody.
//!
//! **Invariant:** it comes from here alone. The policy lets nothing in from elsewhere, and no
//! script or style that is in a document.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::IntoResponse;

/// The page's policy: load its own files, and ask this server.
const PAGE_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

type Headers = [(HeaderName, HeaderValue); 2];

fn content_type(media: &'static str) -> Headers {
    [
        (header::CONTENT_TYPE, HeaderValue::from_static(media)),
        (header::CONTENT_SECURITY_POLICY, PAGE_SECURITY_POLICY),
    ]
}

pub(super) async fn page_html() -> impl IntoResponse {
    (content_type("text/html; charset=utf-8"), include_str!("page/index.html"))
}

pub(super) async fn page_script() -> impl IntoResponse {
    (content_type("text/javascript; charset=utf-8"), include_str!("page/page.js"))
}

pub(super) async fn page_style() -> impl IntoResponse {
    (content_type("text/css; charset=utf-8"), include_str!("page/page.css"))
}

pub(super) async fn page_icon() -> impl IntoResponse {
    (content_type("image/svg+xml"), include_str!("page/icon.svg"))
}
