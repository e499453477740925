//! The findings of one file. They are collected while it is read, and become diagnostics at its
//! end, when it is known which lines may be shown.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::text;
use super::tree::{DocumentFault, TextMark};
use crate::object::{
    Diagnostic, DiagnosticCode, ManifestOrigin, Severity, count_text, truncate_message, verb_to_be,
};

/// The code of a key that is given twice in a mapping.
pub(super) const DUPLICATE_KEY: DiagnosticCode = "duplicate-key";

/// More findings than this in one file are only counted.
const MAX_FINDINGS: usize = 200;

/// A line is shown up to this many characters after the fault.
const MAX_CHARS_AFTER_FAULT: usize = 120;

/// The number of characters before the fault beyond which nothing of a line is shown.
const MAX_CHARS_BEFORE_FAULT: usize = 4000;

/// One finding before its file is done.
pub(super) struct ManifestFinding {
    mark: TextMark,
    severity: Severity,
    code: DiagnosticCode,
    message: String,
    /// Continues the message where no Secret is at stake.
    detail: Option<String>,
    hint: Option<String>,
}

impl ManifestFinding {
    pub(super) fn error(mark: TextMark, code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self {
            mark,
            severity: Severity::Error,
            code,
            message: truncate_message(message.into()),
            detail: None,
            hint: None,
        }
    }

    pub(super) fn warning(mark: TextMark, code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(mark, code, message) }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(truncate_message(hint.into()));
        self
    }

    /// Adds what must not be shown of a Secret.
    pub(super) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(truncate_message(detail.into()));
        self
    }
}

impl From<DocumentFault> for ManifestFinding {
    fn from(fault: DocumentFault) -> Self {
        let finding = Self::error(fault.mark, fault.code, fault.message);
        match fault.hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        }
    }
}

/// The findings of a file so far.
pub(super) struct FileFindings {
    file: Arc<str>,
    document: u32,
    secret: HashSet<u32>,
    secret_file: bool,
    tolerates_duplicate_keys: bool,
    list: Vec<(u32, ManifestFinding)>,
    errors: u64,
    left_out: u64,
}

impl FileFindings {
    pub(super) fn of(file: &Arc<str>) -> Self {
        Self {
            file: file.clone(),
            document: 0,
            secret: HashSet::new(),
            secret_file: false,
            tolerates_duplicate_keys: false,
            list: Vec::new(),
            errors: 0,
            left_out: 0,
        }
    }

    /// Counts findings from here on to another document.
    pub(super) fn begin_document(&mut self) {
        self.document += 1;
    }

    /// Shows no line of a document that is or may be a Secret.
    pub(super) fn keep_secret(&mut self) {
        self.secret.insert(self.document);
    }

    /// Shows no line of the whole file, where documents may share a line.
    pub(super) fn keep_file_secret(&mut self) {
        self.secret_file = true;
    }

    /// Takes a key that is given twice for a warning: its last value counts.
    pub(super) fn tolerate_duplicate_keys(&mut self) {
        self.tolerates_duplicate_keys = true;
    }

    pub(super) fn add(&mut self, finding: impl Into<ManifestFinding>) {
        let mut finding = finding.into();
        if self.tolerates_duplicate_keys && finding.code == DUPLICATE_KEY {
            finding.severity = Severity::Warning;
        }
        self.errors += u64::from(finding.severity == Severity::Error);
        // The first error is never crowded out by warnings.
        if self.list.len() < MAX_FINDINGS || (finding.severity == Severity::Error && self.errors == 1) {
            self.list.push((self.document, finding));
        } else {
            self.left_out += 1;
        }
    }

    /// Returns whether what comes is only counted, so that its place is of no use.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MAX_FINDINGS && self.errors > 0
    }

    /// Counts an error and says so, where nothing more of it would be shown.
    pub(super) fn count_if_full(&mut self) -> bool {
        let full = self.is_full();
        self.errors += u64::from(full);
        self.left_out += u64::from(full);
        full
    }

    /// Returns how many errors there are so far.
    pub(super) fn errors(&self) -> u64 {
        self.errors
    }

    /// Returns the diagnostics, in the order of their lines.
    pub(super) fn into_diagnostics(mut self, text: &str) -> Vec<Diagnostic> {
        self.keep_within(text);
        self.list.sort_by_key(|(_, finding)| finding.mark);
        self.drop_lesser();
        let excerpts = self.excerpts(text);
        let mut diagnostics: Vec<_> = std::mem::take(&mut self.list)
            .into_iter()
            .map(|(document, finding)| {
                let excerpt = excerpts.get(&finding.mark.line).copied();
                self.diagnostic(document, finding, excerpt)
            })
            .collect();
        if self.left_out > 0 {
            let (count, verb) = (count_text(self.left_out, "more finding"), verb_to_be(self.left_out));
            let message = format!("{count} in this file {verb} not shown");
            let severity = if self.errors > 0 { Severity::Error } else { Severity::Warning };
            let diagnostic = Diagnostic::file_error(self.file.clone(), "more-findings", message);
            diagnostics.push(Diagnostic { severity, ..diagnostic });
        }
        diagnostics
    }

    /// Moves what is behind the end of a text to that end: the reader ends its last line by itself.
    fn keep_within(&mut self, text: &str) {
        if self.list.is_empty() {
            return;
        }
        let last = text::line_breaks(text) + 1;
        for (_, finding) in self.list.iter_mut().filter(|(_, finding)| finding.mark.line > last) {
            let characters = text::lines(text).last().unwrap_or_default().chars().count();
            let column = u32::try_from(characters).map_or(u32::MAX, |characters| characters + 1);
            finding.mark = TextMark { line: last, column };
        }
    }

    /// Leaves out what only explains how a value was read, where the value itself is refused.
    fn drop_lesser(&mut self) {
        let refused: HashSet<TextMark> = self
            .list
            .iter()
            .filter(|(_, finding)| finding.code == "not-text")
            .map(|(_, finding)| finding.mark)
            .collect();
        self.list.retain(|(_, finding)| {
            !(matches!(finding.code, "old-boolean" | "leading-zero") && refused.contains(&finding.mark))
        });
    }

    fn diagnostic(&self, document: u32, finding: ManifestFinding, excerpt: Option<&str>) -> Diagnostic {
        let TextMark { line, column } = finding.mark;
        let secret = self.secret_file || self.secret.contains(&document);
        let detail = finding.detail.filter(|_| !secret).unwrap_or_default();
        Diagnostic {
            origin: ManifestOrigin::new(self.file.clone(), line, column),
            severity: finding.severity,
            code: finding.code,
            message: finding.message + &detail,
            hint: finding.hint,
            excerpt: excerpt
                .filter(|_| !secret && column as usize <= MAX_CHARS_BEFORE_FAULT)
                .map(|line| line.chars().take(column as usize + MAX_CHARS_AFTER_FAULT).collect()),
        }
    }

    /// Returns the text of each line that has a finding.
    fn excerpts<'t>(&self, text: &'t str) -> BTreeMap<u32, &'t str> {
        let mut wanted = self.list.iter().map(|(_, finding)| finding.mark.line).peekable();
        let mut found = BTreeMap::new();
        if wanted.peek().is_none() {
            return found;
        }
        for (line, number) in text::lines(text).zip(1..) {
            while wanted.next_if(|want| *want < number).is_some() {}
            match wanted.peek() {
                Some(&want) if want == number => {
                    found.insert(number, line);
                }
                Some(_) => {}
                None => break,
            }
        }
        found
    }
}
