//! The status of one source, in a few lines for people who look at its ConfigMap.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{ObjectRef, ObjectStatus, PHASES, Phase, SourceStatus};
use crate::engine::OptOutPolicy;
use crate::object::{Revision, count_text, truncate};
use crate::render::sanitize_line;

/// The maximum number of objects named.
pub(crate) const MAX_NAMED_OBJECTS: usize = 20;

/// The maximum number of bytes of a reason.
const MAX_REASON_BYTES: usize = 300;

/// The maximum number of bytes of an origin: a file and a line fit, and some places of a render.
const MAX_ORIGIN_BYTES: usize = 400;

/// The key of [`StatusSummary::line`] in the ConfigMap's data.
pub(crate) const STATUS_KEY: &str = "status";

/// The key of [`StatusSummary::open`] in the ConfigMap's data.
const OPEN_OBJECTS_KEY: &str = "not-as-wanted";

/// The key of [`StatusSummary::left_alone`] in the ConfigMap's data.
const LEFT_ALONE_KEY: &str = "left-alone";

/// The key of [`StatusSummary::origins`] in the ConfigMap's data.
const ORIGINS_KEY: &str = "origins";

/// The key of [`StatusSummary::opt_out`] in the ConfigMap's data.
const OPT_OUT_KEY: &str = "opt-out";

/// The value of [`OPT_OUT_KEY`] where a source heeds nothing that others put on its objects.
const OPT_OUT_DENIED: &str = "denied";

/// The key of [`StatusSummary::settled`] in the ConfigMap's data.
const SETTLED_KEY: &str = "settled";

/// All keys of a status in the ConfigMap's data.
pub(crate) const STATUS_KEYS: [&str; 6] =
    [STATUS_KEY, OPEN_OBJECTS_KEY, LEFT_ALONE_KEY, ORIGINS_KEY, OPT_OUT_KEY, SETTLED_KEY];

/// The status of a source. It holds nothing that changes while nothing happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatusSummary {
    /// One line of it.
    pub line: String,
    /// A line for each object that is not applied and healthy; empty where all are.
    pub open: String,
    /// A line for each object that is left alone; empty where none is.
    pub left_alone: String,
    /// A line for each of these with the place that it comes from; empty where no source wants any.
    pub origins: String,
    /// Indicates whether what others put on its objects has an effect; empty where it has.
    pub opt_out: String,
    /// The revision that was reported as settled; empty where none was reported, or where that no
    /// longer holds.
    pub settled: String,
}

impl StatusSummary {
    /// Returns the summary of a source, with the first of its unhealthy objects and of those left
    /// alone, in their order.
    pub(crate) fn of(source: &SourceStatus, unwell: &[ObjectStatus], left_alone: &[ObjectStatus]) -> Self {
        let mut line = match &source.revision {
            Some(revision) => Revision::new(revision).short_name().to_owned(),
            None => "not read yet".to_owned(),
        };
        if let (Some(author), Some(subject)) = (&source.author, &source.subject) {
            let _ = write!(line, " ({author}: {subject})");
        }
        let _ = write!(line, ": {}", counts_text(&source.objects));
        if let Some(why) = &source.incomplete {
            let _ = write!(line, "; not read completely: {why}");
        }
        if let Some(why) = &source.paused {
            let _ = write!(line, "; paused{}{why}", if why.is_empty() { "" } else { ": " });
        }
        if let Some(why) = &source.unlisted {
            let _ = write!(line, "; {why}");
        }
        let count = |is_listed: fn(Phase) -> bool| {
            let listed = source.objects.iter().filter(|(phase, _)| is_listed(**phase));
            listed.map(|(phase, count)| (*phase, *count)).collect()
        };
        Self {
            line: sanitize_line(&line),
            open: list(unwell, count(|phase| !phase.is_well())),
            left_alone: list(left_alone, count(|phase| phase == Phase::LeftAlone)),
            origins: origin_list(unwell) + &origin_list(left_alone),
            opt_out: if source.opt_out == OptOutPolicy::Denied {
                OPT_OUT_DENIED.to_owned()
            } else {
                String::new()
            },
            settled: String::new(),
        }
    }

    /// Returns the same, with the revision that was reported as settled.
    #[must_use]
    pub(crate) fn with_settled(mut self, revision: Option<&Revision>) -> Self {
        self.settled = revision.map(ToString::to_string).unwrap_or_default();
        self
    }

