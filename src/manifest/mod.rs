//! Bytes to objects and diagnostics.
