//! The status that a daemon wrote last: refusals and unread files are facts that no live object shows.

use std::collections::BTreeMap;

use crate::cluster::Parent;
use crate::engine::PAUSED;
use crate::report::{Named, ObjectStatus, Phase, Stand};

/// Stands before each reason that comes from the record.
const SOURCE_OF_REASON: &str = "last told by the daemon";

/// Stands before the reason for which a source was not read whole.
const NOT_READ_WHOLE: &str = "; not read whole: ";

/// Returns why the newest state was not read whole, as the daemon told it last.
pub(super) fn incomplete(data: &BTreeMap<String, String>) -> Option<String> {
    let status = Stand::in_data(data)?;
    let (_, why) = status.line.split_once(NOT_READ_WHOLE)?;
    Some(format!("{SOURCE_OF_REASON}: {why}"))
}

/// Returns how many objects were refused that the daemon told without a name.
pub(super) fn unnamed_refusals(data: &BTreeMap<String, String>) -> usize {
    Stand::in_data(data).map_or(0, |status| status.unnamed_refusals())
}

/// Adds the objects that were refused, paused, or waited, to those that the cluster shows. What the cluster shows to be in
/// trouble keeps its own reason, which is newer.
pub(super) fn merge(source: &str, parent: &Parent, objects: &mut Vec<ObjectStatus>) {
    let Some(status) = Stand::in_data(&parent.data) else { return };
    let is_paused = parent.annotations.contains_key(PAUSED);
    let told = status.open.lines().filter_map(parse);
    for (phase, object, reason) in told.filter(|(phase, ..)| is_paused || *phase != Phase::Paused) {
        let reason = Some(match reason {
            "" => SOURCE_OF_REASON.to_owned(),
            reason => format!("{SOURCE_OF_REASON}: {reason}"),
        });
        let is_it = |known: &&mut ObjectStatus| {
            let Named { kind, namespace, name, .. } = &known.object;
            known.source == source
                && (kind, namespace, name) == (&object.kind, &object.namespace, &object.name)
        };
        match objects.iter_mut().find(is_it) {
            // Who waits is known from the objects and the queue, which are newer.
            Some(known) if known.phase.is_well() && phase != Phase::Waiting => {
                (known.phase, known.reason) = (phase, reason);
            }
            Some(_) => {}
            None => objects.push(ObjectStatus {
                object,
                source: source.to_owned(),
                phase,
                reason,
                revision: None,
                origin: None,
                wave: 0,
            }),
        }
    }
}

/// Reads `Refused ConfigMap shop/env: reason`. Returns nothing for phases that live objects show themselves.
fn parse(line: &str) -> Option<(Phase, Named, &str)> {
    let (phase, rest) = line.split_once(' ')?;
    let phase: Phase = serde_json::from_value(phase.into()).ok()?;
    if !matches!(phase, Phase::Refused | Phase::Waiting | Phase::Paused) {
        return None;
    }
    let (object, reason) = rest.split_once(": ").unwrap_or((rest, ""));
    let (kind, path) = object.split_once(' ')?;
    let (namespace, name) = match path.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, path),
    };
    let named = Named { group: String::new(), kind: kind.to_owned(), namespace, name: name.to_owned() };
    Some((phase, named, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str, phase: Phase, reason: Option<&str>) -> ObjectStatus {
        let object = Named {
            group: String::new(),
            kind: kind.to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        };
        let (source, reason) = ("shop".to_owned(), reason.map(str::to_owned));
        ObjectStatus { object, source, phase, reason, revision: None, origin: None, wave: 0 }
    }

    #[test]
    fn nothing_that_was_refused_or_is_paused_counts_as_healthy() {
        let open = "Refused ConfigMap shop/env: env.yaml is not understood\n\
                    Refused Pod shop/web: no such field\n\
                    Paused Pod shop/calm: source shop is paused\n\
                    Waiting Pod shop/slow: 2 of 2\n\
                    RollingOut Pod shop/api: 1 of 2\n\
                    Failed Pod shop/db: old\n\
                    and 5 more\n";
        let data = BTreeMap::from([
            ("status".to_owned(), "0123: 4 objects: 4 Refused; not read whole: env.yaml".to_owned()),
            ("not-as-wanted".to_owned(), open.to_owned()),
        ]);
        let failed = || object("Pod", "db", Phase::Failed, Some("crashes"));
        let api = || object("Pod", "api", Phase::Settled, None);
        let slow = || object("Pod", "slow", Phase::Progressing, Some("starts"));
        let settled = |name| object("Pod", name, Phase::Settled, None);
        let mut objects = vec![settled("web"), settled("calm"), slow(), api(), failed()];
        let paused = BTreeMap::from([(PAUSED.to_owned(), "1".to_owned())]);
        let parent = Parent { data: data.clone(), annotations: paused, ..Parent::default() };
        merge("shop", &parent, &mut objects);
        let told = |reason| format!("{SOURCE_OF_REASON}: {reason}");
        let expected = [
            object("Pod", "web", Phase::Refused, Some(&told("no such field"))),
            object("Pod", "calm", Phase::Paused, Some(&told("source shop is paused"))),
            slow(),
            api(),
            failed(),
            object("ConfigMap", "env", Phase::Refused, Some(&told("env.yaml is not understood"))),
        ];
        assert_eq!(objects, expected);
        assert_eq!(incomplete(&data), Some(told("env.yaml")));
        assert_eq!(incomplete(&BTreeMap::new()), None);
    }
}
