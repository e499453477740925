//! A place in the code with its mutants, and the code with all of them behind the switch.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::ops::Range;

/// The number by which a process is told to run a mutant; 0 is none.
pub(crate) type Number = u32;

/// A small bug.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    /// The path of its file from the package's root.
    pub(crate) file: String,
    /// Its line in the file, from 1 on.
    pub(crate) line: usize,
    /// The function that it is in.
    pub(crate) function: String,
    /// The change, in words.
    pub(crate) kind: String,
}

/// The form of the code around a switch.
#[derive(Clone, Debug)]
pub(crate) enum SiteKind {
    /// An expression of type `bool` that is turned around.
    Flip,
    /// A comparison by order, with the other operators.
    Order { operator: &'static str, others: Vec<&'static str> },
    /// `&&` or `||`.
    Logic { operator: &'static str },
    /// `+` or `-`, with the other.
    Sum { operator: &'static str, other: &'static str },
    /// `+=` or `-=`, with the other.
    Assignment { operator: &'static str, other: &'static str },
    /// The guard of an arm: it always holds, or never does.
    Guard,
    /// The place behind the pattern of an arm without a guard: the arm is left out.
    Arm,
    /// The place behind the brace of a function: it returns one of these values at once.
    Body { values: Vec<String> },
}

/// A place in a file.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The bytes that are replaced.
    pub(crate) range: Range<usize>,
    /// The bytes of the operands.
    pub(crate) operands: Vec<Range<usize>>,
    pub(crate) form: SiteKind,
    /// The numbers of its mutants, in the order of the form.
    pub(crate) numbers: Vec<Number>,
}

impl Site {
    /// Makes a place without operands and without mutants.
    pub(crate) fn new(range: Range<usize>, form: SiteKind) -> Self {
        Self { range, operands: Vec::new(), form, numbers: Vec::new() }
    }
}

/// The bytes of a rewritten file that mutants have changed.
#[derive(Clone, Debug)]
pub(crate) struct ChangedBytes {
    pub(crate) range: Range<usize>,
    pub(crate) numbers: Vec<Number>,
}

/// A file in which each mutant stands behind the switch.
#[derive(Debug)]
pub(crate) struct RewrittenFile<'a> {
    text: &'a str,
    sites: &'a [Site],
    /// Mutants that do not compile.
    left_out: &'a BTreeSet<Number>,
    /// The new text so far.
    pub(crate) written: String,
    /// Where in it mutants are.
    pub(crate) changed: Vec<ChangedBytes>,
}

impl<'a> RewrittenFile<'a> {
    /// Rewrites a text; of two sites at one place the outer one comes first in `sites`.
    pub(crate) fn new(text: &'a str, sites: &'a [Site], left_out: &'a BTreeSet<Number>) -> Self {
        let mut rewriting = Self { text, sites, left_out, written: String::new(), changed: Vec::new() };
        let all: Vec<usize> = (0..sites.len()).collect();
        rewriting.copy(0..text.len(), &all);
        rewriting
    }

    /// Writes the text of a range, with the sites in it.
    fn copy(&mut self, range: Range<usize>, sites: &[usize]) {
        let mut at = range.start;
        let mut rest = sites;
        while let [first, behind @ ..] = rest {
            let outer = self.sites[*first].range.clone();
            let inside =
                behind.iter().take_while(|site| is_within(&self.sites[**site].range, &outer)).count();
            self.push(at..outer.start);
            self.replace(*first, &behind[..inside]);
            at = outer.end;
            rest = &behind[inside..];
        }
        self.push(at..range.end);
    }

    fn write(&mut self, code: fmt::Arguments<'_>) {
        // A text takes everything.
        let _ = self.written.write_fmt(code);
    }

    fn push(&mut self, range: Range<usize>) {
        self.written.push_str(&self.text[range]);
    }

    /// Writes a part of a site, with the sites in it.
    fn copy_part(&mut self, part: &Range<usize>, inside: &[usize]) {
        let own: Vec<usize> =
            inside.iter().copied().filter(|site| is_within(&self.sites[*site].range, part)).collect();
        self.written.push('(');
        self.copy(part.clone(), &own);
        self.written.push(')');
    }

