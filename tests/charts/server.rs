//! A server over HTTPS on loopback that records who asked for what.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::Digest as _;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;

/// The token that a service for tokens gives.
pub(crate) const TOKEN: &str = "token-of-the-service";

/// Names that only a proxy leads to.
pub(crate) const DISTANT: [&str; 3] = ["charts.example.org", "files.charts.example.org", "files.example.org"];

/// A certificate for all names of loopback and for the distant ones, and its key; PEM.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let names = ["localhost", "127.0.0.1"].into_iter().chain(DISTANT).map(str::to_owned);
        let names: Vec<String> = names.collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        Self { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }
}

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenRequest {
    /// The name by which the server was called, without its port.
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
}

/// The answer for one path.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// This content.
    Content(Vec<u8>),
    /// This content for whoever shows `Basic` with this text, and 401 for others.
    Guarded(String, &'static str, Vec<u8>),
    /// This content for whoever shows [`TOKEN`]; others are sent to this address for it.
    Tokened(String, &'static str, Vec<u8>),
    /// Another place.
    Redirect(String),
    /// This content, a while after another client asks for it too.
    Slow(Arc<SlowAnswers>, Vec<u8>),
}

/// The answers that are given slowly, two at a time.
#[derive(Debug)]
pub(crate) struct SlowAnswers {
    pair: Barrier,
    open: AtomicUsize,
    /// The most that were open at once.
    pub(crate) most: AtomicUsize,
}

impl SlowAnswers {
    pub(crate) fn new() -> Arc<Self> {
        let (open, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { pair: Barrier::new(2), open, most })
    }

    async fn wait(&self) {
        self.most.fetch_max(self.open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        self.pair.wait().await;
        // The time in which more than two would be counted.
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

type Routes = Arc<Mutex<HashMap<String, Answer>>>;

/// A server that ends with this value.
#[derive(Debug)]
pub(crate) struct ChartServer {
    pub(crate) port: u16,
    routes: Routes,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    _runtime: Runtime,
}

impl ChartServer {
    pub(crate) fn start(certificate: &Certificate) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let certificates = CertificateDer::from_pem_slice(certificate.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificates], key)
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (routes, seen) = (Routes::default(), Arc::<Mutex<Vec<SeenRequest>>>::default());
        runtime.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), routes.clone(), seen.clone()));
        Self { port, routes, seen, _runtime: runtime }
    }

    pub(crate) fn answer(&self, path: &str, answer: Answer) {
        self.routes.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// Answers with an index of these charts: name, version and the place of the archive.
    pub(crate) fn index(&self, folder: &str, charts: &[[&str; 3]]) {
        self.answer(&format!("{folder}/index.yaml"), Answer::Content(index(charts)));
    }

    /// Returns everything that was asked since the last time.
    pub(crate) fn seen(&self) -> Vec<SeenRequest> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

/// Returns an index of charts, each a name, a version and the place of the archive.
pub(crate) fn index(charts: &[[&str; 3]]) -> Vec<u8> {
    let mut entries = serde_json::Map::new();
    for [name, version, url] in charts {
        let entry =
            serde_json::json!({ "apiVersion": "v2", "name": name, "version": version, "urls": [url] });
        let all = entries.entry(*name).or_insert_with(|| serde_json::json!([]));
        all.as_array_mut().unwrap().push(entry);
    }
    serde_json::json!({ "apiVersion": "v1", "entries": entries }).to_string().into_bytes()
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, routes: Routes, seen: Arc<Mutex<Vec<SeenRequest>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, routes, seen) = (tls.clone(), routes.clone(), seen.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                let response = respond(&request, &routes, &seen);
                let answer = routes.lock().unwrap().get(request.uri().path()).cloned();
                async move {
                    if let Some(Answer::Slow(slow, _)) = answer {
                        slow.wait().await;
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            // A client may go away at any time.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn respond<B>(request: &Request<B>, routes: &Routes, seen: &Mutex<Vec<SeenRequest>>) -> Response<Body> {
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let path = request.uri().path().to_owned();
    let host = header("host").unwrap().split(':').next().unwrap().to_owned();
    let authorization = header("authorization");
    seen.lock().unwrap().push(SeenRequest { host, path: path.clone(), authorization: authorization.clone() });
    let typed = |kind: &str, content: Vec<u8>| {
        let digest = sha2::Sha256::digest(&content);
        let digest = digest.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"));
        let response =
            Response::builder().header("content-type", kind).header("docker-content-digest", digest);
        response.header("content-length", content.len()).body(Body::from(content)).unwrap()
    };
    let status = |status| Response::builder().status(status);
    match routes.lock().unwrap().get(&path).cloned() {
        Some(Answer::Content(content) | Answer::Slow(_, content)) => {
            typed("application/octet-stream", content)
        }
        Some(Answer::Guarded(login, kind, content)) if authorization == Some(format!("Basic {login}")) => {
            typed(kind, content)
        }
        Some(Answer::Guarded(..)) => {
            let challenge = "Basic realm=\"charts\"";
            status(StatusCode::UNAUTHORIZED)
                .header("www-authenticate", challenge)
                .body(Body::empty())
                .unwrap()
        }
        Some(Answer::Tokened(_, kind, content)) if authorization == Some(format!("Bearer {TOKEN}")) => {
            typed(kind, content)
        }
        Some(Answer::Tokened(realm, ..)) => {
            let challenge = format!("Bearer realm=\"{realm}\",service=\"charts\"");
            status(StatusCode::UNAUTHORIZED)
                .header("www-authenticate", challenge)
                .body(Body::empty())
                .unwrap()
        }
        Some(Answer::Redirect(to)) => {
            status(StatusCode::TEMPORARY_REDIRECT).header("location", to).body(Body::empty()).unwrap()
        }
        None => status(StatusCode::NOT_FOUND).body(Body::empty()).unwrap(),
    }
}

/// Starts a proxy that leads to loopback, whatever host it is asked for. Returns its port.
pub(crate) fn start_proxy() -> u16 {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || forward(client));
        }
    });
    port
}

/// Answers one request to connect. Either side may go away at any time.
fn forward(mut client: std::net::TcpStream) -> Option<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).ok()?;
        request.extend(byte);
    }
    let request = String::from_utf8(request).ok()?;
    let port =
        request.strip_prefix("CONNECT ")?.split(' ').next()?.rsplit(':').next()?.parse::<u16>().ok()?;
    let mut server = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
    let (mut back, mut to) = (server.try_clone().ok()?, client.try_clone().ok()?);
    thread::spawn(move || io::copy(&mut back, &mut to));
    io::copy(&mut client, &mut server).ok().map(drop)
}
