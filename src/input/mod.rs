//! Rendering inputs: snapshot → snapshot.

pub mod sops;
