//! Requests on their way to the API server and back. Each client connection has one of its own to
//! the server.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::connection::{AnswerStream, Connection, Reset, Stop};
use super::ledger::ProxyState;
use super::rule::{Answer, Fault, RequestShape, ResponseCut};
use super::token::ProxyUser;

/// Everything that a connection needs.
pub(super) struct Gate {
    pub(super) acceptor: TlsAcceptor,
    pub(super) connector: TlsConnector,
    /// The API server's port.
    pub(super) port: u16,
    pub(super) ledger: Arc<ProxyState>,
}

type Reply = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// Takes connections until the runtime ends.
pub(super) async fn accept(listener: TcpListener, gate: Arc<Gate>) {
    loop {
        // A failed accept is the client's trouble (it went away) or passes (too many files).
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(converse(stream, Arc::clone(&gate)))),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves one client's connection; every failure just ends it, as it would without the proxy.
async fn converse(stream: TcpStream, gate: Arc<Gate>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let Ok(stream) = gate.acceptor.accept(stream).await else { return };
    let reset = Reset::new(AtomicBool::new(false));
    let connection = Connection { stream, reset: Arc::clone(&reset) };
    let upstream = Arc::new(Upstream { sender: Mutex::new(None), gate });
    let service = service_fn(move |request| {
        let (upstream, reset) = (Arc::clone(&upstream), Arc::clone(&reset));
        async move { upstream.handle(request, reset).await }
    });
    let served =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
    drop(served);
}

/// The connection to the API server that belongs to one client connection.
struct Upstream {
    sender: Mutex<Option<SendRequest<Full<Bytes>>>>,
    gate: Arc<Gate>,
}

/// A request without its connection, so that it can be sent twice.
#[derive(Clone)]
struct Message {
    method: hyper::Method,
    uri: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Upstream {
    async fn handle(&self, request: Request<Incoming>, reset: Reset) -> Result<Reply, io::Error> {
        let (shape, message) = read(request).await?;
        let ledger = &self.gate.ledger;
        let stop = match ledger.decide(&shape) {
            Fault::Pass => Stop::AtEnd,
            Fault::Refuse(ending) => return end(ending, &reset).await,
            Fault::Replace(answer) => return replaced(&answer),
            Fault::ReplaceAfter(answer) => {
                self.send(message).await?.collect().await.map_err(io::Error::other)?;
                return replaced(&answer);
            }
            Fault::DropAnswer(ending) => {
                self.send(message).await?.collect().await.map_err(io::Error::other)?;
                return end(ending, &reset).await;
            }
            Fault::Delay(least, most) => {
                tokio::time::sleep(ledger.draw(least, most)).await;
                Stop::AtEnd
            }
            Fault::Duplicate => {
                self.send(message.clone()).await?.collect().await.map_err(io::Error::other)?;
                Stop::AtEnd
            }
            Fault::Cut(after, ending) => Stop::Broken(after, ending),
            Fault::Truncate(after) => Stop::Early(after),
        };
        // Under way from here on: whoever saw the server carry it out still has to see it answered.
        let entry = ledger.open(shape);
        let (mut head, body) = self.send(message).await?.into_parts();
        strip_hops(&mut head.headers);
        if matches!(stop, Stop::Early(_)) {
            head.headers.remove(header::CONTENT_LENGTH);
        }
        let streaming = AnswerStream::new(body, stop, entry, reset);
        Ok(Response::from_parts(head, streaming.boxed_unsync()))
    }

    /// Sends a message; the first of a connection, and one after the server closed it, opens a new
    /// one.
    async fn send(&self, message: Message) -> io::Result<Response<Incoming>> {
        let mut request = Request::new(Full::new(message.body));
        *request.method_mut() = message.method;
        *request.uri_mut() = message.uri.parse().map_err(io::Error::other)?;
        *request.headers_mut() = message.headers;
        let mut slot = self.sender.lock().await;
        let mut kept = slot.take();
        if let Some(sender) = &mut kept
            && sender.ready().await.is_err()
        {
            kept = None;
        }
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let answer = sender.send_request(request).await.map_err(io::Error::other)?;
        *slot = Some(sender);
        Ok(answer)
    }

    async fn connect(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.gate.port)).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let stream = self.gate.connector.connect(name, stream).await?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// Reads a whole request and puts the user's name where a front proxy puts it.
async fn read(request: Request<Incoming>) -> io::Result<(RequestShape, Message)> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let mut headers = head.headers;
    let identity =
        headers.get(header::AUTHORIZATION).and_then(|value| ProxyUser::from_header(value.as_bytes()));
    let forged: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-remote-")).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
    strip_hops(&mut headers);
    headers.remove(header::CONTENT_LENGTH);
    let mut user = String::new();
    if let Some(identity) = identity {
        headers.remove(header::AUTHORIZATION);
        identity.assert(&mut headers).map_err(io::Error::other)?;
        user = identity.user;
    }
    let shape = RequestShape {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        user,
    };
    let uri = head.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    Ok((shape, Message { method: head.method, uri, headers, body }))
}

/// Removes the headers that are about one connection.
fn strip_hops(headers: &mut HeaderMap) {
    for name in [header::CONNECTION, header::TE, header::TRANSFER_ENCODING, header::UPGRADE] {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}

/// Ends the connection instead of answering: an error makes hyper drop it.
async fn end(ending: ResponseCut, reset: &Reset) -> Result<Reply, io::Error> {
    if ending == ResponseCut::Silence {
        // Until the client gives up, which ends this future.
        std::future::pending::<Infallible>().await;
    }
    reset.store(ending == ResponseCut::Reset, Ordering::Relaxed);
    Err(io::Error::other("a fault ended the connection"))
}

fn replaced(answer: &Answer) -> Result<Reply, io::Error> {
    let body = Full::new(Bytes::from(answer.body.clone())).map_err(|never| match never {}).boxed_unsync();
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::from_u16(answer.status).map_err(io::Error::other)?;
    for (name, value) in &answer.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(io::Error::other)?;
        reply.headers_mut().append(name, HeaderValue::from_str(value).map_err(io::Error::other)?);
    }
    Ok(reply)
}
