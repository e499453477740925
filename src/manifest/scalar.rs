//! The meaning of a plain scalar: the resolution table of the YAML library that kubectl reads with.

use base64::alphabet;
use base64::engine::{Engine as _, GeneralPurpose, GeneralPurposeConfig};

/// The explicit tag of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarTag {
    /// None was written.
    None,
    /// `!`, which asks for a string.
    NonSpecific,
    Str,
    Bool,
    Int,
    Float,
    Null,
    Timestamp,
    Binary,
    Merge,
    /// Any other: the text is taken as it is.
    Other,
}

impl ScalarTag {
    /// Reads the full form of a tag.
    pub(super) fn from_full_form(full: &str) -> Self {
        let Some(core) = full.strip_prefix("tag:yaml.org,2002:") else {
            return if full == "!" { Self::NonSpecific } else { Self::Other };
        };
        match core {
            "str" => Self::Str,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "float" => Self::Float,
            "null" => Self::Null,
            "timestamp" => Self::Timestamp,
            "binary" => Self::Binary,
            "merge" => Self::Merge,
            _ => Self::Other,
        }
    }

    const fn tag_text(self) -> &'static str {
        match self {
            Self::Str => "!!str",
            Self::Bool => "!!bool",
            Self::Int => "!!int",
            Self::Float => "!!float",
            Self::Null => "!!null",
            Self::Timestamp => "!!timestamp",
            Self::Binary => "!!binary",
            Self::Merge => "!!merge",
            Self::None | Self::NonSpecific | Self::Other => "!",
        }
    }
}

/// A resolved scalar. Text stands for the scalar's own text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Above `i64::MAX`.
    Uint(u64),
    Float(f64),
    /// The text as it is.
    Text,
    /// Decoded bytes of a `!!binary`.
    Bytes(Vec<u8>),
}

/// The reason for a scalar that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalarError(pub(super) String);

/// Resolves a scalar by its tag and text; `quoted` scalars without a tag are text.
pub(crate) fn resolve(tag: ScalarTag, text: &str) -> Result<Scalar, ScalarError> {
    match tag {
        ScalarTag::None => Ok(resolve_untagged(text, DateHandling::Tried).0),
        ScalarTag::NonSpecific | ScalarTag::Str | ScalarTag::Merge | ScalarTag::Other => Ok(Scalar::Text),
        ScalarTag::Binary => decode_base64(text)
            .map(Scalar::Bytes)
            .ok_or_else(|| ScalarError("the !!binary value is not valid base64".to_owned())),
        ScalarTag::Bool | ScalarTag::Int | ScalarTag::Float | ScalarTag::Null | ScalarTag::Timestamp => {
            let dates = if tag == ScalarTag::Timestamp { DateHandling::Tried } else { DateHandling::Skipped };
            let (scalar, found) = resolve_untagged(text, dates);
            match (scalar, found) {
                (scalar, found) if found == tag => Ok(scalar),
                (Scalar::Int(int), ScalarTag::Int) if tag == ScalarTag::Float => {
                    Ok(Scalar::Float(int as f64))
                }
                (_, found) => {
                    Err(ScalarError(format!("a {} cannot be read as {}", found.tag_text(), tag.tag_text())))
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DateHandling {
    Tried,
    Skipped,
}

/// Returns whether a plain word is one of those that YAML 1.1 takes for a boolean and YAML 1.2 for
/// text.
pub(crate) fn is_old_boolean(text: &str) -> bool {
    matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    )
}

/// Returns whether a plain number has a leading zero that makes it octal to Kubernetes, decimal or
/// text to others.
pub(super) fn is_leading_zero(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut digits = digits.bytes().filter(|&b| b != b'_');
    digits.next() == Some(b'0')
        && digits.next().is_some_and(|b| b.is_ascii_digit())
        && digits.all(|b| b.is_ascii_digit())
}

fn resolve_untagged(text: &str, dates: DateHandling) -> (Scalar, ScalarTag) {
    let Some(&first) = text.as_bytes().first() else { return (Scalar::Null, ScalarTag::Null) };
    if let Some(known) = resolve_word(text) {
        return known;
    }
    match first {
        b'.' => parse_separated(text)
            .map_or((Scalar::Text, ScalarTag::Str), |float| (Scalar::Float(float), ScalarTag::Float)),
        b'+' | b'-' | b'0'..=b'9' => {
            if dates == DateHandling::Tried && super::date::is_timestamp(text) {
                return (Scalar::Text, ScalarTag::Timestamp);
            }
            number(&text.replace('_', ""))
        }
        _ => (Scalar::Text, ScalarTag::Str),
    }
}

fn resolve_word(text: &str) -> Option<(Scalar, ScalarTag)> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            (Scalar::Bool(true), ScalarTag::Bool)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            (Scalar::Bool(false), ScalarTag::Bool)
        }
        "~" | "null" | "Null" | "NULL" => (Scalar::Null, ScalarTag::Null),
        ".nan" | ".NaN" | ".NAN" => (Scalar::Float(f64::NAN), ScalarTag::Float),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            (Scalar::Float(f64::INFINITY), ScalarTag::Float)
        }
        "-.inf" | "-.Inf" | "-.INF" => (Scalar::Float(f64::NEG_INFINITY), ScalarTag::Float),
        _ => return None,
    })
}

