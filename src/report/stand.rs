//! Where one source stands, in a few lines for people who look at its ConfigMap.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{ObjectStatus, Phase, SourceStatus};
use crate::object::Revision;
use crate::render::harmless_line;

/// So many objects are named.
pub const NAMED: usize = 20;

/// So many bytes of a reason are shown.
const LONGEST: usize = 300;

/// The key of [`Stand::line`] in the ConfigMap's data.
pub const STATUS: &str = "status";

/// The key of [`Stand::open`] in the ConfigMap's data.
const OPEN: &str = "not-as-wanted";

/// The key of [`Stand::settled`] in the ConfigMap's data.
const SETTLED: &str = "settled";

/// Stands between how many objects are not named and how many of these are refused, which nothing else tells.
const OF_WHICH: &str = ", of which are refused: ";

/// Where a source stands. Says nothing that changes while nothing happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stand {
    /// One line of it.
    pub line: String,
    /// A line for each object that is not as wanted and healthy; empty where all are.
    pub open: String,
    /// The revision of which it was told that all was as wanted; empty where that was not told, or no longer holds.
    pub settled: String,
}

impl Stand {
    /// Of a source, and of the first of its objects that are not well, in their order.
    pub fn of(source: &SourceStatus, unwell: &[ObjectStatus]) -> Self {
        let mut line = match &source.revision {
            Some(revision) => Revision::new(revision).short().to_owned(),
            None => "not read yet".to_owned(),
        };
        if let (Some(author), Some(subject)) = (&source.author, &source.subject) {
            let _ = write!(line, " ({author}: {subject})");
        }
        let _ = write!(line, ": {}", counts(&source.objects));
        if let Some(why) = &source.incomplete {
            let _ = write!(line, "; not read whole: {why}");
        }
        if let Some(why) = &source.paused {
            let _ = write!(line, "; paused{}{why}", if why.is_empty() { "" } else { ": " });
        }
        if let Some(why) = &source.unlisted {
            let _ = write!(line, "; {why}");
        }
        let mut open = String::new();
        for told in unwell.iter().take(NAMED) {
            let reason = told.reason.as_deref().unwrap_or_default();
            let reason = &reason[..reason.floor_char_boundary(LONGEST)];
            let colon = if reason.is_empty() { "" } else { ": " };
            let line = format!("{} {}{colon}{reason}", told.phase, told.object);
            let _ = writeln!(open, "{}", harmless_line(&line));
        }
        let all = source.objects.iter().filter(|(phase, _)| !phase.is_well());
        let more = all.map(|(_, count)| count).sum::<usize>().saturating_sub(unwell.len().min(NAMED));
        if more > 0 {
            let named = unwell.iter().take(NAMED).filter(|told| told.phase == Phase::Refused).count();
            let refused = source.objects.get(&Phase::Refused).copied().unwrap_or_default();
            let _ = writeln!(open, "and {more} more{OF_WHICH}{}", refused.saturating_sub(named));
        }
        Self { line: harmless_line(&line), open, settled: String::new() }
    }

    /// The same, with the revision of which it was told that all was as wanted.
    #[must_use]
    pub fn settled(mut self, revision: Option<&Revision>) -> Self {
        self.settled = revision.map(ToString::to_string).unwrap_or_default();
        self
    }

    /// The revision of which a ConfigMap's data say that it was told that all was as wanted.
    pub fn settled_in(data: &BTreeMap<String, String>) -> Option<Revision> {
        data.get(SETTLED).map(|text| Revision::new(text))
    }

    /// What a ConfigMap's data tell of it.
    pub fn in_data(data: &BTreeMap<String, String>) -> Option<Self> {
        let text = |key| data.get(key).cloned();
        Some(Self {
            line: text(STATUS)?,
            open: text(OPEN).unwrap_or_default(),
            settled: text(SETTLED).unwrap_or_default(),
        })
    }

    /// Returns how many refused objects there are beside those that are named.
    pub fn unnamed_refusals(&self) -> usize {
        let last = self.open.lines().next_back().filter(|last| last.starts_with("and "));
        let count = last.and_then(|last| last.split_once(OF_WHICH)).and_then(|(_, count)| count.parse().ok());
        count.unwrap_or_default()
    }

    /// Writes it into a ConfigMap's data.
    pub fn write_to(&self, data: &mut BTreeMap<String, String>) {
        data.insert(STATUS.to_owned(), self.line.clone());
        for (key, text) in [(OPEN, &self.open), (SETTLED, &self.settled)] {
            if text.is_empty() {
                data.remove(key);
            } else {
                data.insert(key.to_owned(), text.clone());
            }
        }
    }
}