    /// Returns the revision that was reported as settled, by a ConfigMap's data.
    pub(crate) fn settled_revision(data: &BTreeMap<String, String>) -> Option<Revision> {
        data.get(SETTLED_KEY).map(|text| Revision::new(text))
    }

    /// Returns the summary in a ConfigMap's data.
    pub(crate) fn from_data(data: &BTreeMap<String, String>) -> Option<Self> {
        let text = |key| data.get(key).cloned();
        let rest = |key| text(key).unwrap_or_default();
        Some(Self {
            line: text(STATUS_KEY)?,
            open: rest(OPEN_OBJECTS_KEY),
            left_alone: rest(LEFT_ALONE_KEY),
            origins: rest(ORIGINS_KEY),
            opt_out: rest(OPT_OUT_KEY),
            settled: rest(SETTLED_KEY),
        })
    }

    /// Returns whether what others put on its objects has an effect.
    pub(crate) fn is_heeding_opt_outs(&self) -> bool {
        self.opt_out != OPT_OUT_DENIED
    }

    /// Returns the objects that are named.
    pub(crate) fn objects(&self) -> impl Iterator<Item = RecordedObject> {
        let split = |line: &'_ str| line.split_once(": ").map(|(name, at)| (name.to_owned(), at.to_owned()));
        let origins: BTreeMap<String, String> = self.origins.lines().filter_map(split).collect();
        let recorded = self.open.lines().chain(self.left_alone.lines()).filter_map(RecordedObject::parse);
        recorded.map(move |recorded| {
            let origin =
                origins.get(&recorded_name(&recorded.object)).map(|text| bounded_origin(text).to_owned());
            RecordedObject { origin, ..recorded }
        })
    }

    /// Returns how many objects of each phase there are beside those that are named.
    pub(crate) fn unnamed_counts(&self) -> BTreeMap<Phase, usize> {
        [&self.open, &self.left_alone].into_iter().flat_map(|list| unnamed_counts(list)).collect()
    }

    /// Writes it into a ConfigMap's data.
    pub(crate) fn write_to(&self, data: &mut BTreeMap<String, String>) {
        data.insert(STATUS_KEY.to_owned(), self.line.clone());
        for (key, text) in [
            (OPEN_OBJECTS_KEY, &self.open),
            (LEFT_ALONE_KEY, &self.left_alone),
            (ORIGINS_KEY, &self.origins),
            (OPT_OUT_KEY, &self.opt_out),
            (SETTLED_KEY, &self.settled),
        ] {
            if text.is_empty() {
                data.remove(key);
            } else {
                data.insert(key.to_owned(), text.clone());
            }
        }
    }
}

/// One object as a ConfigMap names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedObject {
    /// The phase.
    pub phase: Phase,
    /// The object.
    pub object: ObjectRef,
    /// The reason; empty where there was none.
    pub reason: String,
    /// The place that it comes from; none where no source wants it.
    pub origin: Option<String>,
}

impl RecordedObject {
    /// Reads `Refused Deployment.apps shop/web: reason`.
    fn parse(line: &str) -> Option<Self> {
        let (phase, rest) = line.split_once(' ')?;
        let phase = phase_of(phase)?;
        let (object, reason) = rest.split_once(": ").unwrap_or((rest, ""));
        let (kind, path) = object.split_once(' ')?;
        let (namespace, name) = match path.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, path),
        };
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        let (group, kind) = (group.to_owned(), kind.to_owned());
        let object = ObjectRef { group, kind, namespace, name: name.to_owned() };
        Some(Self { phase, object, reason: reason.to_owned(), origin: None })
    }
}

fn phase_of(word: &str) -> Option<Phase> {
    PHASES.into_iter().find(|phase| phase.to_string() == word)
}

/// Returns a line for each of the first so many objects, and one for how many more there are in
/// each phase.
fn list(objects: &[ObjectStatus], mut counts: BTreeMap<Phase, usize>) -> String {
    let mut text = String::new();
    for status in objects.iter().take(MAX_NAMED_OBJECTS) {
        let reason = status.reason.as_deref().unwrap_or_default();
        let reason = truncate(reason, MAX_REASON_BYTES);
        let colon = if reason.is_empty() { "" } else { ": " };
        let line = format!("{} {}{colon}{reason}", status.phase, recorded_name(&status.object));
        let _ = writeln!(text, "{}", sanitize_line(&line));
        counts.entry(status.phase).and_modify(|count| *count = count.saturating_sub(1));
    }
    let more: usize = counts.values().sum();
    if more > 0 {
        let left = counts.iter().filter(|(_, count)| **count > 0);
        let each: Vec<String> = left.map(|(phase, count)| format!("{count} {phase}")).collect();
        let _ = writeln!(text, "and {more} more: {}", each.join(", "));
    }
    text
}

