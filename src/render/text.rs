//! A plan as text for people.

use std::fmt::Write as _;

use super::order::{impact, order};
use super::outline::{Side, outline};
use super::palette::harmless;
use super::{Palette, Style};
use crate::engine::{Plan, Planned, Verdict};
use crate::object::Diagnostic;

/// A line for each object that is not as wanted, the changed fields under it, what holds for several of
/// them once, and the summary last.
pub fn text(plan: &Plan, palette: Palette) -> String {
    let mut out = String::new();
    let shown = plan.objects.iter().filter(|planned| is_shown(planned));
    list(&mut out, &shown.collect::<Vec<_>>(), palette);
    out.push_str(&order(plan, palette));
    out.push_str(&summary(plan, Tense::Would));
    out
}

/// As [`text`], of what a patch cannot show: what waits, is refused or is kept. For standard error.
pub fn held_back(plan: &Plan, palette: Palette) -> String {
    let mut out = String::new();
    let held =
        |planned: &&Planned| matches!(planned.verdict, Verdict::Wait | Verdict::Refuse) || is_kept(planned);
    list(&mut out, &plan.objects.iter().filter(held).collect::<Vec<_>>(), palette);
    out.push_str(&summary(plan, Tense::Would));
    out
}

/// Whether an object is worth a line.
fn is_shown(planned: &Planned) -> bool {
    planned.verdict != Verdict::Unchanged || is_kept(planned)
}

/// Whether an object is not wanted any more, and stays.
fn is_kept(planned: &Planned) -> bool {
    planned.verdict == Verdict::Unchanged && planned.reason.is_some()
}

/// The objects, and under them the reasons that several share.
fn list(out: &mut String, objects: &[&Planned], palette: Palette) {
    let mut shared: Vec<(Verdict, &str, usize)> = Vec::new();
    for (verdict, reason) in objects.iter().filter_map(|planned| bare_reason(planned)) {
        match shared.iter_mut().find(|(other, text, _)| (*other, *text) == (verdict, reason)) {
            Some((.., count)) => *count += 1,
            None => shared.push((verdict, reason, 1)),
        }
    }
    // Which of them a reason means must be plain: what is created says it by itself.
    let of = |wanted: Verdict| objects.iter().filter(|planned| planned.verdict == wanted).count();
    shared
        .retain(|(verdict, _, count)| *count > 1 && (*verdict == Verdict::Create || *count == of(*verdict)));
    for planned in objects {
        let said = bare_reason(planned)
            .is_some_and(|(verdict, reason)| shared.iter().any(|(v, r, _)| (*v, *r) == (verdict, reason)));
        object(out, planned, if said { None } else { planned.reason.as_deref() }, palette);
    }
    if !shared.is_empty() {
        out.push('\n');
    }
    for (verdict, reason, count) in shared {
        let (sign, style) = sign(verdict);
        let lead = match verdict {
            Verdict::Wait => format!("all {count} wait"),
            Verdict::Refuse => format!("all {count} are refused"),
            Verdict::Unchanged => format!("all {count} are kept"),
            Verdict::Delete => format!("all {count} are deleted"),
            Verdict::Create | Verdict::Configure | Verdict::Recreate => format!("{count} objects"),
        };
        let text = harmless(&format!("{lead}: {}", one_line(reason))).into_owned();
        let _ = writeln!(out, "{} {}", palette.paint(style, sign), palette.paint(style, &text));
    }
    if !objects.is_empty() {
        out.push('\n');
    }
}

/// The reason of an object that has no changed fields to stand above.
fn bare_reason(planned: &Planned) -> Option<(Verdict, &str)> {
    let bare = planned.before.is_none() || planned.after.is_none();
    Some((planned.verdict, planned.reason.as_deref().filter(|_| bare)?))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names alone, as `kubectl -o name` writes them: a line for each object that is not as wanted.
pub fn names(plan: &Plan) -> String {
    let differing = plan.objects.iter().filter(|planned| planned.verdict != Verdict::Unchanged);
    differing.fold(String::new(), |mut out, planned| {
        out.push_str(&planned.id.resource_name());
        out.push('\n');
        out
    })
}

/// Whether a summary tells what would happen or what has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tense {
    /// Of a plan.
    Would,
    /// Of a plan that was carried out.
    Did,
}

