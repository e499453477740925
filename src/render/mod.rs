//! Plans and differences as text and JSON.
