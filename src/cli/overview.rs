//! The status as rows of text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use super::object_argument::ObjectArgument;
use super::status_view::{StatusView, id};
use crate::object::{Revision, count_text};
use crate::render::{Palette, TextStyle, sanitize_line};
use crate::report::{
    BoundUsage, ObjectRef, ObjectStatus, Phase, QueuedWorkloadStatus, RolloutStatus, SourceStatus,
    WorkloadRolloutStatus, pending_deletions_text, silence_text,
};

/// The maximum number of objects listed by default.
const MAX_LISTED_OBJECTS: usize = 20;

/// The age of what is known of claims that other processes have.
const LEDGER_AGE_WORDS: &str = "as the rollout ledger was last read";

/// The level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DetailLevel {
    /// As much as fits a terminal.
    Short,
    /// All.
    Wide,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The source or object of the row; continuation rows name the same.
    pub(super) about: String,
    /// Its cells. The first is empty where the row goes on with the one above.
    pub(super) cells: Vec<Cell>,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) style: Option<TextStyle>,
}

impl Cell {
    pub(super) fn plain_cell(text: impl Into<String>) -> Self {
        Self { text: clean_text(&text.into()), style: None }
    }

    /// Returns whether it changes by the time alone.
    fn is_transient(&self) -> bool {
        self.style == Some(TextStyle::Faint)
    }

    pub(super) fn styled_cell(style: TextStyle, text: impl Into<String>) -> Self {
        Self { style: Some(style), ..Self::plain_cell(text) }
    }
}

/// Returns one line without anything that steers a terminal.
pub(super) fn clean_text(text: &str) -> String {
    sanitize_line(text)
}

/// A table for each of the sources and of the objects, and what is between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Overview {
    /// The sources, the head of the table first.
    pub(super) sources: Vec<Row>,
    /// The rollout budget.
    pub(super) budget: String,
    /// The objects that need attention, with the table's head first; empty where none does.
    pub(super) objects: Vec<Row>,
    /// The number of objects that are not listed.
    pub(super) more: Option<String>,
    /// The process.
    pub(super) process: Option<String>,
    /// The facts that could not be known.
    pub(super) notes: Vec<String>,
}

impl Overview {
    /// Returns the overview of a status.
    pub(super) fn of(view: &StatusView, detail: DetailLevel) -> Self {
        let columns: &[&str] = match detail {
            DetailLevel::Short => &["SOURCE", "REVISION", "AGE", "OBJECTS", "STATE"],
            DetailLevel::Wide => &["SOURCE", "REVISION", "AGE", "PLACE", "OBJECTS", "STATE"],
        };
        let mut sources = vec![header_row(columns)];
        sources.extend(view.sources.iter().flat_map(|source| source_rows(view, source, detail)));
        let mut objects = objects(view, detail);
        let most = if detail == DetailLevel::Wide { usize::MAX } else { MAX_LISTED_OBJECTS };
        let left = objects.len().saturating_sub(most);
        objects.truncate(most);
        if !objects.is_empty() {
            objects.insert(0, header_row(object_columns(detail)));
        }
        let more = (left > 0).then(|| format!("and {left} more: `rhumb status -o wide` lists them"));
        let process = view.process.as_ref().map(|process| {
            let next = process.next_resync.strftime("%H:%M:%S UTC");
            let since = process.since.strftime("%Y-%m-%d %H:%M:%S UTC");
            let silence = process.server_silent_since.map(silence_text);
            let silence = silence.map_or_else(String::new, |words| format!("{words}; "));
            format!("{silence}rhumb {} since {since}; next resync {next}", process.version)
        });
        Self {
            sources,
            budget: budget_text(&view.rollout),
            objects,
            more,
            process,
            notes: view.notes.iter().map(|note| clean_text(note)).collect(),
        }
    }

    /// Returns the whole text.
    pub(super) fn text(&self, palette: Palette) -> String {
        let mut lines = align_rows(&self.sources, palette);
        lines.extend((self.sources.len() == 1).then(|| "no sources".to_owned()));
        lines.push(String::new());
        lines.push(palette.paint(TextStyle::Faint, &self.budget).into_owned());
        let asides = self.process.iter().chain(&self.notes);
        lines.extend(asides.map(|text| palette.paint(TextStyle::Faint, text).into_owned()));
        if !self.objects.is_empty() {
            lines.push(String::new());
            lines.extend(align_rows(&self.objects, palette));
            lines.extend(self.more.iter().map(|more| palette.paint(TextStyle::Faint, more).into_owned()));
        }
        lines.join("\n") + "\n"
    }

