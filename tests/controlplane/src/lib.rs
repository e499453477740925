//! A real control plane for tests.
