//! An HTTP server that answers from a script, so that every byte of an exchange is the test's.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::cluster::connect::WatchTimeouts;
use crate::cluster::{Cluster, Connection, ServedKind, ServedScope};
use crate::object::Gvk;

/// Any authority at all: without one the client reads all those of the system, which takes longer
/// than the test.
const AUTHORITY: &str = concat!(
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJlakNDQVIrZ0F3SUJBZ0lVTUZ4VjhsVHVPUmZTd1pLZG44UDhwLzY3",
    "Y2F3d0NnWUlLb1pJemowRUF3SXcKRVRFUE1BMEdBMVVFQXd3R1pHOTFZbXhsTUNBWERUSTJNVEV5TVRFeU1qY3lOVm9ZRHpJ",
    "eE1qWXhNREk0TVRJeQpOekkxV2pBUk1ROHdEUVlEVlFRRERBWmtiM1ZpYkdVd1dUQVRCZ2NxaGtqT1BRSUJCZ2dxaGtqT1BR",
    "TUJCd05DCkFBU0JJWEQzbXdoQUpZMUY4RlpzK0s0cXI5NnNFSUVzTzJaWkk0NzMweGE4NlVFRVFRV2Zwb2JzRzM0NThWcVcK",
    "VHVHZnZxc3BpUWVidGtkdS9MTDRYdURZbzFNd1VUQWRCZ05WSFE0RUZnUVUzKzBpTzNobXFPQW91TjEvYXpiaApjRHhSc3c0",
    "d0h3WURWUjBqQkJnd0ZvQVUzKzBpTzNobXFPQW91TjEvYXpiaGNEeFJzdzR3RHdZRFZSMFRBUUgvCkJBVXdBd0VCL3pBS0Jn",
    "Z3Foa2pPUFFRREFnTkpBREJHQWlFQTVvMUZSQnczUmpVTTBPSi9zdit2RkpyeG0yWGMKWkpjbkU0US9wMXAwOXpnQ0lRRFZU",
    "QlR5Smx0RGhBeU50MEExNzQ2eFFPOHRINGRQZlI2d2dXcTZtYWdiR3c9PQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==",
);

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedCall {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The answer to a call.
#[derive(Clone)]
pub(crate) enum ScriptedReply {
    /// A status, more header lines, and a body.
    Complete(u16, &'static str, String),
    /// These lines, then the end of the stream.
    Lines(String),
    /// These lines, and then silence.
    Stream(String),
    /// This text, and then the end of the connection, in the middle of the answer.
    Cut(String),
    /// The same as `Whole` with status 200, after a while.
    Late(Duration, String),
    /// Nothing at all.
    Silence,
}

pub(crate) type ReplyScript = dyn Fn(usize, &ReceivedCall) -> ScriptedReply + Send + Sync;

/// A running double.
pub(crate) struct FakeApiServer {
    pub(crate) cluster: Cluster,
    asked: Arc<Mutex<Vec<ReceivedCall>>>,
    dir: tempfile::TempDir,
    address: SocketAddr,
}

impl FakeApiServer {
    pub(crate) async fn start(
        script: impl Fn(usize, &ReceivedCall) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        let short = Connection { timeout: Duration::from_secs(2), ..Connection::default() };
        Self::start_with(short, WatchTimeouts::default(), script).await
    }

    pub(in crate::cluster) async fn start_with(
        connection: Connection,
        patience: WatchTimeouts,
        script: impl Fn(usize, &ReceivedCall) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let kubeconfig = dir.path().join("config");
        std::fs::write(&kubeconfig, kubeconfig_text("double", &format!("http://{address}"), "token: t"))
            .unwrap();
        let asked: Arc<Mutex<Vec<ReceivedCall>>> = Arc::default();
        let log = asked.clone();
        let script: Arc<ReplyScript> = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, log.clone(), script.clone()));
            }
        });
        let connection = Connection { kubeconfig: Some(kubeconfig), ..connection };
        let cluster = Cluster::connect_with(&connection, patience).await.unwrap();
        Self { cluster, asked, dir, address }
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedCall> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("config")
    }
}

async fn serve(mut socket: TcpStream, log: Arc<Mutex<Vec<ReceivedCall>>>, script: Arc<ReplyScript>) {
    while let Some(asked) = read(&mut socket).await {
        let number = {
            let mut log = log.lock().unwrap();
            log.push(asked.clone());
            log.len() - 1
        };
        let chunked =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = |text: &str| {
            if text.is_empty() { String::new() } else { format!("{:x}\r\n{text}\r\n", text.len()) }
        };
        match script(number, &asked) {
            ScriptedReply::Complete(status, headers, body) => {
                let text =
                    format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n{body}", body.len());
                socket.write_all(text.as_bytes()).await.unwrap();
            }
            ScriptedReply::Late(wait, body) => {
                tokio::time::sleep(wait).await;
                let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                socket.write_all(text.as_bytes()).await.unwrap();
            }
            ScriptedReply::Lines(lines) => {
                let text = format!("{chunked}{}0\r\n\r\n", chunk(&lines));
                socket.write_all(text.as_bytes()).await.unwrap();
            }
            ScriptedReply::Stream(lines) => {
                let text = format!("{chunked}{}", chunk(&lines));
                socket.write_all(text.as_bytes()).await.unwrap();
                let _ = socket.read_u8().await;
                return;
            }
            ScriptedReply::Cut(text) => {
                socket.write_all(format!("{chunked}{}", chunk(&text)).as_bytes()).await.unwrap();
                return;
            }
            ScriptedReply::Silence => {
                let _ = socket.read_u8().await;
                return;
            }
        }
    }
}

async fn read(socket: &mut TcpStream) -> Option<ReceivedCall> {
    let mut text = Vec::new();
    let end = loop {
        if let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        text.push(socket.read_u8().await.ok()?);
    };
    let head = String::from_utf8(text[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    let mut words = head.split(' ');
    let method = words.next()?.to_owned();
    let path = words.next()?.to_owned();
    Some(ReceivedCall { method, path, head, body: String::from_utf8(body).unwrap() })
}

pub(crate) fn kubeconfig_text(name: &str, server: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
         clusters: [{{name: {name}, cluster: {{server: \"{server}\", certificate-authority-data: {AUTHORITY}}}}}]\n\
         users: [{{name: {name}, user: {{{user}}}}}]\n\
         contexts: [{{name: {name}, context: {{cluster: {name}, user: {name}}}}}]\n"
    )
}

/// Returns a kind as discovery would give it.
pub(crate) fn kind(api_version: &str, kind: &str, plural: &str) -> Arc<ServedKind> {
    let verbs = ["get", "list", "watch", "patch", "delete"].into_iter().map(Arc::from).collect();
    let scope = if kind == "Namespace" { ServedScope::Cluster } else { ServedScope::Namespaced };
    Arc::new(ServedKind {
        gvk: Gvk::from_api_version(api_version, kind),
        plural: plural.into(),
        scope,
        verbs,
    })
}

pub(crate) fn config_maps() -> Arc<ServedKind> {
    kind("v1", "ConfigMap", "configmaps")
}