    /// Returns the rows and lines that were not there before, each of which says what it is about,
    /// and what is not listed any more.
    pub(super) fn new_lines(&self, before: &Self) -> Vec<String> {
        let spaced = |row: &Row| {
            let about = std::iter::once(row.about.as_str());
            let steady = row.cells.iter().skip(1).filter(|cell| !cell.is_transient());
            let cells = about.chain(steady.map(|cell| cell.text.as_str()));
            cells.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("  ")
        };
        let new = |now: &[Row], then: &[Row]| {
            let known: Vec<String> = then.iter().skip(1).map(spaced).collect();
            let rows = now.iter().skip(1).map(spaced).filter(|line| !known.contains(line));
            rows.collect::<Vec<_>>()
        };
        let mut lines = new(&self.sources, &before.sources);
        lines.extend((self.budget != before.budget).then(|| self.budget.clone()));
        lines.extend(new(&self.objects, &before.objects));
        let listed = |row: &Row| self.objects.iter().any(|now| now.about == row.about);
        let gone = before.objects.iter().skip(1).filter(|row| self.more.is_none() && !listed(row));
        lines.extend(gone.map(|row| format!("{}  is settled, or gone", row.about)));
        lines
    }
}

fn object_columns(detail: DetailLevel) -> &'static [&'static str] {
    match detail {
        DetailLevel::Short => &["OBJECT", "PHASE", "WHY"],
        DetailLevel::Wide => &["OBJECT", "PHASE", "REVISION", "FILE", "WHY"],
    }
}

fn header_row(columns: &[&str]) -> Row {
    let cells = columns.iter().map(|text| Cell::styled_cell(TextStyle::Faint, *text)).collect();
    Row { about: String::new(), cells }
}

/// Returns the lines of a table. Numbers are aligned to the right.
pub(super) fn align_rows(rows: &[Row], palette: Palette) -> Vec<String> {
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.cells.get(column)).map(|cell| cell.text.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Row| {
        let mut line = String::new();
        for (column, cell) in row.cells.iter().enumerate() {
            let shown =
                cell.style.map_or(cell.text.as_str().into(), |style| palette.paint(style, &cell.text));
            let space = " ".repeat(widths[column].saturating_sub(cell.text.width()));
            let gap = if column == 0 { "" } else { "  " };
            let is_last = row.cells[column + 1..].iter().all(|cell| cell.text.is_empty());
            line.push_str(gap);
            if is_number(rows, column) {
                line.push_str(&space);
                line.push_str(&shown);
            } else {
                line.push_str(&shown);
                if is_last {
                    break;
                }
                line.push_str(&space);
            }
        }
        line
    };
    rows.iter().map(line).collect()
}

fn is_number(rows: &[Row], column: usize) -> bool {
    let digits = |row: &Row| row.cells.get(column).is_some_and(|cell| cell.text.parse::<usize>().is_ok());
    rows.iter().any(digits)
}

/// Returns a source, and in further rows what holds for all of it.
fn source_rows(view: &StatusView, source: &SourceStatus, detail: DetailLevel) -> Vec<Row> {
    let revision = source.revision.as_deref().map_or_else(
        || "-".to_owned(),
        |text| {
            if detail == DetailLevel::Wide {
                text.to_owned()
            } else {
                Revision::new(text).short_name().to_owned()
            }
        },
    );
    let count: usize = source.objects.values().sum();
    let (style, state) = state(view, source);
    let age = source
        .since
        .map_or_else(|| "-".to_owned(), |since| age_text(view.at.duration_since(since).as_secs()));
    let name = Cell::styled_cell(TextStyle::Strong, &*source.name);
    let mut cells = vec![name, Cell::plain_cell(revision), Cell::styled_cell(TextStyle::Faint, age)];
    if detail == DetailLevel::Wide {
        cells.push(Cell::plain_cell(&*source.location));
    }
    cells.push(Cell::plain_cell(count.to_string()));
    let about = source.name.clone();
    let further = source_notes(source).into_iter().map(|(style, note)| {
        let empty = std::iter::repeat_n(Cell::plain_cell(""), cells.len());
        Row { about: about.clone(), cells: empty.chain([Cell::styled_cell(style, note)]).collect() }
    });
    let further: Vec<Row> = further.collect();
    cells.push(Cell::styled_cell(style, state));
    let mut rows = vec![Row { about, cells }];
    rows.extend(further);
    rows
}

