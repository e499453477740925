//! A plan as text for people.

use std::fmt::Write as _;

use super::outline::outline_lines;
use super::palette::sanitize;
use super::release_order::{impact_text, order_lines};
use super::{Palette, TextStyle};
use crate::change::DiffSide;
use crate::engine::{PauseSubject, Plan, PlanBasis, PlannedAction, PlannedObject, Reason};
use crate::object::{Diagnostic, count_text};

/// Returns a line for each object that is not applied, with the changed fields under it. Notes
/// that hold for several objects are given once, and the summary comes last.
pub(crate) fn text(plan: &Plan, palette: Palette) -> String {
    let mut out = String::new();
    let shown = plan.objects.iter().filter(|planned| is_shown(planned));
    list(&mut out, &shown.collect::<Vec<_>>(), palette);
    out.push_str(&order_lines(plan, palette));
    out.push_str(&summary(plan, SummaryTense::of(plan)));
    out
}

/// Does the same as [`text`], of what a patch cannot show: what waits, is refused, is kept or is
/// left alone. For standard error.
pub(crate) fn held_back_text(plan: &Plan, palette: Palette) -> String {
    let mut out = String::new();
    let is_held_back = |planned: &&PlannedObject| {
        matches!(planned.verdict, PlannedAction::Wait | PlannedAction::Refuse) || has_note(planned)
    };
    list(&mut out, &plan.objects.iter().filter(is_held_back).collect::<Vec<_>>(), palette);
    out.push_str(&summary(plan, SummaryTense::of(plan)));
    out
}

/// Returns whether an object is worth a line.
fn is_shown(planned: &PlannedObject) -> bool {
    planned.verdict != PlannedAction::Unchanged || has_note(planned)
}

/// Returns whether an object stays as it is, and there is something to say about it.
fn has_note(planned: &PlannedObject) -> bool {
    planned.verdict == PlannedAction::Unchanged && planned.reason.is_some()
}

/// The objects that are listed and counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlanGroup {
    /// The ones with this action.
    Action(PlannedAction),
    /// They are no longer wanted, and stay.
    Kept,
    /// An annotation leaves them as they are.
    LeftAlone,
    /// An annotation holds or pauses them, so what is to be done waits.
    Held,
}

impl PlanGroup {
    fn of(planned: &PlannedObject) -> Self {
        match (planned.verdict, &planned.cause) {
            (PlannedAction::Unchanged, Some(Reason::LeftAlone(_) | Reason::OptedOut(_))) => Self::LeftAlone,
            (PlannedAction::Wait, Some(Reason::OnHold(_) | Reason::Paused(PauseSubject::Object, _))) => {
                Self::Held
            }
            (PlannedAction::Unchanged, Some(Reason::Kept(_))) => Self::Kept,
            // One that is only in the cluster has no manifest.
            (PlannedAction::Unchanged, _) if planned.reason.is_some() && planned.origin.is_none() => {
                Self::Kept
            }
            (verdict, _) => Self::Action(verdict),
        }
    }

    /// Returns the beginning of a sentence about all of so many objects.
    fn describe_all(self, count: usize) -> String {
        match self {
            Self::Action(PlannedAction::Wait) | Self::Held => format!("all {count} wait"),
            Self::Action(PlannedAction::Refuse) => format!("all {count} are refused"),
            Self::Action(PlannedAction::Unchanged) => format!("all {count} are unchanged"),
            Self::Action(PlannedAction::Delete) => format!("all {count} are deleted"),
            Self::Action(PlannedAction::Create | PlannedAction::Configure | PlannedAction::Recreate) => {
                format!("{count} objects")
            }
            Self::Kept => format!("all {count} are kept"),
            Self::LeftAlone => format!("all {count} are left alone"),
        }
    }

