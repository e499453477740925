//! A plan as text for people.

use std::fmt::Write as _;

use super::outline::{DiffSide, outline_lines};
use super::palette::sanitize;
use super::release_order::{impact_text, order_lines};
use super::{Palette, TextStyle};
use crate::engine::{Plan, PlanBasis, PlannedAction, PlannedObject};
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

/// Does the same as [`text`], of what a patch cannot show: what waits, is refused or is kept. For
/// standard error.
pub(crate) fn held_back_text(plan: &Plan, palette: Palette) -> String {
    let mut out = String::new();
    let is_held_back = |planned: &&PlannedObject| {
        matches!(planned.verdict, PlannedAction::Wait | PlannedAction::Refuse) || is_kept(planned)
    };
    list(&mut out, &plan.objects.iter().filter(is_held_back).collect::<Vec<_>>(), palette);
    out.push_str(&summary(plan, SummaryTense::of(plan)));
    out
}

/// Returns whether an object is worth a line.
fn is_shown(planned: &PlannedObject) -> bool {
    planned.verdict != PlannedAction::Unchanged || is_kept(planned)
}

/// Returns whether an object is no longer wanted, and stays.
fn is_kept(planned: &PlannedObject) -> bool {
    planned.verdict == PlannedAction::Unchanged && planned.reason.is_some()
}

/// Lists objects, and under them the reasons that several share.
fn list(out: &mut String, objects: &[&PlannedObject], palette: Palette) {
    let mut shared: Vec<(PlannedAction, &str, usize)> = Vec::new();
    for (verdict, reason) in objects.iter().filter_map(|planned| bare_reason(planned)) {
        match shared.iter_mut().find(|(other, text, _)| (*other, *text) == (verdict, reason)) {
            Some((.., count)) => *count += 1,
            None => shared.push((verdict, reason, 1)),
        }
    }
    // The objects that a reason means must be plain: a created one says it by itself.
    let of = |wanted: PlannedAction| objects.iter().filter(|planned| planned.verdict == wanted).count();
    shared.retain(|(verdict, _, count)| {
        *count > 1 && (*verdict == PlannedAction::Create || *count == of(*verdict))
    });
    for planned in objects {
        let shown_reason = bare_reason(planned)
            .is_some_and(|(verdict, reason)| shared.iter().any(|(v, r, _)| (*v, *r) == (verdict, reason)));
        object(out, planned, if shown_reason { None } else { planned.reason.as_deref() }, palette);
    }
    if !shared.is_empty() {
        out.push('\n');
    }
    for (verdict, reason, count) in shared {
        let (sign, style) = sign(verdict);
        let lead = match verdict {
            PlannedAction::Wait => format!("all {count} wait"),
            PlannedAction::Refuse => format!("all {count} are refused"),
            PlannedAction::Unchanged => format!("all {count} are kept"),
            PlannedAction::Delete => format!("all {count} are deleted"),
            PlannedAction::Create | PlannedAction::Configure | PlannedAction::Recreate => {
                format!("{count} objects")
            }
        };
        let text = sanitize(&format!("{lead}: {}", one_line(reason))).into_owned();
        let _ = writeln!(out, "{} {}", palette.paint(style, sign), palette.paint(style, &text));
    }
    if !objects.is_empty() {
        out.push('\n');
    }
}

/// Returns the reason of an object that has no changed fields below it.
fn bare_reason(planned: &PlannedObject) -> Option<(PlannedAction, &str)> {
    let bare = planned.before.is_none() || planned.after.is_none();
    Some((planned.verdict, planned.reason.as_deref().filter(|_| bare)?))
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
        let _ = writeln!(out, "{lead}: {}", why_incomplete(&plan.diagnostics));
    }
    let mut parts = Vec::new();
    let kept = plan.objects.iter().filter(|planned| is_kept(planned)).count();
    for verdict in [
        PlannedAction::Create,
        PlannedAction::Configure,
        PlannedAction::Recreate,
        PlannedAction::Delete,
        PlannedAction::Unchanged,
        PlannedAction::Wait,
        PlannedAction::Refuse,
    ] {
        let counted = |planned: &&PlannedObject| planned.verdict == verdict && !is_kept(planned);
        let count = plan.objects.iter().filter(counted).count();
        let always =
            !matches!(verdict, PlannedAction::Recreate | PlannedAction::Wait | PlannedAction::Refuse);
        if always || count > 0 {
            parts.push(format!("{count} {}", action_words(verdict, tense)));
        }
        if verdict == PlannedAction::Unchanged && kept > 0 {
            parts.push(format!("{kept} kept"));
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

fn why_incomplete(diagnostics: &[Diagnostic]) -> String {
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
    let (sign, style) = sign(planned.verdict);
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
        let lead = match planned.verdict {
            PlannedAction::Wait => "waits: ",
            PlannedAction::Refuse => "refused: ",
            PlannedAction::Unchanged => "kept: ",
            _ => "",
        };
        for (number, line) in reason.lines().enumerate() {
            let lead = if number == 0 { lead } else { "  " };
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

const fn sign(verdict: PlannedAction) -> (&'static str, TextStyle) {
    match verdict {
        PlannedAction::Create => ("+", TextStyle::Added),
        PlannedAction::Configure => ("~", TextStyle::Changed),
        PlannedAction::Unchanged => ("=", TextStyle::Faint),
        PlannedAction::Delete => ("-", TextStyle::Removed),
        PlannedAction::Recreate => ("±", TextStyle::Removed),
        PlannedAction::Wait => ("?", TextStyle::Waiting),
        PlannedAction::Refuse => ("!", TextStyle::Error),
    }
}
