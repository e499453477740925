//! Field paths and ownership.
