//! The pages of `docs/reference/`, each from the one registry in the code.
//!
//! **Invariant:** does no I/O: a page is a text.

use std::fmt::Write as _;

use serde_json::Value;

use super::manual;
use crate::cli::ExitStatus;
use crate::engine::{AnnotationEffect, CauseCode, PruneTiming, ReasonCode, ReconcilePolicy, TOOL_WORDS};
use crate::object::annotations::{ANNOTATIONS, AnnotationPlace, PRUNE, RECONCILE, RECREATE};
use crate::report::{CONDITION_REASONS, EventReason, METRICS, MetricType, PHASES};
use crate::serve;

/// The line by which readers know a generated page.
const GENERATED_LINE: &str =
    "<!-- `rhumb generate reference docs/reference` writes this page. Change the code instead. -->";

/// Returns all pages: file name and text.
pub(super) fn pages(command: &clap::Command) -> Vec<(&'static str, String)> {
    vec![
        ("annotations.md", page("Annotations", &annotations())),
        ("cli.md", page("Command line", &command_line(command))),
        ("configuration.md", page("Configuration", &configuration())),
        ("events-and-conditions.md", page("Phases, events and conditions", &events())),
        ("exit-codes.md", page("Exit codes", &exit_codes())),
        ("http-api.md", page("HTTP API", &http_api())),
        ("metrics.md", page("Metrics", &metrics())),
    ]
}

fn page(title: &str, body: &str) -> String {
    format!("# {title}\n\n{GENERATED_LINE}\n\n{}\n", wrap_prose(body.trim_end()))
}

/// The maximum number of characters in a line of prose, as in the pages that people write.
const PROSE_WIDTH: usize = 100;

