//! Tests against real repositories, made by the `git` program in temporary folders.

mod awaited;
mod change_hints;
mod confined;
mod credentials;
mod directory;
mod disk_snapshot;
mod fixture;
mod forms;
mod hostile;
mod http;
mod identity;
mod local;
mod location;
mod outage;
mod remote;
mod revision_tree;
mod server;
mod state;
mod verify;