/// Returns the largest unit of an age alone: `5m` or `3d`.
pub(super) fn age_text(seconds: i64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let large = units.into_iter().find(|(length, _)| seconds >= *length);
    large.map_or_else(
        || format!("{}s", seconds.max(0)),
        |(length, unit)| format!("{}{unit}", seconds / length),
    )
}

/// Returns the state of a source in a few words.
pub(super) fn state(view: &StatusView, source: &SourceStatus) -> (TextStyle, String) {
    let mut parts: Vec<String> = source
        .objects
        .iter()
        .filter(|(phase, _)| !phase.is_well())
        .map(|(phase, count)| phase_words(*phase, *count))
        .collect();
    let looked_after = source.objects.keys().any(|phase| *phase != Phase::LeftAlone);
    let worst =
        source.objects.keys().map(|phase| phase_style(*phase)).min_by_key(|style| severity_rank(*style));
    let mut style = worst.unwrap_or(TextStyle::Added);
    if source.incomplete.is_some() {
        // The reason follows below.
        parts.extend(parts.is_empty().then(|| "incomplete".to_owned()));
        style = TextStyle::Error;
    } else if source.revision.is_none() && view.process.is_some() {
        parts.push("not read yet".to_owned());
        style = TextStyle::Waiting;
    } else if parts.is_empty() && !source.healthy {
        parts.push("errors in its files".to_owned());
        style = TextStyle::Error;
    } else if parts.is_empty() && (source.objects.is_empty() || looked_after) {
        parts.push("healthy".to_owned());
    }
    // An object that is left alone is not healthy, as far as anybody knows.
    let left = source.objects.get(&Phase::LeftAlone).copied().filter(|left| *left > 0);
    parts.extend(left.map(|left| phase_words(Phase::LeftAlone, left)));
    if source.paused.is_some() {
        parts.push("paused".to_owned());
    }
    if source.observed {
        parts.push("only observed".to_owned());
    }
    (style, parts.join(", "))
}

/// Returns the notes about a source, a line each.
pub(super) fn source_notes(source: &SourceStatus) -> Vec<(TextStyle, String)> {
    let mut notes = Vec::new();
    notes.extend(source.incomplete.as_ref().map(|why| (TextStyle::Error, format!("incomplete: {why}"))));
    if let Some(why) = source.paused.as_ref().filter(|why| !why.is_empty()) {
        notes.push((TextStyle::Waiting, format!("paused: {why}")));
    }
    if source.findings > 0 {
        let findings = count_text(source.findings, "finding");
        let which = match source.first_findings.len() {
            0 => ": `rhumb validate` shows them",
            shown if shown < source.findings => ", the first of them:",
            _ => ":",
        };
        notes.push((TextStyle::Warning, format!("{findings} in its files{which}")));
        notes
            .extend(source.first_findings.iter().map(|finding| (TextStyle::Warning, format!("  {finding}"))));
    }
    if source.prune_waiting > 0 {
        let deletions = pending_deletions_text(source.prune_waiting);
        let name = &source.name;
        let text = format!("{deletions}: `rhumb prune list --source {name}`");
        notes.push((TextStyle::Waiting, text));
    }
    notes.extend(source.unlisted.clone().map(|why| (TextStyle::Warning, why)));
    notes.extend(source.unwatched.as_ref().map(|kinds_text| (TextStyle::Waiting, kinds_text.clone())));
    notes
}

