//! Times in a file of values, as kustomize writes them once it has merged the file.
//!
//! The merge reads a scalar without quotes as a time where it looks like one, and Go writes times
//! in one form: `2024-01-01` becomes `2024-01-01T00:00:00Z`. Helm alone keeps its text.

use crate::manifest::is_timestamp;

/// The minutes of a day.
const DAY_MINUTES: u32 = 24 * 60;

/// Returns a time in the form in which Go writes it; none for a text that is no time to Go's YAML.
/// Go writes no offset of a day or more.
pub(super) fn written_time(text: &str) -> Option<String> {
    if !is_timestamp(text) {
        return None;
    }
    let (date, time) = text.split_at(text.find(['T', 't', ' ']).unwrap_or(text.len()));
    let date: Vec<String> = date.split('-').map(pad_number).collect();
    let time = time.trim_start_matches(['T', 't', ' ']);
    let (clock, zone) = time.split_at(time.find(['Z', '+', '-']).unwrap_or(time.len()));
    Some(format!("{}T{}{}", date.join("-"), written_clock(clock), written_zone(zone)?))
}

/// Returns hour, minute and second. Go knows nine digits of its parts, and writes no last zeros.
fn written_clock(text: &str) -> String {
    if text.is_empty() {
        return "00:00:00".to_owned();
    }
    let (clock, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let clock: Vec<String> = clock.split(':').map(pad_number).collect();
    let fraction = fraction.get(..9).unwrap_or(fraction).trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}", clock.join(":"))
}

/// Returns an offset from UTC; none for one of a day.
fn written_zone(text: &str) -> Option<String> {
    let Some((hours, minutes)) = text.split_once(':') else { return Some("Z".to_owned()) };
    let (sign, hours) = hours.split_at_checked(1)?;
    match hours.parse::<u32>().ok()? * 60 + minutes.parse::<u32>().ok()? {
        0 => Some("Z".to_owned()),
        offset if offset < DAY_MINUTES => Some(format!("{sign}{:02}:{:02}", offset / 60, offset % 60)),
        _ => None,
    }
}

fn pad_number(number: &str) -> String {
    format!("{number:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_go_writes_it() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(written_time(text).as_deref(), expected, "{text}");
        };
        check("2024-01-01", Some("2024-01-01T00:00:00Z"));
        check("2024-2-9", Some("2024-02-09T00:00:00Z"));
        check("2001-12-14t21:59:43.10-05:00", Some("2001-12-14T21:59:43.1-05:00"));
        check("2001-12-14T1:2:3Z", Some("2001-12-14T01:02:03Z"));
        check("2001-12-14T21:59:43+00:00", Some("2001-12-14T21:59:43Z"));
        check("2001-12-14T21:59:43-00:60", Some("2001-12-14T21:59:43-01:00"));
        check("2001-12-14  21:59:43,000", Some("2001-12-14T21:59:43Z"));
        check("2001-12-14 21:59:43.1234567899", Some("2001-12-14T21:59:43.123456789Z"));
        check("2001-12-14T21:59:43+23:60", None);
        check("2001-12-14T21:59:43", None);
        check("2023-02-29", None);
        check("2024", None);
        check("", None);
    }
}
