//! Tests against real repositories, made by the `git` program in temporary folders.

mod bed;
mod directory;
mod disk;
mod hints;
mod local;
mod remote;
mod server;
mod state;