fn phase_words(phase: Phase, count: usize) -> String {
    let words = match phase {
        Phase::Settled => "settled",
        Phase::Progressing => "progressing",
        Phase::Failed => "failed",
        Phase::RollingOut => "rolling",
        Phase::Waiting => "waiting",
        Phase::Refused => "refused",
        Phase::RolledBack => "rolled back",
        Phase::Quarantined => "failed and held",
        Phase::Held => "on hold",
        Phase::Paused => "paused",
        Phase::PruneWaiting => "to be deleted",
        Phase::LeftAlone => "left alone",
        Phase::OptedOut => "left alone by annotation",
    };
    format!("{count} {words}")
}

/// Returns how a phase is shown.
pub(super) fn phase_style(phase: Phase) -> TextStyle {
    match phase {
        Phase::Settled | Phase::LeftAlone => TextStyle::Added,
        Phase::Failed | Phase::Refused | Phase::RolledBack | Phase::Quarantined => TextStyle::Error,
        Phase::Progressing | Phase::RollingOut => TextStyle::Changed,
        Phase::Waiting | Phase::Held | Phase::Paused | Phase::PruneWaiting | Phase::OptedOut => {
            TextStyle::Waiting
        }
    }
}

fn severity_rank(style: TextStyle) -> u8 {
    match style {
        TextStyle::Error => 0,
        TextStyle::Changed => 1,
        TextStyle::Waiting => 2,
        _ => 3,
    }
}

/// Returns how much of the budget is in use.
pub(super) fn budget_text(rollout: &RolloutStatus) -> String {
    if let Some(why) = &rollout.unreadable {
        return clean_text(&format!("rollout budget: {why}"));
    }
    if !rollout.known {
        return "rollout budget: not read yet".to_owned();
    }
    let BoundUsage { used: pods, of: most } = rollout.unavailable;
    let BoundUsage { used: workloads, of } = rollout.workloads;
    if of == 0 {
        // Nobody but the daemon knows the bounds.
        return format!(
            "rollout budget: {} rolling out, which may take down {}",
            count_text(workloads, "workload"),
            count_text(pods, "pod")
        );
    }
    let window = rollout.window;
    let now = if (1..of).contains(&window) { format!(" (now at most {window})") } else { String::new() };
    let pods = if pods > most {
        format!("{} unavailable (at most {most})", count_text(pods, "pod"))
    } else {
        format!("{pods} of {most} pods unavailable")
    };
    let is_of_others = |roll: &WorkloadRolloutStatus| !roll.has_numbers();
    let age = if rollout.rolling.iter().any(is_of_others) {
        format!(", {LEDGER_AGE_WORDS}")
    } else {
        String::new()
    };
    format!("rollout budget: {workloads} of {of} workloads{now}, {pods}{age}")
}

/// Returns the objects that need attention: first those that roll out, then the rollout queue in
/// its order, then the rest by severity.
fn objects(view: &StatusView, detail: DetailLevel) -> Vec<Row> {
    let known = view.objects_by_name();
    let known = |named: &ObjectRef| known.get(named).copied();
    let mut listed: Vec<&ObjectRef> = Vec::new();
    let mut rows = Vec::new();
    for roll in &view.rollout.rolling {
        let object = known(&roll.object);
        // A refusal in the middle of a rollout blocks it, and a failed one has its own phase.
        let phase = object.map_or(Phase::RollingOut, |object| object.phase);
        let why = object.filter(|_| phase != Phase::RollingOut).and_then(|object| object.reason.as_ref());
        let text = rollout_text(roll) + &why.map(|why| format!("; {why}")).unwrap_or_default();
        rows.push(object_row(&roll.object, phase, &text, object, detail));
        listed.push(&roll.object);
    }
    for queued in view.rollout.queue.iter().filter(|queued| !listed.contains(&&queued.object)) {
        let object = known(&queued.object);
        let phase = object.map_or(Phase::Waiting, |object| object.phase);
        rows.push(object_row(&queued.object, phase, &waiting_text(queued), object, detail));
    }
    rows.extend(objects_needing_attention(view).into_iter().map(|object| {
        object_row(
            &object.object,
            object.phase,
            object.reason.as_deref().unwrap_or_default(),
            Some(object),
            detail,
        )
    }));
    rows
}

