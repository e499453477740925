//! Git and directories to revisions and bytes.
