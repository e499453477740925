//! The files of a chart's archive, each checked by name, kind and size.

/// The reason for which an archive is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnpackError {
    /// It is no compressed archive, or ends too early.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}
