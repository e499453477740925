//! The process that wrote a recorded status, so that whoever reads it later knows of when it is.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{Timestamp, Unit};

use crate::object::truncate;
use crate::render::sanitize_line;

/// The key of a [`StatusAuthor`] in the ConfigMap's data.
pub(crate) const AUTHOR_KEY: &str = "reported-by";

/// A longer name of a host is cut.
const MAX_HOST_BYTES: usize = 100;

/// The command that wrote a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthorCommand {
    /// `rhumb run`, which goes on until it is stopped.
    Run,
    /// `rhumb apply` and others that end by themselves.
    Apply,
}

impl AuthorCommand {
    const ALL: [(Self, &'static str); 2] = [(Self::Run, "run"), (Self::Apply, "apply")];

    fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(command, _)| *command == self).map_or("", |(_, word)| word)
    }
}

/// The process that wrote a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusAuthor {
    /// Its command.
    pub command: AuthorCommand,
    /// Its number.
    pub process: u32,
    /// The mark of where that number means it.
    pub mark: String,
    /// The time of the write.
    pub at: Timestamp,
    /// The name of its host.
    pub host: String,
}

/// Indicates whether the process that wrote a status still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthorState {
    /// It has ended.
    Ended,
    /// There is a process of its number.
    Present,
    /// Nobody knows that here.
    Unknown,
}

impl StatusAuthor {
    /// Reads it from a ConfigMap's data; none where nobody wrote it, or where it cannot be read.
    pub(crate) fn from_data(data: &BTreeMap<String, String>) -> Option<Self> {
        let text = sanitize_line(data.get(AUTHOR_KEY)?);
        let mut words = text.splitn(5, ' ');
        let (command, process) = (words.next()?, words.next()?);
        let (mark, at, host) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            command: AuthorCommand::ALL.into_iter().find(|(_, word)| *word == command)?.0,
            process: process.parse().ok()?,
            mark: mark.to_owned(),
            at: at.parse().ok()?,
            host: truncate(host, MAX_HOST_BYTES).to_owned(),
        })
    }

    /// Writes it into a ConfigMap's data.
    pub(crate) fn write_to(&self, data: &mut BTreeMap<String, String>) {
        let Self { process, mark, at, host, .. } = self;
        let at = at.round(Unit::Second).unwrap_or(*at);
        let text = format!("{} {process} {mark} {at} {host}", self.command.word());
        data.insert(AUTHOR_KEY.to_owned(), text);
    }

    /// Returns whether it still runs. Under this mark its number means a process here, and
    /// `is_there` looks for one of that number.
    pub(crate) fn state(&self, mark: &str, is_there: impl FnOnce(u32) -> bool) -> AuthorState {
        match self.mark == mark {
            true if is_there(self.process) => AuthorState::Present,
            true => AuthorState::Ended,
            false => AuthorState::Unknown,
        }
    }

    /// Returns the words for a status of a source that is not settled.
    pub(crate) fn note(&self, source: &str, state: AuthorState) -> String {
        let state = match state {
            AuthorState::Ended => "which has ended",
            AuthorState::Present => "and a process of that number runs",
            AuthorState::Unknown => "which is not known to run still",
        };
        format!("source {source}: reported {} by {self}, {state}", self.at)
    }
}

/// `rhumb apply (process 12 on host)`.
impl fmt::Display for StatusAuthor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`rhumb {}` (process {} on {})", self.command.word(), self.process, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author() -> StatusAuthor {
        StatusAuthor {
            command: AuthorCommand::Apply,
            process: 12,
            mark: "m1".to_owned(),
            at: "2030-01-02T03:04:05Z".parse().unwrap(),
            host: "host".to_owned(),
        }
    }

    #[test]
    fn who_wrote_a_status_is_read_as_it_was_written() {
        for command in [AuthorCommand::Run, AuthorCommand::Apply] {
            let (one, mut data) = (StatusAuthor { command, ..author() }, BTreeMap::new());
            one.write_to(&mut data);
            assert_eq!(StatusAuthor::from_data(&data), Some(one));
        }
        for text in [
            "",
            "apply",
            "apply 12 m1 now host",
            "delete 12 m1 2030-01-02T03:04:05Z host",
            "apply x m1 2030-01-02T03:04:05Z h",
        ] {
            let data = BTreeMap::from([(AUTHOR_KEY.to_owned(), text.to_owned())]);
            assert_eq!(StatusAuthor::from_data(&data), None, "{text:?}");
        }
    }

    #[test]
    fn a_process_has_ended_only_where_its_number_means_it() {
        let check = |mark: &str, is_there: bool, expected: AuthorState| {
            assert_eq!(author().state(mark, |_| is_there), expected);
        };
        check("m1", false, AuthorState::Ended);
        check("m1", true, AuthorState::Present);
        check("other", false, AuthorState::Unknown);
        let reported = "source shop: reported 2030-01-02T03:04:05Z by `rhumb apply` (process 12 on host), which has ended";
        assert_eq!(author().note("shop", AuthorState::Ended), reported);
    }
}