/// Returns the name of an object, as `Deployment.apps shop/web`.
fn recorded_name(object: &ObjectRef) -> String {
    let ObjectRef { group, kind, namespace, name } = object;
    let dot = if group.is_empty() { "" } else { "." };
    let namespace_prefix = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{kind}{dot}{group} {namespace_prefix}{name}")
}

/// Returns a line for each object that [`list`] names and that a source wants, with its origin.
fn origin_list(objects: &[ObjectStatus]) -> String {
    let line = |status: &ObjectStatus| {
        let origin = bounded_origin(status.origin.as_deref()?);
        Some(sanitize_line(&format!("{}: {origin}", recorded_name(&status.object))) + "\n")
    };
    objects.iter().take(MAX_NAMED_OBJECTS).filter_map(line).collect()
}

fn bounded_origin(text: &str) -> &str {
    truncate(text, MAX_ORIGIN_BYTES)
}

/// Reads the last line of [`list`].
fn unnamed_counts(list: &str) -> BTreeMap<Phase, usize> {
    let rest = list.lines().next_back().filter(|line| line.starts_with("and "));
    let each = rest.and_then(|rest| rest.split_once(" more: ")).map_or("", |(_, each)| each);
    let count = |text: &str| {
        let (count, phase) = text.split_once(' ')?;
        Some((phase_of(phase)?, count.parse().ok()?))
    };
    each.split(", ").filter_map(count).collect()
}

