//! Dependencies that nobody brings, so that an object would wait for ever.

use std::collections::BTreeSet;

use crate::graph;
use crate::object::{Diagnostic, Object, ObjectId};

/// The sources whose objects are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownSources {
    /// All that one process serves.
    All,
    /// Some of them: another one may have the object.
    Some,
}

/// Says which of these objects depend on one that is not among those that are named.
pub(crate) fn find_absent_dependencies(
    objects: &[Object],
    named: &BTreeSet<ObjectId>,
    sources: KnownSources,
) -> Vec<Diagnostic> {
    let absent = objects.iter().flat_map(|object| {
        let after = graph::annotated_dependencies(&object.id, &object.body);
        after.into_iter().filter(|other| !named.contains(other)).map(move |other| (object, other))
    });
    let finding = |(object, other): (&Object, ObjectId)| {
        let (id, origin) = (&object.id, object.origin.clone());
        match sources {
            KnownSources::All => {
                let message =
                    format!("{id}: it depends on {other}, which no source names: it would wait for ever");
                Diagnostic::error(origin, "dependency", message)
                    .hint("add that object, or take its name out of the depends-on annotation")
            }
            KnownSources::Some => {
                let message = format!("{id}: it depends on {other}, which is not among the objects here");
                Diagnostic::warning(origin, "dependency", message).hint(
                    "it waits for ever unless another source of the same process has that object; `--config` \
                     compares all sources",
                )
            }
        }
    };
    absent.map(finding).collect()
}