    /// Returns what stands before the reason of one object.
    const fn lead(self) -> &'static str {
        match self {
            Self::Action(PlannedAction::Wait) | Self::Held => "waits: ",
            Self::Action(PlannedAction::Refuse) => "refused: ",
            Self::Action(_) => "",
            Self::Kept => "kept: ",
            Self::LeftAlone => "left alone: ",
        }
    }

    const fn sign(self) -> (&'static str, TextStyle) {
        match self {
            Self::Action(PlannedAction::Create) => ("+", TextStyle::Added),
            Self::Action(PlannedAction::Configure) => ("~", TextStyle::Changed),
            Self::Action(PlannedAction::Unchanged) | Self::Kept | Self::LeftAlone => ("=", TextStyle::Faint),
            Self::Action(PlannedAction::Delete) => ("-", TextStyle::Removed),
            Self::Action(PlannedAction::Recreate) => ("±", TextStyle::Removed),
            Self::Action(PlannedAction::Wait) | Self::Held => ("?", TextStyle::Waiting),
            Self::Action(PlannedAction::Refuse) => ("!", TextStyle::Error),
        }
    }
}

/// Lists objects, and under them the reasons that several share.
fn list(out: &mut String, objects: &[&PlannedObject], palette: Palette) {
    let mut shared: Vec<(PlanGroup, &str, usize)> = Vec::new();
    for (group, reason) in objects.iter().filter_map(|planned| bare_reason(planned)) {
        match shared.iter_mut().find(|(other, text, _)| (*other, *text) == (group, reason)) {
            Some((.., count)) => *count += 1,
            None => shared.push((group, reason, 1)),
        }
    }
    // The objects that a reason means must be plain: a created one says it by itself.
    let of = |group: PlanGroup| objects.iter().filter(|planned| PlanGroup::of(planned) == group).count();
    shared.retain(|(group, _, count)| {
        *count > 1 && (*group == PlanGroup::Action(PlannedAction::Create) || *count == of(*group))
    });
    for planned in objects {
        let shown_reason = bare_reason(planned)
            .is_some_and(|(group, reason)| shared.iter().any(|(g, r, _)| (*g, *r) == (group, reason)));
        object(out, planned, if shown_reason { None } else { planned.reason.as_deref() }, palette);
    }
    if !shared.is_empty() {
        out.push('\n');
    }
    for (group, reason, count) in shared {
        let (sign, style) = group.sign();
        let text = format!("{}: {}", group.describe_all(count), one_line(reason));
        let text = sanitize(&text).into_owned();
        let _ = writeln!(out, "{} {}", palette.paint(style, sign), palette.paint(style, &text));
    }
    if !objects.is_empty() {
        out.push('\n');
    }
}

/// Returns the reason of an object that has no changed fields below it.
fn bare_reason(planned: &PlannedObject) -> Option<(PlanGroup, &str)> {
    let bare = planned.before.is_none() || planned.after.is_none();
    Some((PlanGroup::of(planned), planned.reason.as_deref().filter(|_| bare)?))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the names alone, as `kubectl -o name` writes them: a line for each object of which the
/// plan says more than that it is unchanged.
pub(crate) fn names(plan: &Plan) -> String {
    let differing = plan.objects.iter().filter(|planned| planned.verdict != PlannedAction::Unchanged);
    differing.fold(String::new(), |mut out, planned| {
        out.push_str(&planned.id.resource_name());
        out.push('\n');
        out
    })
}

/// Indicates whether a summary says what would happen or what has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SummaryTense {
    /// A plan.
    Would,
    /// A plan that was carried out.
    Did,
    /// The difference of two revisions.
    Differs,
}

impl SummaryTense {
    fn of(plan: &Plan) -> Self {
        match plan.basis {
            PlanBasis::Cluster => Self::Would,
            PlanBasis::Revision => Self::Differs,
        }
    }
}

