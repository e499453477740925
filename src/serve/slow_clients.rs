//! Patience with those who read slowly, and its end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The time after which a client that takes nothing of a response is let go.
const STALLED_CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// A stream that fails when what is written to it is not taken.
#[derive(Debug)]
pub(super) struct TimedStream<S> {
    stream: S,
    /// Runs while something waits to be taken.
    end: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedStream<S> {
    /// Wraps a stream.
    pub(super) fn new(stream: S) -> Self {
        Self { stream, end: None }
    }

    fn wait_for_client<T>(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.end = None;
            return done;
        }
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(STALLED_CLIENT_TIMEOUT)));
        end.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wait_for_client(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.wait_for_client(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.wait_for_client(context, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(context);
        self.wait_for_client(context, done)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut stream = TimedStream::new(ours);
        let begun = Instant::now();
        let writing = tokio::spawn(async move { stream.write_all(&[7; 256]).await.map_err(|e| e.kind()) });
        // Each byte that is taken begins the time anew.
        tokio::time::sleep(STALLED_CLIENT_TIMEOUT / 2).await;
        theirs.read_exact(&mut [0; 16]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(writing.await.unwrap(), Err(io::ErrorKind::TimedOut));
        let waited = begun.elapsed();
        assert!(
            waited >= STALLED_CLIENT_TIMEOUT * 3 / 2 && waited < STALLED_CLIENT_TIMEOUT * 2,
            "{waited:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn silence_between_two_answers_is_no_slowness() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut stream = TimedStream::new(ours);
        for _ in 0..3 {
            stream.write_all(&[7; 64]).await.unwrap();
            theirs.read_exact(&mut [0; 64]).await.unwrap();
            tokio::time::sleep(STALLED_CLIENT_TIMEOUT * 2).await;
        }
    }
}
