//! What is answered over HTTP: where things stand, and nothing else.
//!
//! Owns the socket, the routes and what an answer looks like. It asks the running loop, so that each answer is true in
//! the moment in which it is given, and nothing is computed while nobody asks.
//!
//! **Invariant:** only reads. No request changes anything, in the cluster or in the process.

mod connections;
mod error;
mod routes;
mod socket;

pub use connections::serve;
pub use error::Error;
pub use routes::{Process, router};
pub use socket::{SOCKET, bind};

#[cfg(test)]
mod tests;
