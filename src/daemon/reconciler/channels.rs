//! The channels by which the loop hears what happens.

use tokio::sync::mpsc;

use super::super::event::Event;
use super::BACKLOG;
use super::answers::Question;
use crate::cluster::{DataEvent, InformerEvent, PodsEvent, Scaler};
use crate::engine::{Live, Rv};

/// What happens, by who tells it.
pub(super) struct Channels {
    pub(super) events: mpsc::Sender<Event>,
    pub(super) from_tasks: mpsc::Receiver<Event>,
    pub(super) from_informers: mpsc::Receiver<InformerEvent<Live>>,
    pub(super) from_scalers: mpsc::Receiver<InformerEvent<Scaler>>,
    pub(super) from_parents: mpsc::Receiver<InformerEvent<Rv>>,
    pub(super) to_orders: mpsc::Sender<InformerEvent<Rv>>,
    pub(super) from_orders: mpsc::Receiver<InformerEvent<Rv>>,
    pub(super) from_pods: mpsc::Receiver<PodsEvent>,
    pub(super) from_data: mpsc::Receiver<DataEvent>,
    pub(super) questions: mpsc::Sender<Question>,
    pub(super) asked: mpsc::Receiver<Question>,
}

/// Where those tell what happens who are not tasks.
pub(super) struct Sinks {
    pub(super) informers: mpsc::Sender<InformerEvent<Live>>,
    pub(super) scalers: mpsc::Sender<InformerEvent<Scaler>>,
    pub(super) parents: mpsc::Sender<InformerEvent<Rv>>,
    pub(super) pods: mpsc::Sender<PodsEvent>,
    pub(super) data: mpsc::Sender<DataEvent>,
}

impl Channels {
    /// Opens them.
    pub(super) fn open() -> (Sinks, Self) {
        let (events, from_tasks) = mpsc::channel(BACKLOG);
        let (informers, from_informers) = mpsc::channel(BACKLOG);
        let (scalers, from_scalers) = mpsc::channel(BACKLOG);
        let (parents, from_parents) = mpsc::channel(BACKLOG);
        let (to_orders, from_orders) = mpsc::channel(BACKLOG);
        let (pods, from_pods) = mpsc::channel(BACKLOG);
        let (data, from_data) = mpsc::channel(BACKLOG);
        // Who asks waits: a page that asks for more than can be answered slows itself down.
        let (questions, asked) = mpsc::channel(1);
        let channels = Self {
            events,
            from_tasks,
            from_informers,
            from_scalers,
            from_parents,
            to_orders,
            from_orders,
            from_pods,
            from_data,
            questions,
            asked,
        };
        (Sinks { informers, scalers, parents, pods, data }, channels)
    }
}