    /// Writes a site with those of its mutants that compile.
    fn replace(&mut self, index: usize, inside: &[usize]) {
        let site = &self.sites[index];
        let begin = self.written.len();
        let live: Vec<(usize, Number)> = site
            .numbers
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, number)| !self.left_out.contains(number))
            .collect();
        let Some((_, first)) = live.first().copied() else {
            let range = site.range.clone();
            self.copy(range, inside);
            return;
        };
        match &site.form {
            SiteKind::Flip => {
                self.write(format_args!("({} != ", switch(first)));
                self.copy_part(&site.range, inside);
                self.written.push(')');
            }
            SiteKind::Order { operator, others } => {
                self.open_operands(site, inside, "&");
                for (position, number) in &live {
                    let other = others[*position];
                    self.alternative(*number, &format!("left {other} right"));
                }
                self.write(format_args!("{{ left {operator} right }} }})"));
            }
            SiteKind::Sum { operator, other } => {
                self.open_operands(site, inside, "");
                self.alternative(first, &format!("left {other} right"));
                self.write(format_args!("{{ left {operator} right }} }})"));
            }
            SiteKind::Logic { operator } => {
                let on = switch(first);
                self.write(format_args!("({on} != (({on} != "));
                self.copy_part(&site.operands[0], inside);
                self.write(format_args!(") {operator} ({on} != "));
                self.copy_part(&site.operands[1], inside);
                self.written.push_str(")))");
            }
            SiteKind::Assignment { operator, other } => {
                self.assign(site, inside, &switch(first), [other, operator]);
            }
            SiteKind::Guard => {
                let [always, never] = [0, 1].map(|position| {
                    let found = live.iter().find(|(index, _)| *index == position);
                    found.map_or_else(|| "false".to_owned(), |(_, number)| switch(*number))
                });
                self.write(format_args!("({always} || (!{never} && "));
                self.copy_part(&site.range, inside);
                self.written.push_str("))");
            }
            SiteKind::Arm => self.write(format_args!(" if !{}", switch(first))),
            SiteKind::Body { values } => self.return_early(&live, values),
        }
        let numbers = live.iter().map(|(_, number)| *number).collect();
        self.changed.push(ChangedBytes { range: begin..self.written.len(), numbers });
    }

    /// Writes an assignment by one operator where the switch is on, and by the other where it is not.
    fn assign(&mut self, site: &Site, inside: &[usize], on: &str, operators: [&str; 2]) {
        self.write(format_args!("(if {on} {{ "));
        for (operator, end) in operators.into_iter().zip([" } else { ", " })"]) {
            self.push(site.operands[0].clone());
            self.write(format_args!(" {operator} "));
            self.copy_part(&site.operands[1], inside);
            self.written.push_str(end);
        }
    }

    /// Writes a return of each value, behind its switch.
    fn return_early(&mut self, live: &[(usize, Number)], values: &[String]) {
        for (position, number) in live {
            let start = self.written.len();
            self.write(format_args!(" if {} {{ return {}; }}", switch(*number), values[*position]));
            self.changed.push(ChangedBytes { range: start..self.written.len(), numbers: vec![*number] });
        }
    }

    /// Evaluates both operands, once.
    fn open_operands(&mut self, site: &Site, inside: &[usize], reference: &str) {
        self.write(format_args!("(match ({reference}"));
        self.copy_part(&site.operands[0], inside);
        self.write(format_args!(", {reference}"));
        self.copy_part(&site.operands[1], inside);
        self.written.push_str(") { (left, right) => ");
    }

    fn alternative(&mut self, number: Number, code: &str) {
        let start = self.written.len();
        self.write(format_args!("if {} {{ {code} }} else ", switch(number)));
        self.changed.push(ChangedBytes { range: start..self.written.len(), numbers: vec![number] });
    }
}

/// Returns the code that asks whether a mutant runs.
fn switch(number: Number) -> String {
    format!("crate::mutant_switch::is_on({number})")
}

fn is_within(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// The module with the switch, for the rewritten crate.
///
/// A process runs one mutant, or none and notes the mutants that it reaches.
pub(crate) const SWITCH: &str = r#"
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

struct Mode {
    number: u32,
    notes: Option<File>,
}

static MODE: OnceLock<Mode> = OnceLock::new();
static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

pub(crate) fn is_on(number: u32) -> bool {
    let mode = MODE.get_or_init(|| Mode {
        number: std::env::var("RHUMB_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0),
        notes: std::env::var_os("RHUMB_MUTANTS_REACHED")
            .and_then(|path| File::options().append(true).create(true).open(path).ok()),
    });
    if let Some(mut notes) = mode.notes.as_ref() {
        if !REACHED[number as usize].swap(true, Ordering::Relaxed) {
            let _ = notes.write_all(&number.to_le_bytes());
        }
    }
    mode.number == number
}
"#;
