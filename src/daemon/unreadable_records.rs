//! Records in an inventory that cannot be read or written, and the commands that mend them.
//!
//! **Invariant:** such a record never widens what rhumb does. It may name anything of its source,
//! so all that it could forbid waits. It stays in the inventory until a person takes it out.

use super::accepted_revision::ACCEPTED_KEY;
use super::handover;
use super::inventory::{CONFIRMED_PRUNES_KEY, FINISHED_JOBS_KEY};
use super::reconciler::opt_out_events::REPORTED_OPT_OUTS_KEY;
use crate::cluster::{
    ACKNOWLEDGED_KEY, InventoryObject, KEPT_KEY, PENDING_PRUNES_KEY, PRUNE_CLOSED_KEY, REJECTED_KEY,
    UNLISTED_PENDING_KEY,
};
use crate::engine::{SourceStatement, is_readable_rejection, parse_finished_job};
use crate::object::{count_text, truncate};
use crate::report::{AUTHOR_KEY, STATUS_KEYS};

/// The maximum number of bytes of a line that is kept: it is not read, and only its being there
/// counts.
const MAX_KEPT_LINE_BYTES: usize = 1000;

/// The maximum number of such lines that are kept.
const MAX_KEPT_LINES: usize = 20;

/// The keys of an inventory's data, but those of its status.
const RECORD_KEYS: [&str; 13] = [
    ACCEPTED_KEY,
    ACKNOWLEDGED_KEY,
    AUTHOR_KEY,
    CONFIRMED_PRUNES_KEY,
    FINISHED_JOBS_KEY,
    KEPT_KEY,
    PENDING_PRUNES_KEY,
    PRUNE_CLOSED_KEY,
    REJECTED_KEY,
    REPORTED_OPT_OUTS_KEY,
    UNLISTED_PENDING_KEY,
    handover::INCOMPLETE_REVISION_KEY,
    handover::STATEMENT_KEY,
];

/// The records of an inventory that cannot be read, each in words with the command that mends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnreadableRecords {
    /// Lines about failed and undone contents: nothing new is released.
    pub rejections: Option<String>,
    /// Lines about ended Jobs: none that goes away by itself is created.
    pub finished_jobs: Option<String>,
    /// The statement to other sources: none of them deletes what this one may want.
    pub statement: Option<String>,
    /// The list of kept objects: it may lack any, so each deletion waits for a person.
    pub kept: Option<String>,
    /// All of it, as nobody can write it.
    pub unwritable: Option<String>,
}

impl UnreadableRecords {
    /// Finds those of the inventory of a source.
    pub(crate) fn find(inventory: &InventoryObject, namespace: &str, source: &str) -> Self {
        let config_map = format!("ConfigMap {namespace}/{source}");
        let lines = |key: &str, unread: usize| {
            format!("{config_map}: {} of `{key}` cannot be read", count_text(unread, "line"))
        };
        let forget = |key: &str| {
            format!("`kubectl -n {namespace} patch configmap {source} -p '{{\"data\":{{\"{key}\":null}}}}'`")
        };
        let unread = |key: &str, is_readable: fn(&str) -> bool| {
            Some(unreadable_lines(inventory, key, is_readable).count()).filter(|count| *count > 0)
        };
        let rejections = unread(REJECTED_KEY, is_readable_rejection).map(|count| {
            let (subject, command) = (lines(REJECTED_KEY, count), forget(REJECTED_KEY));
            format!(
                "{subject}: nothing new of source {source} is released, as it may have failed or been undone; {command} \
                 forgets all that did"
            )
        });
        let finished_jobs = unread(FINISHED_JOBS_KEY, is_readable_job).map(|count| {
            let (subject, command) = (lines(FINISHED_JOBS_KEY, count), forget(FINISHED_JOBS_KEY));
            format!(
                "{subject}: no Job of source {source} that goes away by itself is created, as it may have ended; \
                 {command} lets each run that is not there"
            )
        });
        let statement = inventory.data.get(handover::STATEMENT_KEY).and_then(|text| {
            SourceStatement::parse(text).err().map(|why| explain_statement(namespace, source, &why))
        });
        let kept = inventory.kept_objects().is_truncated.then(|| {
            format!(
                "{config_map}: `{KEPT_KEY}` does not name all objects that are kept: each deletion of source {source} waits \
                 for a confirmation; {} forgets those that no manifest names any more",
                forget(KEPT_KEY)
            )
        });
        let unwritable = explain_unwritable(inventory, namespace, source);
        Self { rejections, finished_jobs, statement, kept, unwritable }
    }