/// `20 objects, as wanted and healthy`, or `20 objects: 18 Settled, 2 Refused`.
fn counts(objects: &BTreeMap<Phase, usize>) -> String {
    let count: usize = objects.values().sum();
    if objects.keys().all(|phase| phase.is_well()) {
        return match objects.get(&Phase::LeftAlone).copied().unwrap_or_default() {
            0 => format!("{count} objects, as wanted and healthy"),
            left => format!("{count} objects: {} as wanted and healthy, {left} left alone", count - left),
        };
    }
    let each: Vec<String> = objects.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    format!("{count} objects: {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Named;

    fn source(objects: &[(Phase, usize)]) -> SourceStatus {
        SourceStatus {
            name: "shop".to_owned(),
            place: "/srv/shop".to_owned(),
            revision: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
            author: Some("Ann".to_owned()),
            subject: Some("Two replicas".to_owned()),
            complete: true,
            healthy: true,
            objects: objects.iter().copied().collect(),
            ..SourceStatus::default()
        }
    }

    fn object(name: &str, reason: &str) -> ObjectStatus {
        let namespace = (!name.starts_with('-')).then(|| "shop".to_owned());
        let object = Named { group: String::new(), kind: "Pod".to_owned(), namespace, name: name.to_owned() };
        ObjectStatus {
            object,
            source: "shop".to_owned(),
            phase: Phase::Refused,
            reason: Some(reason.to_owned()),
            revision: None,
            origin: None,
            wave: 0,
        }
    }

    #[test]
    fn one_line_and_one_for_each_object_that_is_not_well() {
        fn check(source: &SourceStatus, unwell: &[ObjectStatus], line: &str, open: &str) {
            let stand = Stand::of(source, unwell);
            assert_eq!((&*stand.line, &*stand.open), (line, open));
            let mut data = BTreeMap::from([(OPEN.to_owned(), "before".to_owned())]);
            stand.write_to(&mut data);
            assert_eq!(Stand::in_data(&data), Some(stand.clone()));
            let revision = Revision::new("1a2b");
            let settled = stand.settled(Some(&revision));
            settled.write_to(&mut data);
            assert_eq!(Stand::settled_in(&data), Some(revision));
            assert_eq!(Stand::in_data(&data), Some(settled.clone()));
            settled.settled(None).write_to(&mut data);
            assert_eq!(Stand::settled_in(&data), None);
        }
        check(
            &source(&[(Phase::Settled, 19), (Phase::LeftAlone, 1)]),
            &[],
            "0123456789ab (Ann: Two replicas): 20 objects: 19 as wanted and healthy, 1 left alone",
            "",
        );
        check(
            &SourceStatus {
                incomplete: Some("a.yaml is not\nunderstood".to_owned()),
                author: None,
                ..source(&[(Phase::Settled, 18), (Phase::Refused, 2)])
            },
            &[object("a", "no such\nfield\u{202e}"), object("-b", "")],
            "0123456789ab: 20 objects: 18 Settled, 2 Refused; not read whole: a.yaml is not understood",
            "Refused Pod shop/a: no such field\u{fffd}\nRefused Pod -b\n",
        );
        check(
            &SourceStatus {
                revision: None,
                author: None,
                paused: Some(String::new()),
                unlisted: Some("x".to_owned()),
                ..source(&[])
            },
            &[],
            "not read yet: 0 objects, as wanted and healthy; paused; x",
            "",
        );
    }

    #[test]
    fn so_many_are_named() {
        let many: Vec<ObjectStatus> = (0..NAMED + 5).map(|_| object("a", &"é".repeat(LONGEST))).collect();
        let stand = Stand::of(&source(&[(Phase::Settled, 9), (Phase::Refused, NAMED + 5)]), &many);
        assert_eq!(stand.open.lines().count(), NAMED + 1);
        assert!(stand.open.ends_with("and 5 more, of which are refused: 5\n"), "{}", stand.open);
        assert!(stand.open.len() < NAMED * (LONGEST + 40));
        assert_eq!(stand.unnamed_refusals(), 5);
        let named = Stand::of(&source(&[(Phase::Refused, 3)]), &many[..3]);
        assert_eq!((named.open.lines().count(), named.unnamed_refusals()), (3, 0));
        let waiting = Stand::of(&source(&[(Phase::Refused, 3), (Phase::Waiting, 9)]), &many[..3]);
        assert_eq!(waiting.unnamed_refusals(), 0, "{}", waiting.open);
    }
}
