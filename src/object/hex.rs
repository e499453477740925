//! Bytes as hexadecimal digits.

use std::fmt::Write as _;

/// Returns two lower-case digits for each byte.
pub(crate) fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the bytes of a text; none where it has other letters, or is longer or shorter.
pub(crate) fn hex_bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    // `from_str_radix` takes a sign.
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, number) in bytes.iter_mut().zip(0_usize..) {
        *byte = u8::from_str_radix(text.get(2 * number..2 * number + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_are_written() {
        assert_eq!(hex_text(&[0, 10, 255]), "000aff");
        assert_eq!(hex_bytes("000aFF"), Some([0, 10, 255]));
        for wrong in ["", "000af", "000aff0", "000a+f", "000a f", "000aé"] {
            assert_eq!(hex_bytes::<3>(wrong), None, "{wrong}");
        }
    }
}
