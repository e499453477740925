//! Numbers and bytes on their way into JSON, as Go's `encoding/json` and `strconv` treat them.

use serde_json::Number;

use super::scalar::Scalar;

/// Returns a float as the JSON number that Kubernetes makes of it: an integer where its text is
/// one. None for infinity and NaN.
pub(crate) fn json_number(float: f64) -> Option<Number> {
    if float.fract() == 0.0
        && float.abs() < 1e21
        && let Ok(int) = format!("{float}").parse::<i64>()
    {
        return Some(int.into());
    }
    Number::from_f64(float)
}

/// Returns a float of JSON: as [`json_number`], but a negative zero keeps its sign.
pub(super) fn json_literal(float: f64) -> Option<Number> {
    if float == 0.0 { Number::from_f64(float) } else { json_number(float) }
}

/// Returns a number, `true`, `false` or `null` of JSON. None when out of range.
pub(super) fn literal(text: &str) -> Option<Scalar> {
    match text {
        "null" => return Some(Scalar::Null),
        "true" => return Some(Scalar::Bool(true)),
        "false" => return Some(Scalar::Bool(false)),
        _ => {}
    }
    if !text.contains(['.', 'e', 'E'])
        && let Ok(int) = text.parse::<i64>()
    {
        return Some(Scalar::Int(int));
    }
    text.parse::<f64>().ok().filter(|float| float.is_finite()).map(Scalar::Float)
}

/// Returns a float as a text where a text is needed, for example as a key. It has the shortest
/// digits that a 32-bit float needs, with an exponent below 1e-4 and from 1e6 on.
pub(crate) fn float_text(float: f64) -> String {
    let narrow = float as f32;
    if narrow.is_nan() {
        return ".nan".to_owned();
    }
    if narrow.is_infinite() {
        return if narrow > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{narrow:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{narrow}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Returns bytes as text, each byte that is not part of valid UTF-8 replaced.
pub(super) fn lossy_text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}
