//! Tests against real repositories, made by the `git` program in temporary folders.

mod bed;
mod disk;
mod local;