/// `3 to create, 1 to configure, 0 to delete, 96 unchanged`, and before it why nothing is pruned, if the
/// source was not read whole.
pub fn summary(plan: &Plan, tense: Tense) -> String {
    let mut out = String::new();
    if !plan.complete {
        let _ = writeln!(out, "nothing is pruned: {}", why_incomplete(&plan.diagnostics));
    }
    let mut parts = Vec::new();
    let kept = plan.objects.iter().filter(|planned| is_kept(planned)).count();
    for verdict in [
        Verdict::Create,
        Verdict::Configure,
        Verdict::Recreate,
        Verdict::Delete,
        Verdict::Unchanged,
        Verdict::Wait,
        Verdict::Refuse,
    ] {
        let counted = |planned: &&Planned| planned.verdict == verdict && !is_kept(planned);
        let count = plan.objects.iter().filter(counted).count();
        let always = !matches!(verdict, Verdict::Recreate | Verdict::Wait | Verdict::Refuse);
        if always || count > 0 {
            parts.push(format!("{count} {}", words(verdict, tense)));
        }
        if verdict == Verdict::Unchanged && kept > 0 {
            parts.push(format!("{kept} kept"));
        }
    }
    let _ = writeln!(out, "{}", parts.join(", "));
    out
}

const fn words(verdict: Verdict, tense: Tense) -> &'static str {
    match (verdict, tense) {
        (Verdict::Create, Tense::Would) => "to create",
        (Verdict::Configure, Tense::Would) => "to configure",
        (Verdict::Recreate, Tense::Would) => "to recreate",
        (Verdict::Delete, Tense::Would) => "to delete",
        (Verdict::Create, Tense::Did) => "created",
        (Verdict::Configure, Tense::Did) => "configured",
        (Verdict::Recreate, Tense::Did) => "recreated",
        (Verdict::Delete, Tense::Did) => "pruned",
        (Verdict::Unchanged, _) => "unchanged",
        (Verdict::Wait, _) => "waiting",
        (Verdict::Refuse, _) => "refused",
    }
}

fn why_incomplete(diagnostics: &[Diagnostic]) -> String {
    let mut errors = diagnostics.iter().filter(|found| found.is_error());
    let Some(first) = errors.next() else { return "the source was not read whole".to_owned() };
    let place = first.origin.to_string();
    let more = match errors.count() {
        0 => String::new(),
        1 => " (and 1 more error)".to_owned(),
        count => format!(" (and {count} more errors)"),
    };
    let told = if place.is_empty() { first.message.clone() } else { format!("{place}: {}", first.message) };
    format!("{}{more}", harmless(&told))
}

fn object(out: &mut String, planned: &Planned, reason: Option<&str>, palette: Palette) {
    let (sign, style) = sign(planned.verdict);
    let _ = write!(
        out,
        "{} {}",
        palette.paint(style, sign),
        palette.paint(Style::Strong, &harmless(&planned.id.to_string()))
    );
    if let Some(impact) = impact(planned) {
        let _ = write!(out, "  {impact}");
    }
    if let Some(origin) = &planned.origin {
        let _ = write!(out, "  {}", palette.paint(Style::Faint, &harmless(&origin.to_string())));
    }
    out.push('\n');
    if let Some(reason) = reason {
        let lead = match planned.verdict {
            Verdict::Wait => "waits: ",
            Verdict::Refuse => "refused: ",
            Verdict::Unchanged => "kept: ",
            _ => "",
        };
        for (number, line) in reason.lines().enumerate() {
            let lead = if number == 0 { lead } else { "  " };
            let _ = writeln!(out, "    {}", palette.paint(style, &harmless(&format!("{lead}{line}"))));
        }
    }
    if let (Some(before), Some(after)) = (&planned.before, &planned.after) {
        for line in outline(before, after) {
            let (sign, style) = match line.side {
                Side::Both => (' ', Style::Faint),
                Side::Before => ('-', Style::Removed),
                Side::After => ('+', Style::Added),
            };
            let _ = writeln!(out, "  {}", palette.paint(style, &format!("{sign} {}", line.text)));
        }
    }
}

const fn sign(verdict: Verdict) -> (&'static str, Style) {
    match verdict {
        Verdict::Create => ("+", Style::Added),
        Verdict::Configure => ("~", Style::Changed),
        Verdict::Unchanged => ("=", Style::Faint),
        Verdict::Delete => ("-", Style::Removed),
        Verdict::Recreate => ("±", Style::Removed),
        Verdict::Wait => ("?", Style::Waiting),
        Verdict::Refuse => ("!", Style::Error),
    }
}
