//! What sources say to each other, as it stands on their parents.

use std::collections::BTreeMap;

use super::inventory::Tidy;
use crate::cluster::{Parent, applyset_id};
use crate::engine::{Claims, Engine, Peer, Progress, SourceId, Statement};

/// Data key with what a source says to the others.
const STATEMENT: &str = "handover";

/// What a parent says to the other sources; none where that is missing or cannot be read.
fn told(parent: Option<&Parent>) -> Option<Statement> {
    Statement::parse(parent?.data.get(STATEMENT)?).ok()
}

/// Another source, as its parent shows it.
pub(super) fn peer(namespace: &str, name: &str, parent: &Parent) -> Peer {
    let says = match parent.data.get(STATEMENT) {
        Some(text) => Statement::parse(text),
        None => Err("it says nothing to other sources yet".into()),
    };
    Peer { name: name.into(), applyset: applyset_id(namespace, name).into(), says }
}

/// Whether a parent says what it should.
pub(super) fn is_told(engine: &Engine, source: SourceId, parent: Option<&Parent>) -> bool {
    if !engine.can_state(source) {
        return true;
    }
    let told = told(parent);
    engine.statement(source, told.as_ref()).is_none_or(|wanted| told == Some(wanted))
}

/// Whether a parent claims what needs no claim any more. An inventory may have been tidied before the objects of it were
/// seen, and nothing else tells that they are.
pub(super) fn is_untidy(engine: &Engine, source: SourceId, parent: Option<&Parent>) -> bool {
    engine.can_state(source) && told(parent).is_some_and(|told| engine.claims_too_much(source, &told))
}

/// Takes over what a parent said before this process served its source.
pub(super) fn recall(engine: &mut Engine, source: SourceId, parent: Option<&Parent>) {
    if let Some(told) = told(parent) {
        engine.recall(source, &told);
    }
}

/// Writes into a parent's data what it is to say: where it is tidied, with nothing left of what no longer holds.
pub(super) fn tell(
    engine: &mut Engine,
    (source, tidy): (SourceId, Tidy),
    known: Option<&Parent>,
    data: &mut BTreeMap<String, String>,
) {
    if !engine.can_state(source) {
        return;
    }
    let told = told(known);
    let statement = match tidy {
        Tidy::Grow => engine.statement(source, told.as_ref()),
        Tidy::Exact => engine.tidy_statement(source, told.as_ref()),
    };
    if let Some(statement) = statement {
        data.insert(STATEMENT.to_owned(), statement.text());
    }
}

/// The parent of a source that nobody serves any more: it wants nothing.
pub(super) fn retired(parent: &Parent) -> Parent {
    let statement =
        Statement { progress: Progress::Unordered, claims: Claims::These([].into()), released: [].into() };
    let mut parent = parent.clone();
    parent.data.insert(STATEMENT.to_owned(), statement.text());
    parent
}
