//! The text of the man pages beside the flags.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::cli::ExitStatus;

/// The configuration with every key, its default and its meaning.
const EXAMPLE_CONFIGURATION: &str = include_str!("../../../examples/rhumb.yaml");

/// A heading, and terms each with its meaning.
type ManualSection = (&'static str, &'static [(&'static str, &'static str)]);

const MANUAL_SECTIONS: [ManualSection; 4] = [
    (
        "SIGNALS",
        &[
            (
                "SIGTERM, SIGINT",
                "The writes on their way are answered, the rest is left; the end comes within 5 seconds. A second one \
                 ends it at once.",
            ),
            (
                "SIGHUP",
                "rhumb run --config reads its file again. One that is not usable changes nothing. Without --config, \
                 and on a terminal, it ends the program.",
            ),
        ],
    ),
    (
        "FILES",
        &[
            ("/etc/rhumb/rhumb.yaml", "The configuration of rhumb.service; see rhumb.yaml(5)."),
            ("/etc/rhumb/kubeconfig", "The kubeconfig of rhumb.service. Only root needs to read it."),
            ("/etc/rhumb/NAME/", "The same two files for the instance rhumb@NAME.service."),
            ("/run/rhumb/rhumb.sock", "The socket that rhumb status asks. It takes no orders."),
            ("/var/lib/rhumb/", "Caches. Losing them costs a fetch, never an object."),
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            ("KUBECONFIG", "The kubeconfig, where no flag and no file names one."),
            ("STATE_DIRECTORY", "The folder of caches; systemd sets it."),
            ("RHUMB_SOCKET", "The socket of the daemon, for run and for the commands that ask it."),
            (
                "RUNTIME_DIRECTORY",
                "Where the socket is otherwise, and the files of programs that render; systemd sets it.",
            ),
            (
                "XDG_RUNTIME_DIR",
                "Without a service, the socket is in the folder rhumb below it, and the files of programs that \
                 render are in it.",
            ),
            (
                "CREDENTIALS_DIRECTORY",
                "A folder with ssh-key, known-hosts and git-credentials for git servers.",
            ),
            ("NOTIFY_SOCKET, WATCHDOG_USEC", "The socket and the interval of heartbeats; systemd sets them."),
            ("RUST_LOG", "The level of the log, in the form of --log-level."),
            ("NO_COLOR", "Nothing is coloured."),
        ],
    ),
    (
        "SECURITY",
        &[
            (
                "Rights",
                "rhumb rbac prints the minimal roles for what a source holds; rhumb check names what is missing.",
            ),
            (
                "Secrets",
                "Values of Secrets are masked in all that is shown. Keys and tokens for git servers are read by git and \
                 ssh alone.",
            ),
            (
                "The socket",
                "It belongs to the group adm, whose members may read the journal too. A client of it learns the names \
                 of objects and why they are not settled, and can change nothing.",
            ),
        ],
    ),
];

/// Returns the sections on the program's own page, below the commands.
pub(super) fn program_sections() -> String {
    let mut text = String::from(".SH \"EXIT STATUS\"\n");
    for status in ExitStatus::ALL {
        let _ = write!(
            text,
            ".TP\n{}\n{}\n",
            bold_text(&(status as u8).to_string()),
            escape_roff(status.meaning())
        );
    }
    for (heading, terms) in MANUAL_SECTIONS {
        let _ = writeln!(text, ".SH \"{heading}\"");
        for (term, meaning) in terms {
            let _ = write!(text, ".TP\n{}\n{}\n", bold_text(term), escape_roff(meaning));
        }
    }
    text + ".SH \"SEE ALSO\"\n.BR rhumb.yaml (5),\n.BR systemctl (1),\n.BR git (1)\n"
}

/// Returns the text of `--help` below a command's flags, line by line.
pub(super) fn help_after_flags(command: &clap::Command) -> String {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if help.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = help.lines().map(escape_roff).collect();
    format!(".SH NOTES\n.nf\n{}\n.fi\n", lines.join("\n"))
}

/// A key of the configuration, as the example shows it.
pub(super) struct ConfigurationKey {
    /// `Configuration` or `Source`.
    pub(super) kind: String,
    /// Its path, with dots.
    pub(super) name: String,
    /// The value in the example; empty for a mapping.
    value: String,
    /// The comment before it, as running text.
    comment: String,
}

impl ConfigurationKey {
    /// Returns the type of its value.
    pub(super) fn value_type(&self) -> &'static str {
        let value = self.value.as_str();
        let digits = value.trim_end_matches(|c: char| !c.is_ascii_digit());
        let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        match value {
            "" => "mapping",
            "true" | "false" => "boolean",
            _ if value.starts_with('{') => "mapping",
            _ if value.starts_with('[') => "list",
            _ if is_number(value) => "integer",
            _ if value.ends_with('%') => "integer or percentage",
            _ if is_number(digits) && matches!(&value[digits.len()..], "s" | "m" | "h" | "ms") => "duration",
            _ => "string",
        }
    }

    /// Returns its default as the comment names it: `none` where nothing counts, `required` where
    /// it must be there.
    pub(super) fn default(&self) -> String {
        match self.comment.split_once("Default: ") {
            Some((_, default)) => default.trim_end_matches('.').to_owned(),
            None if self.comment.ends_with("Required.") => "required".to_owned(),
            None => String::new(),
        }
    }

    /// Returns what it means, without its default.
    pub(super) fn meaning(&self) -> String {
        let comment = self.comment.split("Default: ").next().unwrap_or_default();
        comment.trim().trim_end_matches("Required.").trim().to_owned()
    }

    /// Returns the example, as code.
    pub(super) fn example_text(&self) -> String {
        if self.value.is_empty() { String::new() } else { format!("`{}`", self.value) }
    }
}

