//! A connection that can be made to end badly, and a body that stops before its end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::server::TlsStream;

use super::ledger::AnswerGuard;
use super::rule::ResponseCut;

/// Indicates that the connection is to end with a reset.
pub(super) type Reset = Arc<AtomicBool>;

/// A client's connection.
pub(super) struct Connection {
    pub(super) stream: TlsStream<TcpStream>,
    pub(super) reset: Reset,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Relaxed) {
            let socket = self.stream.get_ref().0;
            // Closing with a linger time of zero sends RST. Should it fail, the client sees FIN: a
            // fault all the same.
            let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The place where an answer's body stops.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop {
    /// The end of the server's.
    AtEnd,
    /// After so many bytes, and it looks complete.
    Early(usize),
    /// After so many bytes, and the connection ends so.
    Broken(usize, ResponseCut),
}

/// Time for the bytes before a break to go out; the break itself drops whatever is still buffered.
const FLUSH: Duration = Duration::from_millis(20);

/// The server's answer on its way to the client.
pub(super) struct AnswerStream {
    inner: Incoming,
    /// The number of bytes that may still go through, and the action then.
    left: usize,
    stop: Stop,
    /// On the ledger as long as the body is there.
    _entry: AnswerGuard,
    /// Wakes when somebody ends the answer.
    ended: Pin<Box<dyn Future<Output = ResponseCut> + Send>>,
    breaking: Option<(ResponseCut, Pin<Box<Sleep>>)>,
    reset: Reset,
}

impl AnswerStream {
    pub(super) fn new(inner: Incoming, stop: Stop, entry: AnswerGuard, reset: Reset) -> Self {
        let left = match stop {
            Stop::AtEnd => usize::MAX,
            Stop::Early(count) | Stop::Broken(count, _) => count,
        };
        let mut ending = entry.ending.clone();
        let ended = Box::pin(async move {
            loop {
                if let Some(ending) = *ending.borrow_and_update() {
                    return ending;
                }
                if ending.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        });
        Self { inner, left, stop, _entry: entry, ended, breaking: None, reset }
    }

    fn poll_break(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.breaking {
            None | Some((ResponseCut::Silence, _)) => Poll::Pending,
            Some((ending, flushed)) => {
                std::task::ready!(flushed.as_mut().poll(cx));
                self.reset.store(*ending == ResponseCut::Reset, Ordering::Relaxed);
                Poll::Ready(Some(Err(io::Error::other("a fault cut the answer"))))
            }
        }
    }
}

impl Body for AnswerStream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = &mut *self;
        if this.breaking.is_none()
            && let Poll::Ready(ending) = this.ended.as_mut().poll(cx)
        {
            this.breaking = Some((ending, Box::pin(tokio::time::sleep(FLUSH))));
        }
        if this.breaking.is_none() && this.left == 0 {
            match this.stop {
                Stop::AtEnd => {}
                Stop::Early(_) => return Poll::Ready(None),
                Stop::Broken(_, ending) => {
                    this.breaking = Some((ending, Box::pin(tokio::time::sleep(FLUSH))));
                }
            }
        }
        if this.breaking.is_some() {
            return this.poll_break(cx);
        }
        match std::task::ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
            Some(Ok(frame)) => Poll::Ready(frame.into_data().ok().map(|mut data| {
                data.truncate(this.left);
                this.left -= data.len();
                Ok(Frame::data(data))
            })),
            Some(Err(error)) => Poll::Ready(Some(Err(io::Error::other(error)))),
            None => Poll::Ready(None),
        }
    }
}
