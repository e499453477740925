//! The receiving end of an informer's events, whoever reads them.
//!
//! **Invariant:** knows neither the reader nor the other events in its channel. So one channel can
//! carry the events of all informers, in the order in which they came.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::mpsc;

/// The receiver of events of one type.
pub struct EventSink<E>(Arc<dyn EventChannel<E>>);

/// Nobody receives events any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverClosed;

/// Room for one event, which is sent at once.
pub struct EventPermit<E>(Box<dyn FnOnce(E) + Send>);

impl<E> EventPermit<E> {
    /// Sends the event.
    pub fn send(self, event: E) {
        (self.0)(event);
    }
}

trait EventChannel<E>: Send + Sync {
    fn send(&self, event: E) -> BoxFuture<'_, Result<(), ReceiverClosed>>;
    fn reserve(&self) -> BoxFuture<'_, Result<EventPermit<E>, ReceiverClosed>>;
    fn closed(&self) -> BoxFuture<'_, ()>;
}

/// A channel of a wider type, and how an event becomes one of that.
struct WrappingChannel<T, F> {
    sender: mpsc::Sender<T>,
    wrap: F,
}

impl<E, T, F> EventChannel<E> for WrappingChannel<T, F>
where
    E: Send + 'static,
    T: Send + 'static,
    F: Fn(E) -> T + Clone + Send + Sync + 'static,
{
    fn send(&self, event: E) -> BoxFuture<'_, Result<(), ReceiverClosed>> {
        let event = (self.wrap)(event);
        Box::pin(async { self.sender.send(event).await.map_err(|_| ReceiverClosed) })
    }

    fn reserve(&self) -> BoxFuture<'_, Result<EventPermit<E>, ReceiverClosed>> {
        Box::pin(async {
            let permit = self.sender.clone().reserve_owned().await.map_err(|_| ReceiverClosed)?;
            let wrap = self.wrap.clone();
            Ok(EventPermit(Box::new(move |event| drop(permit.send(wrap(event))))))
        })
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.sender.closed())
    }
}

impl<E: Send + 'static> EventSink<E> {
    /// Returns the sink that puts each event into a channel, as `wrap` makes it.
    pub fn new<T, F>(sender: mpsc::Sender<T>, wrap: F) -> Self
    where
        T: Send + 'static,
        F: Fn(E) -> T + Clone + Send + Sync + 'static,
    {
        Self(Arc::new(WrappingChannel { sender, wrap }))
    }

    /// Sends an event, and waits while the channel is full.
    ///
    /// # Errors
    /// Fails where nobody receives any more.
    pub async fn send(&self, event: E) -> Result<(), ReceiverClosed> {
        self.0.send(event).await
    }

    /// Waits for room for one event.
    ///
    /// # Errors
    /// Fails where nobody receives any more.
    pub async fn reserve(&self) -> Result<EventPermit<E>, ReceiverClosed> {
        self.0.reserve().await
    }

    /// Waits until nobody receives any more.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

impl<E: Send + 'static> From<mpsc::Sender<E>> for EventSink<E> {
    fn from(sender: mpsc::Sender<E>) -> Self {
        Self::new(sender, std::convert::identity)
    }
}

impl<E> Clone for EventSink<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E> fmt::Debug for EventSink<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSink")
    }
}
