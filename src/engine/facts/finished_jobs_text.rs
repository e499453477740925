//! The Jobs of a source that have ended, as its inventory lists them: one line of JSON each.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::facts::records::json_lines::try_add_line;
use crate::engine::facts::sources::FinishedJob;
use crate::engine::{object_word, parse_object_word};
use crate::object::{ContentHash, ObjectId, Revision};

/// The word at the end of the line of a Job that has failed, in an earlier version.
const OLDER_FAILED_WORD: &str = "failed";

/// The most bytes about Jobs that have ended.
pub(crate) const MAX_FINISHED_BYTES: usize = 280_000;

/// The form of one Job that has ended in JSON.
#[derive(Serialize, Deserialize)]
struct FinishedJobText<'a> {
    object: Cow<'a, str>,
    content: Cow<'a, str>,
    #[serde(default, rename = "failed", skip_serializing_if = "std::ops::Not::not")]
    has_failed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<Cow<'a, str>>,
}

/// Reads the lines about Jobs that have ended. One that cannot be read is left out.
pub(crate) fn parse_finished_jobs(text: &str) -> BTreeMap<ObjectId, FinishedJob> {
    text.lines().filter_map(parse_finished_job).collect()
}

/// Reads one line.
pub(crate) fn parse_finished_job(line: &str) -> Option<(ObjectId, FinishedJob)> {
    if !line.starts_with('{') {
        return parse_older_line(line);
    }
    let read: FinishedJobText<'_> = serde_json::from_str(line).ok()?;
    let content = ContentHash::parse(&read.content)?;
    let revision = read.revision.filter(|word| read.has_failed && is_word(word));
    let revision = revision.map(|word| Revision::new(&word));
    Some((parse_object_word(&read.object)?, FinishedJob { content, has_failed: read.has_failed, revision }))
}

/// Reads the line of an earlier version: `Job.batch shop/migrate <hash>`, and ` failed` after it
/// for one that has failed.
fn parse_older_line(line: &str) -> Option<(ObjectId, FinishedJob)> {
    let mut words = line.split(' ');
    let (kind, name, hash) = (words.next()?, words.next()?, words.next()?);
    let has_failed = words.next() == Some(OLDER_FAILED_WORD);
    let id = parse_object_word(&format!("{kind}/{name}"))?;
    Some((id, FinishedJob { content: ContentHash::parse(hash)?, has_failed, revision: None }))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// Returns the lines about Jobs that have ended, as many as have room.
pub(crate) fn finished_jobs_text(finished: &BTreeMap<ObjectId, FinishedJob>) -> String {
    let mut text = String::new();
    // One that is left out may run again once it is gone: a source that can write nothing does
    // nothing at all.
    for (id, job) in finished {
        let line = FinishedJobText {
            object: object_word(id).into(),
            content: job.content.to_string().into(),
            has_failed: job.has_failed,
            revision: job.revision.as_ref().map(|revision| revision.as_str().into()),
        };
        if !try_add_line(&mut text, &line, MAX_FINISHED_BYTES) {
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn a_job_that_has_ended_or_failed_is_read_as_it_was_written() {
        let line = format!(r#"{{"object":"Job.batch/shop/migrate","content":"{HASH}""#);
        let check = |end: &str, failed: bool, of: Option<&str>| {
            let text = format!("{line}{end}}}\n");
            let jobs = parse_finished_jobs(&text);
            let found: Vec<(bool, Option<&str>)> = jobs
                .values()
                .map(|job| (job.has_failed, job.revision.as_ref().map(Revision::as_str)))
                .collect();
            assert_eq!(found, [(failed, of)], "{text}");
            assert_eq!(finished_jobs_text(&jobs), text);
        };
        check("", false, None);
        check(r#","failed":true"#, true, None);
        check(r#","failed":true,"revision":"4ef312df""#, true, Some("4ef312df"));
    }

    #[test]
    fn lines_of_an_earlier_version_are_read() {
        let check = |line: &str, expected: Option<bool>| {
            let read = parse_finished_job(line);
            assert_eq!(read.as_ref().map(|(_, job)| job.has_failed), expected, "{line}");
            let object = read.map(|(id, _)| object_word(&id));
            assert_eq!(object.as_deref(), expected.map(|_| "Job.batch/shop/migrate"), "{line}");
        };
        check(&format!("Job.batch shop/migrate {HASH}"), Some(false));
        check(&format!("Job.batch shop/migrate {HASH} failed"), Some(true));
        check(&format!("Job.batch migrate {HASH}"), None);
        check("Job.batch shop/migrate zz", None);
        check("Job.batch shop/migrate", None);
        check("", None);
        check(&format!(r#"{{"object":"migrate","content":"{HASH}"}}"#), None);
        check(r#"{"object":"Job.batch/shop/migrate","content":"zz"}"#, None);
        check(r#"{"object":"Job.batch/shop/migrate"}"#, None);
    }
}
