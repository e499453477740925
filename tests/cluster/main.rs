//! The program against a real control plane.

mod support;
mod thread;
