//! Tests against real repositories, made by the `git` program in temporary folders.

mod bed;
mod directory;
mod disk;
mod hints;
mod hostile;
mod local;
mod location;
mod remote;
mod server;
mod state;
