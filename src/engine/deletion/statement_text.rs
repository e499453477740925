//! The form of a source's statement to the others, in its inventory: one object of JSON.
//!
//! **Invariant:** it is read completely or not at all. Half a statement could hide a request.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::deletion::observation_requests::ObservationRequest;
use crate::engine::deletion::peer_sources::{
    SourceCompleteness, SourceProgress, SourceService, SourceStatement, TakeoverRequests,
};
use crate::object::{ContentHash, Revision};

/// A longer text is not read: no statement of ours is nearly as long.
const MAX_STATEMENT_BYTES: usize = 256 << 10;

/// Stands for more objects than are named.
const ANY_OBJECT_WORD: &str = "*";

/// The form of a [`SourceStatement`] in JSON. A key that a later version adds may matter, so it is
/// not passed over.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StatementText<'a> {
    /// None where no revision shows how far the source is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repository: Option<Cow<'a, str>>,
    /// The newest revision that was read completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<Cow<'a, str>>,
    /// The objects that are requested, by the hash of their names.
    requests: Vec<Cow<'a, str>>,
    /// The objects that are released, in the same way.
    released: Vec<Cow<'a, str>>,
    /// The time of that, in seconds of the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    released_since: Option<i64>,
    complete: bool,
    daemon: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observation_request: Option<Cow<'a, str>>,
    /// By the ids of inventories.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    answered_requests: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

impl SourceStatement {
    /// Writes it as text.
    pub(crate) fn text(&self) -> String {
        let (repository, read) = match &self.progress {
            SourceProgress::Unversioned => (None, None),
            SourceProgress::Revision { repository, read } => {
                (Some((&**repository).into()), read.as_ref().map(|read| read.as_str().into()))
            }
        };
        let answered = self.answered_requests.iter();
        let text = StatementText {
            repository,
            read,
            requests: match &self.takeover_requests {
                TakeoverRequests::Unlisted => vec![ANY_OBJECT_WORD.into()],
                TakeoverRequests::Listed(these) => mark_words(these),
            },
            released: mark_words(&self.released),
            released_since: self.released_since,
            complete: self.completeness == SourceCompleteness::Complete,
            daemon: self.service == SourceService::Daemon,
            observation_request: self.observation_request.as_ref().map(|request| request.to_string().into()),
            answered_requests: answered
                .map(|(inventory_id, request)| ((&**inventory_id).into(), request.to_string().into()))
                .collect(),
        };
        serde_json::to_string(&text).unwrap_or_default()
    }

    /// Reads it from text.
    ///
    /// Fails, in words, where any of it is not understood.
    pub(crate) fn parse(text: &str) -> Result<Self, Arc<str>> {
        if text.len() > MAX_STATEMENT_BYTES {
            return Err(format!(
                "it is {} bytes long, and at most {MAX_STATEMENT_BYTES} are read",
                text.len()
            )
            .into());
        }
        let statement = if text.starts_with('{') {
            serde_json::from_str(text).ok().and_then(StatementText::statement)
        } else {
            parse_older(text)
        };
        statement.ok_or_else(|| "it is garbled".into())
    }
}

fn mark_words(marks: &BTreeSet<ContentHash>) -> Vec<Cow<'static, str>> {
    marks.iter().map(|mark| mark.to_string().into()).collect()
}

fn parse_marks<'a>(words: impl Iterator<Item = &'a str>) -> Option<BTreeSet<ContentHash>> {
    words.map(ContentHash::parse).collect()
}

impl StatementText<'_> {
    /// Returns the statement that it says; none where any of it is not understood.
    fn statement(self) -> Option<SourceStatement> {
        let progress = match (self.repository, self.read) {
            (None, None) => SourceProgress::Unversioned,
            (None, Some(_)) => return None,
            (Some(repository), read) => SourceProgress::Revision {
                repository: repository.into(),
                read: read.map(|read| Revision::new(&read)),
            },
        };
        let takeover_requests = if matches!(&self.requests[..], [word] if word == ANY_OBJECT_WORD) {
            TakeoverRequests::Unlisted
        } else {
            TakeoverRequests::Listed(parse_marks(self.requests.iter().map(|word| &**word))?)
        };
        let observation_request = match self.observation_request {
            Some(text) => Some(ObservationRequest::parse(&text)?),
            None => None,
        };
        let answered = self.answered_requests.into_iter();
        let answered = answered
            .map(|(inventory_id, text)| Some((inventory_id.into(), ObservationRequest::parse(&text)?)));
        Some(SourceStatement {
            progress,
            takeover_requests,
            released: parse_marks(self.released.iter().map(|word| &**word))?,
            released_since: self.released_since,
            completeness: if self.complete {
                SourceCompleteness::Complete
            } else {
                SourceCompleteness::Partial
            },
            service: if self.daemon { SourceService::Daemon } else { SourceService::OneShot },
            observation_request,
            answered_requests: answered.collect::<Option<_>>()?,
        })
    }
}

/// Stands for what a source does not have, in the text of an earlier version.
const OLDER_NO_VALUE_WORD: &str = "-";

/// Reads the text of an earlier version: a line for each fact.
fn parse_older(text: &str) -> Option<SourceStatement> {
    let mut lines = text.lines();
    let progress = match parse_older_line(lines.next()?, "read")? {
        OLDER_NO_VALUE_WORD => SourceProgress::Unversioned,
        text => {
            let (read, repository) = text.split_once(' ')?;
            let read = (read != OLDER_NO_VALUE_WORD).then(|| Revision::new(read));
            SourceProgress::Revision { repository: repository.into(), read }
        }
    };
    let takeover_requests = match parse_older_line(lines.next()?, "claims")? {
        ANY_OBJECT_WORD => TakeoverRequests::Unlisted,
        text => TakeoverRequests::Listed(parse_marks(split_words(text))?),
    };
    let released = parse_marks(split_words(parse_older_line(lines.next()?, "released")?))?;
    let statement = SourceStatement { progress, takeover_requests, released, ..SourceStatement::default() };
    let rest: Vec<&str> = lines.collect();
    match rest[..] {
        // A daemon of a still earlier version says no more.
        [] => Some(statement),
        [since, state, request, answered] => add_older_lines(statement, [since, state, request, answered]),
        _ => None,
    }
}

