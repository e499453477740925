//! The workqueue.