    /// Returns all of them, those that others may write anew too.
    pub(crate) fn into_texts(self) -> Vec<String> {
        let all = [self.unwritable, self.rejections, self.finished_jobs, self.statement, self.kept];
        all.into_iter().flatten().collect()
    }
}

/// Says why nobody can write an inventory, what follows, and what mends it; none where it can be
/// written.
pub(super) fn explain_unwritable(
    inventory: &InventoryObject,
    namespace: &str,
    source: &str,
) -> Option<String> {
    let keys = [&RECORD_KEYS[..], &STATUS_KEYS[..]].concat();
    let why = inventory.obstacles.reason(&keys)?;
    let mends = match inventory.obstacles.first_binary(&keys).filter(|_| !inventory.obstacles.immutable) {
        Some(key) => format!(
            "`kubectl -n {namespace} patch configmap {source} -p '{{\"binaryData\":{{\"{key}\":null}}}}'` takes it out"
        ),
        None => format!(
            "`kubectl -n {namespace} get configmap {source} -o yaml | sed '/^immutable: true$/d' | kubectl replace \
             --force -f -` makes it anew with all that it says"
        ),
    };
    Some(format!(
        "ConfigMap {namespace}/{source}: {why}: no order to source {source} and no rollback of it takes effect; {mends}"
    ))
}

/// Says that the statement of a source cannot be read, what follows, and what mends it.
pub(super) fn explain_statement(namespace: &str, source: &str, why: &str) -> String {
    format!(
        "ConfigMap {namespace}/{source}: `{}` cannot be read: {why}: no other source deletes what source {source} may \
         want; whatever serves it, or `rhumb apply` of it, writes it anew, and `rhumb uninstall {source}` ends one that \
         is gone for good",
        handover::STATEMENT_KEY
    )
}

fn is_readable_job(line: &str) -> bool {
    parse_finished_job(line).is_some()
}

fn unreadable_lines<'a>(
    inventory: &'a InventoryObject,
    key: &str,
    is_readable: fn(&str) -> bool,
) -> impl Iterator<Item = &'a str> {
    let text = inventory.data.get(key).map(String::as_str).unwrap_or_default();
    text.lines().filter(move |line| !line.trim().is_empty() && !is_readable(line))
}

/// Returns the unreadable lines of what failed, as they are kept beside what is written anew.
pub(super) fn kept_rejections(known: Option<&InventoryObject>) -> String {
    kept_lines(known, REJECTED_KEY, is_readable_rejection)
}

/// Does the same as [`kept_rejections`], for Jobs that have ended.
pub(super) fn kept_finished_jobs(known: Option<&InventoryObject>) -> String {
    kept_lines(known, FINISHED_JOBS_KEY, is_readable_job)
}