/// Returns a page with its paragraphs wrapped. Code, headings and rows of tables stay as they are.
fn wrap_prose(body: &str) -> String {
    let mut is_code = false;
    let lines = body.lines().map(|line| {
        is_code ^= line.starts_with("```");
        if is_code || line.starts_with("```") || line.starts_with(['#', '|']) {
            line.to_owned()
        } else {
            wrap_paragraph(line)
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn wrap_paragraph(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut()
            && (line.is_empty() || line.chars().count() + 1 + word.chars().count() <= PROSE_WIDTH)
        {
            let space = if line.is_empty() { "" } else { " " };
            line.push_str(space);
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// Returns a table; a `|` in a cell does not end it.
fn markdown_table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let row = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = row(head.iter().map(|&cell| cell.to_owned()).collect());
    text.push_str(&row(vec!["---".to_owned(); head.len()]));
    rows.into_iter().for_each(|cells| text.push_str(&row(cells)));
    text
}

fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

fn annotations() -> String {
    let mut text = String::new();
    let sections = [
        (
            AnnotationPlace::Manifest,
            "In manifests",
            "Write these in the repository. A value that rhumb cannot read holds the object back.",
        ),
        (
            AnnotationPlace::LiveObject,
            "On live objects",
            "All who may write an object may set these on it. They only ever reduce what rhumb does to that object.",
        ),
        (AnnotationPlace::Record, "Written by rhumb", "Do not write these yourself."),
        (
            AnnotationPlace::Inventory,
            "On rhumb's own ConfigMaps",
            "They are in the namespace of rhumb, `rhumb-system` unless the configuration says otherwise.",
        ),
    ];
    for (place, heading, lead) in sections {
        let entries = ANNOTATIONS.iter().filter(|entry| entry.place == place);
        let rows = entries.map(|entry| {
            vec![code(entry.key), entry.values.into(), entry.default.into(), entry.meaning.into()]
        });
        let _ = write!(text, "## {heading}\n\n{lead}\n\n");
        text.push_str(&markdown_table(&["key", "values", "default", "meaning"], rows));
        text.push('\n');
    }
    text.push_str(
        "## Keys of other tools\n\nA key of Argo CD or Flux that is not listed, or a value that is not listed, \
         holds its object back.\n\n",
    );
    let rows = TOOL_WORDS.iter().flat_map(|word| {
        let is_alone = word.meanings().count() == 1;
        word.meanings().map(move |(value, effect)| {
            let value = match value {
                "*" if is_alone => "any".to_owned(),
                "*" => "any other".to_owned(),
                "" => "empty".to_owned(),
                other => code(other),
            };
            vec![code(word.key), value, effect_text(effect)]
        })
    });
    text.push_str(&markdown_table(&["key", "value", "effect"], rows));
    text
}

/// Returns the effect of another tool's key, as Markdown.
fn effect_text(effect: AnnotationEffect) -> String {
    match effect {
        AnnotationEffect::Keep(PruneTiming::OnConfirmation) => {
            "its deletion waits for `rhumb prune confirm`".to_owned()
        }
        AnnotationEffect::Keep(_) => format!("as `{PRUNE}: never`"),
        AnnotationEffect::Leave(ReconcilePolicy::OnlyCreate) => {
            "created where it is missing, then left alone".to_owned()
        }
        AnnotationEffect::Leave(_) => format!("as `{RECONCILE}: disabled`"),
        AnnotationEffect::Recreate => format!("as `{RECREATE}: \"true\"`"),
        AnnotationEffect::Same(key) => format!("as `{key}`"),
        AnnotationEffect::Ignored(why) => format!("ignored: {why}"),
        AnnotationEffect::HeldBack(why) => format!("the object is held back: the value {why}"),
    }
}

fn command_line(command: &clap::Command) -> String {
    let mut text = String::from("`rhumb COMMAND --help` prints the same.\n\n");
    describe(&mut text, command, "rhumb");
    text
}

/// Adds a command, and its subcommands after it.
fn describe(text: &mut String, command: &clap::Command, name: &str) {
    let mut shown = command.clone().bin_name(name).term_width(100);
    let help = shown.render_long_help().to_string();
    let _ = write!(text, "## {name}\n\n```text\n{}\n```\n\n", help.trim_end());
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        describe(text, subcommand, &format!("{name} {}", subcommand.get_name()));
    }
}

fn configuration() -> String {
    let mut text = String::from(
        "The file of `rhumb run --config FILE`: Kubernetes-style YAML, with at most one document of kind \
         Configuration and one of kind Source for each source. An unknown key is an error with its line. Relative \
         paths start at the file, `~/` at the home directory. `NAME[]` is an entry of the list NAME. \
         `examples/rhumb.yaml` has all keys in one file.\n\n",
    );
    let mut kind = String::new();
    let mut rows = Vec::new();
    for key in manual::keys() {
        if key.kind != kind {
            finish(&mut text, &kind, &mut rows);
            kind.clone_from(&key.kind);
        }
        rows.push(vec![
            code(&key.name),
            key.value_type().to_owned(),
            key.default(),
            key.meaning(),
            key.example_text(),
        ]);
    }
    finish(&mut text, &kind, &mut rows);
    text.push_str(
        "## Kind Source in the cluster\n\nAn object of kind Source in the namespace of rhumb has the same spec, and the \
         key below. `customSources` says which of these objects are followed. Their `spec.git.verify.keys` is a name \
         from `customSources.keys`.\n\n",
    );
    let row = [
        "`spec.deletionPolicy`",
        "string",
        "Orphan",
        "The fate of the objects when the Source is deleted. `Orphan` leaves them as they are. `Delete` deletes them \
         before the Source goes, without the question how many; kinds that wait for a confirmation still do. \
         In a file it is an error.",
        "`Orphan`",
    ];
    let rows = [row.map(str::to_owned).to_vec()];
    text.push_str(&markdown_table(&["key", "type", "default", "meaning", "example"], rows));
    text
}

fn finish(text: &mut String, kind: &str, rows: &mut Vec<Vec<String>>) {
    if !kind.is_empty() {
        let _ = write!(text, "## Kind {kind}\n\n");
        text.push_str(&markdown_table(&["key", "type", "default", "meaning", "example"], rows.drain(..)));
        text.push('\n');
    }
}

fn events() -> String {
    let mut text = String::from("## Phases\n\nEach object is in one phase.\n\n");
    let rows = PHASES.map(|phase| vec![code(&phase.to_string()), phase.description().into()]);
    text.push_str(&markdown_table(&["phase", "meaning"], rows));
    text.push_str(
        "\n## Events\n\nAn event is a line of the log and of `rhumb events`. Most are a Kubernetes Event too: on \
         the object, on the ConfigMap of its source, or on both. The journal finds an event by `MESSAGE_ID`, which never \
         changes.\n\n",
    );
    let rows = EventReason::ALL.map(|reason| {
        let kind = if reason.is_warning() { "Warning" } else { "Normal" };
        let subject = match reason {
            _ if reason.is_logged_only() => "none",
            _ if reason.is_about_source() => "the source",
            _ => "the object and the source",
        };
        vec![
            code(&reason.to_string()),
            kind.into(),
            subject.into(),
            reason.description().into(),
            code(reason.message_id()),
        ]
    });
    text.push_str(&markdown_table(&["reason", "type", "Kubernetes Event on", "meaning", "MESSAGE_ID"], rows));
    text.push_str(
        "\n## Conditions of a Source\n\nAn object of kind `Source` has the conditions `Ready`, `Reconciling` and \
         `Stalled`, as kstatus knows them. The condition that is true has one of these reasons.\n\n",
    );
    let rows = CONDITION_REASONS
        .map(|entry| vec![code(entry.condition), code(entry.reason), entry.meaning.to_owned()]);
    text.push_str(&markdown_table(&["condition", "reason", "meaning"], rows));
    text + &reason_codes()
}

/// Returns the tables of the codes that the JSON has beside the sentence of a reason.
fn reason_codes() -> String {
    let mut text = String::from(
        "\n## Codes of reasons\n\nThe JSON of the status, of plans and of events has a `code` beside the sentence of \
         each reason that rhumb itself has. A code never changes its meaning. `details` has the values of the \
         sentence. The schema `ReasonDetails` in `/openapi.json` describes them.\n\n",
    );
    let rows = ReasonCode::ALL.iter().map(|one| vec![code(one.word()), one.description().into()]);
    text.push_str(&markdown_table(&["code", "meaning"], rows));
    text.push_str("\n## Causes inside reasons\n\n`details.cause` has one of these codes, where a reason has several causes.\n\n");
    let rows = CauseCode::ALL.iter().map(|one| vec![code(one.word()), one.description().into()]);
    text.push_str(&markdown_table(&["cause", "meaning"], rows));
    text
}

fn exit_codes() -> String {
    let rows = ExitStatus::ALL.map(|status| vec![code(&(status as u8).to_string()), status.meaning().into()]);
    markdown_table(&["code", "meaning"], rows)
}

fn http_api() -> String {
    let document: Value = serde_json::from_str(serve::OPENAPI_DOCUMENT).unwrap_or_default();
    let info = document["info"]["description"].as_str().unwrap_or_default();
    let mut text = format!("{info}\n\nThe whole document, with all schemas, is at `/openapi.json`.\n\n");
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let summary = operation["summary"].as_str().unwrap_or_default();
            let _ = write!(text, "## {} {path}\n\n{summary}.\n\n", method.to_uppercase());
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let rows: Vec<Vec<String>> = parameters
                .map(|one| {
                    let cell = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
                    vec![code(&cell("name")), cell("in"), cell("description")]
                })
                .collect();
            if !rows.is_empty() {
                text.push_str(&markdown_table(&["parameter", "in", "meaning"], rows));
                text.push('\n');
            }
            let answers = operation["responses"].as_object().into_iter().flatten();
            let rows = answers.map(|(status, answer)| {
                vec![code(status), answer["description"].as_str().unwrap_or_default().to_owned()]
            });
            text.push_str(&markdown_table(&["status", "meaning"], rows));
            text.push('\n');
        }
    }
    text
}

fn metrics() -> String {
    let mut text = String::from(
        "Labels are names of sources, phases, kinds and codes, never those of objects: the number of series does \
         not grow with the number of objects. Counters of a source begin at 0 when the source comes.\n\n",
    );
    let rows = METRICS.map(|metric| {
        let kind = match metric.kind {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
            MetricType::Info => "info",
        };
        let labels: Vec<String> = metric.labels.iter().map(|label| code(label)).collect();
        vec![code(metric.name), kind.into(), labels.join(", "), format!("{}.", metric.help)]
    });
    text.push_str(&markdown_table(&["metric", "type", "labels", "meaning"], rows));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_and_nothing_else() {
        let word = "abcdefghi";
        let long = [word; 25].join(" ");
        let ten = [word; 10].join(" ");
        let wrapped = format!("{ten}\n{ten}\n{}", [word; 5].join(" "));
        assert_eq!(wrap_prose(&long), wrapped);
        for kept in
            [format!("| {long} |"), format!("# {long}"), format!("```text\n{long}\n```"), String::new()]
        {
            assert_eq!(wrap_prose(&kept), kept);
        }
        assert_eq!(wrap_prose(&format!("a\n\n{long}")), format!("a\n\n{wrapped}"));
    }
}