/// Returns `3 to create, 1 to configure, 0 to delete, 96 unchanged`. Says before it why nothing is
/// pruned, if the source was not read completely.
pub(crate) fn summary(plan: &Plan, tense: SummaryTense) -> String {
    let mut out = String::new();
    if !plan.complete {
        let lead = match tense {
            SummaryTense::Would | SummaryTense::Did => "nothing is pruned",
            SummaryTense::Differs => "not everything was read",
        };
        let _ = writeln!(out, "{lead}: {}", incomplete_reason(&plan.diagnostics));
    }
    let mut parts = Vec::new();
    let of = |group: PlanGroup| plan.objects.iter().filter(|planned| PlanGroup::of(planned) == group).count();
    for verdict in [
        PlannedAction::Create,
        PlannedAction::Configure,
        PlannedAction::Recreate,
        PlannedAction::Delete,
        PlannedAction::Unchanged,
        PlannedAction::Wait,
        PlannedAction::Refuse,
    ] {
        let count = of(PlanGroup::Action(verdict));
        let always =
            !matches!(verdict, PlannedAction::Recreate | PlannedAction::Wait | PlannedAction::Refuse);
        if always || count > 0 {
            parts.push(format!("{count} {}", action_words(verdict, tense)));
        }
        if verdict == PlannedAction::Unchanged {
            let left_alone = of(PlanGroup::LeftAlone) + of(PlanGroup::Held);
            let standing = [(of(PlanGroup::Kept), "kept"), (left_alone, "left alone by annotation")];
            let some = standing.into_iter().filter(|(count, _)| *count > 0);
            parts.extend(some.map(|(count, words)| format!("{count} {words}")));
        }
    }
    let _ = writeln!(out, "{}", parts.join(", "));
    out
}

const fn action_words(verdict: PlannedAction, tense: SummaryTense) -> &'static str {
    match (verdict, tense) {
        (PlannedAction::Create, SummaryTense::Would) => "to create",
        (PlannedAction::Configure, SummaryTense::Would) => "to configure",
        (PlannedAction::Recreate, SummaryTense::Would) => "to recreate",
        (PlannedAction::Delete, SummaryTense::Would) => "to delete",
        (PlannedAction::Create, SummaryTense::Did) => "created",
        (PlannedAction::Configure, SummaryTense::Did) => "configured",
        (PlannedAction::Recreate, SummaryTense::Did) => "recreated",
        (PlannedAction::Delete, SummaryTense::Did) => "pruned",
        (PlannedAction::Create, SummaryTense::Differs) => "added",
        (PlannedAction::Configure, SummaryTense::Differs) => "changed",
        (PlannedAction::Recreate, SummaryTense::Differs) => "replaced",
        (PlannedAction::Delete, SummaryTense::Differs) => "removed",
        (PlannedAction::Unchanged, _) => "unchanged",
        (PlannedAction::Wait, _) => "waiting",
        (PlannedAction::Refuse, _) => "refused",
    }
}

fn incomplete_reason(diagnostics: &[Diagnostic]) -> String {
    let mut errors = diagnostics.iter().filter(|found| found.is_error());
    let Some(first) = errors.next() else { return "the source was not read completely".to_owned() };
    let origin = first.origin.to_string();
    let more = match errors.count() {
        0 => String::new(),
        count => format!(" (and {})", count_text(count, "more error")),
    };
    let message =
        if origin.is_empty() { first.message.clone() } else { format!("{origin}: {}", first.message) };
    format!("{}{more}", sanitize(&message))
}