/// Returns `20 objects, applied and healthy`, or `20 objects: 18 Settled, 2 Refused`.
fn counts_text(objects: &BTreeMap<Phase, usize>) -> String {
    let count: usize = objects.values().sum();
    let text = count_text(count, "object");
    if count == 0 {
        return text;
    }
    if objects.keys().all(|phase| phase.is_well()) {
        return match objects.get(&Phase::LeftAlone).copied().unwrap_or_default() {
            0 => format!("{text}, applied and healthy"),
            left => format!("{text}: {} applied and healthy, {left} left alone", count - left),
        };
    }
    let each: Vec<String> = objects.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    format!("{text}: {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::CodedReason;
    use crate::report::ObjectRef;

    fn source(objects: &[(Phase, usize)]) -> SourceStatus {
        SourceStatus {
            name: "shop".to_owned(),
            location: "/srv/shop".to_owned(),
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
        let object =
            ObjectRef { group: String::new(), kind: "Pod".to_owned(), namespace, name: name.to_owned() };
        ObjectStatus {
            object,
            source: "shop".to_owned(),
            phase: Phase::Refused,
            reason: Some(reason.to_owned()),
            coded: CodedReason::default(),
            revision: None,
            origin: None,
            wave: 0,
        }
    }

    #[test]
    fn one_line_and_one_for_each_object_that_is_not_well() {
        fn check(source: &SourceStatus, unwell: &[ObjectStatus], line: &str, open: &str) {
            let summary = StatusSummary::of(source, unwell, &[]);
            assert_eq!((&*summary.line, &*summary.open), (line, open));
            let mut data = BTreeMap::from([(OPEN_OBJECTS_KEY.to_owned(), "before".to_owned())]);
            summary.write_to(&mut data);
            assert_eq!(StatusSummary::from_data(&data), Some(summary.clone()));
            let revision = Revision::new("1a2b");
            let settled = summary.with_settled(Some(&revision));
            settled.write_to(&mut data);
            assert_eq!(StatusSummary::settled_revision(&data), Some(revision));
            assert_eq!(StatusSummary::from_data(&data), Some(settled.clone()));
            settled.with_settled(None).write_to(&mut data);
            assert_eq!(StatusSummary::settled_revision(&data), None);
        }
        check(
            &source(&[(Phase::Settled, 19), (Phase::LeftAlone, 1)]),
            &[],
            "0123456789ab (Ann: Two replicas): 20 objects: 19 applied and healthy, 1 left alone",
            "",
        );
        check(
            &SourceStatus {
                incomplete: Some("a.yaml is not\nunderstood".to_owned()),
                author: None,
                ..source(&[(Phase::Settled, 18), (Phase::Refused, 2)])
            },
            &[object("a", "no such\nfield\u{202e}"), object("-b", "")],
            "0123456789ab: 20 objects: 18 Settled, 2 Refused; not read completely: a.yaml is not understood",
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
            "not read yet: 0 objects; paused; x",
            "",
        );
    }

    #[test]
    fn so_many_are_named_and_of_the_others_it_is_reported_how_many_are_where() {
        let many: Vec<ObjectStatus> =
            (0..MAX_NAMED_OBJECTS + 5).map(|_| object("a", &"é".repeat(MAX_REASON_BYTES))).collect();
        let summary = StatusSummary::of(
            &source(&[(Phase::Settled, 9), (Phase::Refused, MAX_NAMED_OBJECTS + 5)]),
            &many,
            &[],
        );
        assert_eq!(summary.open.lines().count(), MAX_NAMED_OBJECTS + 1);
        assert!(summary.open.ends_with("and 5 more: 5 Refused\n"), "{}", summary.open);
        assert!(summary.open.len() < MAX_NAMED_OBJECTS * (MAX_REASON_BYTES + 40));
        assert_eq!(summary.unnamed_counts(), [(Phase::Refused, 5)].into());
        let named = StatusSummary::of(&source(&[(Phase::Refused, 3)]), &many[..3], &[]);
        assert_eq!((named.open.lines().count(), named.unnamed_counts()), (3, BTreeMap::new()));
        let counts = [(Phase::Refused, 4), (Phase::Waiting, 9), (Phase::LeftAlone, 2)];
        let mixed = StatusSummary::of(&source(&counts), &many[..3], &[]);
        assert!(mixed.open.ends_with("and 10 more: 9 Waiting, 1 Refused\n"), "{}", mixed.open);
        let unnamed = [(Phase::Refused, 1), (Phase::Waiting, 9), (Phase::LeftAlone, 2)];
        assert_eq!(mixed.unnamed_counts(), unnamed.into());
    }

    #[test]
    fn origins_have_a_bound_also_those_that_are_read() {
        let long = || Some("é".repeat(MAX_ORIGIN_BYTES));
        let object = ObjectStatus { origin: long(), ..object("web", "so") };
        let mut summary = StatusSummary::of(&source(&[(Phase::Refused, 1)]), &[object], &[]);
        let most = |summary: &StatusSummary| {
            let origins = summary.objects().filter_map(|recorded| recorded.origin);
            origins.map(|origin| origin.len()).max()
        };
        assert!(summary.origins.len() < MAX_ORIGIN_BYTES + 40, "{}", summary.origins);
        assert_eq!(most(&summary), Some(MAX_ORIGIN_BYTES));
        summary.origins = format!("Pod shop/web: {}\n", "é".repeat(MAX_ORIGIN_BYTES));
        assert_eq!(most(&summary), Some(MAX_ORIGIN_BYTES));
    }

    #[test]
    fn who_reads_it_learns_each_object_with_its_group() {
        let mut rolling = object("web", "1 of 2: so");
        (rolling.object.group, rolling.object.kind) = ("apps".to_owned(), "Deployment".to_owned());
        rolling.origin = Some("prod (kustomize) ← base/web.yaml:3: odd, prod/patch.yaml:1".to_owned());
        let left = ObjectStatus { phase: Phase::LeftAlone, ..object("-node", "") };
        let counts = source(&[(Phase::Refused, 1), (Phase::LeftAlone, 1)]);
        let summary = StatusSummary::of(&counts, std::slice::from_ref(&rolling), std::slice::from_ref(&left));
        let found: Vec<RecordedObject> = summary.objects().collect();
        let recorded = |status: &ObjectStatus| RecordedObject {
            phase: status.phase,
            object: status.object.clone(),
            reason: status.reason.clone().unwrap_or_default(),
            origin: status.origin.clone(),
        };
        assert_eq!(found, [recorded(&rolling), recorded(&left)]);
        assert!(summary.is_heeding_opt_outs());
        let denied = StatusSummary::of(&SourceStatus { opt_out: OptOutPolicy::Denied, ..counts }, &[], &[]);
        let mut data = BTreeMap::new();
        denied.write_to(&mut data);
        assert!(!StatusSummary::from_data(&data).unwrap().is_heeding_opt_outs());
    }
}