/// Returns each key of the example once, in its order.
pub(super) fn keys() -> Vec<ConfigurationKey> {
    let (_, documents) = EXAMPLE_CONFIGURATION.split_once("\n\n").unwrap_or((EXAMPLE_CONFIGURATION, ""));
    let mut found: Vec<ConfigurationKey> = Vec::new();
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut kind = "";
    let mut known = BTreeSet::new();
    for line in documents.lines() {
        let trimmed = line.trim_start();
        let depth = line.len() - trimmed.len();
        if trimmed.starts_with('#') {
            comment.push(trimmed);
        } else if let Some((key, value)) = trimmed.split_once(':') {
            if key == "kind" {
                kind = value.trim();
            }
            // The first key of a list's entry is as deep as the others of that entry.
            let (key, depth, is_first) = match key.strip_prefix("- ") {
                Some(first) => (first, depth + 2, true),
                None => (key, depth, false),
            };
            path.retain(|(other, _)| *other < depth);
            if is_first
                && let Some((_, list)) = path.last_mut()
                && !list.ends_with("[]")
            {
                list.push_str("[]");
                if let Some(known) = found.last_mut() {
                    known.name.push_str("[]");
                }
            }
            path.push((depth, key.to_owned()));
            let names: Vec<&str> = path.iter().map(|(_, key)| key.as_str()).collect();
            let name = names.join(".");
            // A second document of a kind shows the same keys.
            if !matches!(name.as_str(), "apiVersion" | "kind") && known.insert((kind, name.clone())) {
                found.push(ConfigurationKey {
                    kind: kind.to_owned(),
                    name,
                    value: value.trim().to_owned(),
                    comment: join_lines(comment.iter().copied()),
                });
            }
            comment.clear();
        } else if trimmed.is_empty() || trimmed == "---" {
            comment.clear();
        }
    }
    // The keys of a kind are together, also where its documents do not.
    found.sort_by(|one, other| one.kind.cmp(&other.kind));
    found
}

/// Returns `rhumb.yaml(5)`: each key of the example with its value, and what its comment says.
pub(super) fn configuration() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH RHUMB.YAML 5 \"\" \"rhumb {version}\" rhumb\n.SH NAME\nrhumb.yaml \\- the \
         configuration of rhumb\n.SH DESCRIPTION\n"
    );
    let (head, _) = EXAMPLE_CONFIGURATION.split_once("\n\n").unwrap_or((EXAMPLE_CONFIGURATION, ""));
    let _ = writeln!(text, "{}", escape_roff(&join_lines(head.lines())));
    let mut kind = String::new();
    for key in keys() {
        if key.kind != kind {
            kind.clone_from(&key.kind);
            let _ = writeln!(text, ".SH \"KIND {}\"", kind.to_uppercase());
        }
        let _ = write!(text, ".TP\n{}{}\n", bold_text(&key.name), escape_roff(&escape(&key.value)));
        let _ = writeln!(text, "{}", escape_roff(&key.comment));
    }
    text + ".SH \"SEE ALSO\"\n.BR rhumb (8)\n"
}

fn escape(value: &str) -> String {
    let value = value.trim();
    if value.is_empty() { String::new() } else { format!(": {value}") }
}

/// Joins the lines of a comment to running text.
fn join_lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(|line| line.trim_start_matches('#').trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn bold_text(text: &str) -> String {
    format!("\\fB{}\\fR", escape_roff(text))
}

/// Escapes a text so that nothing in it is a request or an escape of roff.
fn escape_roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\*(Aq").replace('`', "\\(ga");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_roff() {
        assert_eq!(escape_roff(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(escape_roff("'a' \\n --b"), "\\*(Aqa\\*(Aq \\en \\-\\-b");
    }

    #[test]
    fn every_key_of_the_example_has_an_entry() {
        let text = configuration();
        for key in [
            "\\fBapi.qps\\fR: 50",
            "\\fBbudget.maxWorkloads\\fR: 3",
            "\\fBspec.git.url\\fR",
            "\\fBresync\\fR: 5m",
            "\\fBnotify[].slack.urlFile\\fR",
            "\\fBnotify[].on\\fR",
            "\\fBnotify[].webhook.urlFile\\fR",
            "\\fBspec.substituteFrom[].kind\\fR: ConfigMap",
        ] {
            assert!(text.contains(key), "{key} is not in\n{text}");
        }
        assert_eq!(text.matches("\\fBspec.git.url\\fR").count(), 1);
        assert_eq!(text.matches("KIND SOURCE").count(), 1);
    }

    #[test]
    fn every_key_says_its_default_or_that_it_is_required() {
        let without: Vec<String> = keys()
            .into_iter()
            .filter(|key| key.default().is_empty() && !key.value.is_empty())
            .map(|key| key.name)
            .collect();
        assert_eq!(without, Vec::<String>::new());
    }
}