/// Returns a number whose underscores are already gone.
fn number(plain: &str) -> (Scalar, ScalarTag) {
    if let Some(int) = parse_integer(plain) {
        return (int, ScalarTag::Int);
    }
    if let Some(float) = parse_decimal(plain) {
        return (Scalar::Float(float), ScalarTag::Float);
    }
    // Reached by forms such as `0b-1`, which the base-0 reader refuses: the sign belongs to the
    // digits.
    let binary = match (plain.strip_prefix("0b"), plain.strip_prefix("-0b")) {
        (Some(digits), _) => parse_signed(digits, 2),
        (None, Some(digits)) if !digits.starts_with(['+', '-']) => {
            parse_signed(digits, 2).map(i64::wrapping_neg)
        }
        _ => None,
    };
    binary.map_or((Scalar::Text, ScalarTag::Str), |int| (Scalar::Int(int), ScalarTag::Int))
}

fn parse_signed(digits: &str, radix: u32) -> Option<i64> {
    i64::from_str_radix(digits, radix).ok()
}

/// Returns an integer in any base: `0x`, `0o`, `0b` and a leading zero choose it.
fn parse_integer(plain: &str) -> Option<Scalar> {
    let (sign, magnitude) = match plain.as_bytes().first()? {
        b'-' => (Some('-'), plain.get(1..)?),
        b'+' => (Some('+'), plain.get(1..)?),
        _ => (None, plain),
    };
    let (radix, digits) = match magnitude.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, magnitude.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, magnitude.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, magnitude.get(2..)?),
        [b'0', _, ..] => (8, magnitude.get(1..)?),
        _ => (10, magnitude),
    };
    if !digits.bytes().next()?.is_ascii_alphanumeric() {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    match (sign, i64::try_from(value)) {
        (Some('-'), Ok(int)) => Some(Scalar::Int(-int)),
        (Some('-'), Err(_)) => (value == i64::MIN.unsigned_abs()).then_some(Scalar::Int(i64::MIN)),
        (_, Ok(int)) => Some(Scalar::Int(int)),
        (None, Err(_)) => Some(Scalar::Uint(value)),
        (Some(_), Err(_)) => None,
    }
}

/// Parses `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, finite.
fn parse_decimal(plain: &str) -> Option<f64> {
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (unsigned.get(..at)?, Some(unsigned.get(at + 1..)?)),
        None => (unsigned, None),
    };
    let (integer_part, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|text| {
        let text = text.strip_prefix(['+', '-']).unwrap_or(text);
        !text.is_empty() && digits(text)
    });
    let fits = digits(integer_part)
        && digits(fraction)
        && !(integer_part.is_empty() && fraction.is_empty())
        && exponent_fits;
    fits.then(|| plain.parse::<f64>().ok()).flatten().filter(|float| float.is_finite())
}

/// Returns a decimal whose digits may be separated by single underscores.
fn parse_separated(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let mut underscores = bytes.iter().enumerate().filter(|(_, b)| **b == b'_').map(|(at, _)| at);
    let between = underscores.all(|at| digit(at.checked_sub(1)) && digit(at.checked_add(1)));
    between.then(|| parse_decimal(&text.replace('_', ""))).flatten()
}

/// Decodes standard base64 with padding, whatever its last bits. Line breaks inside are skipped, as
/// Go does.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let clean: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    GeneralPurpose::new(&alphabet::STANDARD, config).decode(clean).ok()
}
