//! References and dependency order.
