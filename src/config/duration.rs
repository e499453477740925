//! Lengths of time as Kubernetes' own configuration writes them: `90s`, `5m`, `1h30m`, `500ms`.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::object;

/// A length of time, longer than nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PositiveDuration(std::time::Duration);

impl PositiveDuration {
    /// Returns a number of seconds; none is taken as one.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(std::time::Duration::from_secs(if seconds == 0 { 1 } else { seconds }))
    }

    /// Returns the standard library's form.
    pub const fn get(self) -> std::time::Duration {
        self.0
    }

    /// Reads how often something is done again.
    ///
    /// # Errors
    ///
    /// Less than a second would be without a pause.
    pub fn parse_interval(text: &str) -> Result<Self, IntervalError> {
        text.parse::<Self>()?.at_least_a_second()
    }

    fn at_least_a_second(self) -> Result<Self, IntervalError> {
        if self.0 < MIN_INTERVAL { Err(IntervalError::TooShort(self)) } else { Ok(self) }
    }
}

/// The shortest time after which something is done again.
const MIN_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// A text that does not say how often something may be done again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntervalError {
    /// The text is no length of time.
    #[error(transparent)]
    NotADuration(#[from] ParseDurationError),
    /// The interval is too short to leave a pause.
    #[error(
        "{0} is too short: whoever is asked so often has no pause; 1s is the least, and 1m is often enough"
    )]
    TooShort(PositiveDuration),
}

/// Does the same as [`PositiveDuration::parse_interval`].
pub(super) fn parse_interval<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<PositiveDuration, D::Error> {
    PositiveDuration::deserialize(deserializer)?.at_least_a_second().map_err(de::Error::custom)
}

impl From<PositiveDuration> for std::time::Duration {
    fn from(duration: PositiveDuration) -> Self {
        duration.0
    }
}

/// A length of time that may be nothing: `0s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationOrZero(std::time::Duration);

impl DurationOrZero {
    /// Returns the same length.
    pub const fn new(length: std::time::Duration) -> Self {
        Self(length)
    }

    /// Returns the standard library's form.
    pub const fn get(self) -> std::time::Duration {
        self.0
    }
}

impl FromStr for DurationOrZero {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        if text == "0s" {
            Ok(Self::default())
        } else {
            text.parse::<PositiveDuration>().map(|length| Self(length.get()))
        }
    }
}

impl fmt::Display for DurationOrZero {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() { f.write_str("0s") } else { PositiveDuration(self.0).fmt(f) }
    }
}

impl Serialize for DurationOrZero {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DurationOrZero {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DurationOrZeroVisitor;
        impl Visitor<'_> for DurationOrZeroVisitor {
            type Value = DurationOrZero;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration (for example 0s, 90s, 5m, 1h30m or 500ms)")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<DurationOrZero, E> {
                text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(DurationOrZeroVisitor)
    }
}

/// A text that is no length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a duration longer than nothing (for example 90s, 5m, 1h30m or 500ms)")]
pub struct ParseDurationError;

impl FromStr for PositiveDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        object::parse_duration(text).filter(|length| !length.is_zero()).map(Self).ok_or(ParseDurationError)
    }
}

impl fmt::Display for PositiveDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&object::duration_text(self.0))
    }
}

impl Serialize for PositiveDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PositiveDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(PositiveDurationVisitor)
    }
}

struct PositiveDurationVisitor;

impl Visitor<'_> for PositiveDurationVisitor {
    type Value = PositiveDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration longer than nothing (for example 90s, 5m, 1h30m or 500ms)")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PositiveDuration, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_again_has_a_pause() {
        for short in ["1ms", "999ms", "0.5s"] {
            let error = PositiveDuration::parse_interval(short).unwrap_err();
            assert!(matches!(error, IntervalError::TooShort(_)), "{short}: {error}");
        }
        assert_eq!(
            PositiveDuration::parse_interval("0s"),
            Err(IntervalError::NotADuration(ParseDurationError))
        );
        assert_eq!(PositiveDuration::parse_interval("1s"), Ok(PositiveDuration::from_seconds(1)));
    }

    #[test]
    fn durations_read_and_print() {
        fn check(text: &str, expected: Option<(u64, &str)>) {
            let read = text.parse::<PositiveDuration>().ok();
            let shown = read.map(|duration| (duration.get().as_millis() as u64, duration.to_string()));
            assert_eq!(shown, expected.map(|(millis, text)| (millis, text.to_owned())), "{text}");
        }
        check("90s", Some((90_000, "1m30s")));
        check("5m", Some((300_000, "5m")));
        check("1h30m", Some((5_400_000, "1h30m")));
        check("1.5h", Some((5_400_000, "1h30m")));
        check("500ms", Some((500, "500ms")));
        assert_eq!("0s".parse::<DurationOrZero>().map(|pause| pause.to_string()), Ok("0s".to_owned()));
        assert_eq!("90s".parse::<DurationOrZero>().map(|pause| pause.to_string()), Ok("1m30s".to_owned()));
        assert_eq!("soon".parse::<DurationOrZero>(), Err(ParseDurationError));
        for wrong in
            ["", "5", "0s", "-5s", "5 m", "5 minutes", "1d", "PT5M", "m", "5m ago", "9999999999999999h"]
        {
            check(wrong, None);
        }
    }
}
