//! Changes of a text: bits, numbers, words of its format, pieces that are repeated or swapped.

/// A sequence of numbers that looks like chance, and is the same for the same seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number, by `SplitMix64`.
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below a bound; 0 for the bound 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.roll() % (bound.max(1) as u64)) as usize
    }

    /// Returns one of several; `None` only where there is none.
    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

/// Bytes that end, begin or separate something in one of the formats.
const MARKS: &[u8] = b"{}[]:,\"'\\/-#&*!|>%@`~.=\n\r\t \0\x7f\x80\xc2\xe2\xef\xff0129aAnyt";

/// Numbers at the ends of what integers and floats can hold.
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "255",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "1e999",
    "-0.0",
    "0x7fffffffffffffff",
    "99999999999999999999999999",
];

/// The most times that a piece is repeated, to nest or to lengthen.
const MAX_COPIES: usize = 600;

/// Returns a changed copy of an input: some changes, each small or of a whole piece.
pub(super) fn mutate(dice: &mut Dice, pool: &[Vec<u8>], words: &[&str], most_bytes: usize) -> Vec<u8> {
    let mut bytes = dice.pick(pool).cloned().unwrap_or_default();
    for _ in 0..=dice.below(5) {
        change(dice, &mut bytes, pool, words);
        bytes.truncate(most_bytes);
    }
    bytes
}

fn change(dice: &mut Dice, bytes: &mut Vec<u8>, pool: &[Vec<u8>], words: &[&str]) {
    match dice.below(14) {
        0 => {
            let at = dice.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        1 => {
            let at = dice.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = MARKS[dice.below(MARKS.len())];
            }
        }
        2 => {
            let mark = MARKS[dice.below(MARKS.len())];
            insert(dice, bytes, &[mark]);
        }
        3 | 4 => {
            if let Some(word) = dice.pick(words) {
                insert(dice, bytes, word.as_bytes());
            }
        }
        5 => overwrite_by_word(dice, bytes, words),
        6 => {
            let piece = piece(dice, bytes, 40);
            let copies = 1 + dice.below(if piece.len() < 8 { MAX_COPIES } else { 4 });
            insert(dice, bytes, &piece.repeat(copies));
        }
        7 => {
            let (from, to) = span(dice, bytes.len(), 30);
            drop(bytes.drain(from..to));
        }
        8 => bytes.truncate(dice.below(bytes.len() + 1)),
        9 => {
            let other = dice.pick(pool).cloned().unwrap_or_default();
            let other = piece(dice, &other, 400);
            insert(dice, bytes, &other);
        }
        10 => {
            // The beginning of this one, and the end of another.
            let other = dice.pick(pool).cloned().unwrap_or_default();
            bytes.truncate(dice.below(bytes.len() + 1));
            bytes.extend_from_slice(&other[dice.below(other.len() + 1)..]);
        }
        11 => swap_lines(dice, bytes),
        12 => replace_number(dice, bytes),
        _ => indent_line(dice, bytes),
    }
}

fn insert(dice: &mut Dice, bytes: &mut Vec<u8>, piece: &[u8]) {
    let at = dice.below(bytes.len() + 1);
    drop(bytes.splice(at..at, piece.iter().copied()));
}

fn span(dice: &mut Dice, length: usize, most: usize) -> (usize, usize) {
    let from = dice.below(length + 1);
    (from, (from + dice.below(most + 1)).min(length))
}

fn piece(dice: &mut Dice, bytes: &[u8], most: usize) -> Vec<u8> {
    let (from, to) = span(dice, bytes.len(), most);
    bytes[from..to].to_vec()
}

fn overwrite_by_word(dice: &mut Dice, bytes: &mut Vec<u8>, words: &[&str]) {
    let Some(word) = dice.pick(words) else { return };
    let at = dice.below(bytes.len() + 1);
    let end = (at + word.len()).min(bytes.len());
    drop(bytes.splice(at..end, word.bytes()));
}

fn swap_lines(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.len() < 2 {
        return;
    }
    let (one, other) = (dice.below(lines.len()), dice.below(lines.len()));
    lines.swap(one, other);
    *bytes = lines.concat();
}

fn replace_number(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let from = dice.below(bytes.len() + 1);
    let Some(found) = bytes[from..].iter().position(u8::is_ascii_digit) else { return };
    let from = from + found;
    let digits = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = NUMBERS[dice.below(NUMBERS.len())];
    drop(bytes.splice(from..from + digits, number.bytes()));
}

fn indent_line(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let from = dice.below(bytes.len() + 1);
    let at = bytes[from..].iter().position(|byte| *byte == b'\n').map_or(0, |end| from + end + 1);
    if dice.below(2) == 0 {
        let blanks = vec![b' '; 1 + dice.below(4)];
        drop(bytes.splice(at..at, blanks));
    } else {
        let blanks = bytes[at..].iter().take_while(|byte| **byte == b' ').count();
        drop(bytes.drain(at..at + dice.below(blanks + 1)));
    }
}
