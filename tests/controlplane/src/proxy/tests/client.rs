//! A client that shows exactly how an answer ended.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::http::client_tls;
use crate::proxy::FaultProxy;
use crate::proxy::token::ProxyUser;

/// One connection, HTTP/1.1 with keep-alive.
pub(super) struct Client {
    stream: StreamOwned<ClientConnection, TcpStream>,
    pub(super) token: String,
    unread: Vec<u8>,
    /// The patience from the end of the next head on.
    body_patience: Option<Duration>,
}

/// The end of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    Closed,
    Reset,
    Silent,
}

#[derive(Debug)]
pub(super) struct ReceivedResponse {
    /// 0 if not even the head came.
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
    pub(super) end: End,
}

impl Client {
    pub(super) fn connect(proxy: &FaultProxy, identity: &ProxyUser) -> Self {
        let port: u16 = proxy.url.rsplit(':').next().unwrap().parse().unwrap();
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let connection = ClientConnection::new(client_tls(&proxy.ca, None).unwrap(), name).unwrap();
        Self {
            stream: StreamOwned::new(connection, stream),
            token: identity.token(),
            unread: Vec::new(),
            body_patience: None,
        }
    }

    /// Takes silence of this length for good.
    pub(super) fn patience(&mut self, limit: Duration) {
        self.stream.sock.set_read_timeout(Some(limit)).unwrap();
    }

    /// Takes silence of this length for good in a body. Its head may take as long as any.
    pub(super) fn patience_in_body(&mut self, limit: Duration) {
        self.body_patience = Some(limit);
    }

    pub(super) fn send(&mut self, method: &str, path: &str, body: &str) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nX-Remote-User: forged\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).unwrap();
    }

    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> ReceivedResponse {
        self.send(method, path, body);
        self.receive()
    }

    /// Reads one answer to whatever end it has.
    pub(super) fn receive(&mut self) -> ReceivedResponse {
        let mut seen =
            ReceivedResponse { status: 0, head: String::new(), body: String::new(), end: End::Complete };
        if let Err(error) = self.receive_into(&mut seen) {
            seen.end = match error.kind() {
                io::ErrorKind::UnexpectedEof => End::Closed,
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => End::Reset,
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => End::Silent,
                other => panic!("{other}: {error}"),
            };
        }
        seen
    }

    fn receive_into(&mut self, seen: &mut ReceivedResponse) -> io::Result<()> {
        seen.head = self.until("\r\n\r\n")?;
        seen.status = seen.head.split(' ').nth(1).unwrap().parse().unwrap();
        if let Some(limit) = self.body_patience {
            self.patience(limit);
        }
        let head = seen.head.to_lowercase();
        if let Some((_, rest)) = head.split_once("content-length: ") {
            let length: usize = rest.split("\r\n").next().unwrap().parse().unwrap();
            return self.exactly(length, &mut seen.body);
        }
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        while self.chunk(&mut seen.body)? {}
        Ok(())
    }

    /// Reads one chunk of a body; the last one is empty.
    pub(super) fn chunk(&mut self, body: &mut String) -> io::Result<bool> {
        let size = usize::from_str_radix(self.until("\r\n")?.trim(), 16).unwrap();
        self.exactly(size, body)?;
        self.until("\r\n")?;
        Ok(size > 0)
    }

    pub(super) fn until(&mut self, mark: &str) -> io::Result<String> {
        loop {
            let text = String::from_utf8_lossy(&self.unread).into_owned();
            if let Some(at) = text.find(mark) {
                self.unread.drain(..at + mark.len());
                return Ok(text[..at].to_owned());
            }
            self.more()?;
        }
    }

    fn exactly(&mut self, length: usize, into: &mut String) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            if self.unread.is_empty() {
                self.more()?;
            }
            let count = left.min(self.unread.len());
            into.push_str(&String::from_utf8(self.unread.drain(..count).collect()).unwrap());
            left -= count;
        }
        Ok(())
    }

    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.unread.extend_from_slice(&buffer[..count]);
                Ok(())
            }
        }
    }
}