fn object(out: &mut String, planned: &PlannedObject, reason: Option<&str>, palette: Palette) {
    let group = PlanGroup::of(planned);
    let (sign, style) = group.sign();
    let _ = write!(
        out,
        "{} {}",
        palette.paint(style, sign),
        palette.paint(TextStyle::Strong, &sanitize(&planned.id.to_string()))
    );
    if let Some(impact) = impact_text(planned) {
        let _ = write!(out, "  {impact}");
    }
    if let Some(origin) = &planned.origin {
        let _ = write!(out, "  {}", palette.paint(TextStyle::Faint, &sanitize(&origin.to_string())));
    }
    out.push('\n');
    if let Some(reason) = reason {
        for (number, line) in reason.lines().enumerate() {
            let lead = if number == 0 { group.lead() } else { "  " };
            let _ = writeln!(out, "    {}", palette.paint(style, &sanitize(&format!("{lead}{line}"))));
        }
    }
    if let (Some(before), Some(after)) = (&planned.before, &planned.after) {
        for line in outline_lines(before, after) {
            let (sign, style) = match line.side {
                DiffSide::Both => (' ', TextStyle::Faint),
                DiffSide::Before => ('-', TextStyle::Removed),
                DiffSide::After => ('+', TextStyle::Added),
            };
            let _ = writeln!(out, "  {}", palette.paint(style, &format!("{sign} {}", line.text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{ActiveHold, PruneCause, ReconcilePolicy, WithheldWrite};
    use crate::object::{Gvk, ManifestOrigin, ObjectId};

    fn planned(verdict: PlannedAction, reason: &str) -> PlannedObject {
        let gvk = Gvk::new("", "v1", "ConfigMap");
        let id = ObjectId::new(&gvk.group_kind(), Some("shop"), "env");
        let origin = Some(ManifestOrigin::new("env.yaml".into(), 1, 1));
        PlannedObject { origin, reason: Some(reason.to_owned()), ..PlannedObject::new(id, gvk, verdict) }
    }

    fn printed(objects: Vec<PlannedObject>) -> String {
        text(&Plan { objects, complete: true, ..Plan::default() }, Palette::Plain)
    }

    #[track_caller]
    fn check(planned: PlannedObject, shown_reason: &str, counted: &str) {
        let printed = printed(vec![planned]);
        assert!(printed.contains(&format!("\n    {shown_reason}")), "{printed}");
        assert!(printed.ends_with(&format!(", 0 to delete, {counted}\n")), "{printed}");
    }

    #[test]
    fn what_an_annotation_leaves_alone_is_counted_apart_from_what_is_kept_or_waits() {
        #[track_caller]
        fn check_cause(verdict: PlannedAction, cause: Reason, shown_reason: &str, counted: &str) {
            let planned = planned(verdict, &cause.to_string());
            check(PlannedObject { cause: Some(cause), ..planned }, shown_reason, counted);
        }
        use PlannedAction::{Unchanged, Wait};
        let left_alone = "0 unchanged, 1 left alone by annotation";
        for (policy, shown_reason) in [
            (ReconcilePolicy::Disabled, "left alone: its annotation asks not to reconcile it"),
            (ReconcilePolicy::OnlyCreate, "left alone: its annotation asks to create it only if"),
        ] {
            check_cause(Unchanged, Reason::LeftAlone(policy), shown_reason, left_alone);
        }
        let word = Reason::OptedOut("rhumb.dev/reconcile");
        check_cause(Unchanged, word, "left alone: rhumb.dev/reconcile is set on the live object", left_alone);
        for withheld in [WithheldWrite::Nothing, WithheldWrite::Content] {
            let until = "2030-01-02T03:04:05Z".parse().ok();
            let hold = Reason::OnHold(ActiveHold { until, reason: "".into(), withheld });
            check_cause(Wait, hold, "waits: on hold until 2030", left_alone);
        }
        let paused = |subject| Reason::Paused(subject, "".into());
        check_cause(Wait, paused(PauseSubject::Object), "waits: it is paused", left_alone);
        let source = PauseSubject::Source("shop".into());
        check_cause(Wait, paused(source), "waits: source shop is paused", "0 unchanged, 1 waiting");
        let kept = || Reason::Kept(PruneCause::Annotated);
        check_cause(Unchanged, kept(), "kept: no longer wanted, and kept", "0 unchanged, 1 kept");
        // Nothing is known of it while its source is incomplete.
        check_cause(Wait, kept(), "waits: no longer wanted, and kept", "0 unchanged, 1 waiting");
    }

    #[test]
    fn what_is_only_in_the_cluster_is_kept_and_what_has_a_manifest_is_unchanged() {
        let planned = planned(PlannedAction::Unchanged, "left to others: .data.a");
        check(planned.clone(), "left to others: .data.a", "1 unchanged");
        let foreign = PlannedObject { origin: None, ..planned };
        check(foreign, "kept: left to others: .data.a", "0 unchanged, 1 kept");
    }

    #[test]
    fn a_reason_that_all_of_a_group_share_is_given_once() {
        let alone = |cause: Reason| PlannedObject {
            cause: Some(cause.clone()),
            ..planned(PlannedAction::Unchanged, &cause.to_string())
        };
        let disabled = || alone(Reason::LeftAlone(ReconcilePolicy::Disabled));
        let printed = printed(vec![disabled(), disabled(), alone(Reason::Kept(PruneCause::Annotated))]);
        let once = "\n= all 2 are left alone: its annotation asks not to reconcile it\n";
        assert!(printed.contains(once), "{printed}");
        assert_eq!(printed.matches("its annotation asks not to reconcile it").count(), 1, "{printed}");
        assert!(printed.ends_with(", 0 unchanged, 1 kept, 2 left alone by annotation\n"), "{printed}");
    }
}