fn kept_lines(known: Option<&InventoryObject>, key: &str, is_readable: fn(&str) -> bool) -> String {
    let lines = known.into_iter().flat_map(|known| unreadable_lines(known, key, is_readable));
    let cut = lines.take(MAX_KEPT_LINES).flat_map(|line| [truncate(line, MAX_KEPT_LINE_BYTES), "\n"]);
    cut.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::WriteObstacles;

    fn inventory(key: &str, text: &str) -> InventoryObject {
        InventoryObject { data: [(key.to_owned(), text.to_owned())].into(), ..InventoryObject::default() }
    }

    #[test]
    fn each_is_reported_with_its_object_its_key_and_the_command_that_mends_it() {
        let check = |key: &str, text: &str, expected: &[&str]| {
            let reported =
                UnreadableRecords::find(&inventory(key, text), "rhumb-system", "shop").into_texts();
            assert_eq!(reported.len(), usize::from(!expected.is_empty()), "{reported:?}");
            for text in expected {
                assert!(reported[0].contains(text), "{reported:?}");
            }
        };
        let hash = "0".repeat(32);
        let job = format!("Job.batch shop/migrate {hash}\n");
        let object = "ConfigMap rhumb-system/shop: ";
        check("rejected", "", &[]);
        check("rejected", "\n", &[]);
        check(
            "rejected",
            "garbage\n{}\n",
            &[
                object,
                "2 lines of `rejected` cannot be read",
                "nothing new of source shop is released",
                "`kubectl -n rhumb-system patch configmap shop -p '{\"data\":{\"rejected\":null}}'`",
            ],
        );
        check("finished-jobs", &job, &[]);
        check(
            "finished-jobs",
            &format!("{job}Job.batch shop/other zz\n"),
            &[
                object,
                "1 line of `finished-jobs` cannot be read",
                "no Job of source shop that goes away by itself is created",
                "patch configmap shop -p '{\"data\":{\"finished-jobs\":null}}'`",
            ],
        );
        check("handover", "read -\nclaims\nreleased\n", &[]);
        check(
            "handover",
            "read",
            &[object, "`handover` cannot be read: it is garbled", "`rhumb uninstall shop`"],
        );
        check("kept", "never ConfigMap shop/env\n", &[]);
        for line in ["garbage", "and others"] {
            check(
                "kept",
                &format!("never ConfigMap shop/env\n{line}"),
                &[
                    object,
                    "`kept` does not name all objects that are kept",
                    "each deletion of source shop waits for a confirmation",
                    "patch configmap shop -p '{\"data\":{\"kept\":null}}'`",
                ],
            );
        }
    }

    #[test]
    fn what_nobody_can_write_is_reported_with_the_command_that_mends_it() {
        let check = |immutable: bool, binary: &[&str], expected: &[&str]| {
            let binary_keys = binary.iter().map(|key| (*key).to_owned()).collect();
            let obstacles = WriteObstacles { immutable, binary_keys };
            let inventory = InventoryObject { obstacles, ..InventoryObject::default() };
            let reported = UnreadableRecords::find(&inventory, "rhumb-system", "shop").into_texts();
            assert_eq!(reported.len(), usize::from(!expected.is_empty()), "{reported:?}");
            for text in expected {
                assert!(reported[0].contains(text), "{reported:?}");
            }
        };
        check(false, &[], &[]);
        check(false, &["mine"], &[]);
        let object = "ConfigMap rhumb-system/shop: it cannot be written: ";
        let anew = "`kubectl -n rhumb-system get configmap shop -o yaml | sed '/^immutable: true$/d' | kubectl replace \
                    --force -f -`";
        check(true, &[], &[object, "`immutable` is set", anew]);
        check(true, &["status"], &["`immutable` is set", anew]);
        for key in ["handover", "settled", "reported-by"] {
            let command = format!(
                "`kubectl -n rhumb-system patch configmap shop -p '{{\"binaryData\":{{\"{key}\":null}}}}'`"
            );
            check(false, &["mine", key], &[object, &format!("`{key}` is in its `binaryData`"), &command]);
        }
    }

    #[test]
    fn what_cannot_be_read_is_kept_within_a_bound() {
        let kept = |text: &str| kept_rejections(Some(&inventory(REJECTED_KEY, text)));
        assert_eq!(kept_rejections(None), "");
        assert_eq!(kept("garbage\n\nmore\n"), "garbage\nmore\n");
        let long = "x".repeat(2 << 20);
        assert_eq!(kept(&long).len(), MAX_KEPT_LINE_BYTES + 1);
        assert_eq!(kept(&"x\n".repeat(9000)).lines().count(), MAX_KEPT_LINES);
    }
}
