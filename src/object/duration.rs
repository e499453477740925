//! Lengths of time as Kubernetes' own configuration writes them: `90s`, `5m`, `1h30m`, `500ms`.

use std::time::Duration;

use jiff::fmt::friendly::{Designator, Spacing, SpanParser, SpanPrinter};

/// Reads `90s`, `5m`, `1h30m`, `500ms` or `0s`; none for any other text.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    // jiff's friendly form also knows words, signs, spaces, days and years.
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".hmsun".contains(&byte));
    if plain { SpanParser::new().parse_unsigned_duration(text).ok() } else { None }
}

/// Writes `1m30s`: the form that [`parse_duration`] reads.
pub(crate) fn duration_text(length: Duration) -> String {
    let printer = SpanPrinter::new().designator(Designator::Compact).spacing(Spacing::None);
    printer.unsigned_duration_to_string(&length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print() {
        fn check(text: &str, expected: Option<(u64, &str)>) {
            let shown = parse_duration(text).map(|length| (length.as_millis() as u64, duration_text(length)));
            assert_eq!(shown, expected.map(|(millis, text)| (millis, text.to_owned())), "{text}");
        }
        check("0s", Some((0, "0s")));
        check("90s", Some((90_000, "1m30s")));
        check("1h30m", Some((5_400_000, "1h30m")));
        check("1.5h", Some((5_400_000, "1h30m")));
        check("500ms", Some((500, "500ms")));
        for wrong in ["", "0", "5", "-5s", "5 m", "1d", "PT5M", "m", "9999999999999999h"] {
            check(wrong, None);
        }
    }
}
