//! The channels from which the loop receives events.

use tokio::sync::mpsc;

use super::super::loop_event::LoopEvent;
use super::CHANNEL_CAPACITY;
use super::answers::Inquiry;
use crate::cluster::{DataEvent, InformerEvent, PodsEvent, Scaler};
use crate::engine::{LiveObject, ResourceVersion};

/// The events of the loop, by channel.
pub(super) struct LoopChannels {
    pub(super) events: mpsc::Sender<LoopEvent>,
    pub(super) from_tasks: mpsc::Receiver<LoopEvent>,
    pub(super) from_informers: mpsc::Receiver<InformerEvent<LiveObject>>,
    pub(super) from_scalers: mpsc::Receiver<InformerEvent<Scaler>>,
    pub(super) from_inventories: mpsc::Receiver<InformerEvent<ResourceVersion>>,
    pub(super) to_orders: mpsc::Sender<InformerEvent<ResourceVersion>>,
    pub(super) from_orders: mpsc::Receiver<InformerEvent<ResourceVersion>>,
    pub(super) from_pods: mpsc::Receiver<PodsEvent>,
    pub(super) from_data: mpsc::Receiver<DataEvent>,
    pub(super) questions: mpsc::Sender<Inquiry>,
    pub(super) asked: mpsc::Receiver<Inquiry>,
}

/// The senders for those that are not tasks.
pub(super) struct LoopSinks {
    pub(super) informers: mpsc::Sender<InformerEvent<LiveObject>>,
    pub(super) scalers: mpsc::Sender<InformerEvent<Scaler>>,
    pub(super) inventories: mpsc::Sender<InformerEvent<ResourceVersion>>,
    pub(super) pods: mpsc::Sender<PodsEvent>,
    pub(super) data: mpsc::Sender<DataEvent>,
}

impl LoopChannels {
    /// Opens them.
    pub(super) fn open() -> (LoopSinks, Self) {
        let (events, from_tasks) = mpsc::channel(CHANNEL_CAPACITY);
        let (informers, from_informers) = mpsc::channel(CHANNEL_CAPACITY);
        let (scalers, from_scalers) = mpsc::channel(CHANNEL_CAPACITY);
        let (inventories, from_inventories) = mpsc::channel(CHANNEL_CAPACITY);
        let (to_orders, from_orders) = mpsc::channel(CHANNEL_CAPACITY);
        let (pods, from_pods) = mpsc::channel(CHANNEL_CAPACITY);
        let (data, from_data) = mpsc::channel(CHANNEL_CAPACITY);
        // The channel is short: a page that asks for more than can be answered slows itself down.
        let (questions, asked) = mpsc::channel(1);
        let channels = Self {
            events,
            from_tasks,
            from_informers,
            from_scalers,
            from_inventories,
            to_orders,
            from_orders,
            from_pods,
            from_data,
            questions,
            asked,
        };
        (LoopSinks { informers, scalers, inventories, pods, data }, channels)
    }
}
