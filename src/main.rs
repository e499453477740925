//! The `rhumb` command.

fn main() {}
