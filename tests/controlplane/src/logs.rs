//! The part of a log that explains a failure.

use std::fs;
use std::path::Path;

/// The maximum number of lines of a log shown.
const LINES: usize = 20;
/// The maximum number of characters of a line shown.
const WIDTH: usize = 400;
/// The number of last lines in which errors are looked for.
const RECENT: usize = 300;

/// Returns the end of a log: the recent lines that report errors, or else just the last lines.
pub(crate) fn tail(path: &Path) -> String {
    match fs::read(path) {
        Ok(bytes) => explain(&String::from_utf8_lossy(&bytes)),
        Err(error) => format!("  ({}: {error})", path.display()),
    }
}

fn explain(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let recent = &lines[lines.len().saturating_sub(RECENT)..];
    let errors: Vec<&str> = recent.iter().copied().filter(|line| reports_error(line)).collect();
    let chosen = if errors.is_empty() { recent } else { &errors[..] };
    if chosen.is_empty() {
        return "  (the log is empty)".to_owned();
    }
    let shown = &chosen[chosen.len().saturating_sub(LINES)..];
    shown
        .iter()
        .map(|line| format!("  {}", line.chars().take(WIDTH).collect::<String>()))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Knows errors of klog (`E1121 11:20:00.1 …`), of JSON logs and of plain text.
fn reports_error(line: &str) -> bool {
    let mut start = line.chars();
    let klog = matches!(start.next(), Some('E' | 'F')) && start.take(4).all(|c| c.is_ascii_digit());
    klog || line.contains("\"level\":\"ERROR\"")
        || ["error", "fatal", "panic"].iter().any(|level| line.contains(&format!("\"level\":\"{level}\"")))
        || ["Error: ", "error: ", "panic: ", "fatal error: "].iter().any(|word| line.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_before_the_last_lines() {
        for (text, expected) in [
            ("", "  (the log is empty)"),
            ("a\nb\n", "  a\n  b"),
            ("I1121 ok\nE1121 11:00 bad\nI1121 ok\n", "  E1121 11:00 bad"),
            ("usage\nError: unknown flag: --x\nusage\n", "  Error: unknown flag: --x"),
            ("Everything\nF is no level\n", "  Everything\n  F is no level"),
        ] {
            assert_eq!(explain(text), expected);
        }
    }
}
