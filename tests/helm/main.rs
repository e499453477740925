//! Charts compared with the real helm. The files that a closure names, and nothing else, give the
//! objects that bare `helm template` prints. A chart that is refused does not render there either.
//!
//! `RHUMB_INPUTS` names a folder with more charts in `charts/` and `repositories/`. With
//! `RHUMB_HELM=4` helm is Helm 4.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]
#![allow(clippy::print_stderr, reason = "what was tried")]

mod attacks;
mod fixture;
mod generated;
mod hooks;
mod inflation;
mod inputs;
mod outputs;