/// Returns the objects that need attention and neither roll out nor wait for the budget, the most
/// severe first.
pub(super) fn objects_needing_attention(view: &StatusView) -> Vec<&ObjectStatus> {
    let RolloutStatus { rolling, queue, .. } = &view.rollout;
    let rolling = rolling.iter().map(|roll| &roll.object);
    let listed: BTreeSet<&ObjectRef> = rolling.chain(queue.iter().map(|queued| &queued.object)).collect();
    let mut rest: Vec<&ObjectStatus> =
        view.objects.iter().filter(|object| !listed.contains(&object.object)).collect();
    rest.sort_by_key(|object| (severity_rank(phase_style(object.phase)), object.phase, &object.object));
    rest
}

fn object_row(
    named: &ObjectRef,
    phase: Phase,
    why: &str,
    object: Option<&ObjectStatus>,
    detail: DetailLevel,
) -> Row {
    let about = name(named);
    let phase = Cell::styled_cell(phase_style(phase), phase.to_string());
    let mut cells = vec![Cell::plain_cell(&*about), phase];
    if detail == DetailLevel::Wide {
        let text = |text: Option<&String>| Cell::plain_cell(text.map_or("-", String::as_str));
        cells.push(text(object.and_then(|object| object.revision.as_ref())));
        cells.push(text(object.and_then(|object| object.origin.as_ref())));
    }
    cells.push(Cell::plain_cell(why));
    Row { about, cells }
}

/// Returns how far a rollout is.
pub(super) fn rollout_text(roll: &WorkloadRolloutStatus) -> String {
    let step = roll.step.as_ref().map(|step| format!("; {step}")).unwrap_or_default();
    let other = match &roll.holder {
        Some(holder) if !roll.has_numbers() => return format!("claimed by {holder}, {LEDGER_AGE_WORDS}"),
        Some(holder) => format!("; claimed by {holder}"),
        None if roll.source.is_none() => "; another daemon's".to_owned(),
        None => String::new(),
    };
    let WorkloadRolloutStatus { replicas, updated, available, .. } = roll;
    format!("{updated} of {replicas} pods are new, {available} available{step}{other}")
}

/// Returns why something waits, and how long the queue before it is.
pub(super) fn waiting_text(queued: &QueuedWorkloadStatus) -> String {
    let queue_position = queued
        .position
        .map(|position| format!("number {position} in the rollout queue: "))
        .unwrap_or_default();
    format!("{queue_position}{}", queued.reason)
}

/// Returns all that is known of one object.
pub(super) fn object_text(object: &ObjectStatus, rollout: &RolloutStatus, palette: Palette) -> String {
    let mut text = palette.paint(TextStyle::Strong, &name(&object.object)).into_owned() + "\n";
    for (key, cell) in object_facts(object, rollout) {
        let value = cell.style.map_or(cell.text.as_str().into(), |style| palette.paint(style, &cell.text));
        let _ = writeln!(text, "  {key:<8} {value}");
    }
    text
}

/// Returns the name of an object, as it is typed.
pub(super) fn name(named: &ObjectRef) -> String {
    clean_text(&ObjectArgument::of(&id(named)).to_string())
}

/// Returns the facts about one object, each with its key.
pub(super) fn object_facts(object: &ObjectStatus, rollout: &RolloutStatus) -> Vec<(&'static str, Cell)> {
    let text = |text: Option<&String>| Cell::plain_cell(text.cloned().unwrap_or_default());
    let roll = rollout.rolling.iter().find(|roll| roll.object == object.object);
    let queued = rollout.queue.iter().find(|queued| queued.object == object.object);
    let wave = if object.wave == 0 { String::new() } else { object.wave.to_string() };
    let facts = [
        ("source", Cell::plain_cell(&*object.source)),
        ("phase", Cell::styled_cell(phase_style(object.phase), object.phase.to_string())),
        ("reason", text(object.reason.as_ref())),
        ("rollout", Cell::plain_cell(roll.map(rollout_text).unwrap_or_default())),
        ("queue", Cell::plain_cell(queued.map(waiting_text).unwrap_or_default())),
        ("revision", text(object.revision.as_ref())),
        ("file", text(object.origin.as_ref())),
        ("wave", Cell::plain_cell(wave)),
    ];
    facts.into_iter().filter(|(_, cell)| !cell.text.is_empty()).collect()
}

#[cfg(test)]
mod tests;
