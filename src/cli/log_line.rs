//! One line of the log: what people read of it, and its form in JSON.

use std::borrow::Cow;
use std::fmt;

use tracing::field::{Field, Visit};
use tracing_subscriber::field::{RecordFields, VisitOutput};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};

use super::overview::clean_text;
use crate::render::sanitize;
use crate::report::MACHINE_FIELDS;

/// Returns a line as the log has them in JSON. It takes no way through the log: what panics may be
/// the log, and an error may be one of its level.
pub(super) fn json_line(message: &str, hints: &[String]) -> String {
    let timestamp = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    let mut line =
        serde_json::json!({"timestamp": timestamp, "level": "ERROR", "message": message.trim_end()});
    if !hints.is_empty() {
        line["hint"] = hints.join("; ").into();
    }
    format!("{line}\n")
}

/// Fields as text, without those that are for machines, in one line: what others wrote neither
/// begins another one nor steers a terminal.
pub(super) struct TextFields;

impl<'writer> FormatFields<'writer> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut visitor = TextFieldVisitor(DefaultVisitor::new(writer, true));
        fields.record(&mut visitor);
        visitor.0.finish()
    }
}

struct TextFieldVisitor<'a>(DefaultVisitor<'a>);

impl Visit for TextFieldVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if !MACHINE_FIELDS.contains(&field.name()) {
            let text = format!("{value:?}");
            // Text that is safe to print stays as it is, including blanks.
            let text = if matches!(sanitize(&text), Cow::Borrowed(_)) { text } else { clean_text(&text) };
            self.0.record_debug(field, &format_args!("{text}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        // In quotes, but for the message.
        if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let causes = std::iter::successors(value.source(), |error| error.source());
        let text = causes.fold(value.to_string(), |text, cause| format!("{text}: {cause}"));
        self.record_debug(field, &format_args!("{text}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::Registry;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::engine::{Reason, RefusalCause, RejectedContent, RejectionOutcome};
    use crate::object::{GroupKind, ObjectId, Revision};
    use crate::report::{self, EventReason, ObjectEvent, Outcome};

    /// A collector of what is written.
    #[derive(Clone, Default)]
    struct LineCapture(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LineCapture {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the text lines that are logged while `done` runs.
    fn written(done: impl FnOnce()) -> String {
        let page = LineCapture::default();
        let to = page.clone();
        let lines = tracing_subscriber::fmt::layer().with_writer(move || to.clone());
        let lines = lines.with_ansi(false).without_time().with_target(false).fmt_fields(TextFields);
        tracing::subscriber::with_default(Registry::default().with(lines), done);
        let written = page.0.lock().unwrap().clone();
        String::from_utf8(written).unwrap()
    }

    // Names of roles may hold anything, and so may what a webhook answers.
    #[test]
    fn nobody_else_begins_a_line() {
        let forged = "x\n2030-01-02T03:04:05Z  INFO all is well\r\u{9b}2J\u{1b}[2J\u{202e}";
        let shown = "x 2030-01-02T03:04:05Z INFO all is well \u{fffd}2J\u{fffd}[2J\u{fffd}";
        let id = ObjectId::new(&GroupKind::new("rbac.authorization.k8s.io", "Role"), Some("shop"), forged);
        let outcome = Outcome::Refused(Reason::Refused(RefusalCause::Message(forged.into()), None));
        let event = ObjectEvent {
            id,
            outcome,
            reason: None,
            source: Some(forged.into()),
            revision: None,
            known: None,
        };
        let line = written(|| report::log(&event));
        assert_eq!(line, format!(" WARN refused: {shown} object=Role shop/{shown} source={shown}\n"));
        let error = io::Error::other(forged);
        let error: &(dyn std::error::Error + 'static) = &error;
        let line = written(|| tracing::warn!(error, text = forged, "a  b"));
        assert_eq!(line.lines().count(), 1, "{line:?}");
        assert!(line.starts_with(&format!(" WARN a  b error={shown} text=\"x\\n")), "{line:?}");
    }

    #[test]
    fn a_line_is_for_people() {
        #[track_caller]
        fn check(event: ObjectEvent, expected: &str) {
            assert_eq!(written(|| report::log(&event)).trim(), expected);
        }
        let id = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
        let event = ObjectEvent {
            id,
            outcome: Outcome::Configured,
            reason: Some(EventReason::Configured),
            source: Some("shop".into()),
            revision: Some(Revision::new("1a2b")),
            known: None,
        };
        let object = "object=Deployment shop/web";
        check(event.clone(), &format!("INFO configured {object} source=shop revision=1a2b"));
        let repaired =
            ObjectEvent { reason: Some(EventReason::DriftRepaired), revision: None, ..event.clone() };
        check(repaired, &format!("INFO drift repaired {object} source=shop"));
        // As long as pods may say it, and once.
        let rejected = RejectedContent {
            cause: format!("revision 1a2b failed: {}", "x".repeat(700)).into(),
            outcome: RejectionOutcome::RolledBack("3c4d".into()),
        };
        let failed = ObjectEvent {
            outcome: Outcome::Refused(Reason::Rejected(rejected)),
            reason: None,
            ..event.clone()
        };
        let again =
            written(|| report::log(&ObjectEvent { known: Some("x".repeat(700).into()), ..failed.clone() }));
        let words = " WARN failed: revision 1a2b failed: …; it is back at revision 3c4d object=";
        assert!(again.starts_with(words), "{again}");
        let line = written(|| report::log(&failed));
        let words = line.split(" object=").next().unwrap_or_default();
        assert!(
            words.chars().count() <= 6 + 200 && words.starts_with(" WARN failed: revision 1a2b failed: x"),
            "{line}"
        );
        assert!(words.ends_with("it is back at revision 3c4d"), "{line}");
        let refused = Outcome::Refused(Reason::NotAdopted);
        let words = refused.to_string();
        check(
            ObjectEvent { outcome: refused, source: None, revision: None, ..event },
            &format!("WARN {words} {object}"),
        );
    }
}
