//! Flags and file to one checked configuration.
