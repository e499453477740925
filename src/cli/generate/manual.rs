//! The text of the man pages beside the flags.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The configuration with every key, its default and its meaning.
const EXAMPLE: &str = include_str!("../../../examples/rhumb.yaml");

/// A heading, and terms each with its meaning.
type ManualSection = (&'static str, &'static [(&'static str, &'static str)]);

const SECTIONS: [ManualSection; 5] = [
    (
        "EXIT STATUS",
        &[
            ("0", "Done, or no difference."),
            ("1", "Something differs, waits, was refused or did not parse."),
            ("2", "Wrong usage, or nothing could be read."),
            ("3", "The API server or the git server is not reachable, or denies access."),
            ("4", "A guard says no: deletions wait for rhumb prune confirm."),
            ("5", "Timed out: not all is healthy, or an order is not acknowledged yet."),
            ("78", "The configuration is wrong; systemd does not start the service again."),
            ("130", "A second signal ended it at once, whatever was on its way."),
        ],
    ),
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
            ("/etc/rhumb/kubeconfig", "How rhumb.service reaches the cluster. Only root needs to read it."),
            ("/etc/rhumb/NAME/", "The same two files for the instance rhumb@NAME.service."),
            ("/run/rhumb/rhumb.sock", "The socket that rhumb status asks. It takes no orders."),
            ("/var/lib/rhumb/", "Caches. Losing them costs a fetch, never an object."),
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            ("KUBECONFIG", "The kubeconfig, where no flag and no file names one."),
            ("STATE_DIRECTORY", "Where caches live; systemd sets it."),
            ("RHUMB_SOCKET", "The socket of the daemon, for run and for the commands that ask it."),
            ("RUNTIME_DIRECTORY", "Where the socket is otherwise; systemd sets it."),
            ("XDG_RUNTIME_DIR", "Without a service, the socket is in the folder rhumb below it."),
            (
                "CREDENTIALS_DIRECTORY",
                "A folder with ssh-key, known-hosts and git-credentials for git servers.",
            ),
            ("NOTIFY_SOCKET, WATCHDOG_USEC", "How systemd hears of it."),
            ("RUST_LOG", "What is logged, as --log-level."),
            ("NO_COLOR", "Nothing is coloured."),
        ],
    ),
    (
        "SECURITY",
        &[
            (
                "Rights",
                "rhumb rbac prints the least roles for what a source holds; rhumb check names what is missing.",
            ),
            (
                "Secrets",
                "Values of Secrets are masked in all that is shown. Keys and tokens for git servers are read by git and \
                 ssh alone.",
            ),
            (
                "The socket",
                "It belongs to the group adm, whose members may read the journal too. Whoever may connect learns the \
                 names of objects and why they are not as wanted, and can change nothing.",
            ),
        ],
    ),
];

/// Returns the sections on the program's own page, below the commands.
pub(super) fn program() -> String {
    let mut text = String::new();
    for (heading, terms) in SECTIONS {
        let _ = writeln!(text, ".SH \"{heading}\"");
        for (term, meaning) in terms {
            let _ = write!(text, ".TP\n{}\n{}\n", bold(term), escaped(meaning));
        }
    }
    text + ".SH \"SEE ALSO\"\n.BR rhumb.yaml (5),\n.BR systemctl (1),\n.BR git (1)\n"
}

/// Returns the text of `--help` below a command's flags, line by line.
pub(super) fn help_after_flags(command: &clap::Command) -> String {
    let told = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if told.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = told.lines().map(escaped).collect();
    format!(".SH NOTES\n.nf\n{}\n.fi\n", lines.join("\n"))
}

/// `rhumb.yaml(5)`: each key of the example with its default, and what its comment says.
pub(super) fn configuration() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH RHUMB.YAML 5 \"\" \"rhumb {version}\" rhumb\n.SH NAME\nrhumb.yaml \\- the \
         configuration of rhumb\n.SH DESCRIPTION\n"
    );
    let (head, documents) = EXAMPLE.split_once("\n\n").unwrap_or((EXAMPLE, ""));
    let _ = writeln!(text, "{}", escaped(&joined(head.lines())));
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut kind = "";
    let mut told = BTreeSet::new();
    for line in documents.lines() {
        let trimmed = line.trim_start();
        let depth = line.len() - trimmed.len();
        if trimmed.starts_with('#') {
            comment.push(trimmed);
        } else if let Some((key, value)) = trimmed.split_once(':') {
            if key == "kind" && kind != value.trim() {
                kind = value.trim();
                let _ = writeln!(text, ".SH \"KIND {}\"", kind.to_uppercase());
            }
            path.retain(|(other, _)| *other < depth);
            path.push((depth, key.trim_start_matches("- ").to_owned()));
            let names: Vec<&str> = path.iter().map(|(_, key)| key.as_str()).collect();
            let name = names.join(".");
            // A second document of a kind shows the same keys.
            let is_new = !matches!(key, "apiVersion" | "kind") && told.insert((kind, name.clone()));
            if is_new {
                let _ = write!(text, ".TP\n{}{}\n", bold(&name), escaped(&escape(value)));
                let _ = writeln!(text, "{}", escaped(&joined(comment.iter().copied())));
            }
            comment.clear();
        } else if trimmed.is_empty() || trimmed == "---" {
            comment.clear();
        }
    }
    text + ".SH \"SEE ALSO\"\n.BR rhumb (8)\n"
}

fn escape(value: &str) -> String {
    let value = value.trim();
    if value.is_empty() { String::new() } else { format!(": {value}") }
}

/// Comments as running text.
fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(|line| line.trim_start_matches('#').trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped(text))
}

/// Nothing in it is a request or an escape of roff.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\*(Aq").replace('`', "\\(ga");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_roff() {
        assert_eq!(escaped(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(escaped("'a' \\n --b"), "\\*(Aqa\\*(Aq \\en \\-\\-b");
    }

    #[test]
    fn every_key_of_the_example_has_an_entry() {
        let text = configuration();
        for key in [
            "\\fBapi.qps\\fR: 50",
            "\\fBbudget.maxWorkloads\\fR: 3",
            "\\fBspec.git.url\\fR",
            "\\fBresync\\fR: 5m",
        ] {
            assert!(text.contains(key), "{key} is not in\n{text}");
        }
        assert_eq!(text.matches("\\fBspec.git.url\\fR").count(), 1);
        assert_eq!(text.matches("KIND SOURCE").count(), 1);
    }
}