/// Returns what follows the word of a line.
fn parse_older_line<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(word)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| !word.is_empty())
}

/// Adds what the last four lines say.
fn add_older_lines(statement: SourceStatement, lines: [&str; 4]) -> Option<SourceStatement> {
    let [since, state, request, answered] = lines;
    let released_since = match since.strip_prefix("since ")? {
        OLDER_NO_VALUE_WORD => None,
        seconds => Some(seconds.parse().ok()?),
    };
    let (completeness, service) = state.strip_prefix("state ")?.split_once(' ')?;
    let completeness = match completeness {
        "complete" => SourceCompleteness::Complete,
        "partial" => SourceCompleteness::Partial,
        _ => return None,
    };
    let service = match service {
        OLDER_NO_VALUE_WORD => SourceService::OneShot,
        "daemon" => SourceService::Daemon,
        _ => return None,
    };
    let observation_request = match request.strip_prefix("asks ")? {
        OLDER_NO_VALUE_WORD => None,
        text => Some(ObservationRequest::parse(text)?),
    };
    let answered_requests = split_words(answered.strip_prefix("looked")?).map(|word| {
        let (inventory_id, request) = word.split_once('=')?;
        Some((Arc::from(inventory_id), ObservationRequest::parse(request)?))
    });
    let answered_requests = answered_requests.collect::<Option<_>>()?;
    Some(SourceStatement {
        released_since,
        completeness,
        service,
        observation_request,
        answered_requests,
        ..statement
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "00112233445566778899aabbccddeeff";

    /// Returns a statement with a value for each fact.
    fn full_statement() -> SourceStatement {
        let marks: BTreeSet<ContentHash> = [ContentHash::parse(HASH).unwrap()].into();
        SourceStatement {
            progress: SourceProgress::Revision {
                repository: "host/shop HEAD".into(),
                read: Some(Revision::new("c1")),
            },
            takeover_requests: TakeoverRequests::Listed(marks.clone()),
            released: marks,
            released_since: Some(1_764_338_069),
            completeness: SourceCompleteness::Partial,
            service: SourceService::Daemon,
            observation_request: ObservationRequest::parse(&format!("{HASH}-7")),
            answered_requests: [("a-v1".into(), ObservationRequest::parse(&format!("{HASH}-3")).unwrap())]
                .into(),
        }
    }

    /// Returns the text of [`full_statement`].
    fn full_text() -> String {
        format!(
            r#"{{"repository":"host/shop HEAD","read":"c1","requests":["{HASH}"],"released":["{HASH}"],"releasedSince":1764338069,"complete":false,"daemon":true,"observationRequest":"{HASH}-7","answeredRequests":{{"a-v1":"{HASH}-3"}}}}"#
        )
    }

    #[test]
    fn a_statement_is_one_object_of_json() {
        assert_eq!(full_statement().text(), full_text());
        assert_eq!(SourceStatement::parse(&full_text()), Ok(full_statement()));
        let nothing = r#"{"requests":[],"released":[],"complete":true,"daemon":false}"#;
        assert_eq!(SourceStatement::default().text(), nothing);
        assert_eq!(SourceStatement::parse(nothing), Ok(SourceStatement::default()));
    }

    #[test]
    fn the_text_of_an_earlier_version_says_the_same() {
        let text = format!(
            "read c1 host/shop HEAD\nclaims {HASH}\nreleased {HASH}\nsince 1764338069\nstate partial daemon\n\
             asks {HASH}-7\nlooked a-v1={HASH}-3\n"
        );
        assert_eq!(SourceStatement::parse(&text), Ok(full_statement()));
    }

    #[test]
    fn a_repository_may_have_any_name() {
        for repository in ["", "-", "a folder\nreleased HEAD", "\"{}"] {
            let progress = SourceProgress::Revision { repository: repository.into(), read: None };
            let statement = SourceStatement { progress, ..SourceStatement::default() };
            assert_eq!(SourceStatement::parse(&statement.text()), Ok(statement), "{repository:?}");
        }
    }

    #[test]
    fn a_statement_that_is_not_understood_completely_is_a_doubt() {
        let check = |before: &str, after: &str| {
            assert!(full_text().contains(before), "{before}");
            let text = full_text().replace(before, after);
            assert_eq!(SourceStatement::parse(&text), Err("it is garbled".into()), "{text}");
        };
        check("}}", "}");
        check(r#""repository":"host/shop HEAD","#, "");
        check(r#""complete":false,"#, "");
        check(r#""daemon":true"#, r#""daemon":"yes""#);
        check(&format!(r#""requests":["{HASH}"],"#), "");
        check(&format!(r#""requests":["{HASH}"]"#), r#""requests":["zz"]"#);
        check(&format!(r#""requests":["{HASH}"]"#), &format!(r#""requests":["*","{HASH}"]"#));
        check(&format!(r#""released":["{HASH}"]"#), r#""released":["*"]"#);
        check("1764338069", "\"soon\"");
        check("-7", "");
        check("-3", "-");
        check(r#""daemon":true"#, r#""daemon":true,"more":1"#);
        check(r#""daemon":true"#, r#""daemon":true,"daemon":false"#);
    }
}
