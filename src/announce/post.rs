//! Bringing a letter to where it goes.

use std::error::Error;
use std::io;
use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode, Uri, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::letter::Letter;
use crate::config::{UrlAt, is_sound};
use crate::secret::Secret;

/// One try takes no longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a letter was not brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// It may be taken later.
    ForNow(String),
    /// It never will be.
    ForGood(String),
}

/// Brings letters. Follows no redirect: whoever is configured is told, and nobody else.
#[derive(Debug)]
pub(super) struct Post {
    client: Result<Client<HttpsConnector<HttpConnector>, Body>, String>,
}

impl Post {
    /// One that trusts the authorities that the system trusts.
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
    pub(super) async fn bring(&self, letter: &Letter) -> Result<(), Failed> {
        let client = self.client.as_ref().map_err(|why| Failed::ForNow(why.clone()))?;
        let letter = letter.clone();
        // A disk that hangs holds up nobody else.
        let request = tokio::task::spawn_blocking(move || request(&letter)).await;
        // What a panic says may hold what was read.
        let request = request.map_err(|_| Failed::ForNow("its files could not be read".to_owned()))??;
        match tokio::time::timeout(PATIENCE, client.request(request)).await {
            Ok(Ok(response)) => judged(response.status()),
            // Its words may hold the URL, which may be a secret.
            Ok(Err(error)) if error.is_connect() => {
                Err(Failed::ForNow(format!("it cannot be reached{}", cause(&error))))
            }
            Ok(Err(_)) => Err(Failed::ForNow("the connection broke".to_owned())),
            Err(_) => Err(Failed::ForNow(format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }
}

/// Why there is no connection, as the system and TLS say it: they know the host alone, and nothing else of the URL.
fn cause(error: &(dyn Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    let last = chain.filter_map(|error| error.downcast_ref::<io::Error>()).last();
    last.map_or_else(String::new, |error| format!(": {error}"))
}

fn judged(status: StatusCode) -> Result<(), Failed> {
    let why = || format!("it answers {status}");
    match status {
        _ if status.is_success() => Ok(()),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS | StatusCode::UNAUTHORIZED => {
            Err(Failed::ForNow(why()))
        }
        _ if status.is_server_error() => Err(Failed::ForNow(why())),
        _ => Err(Failed::ForGood(why())),
    }
}

/// The files are read at each try: what was wrong with them may have been mended.
fn request(letter: &Letter) -> Result<Request<Body>, Failed> {
    let secret = |file| Secret::read(file).map_err(Failed::ForNow);
    let text = |secret: &Secret| {
        let text = secret.expose().filter(|text| !text.contains(char::is_whitespace));
        text.map(str::to_owned)
            .ok_or_else(|| Failed::ForNow("what is in its file is no single word".to_owned()))
    };
    let url = match &letter.url {
        UrlAt::Url(url) => url.clone(),
        UrlAt::File(file) => text(&secret(file)?)?,
    };
    if !is_sound(&url) {
        let why = "its URL is not https, and not http on this machine";
        return Err(Failed::ForNow(why.to_owned()));
    }
    let uri: Uri = format!("{url}{}", letter.path)
        .parse()
        .map_err(|_| Failed::ForNow("its URL cannot be read".to_owned()))?;
    let mut request = Request::post(uri)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("rhumb/", env!("CARGO_PKG_VERSION")));
    if let Some((name, before, file)) = &letter.token {
        let value = format!("{before}{}", text(&secret(file)?)?);
        let mut value = http::HeaderValue::try_from(value)
            .map_err(|_| Failed::ForNow("its token cannot stand in a header".to_owned()))?;
        value.set_sensitive(true);
        request = request.header(*name, value);
    }
    request
        .body(Body::from(letter.body.to_string()))
        .map_err(|_| Failed::ForNow("its URL cannot be asked".to_owned()))
}
