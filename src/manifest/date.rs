//! Dates in one of the four layouts that kubectl's YAML library knows. They decide about the tag
//! `!!timestamp`, and about times of the API: a date stays the text that it is.

/// Returns whether the text is a date, with or without a time.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let year = text.bytes().take_while(u8::is_ascii_digit).count();
    if year != 4 || text.as_bytes().get(4) != Some(&b'-') {
        return false;
    }
    [DateLayout::Zoned('T'), DateLayout::Zoned('t'), DateLayout::Spaced, DateLayout::Day]
        .into_iter()
        .any(|layout| DateReader(text).matches(layout).is_some())
}

/// Returns whether the text is a date, a time and a zone.
pub(super) fn is_zoned(text: &str) -> bool {
    DateReader(text).matches(DateLayout::Zoned('T')).is_some()
}

#[derive(Clone, Copy)]
enum DateLayout {
    /// Date, this letter, time and zone.
    Zoned(char),
    /// Date, blanks and time.
    Spaced,
    Day,
}

struct DateReader<'a>(&'a str);

impl DateReader<'_> {
    fn matches(mut self, layout: DateLayout) -> Option<()> {
        let year = self.digits(4, 4)?;
        self.literal('-')?;
        let month = self.digits(1, 2).filter(|month| (1..=12).contains(month))?;
        self.literal('-')?;
        self.digits(1, 2).filter(|day| (1..=days(year, month)).contains(day))?;
        match layout {
            DateLayout::Day => {}
            DateLayout::Spaced => {
                if !self.0.is_empty() {
                    self.literal(' ')?;
                }
                self.0 = self.0.trim_start_matches(' ');
                self.time()?;
            }
            DateLayout::Zoned(letter) => {
                self.literal(letter)?;
                self.time()?;
                self.zone()?;
            }
        }
        self.0.is_empty().then_some(())
    }

    fn time(&mut self) -> Option<()> {
        self.digits(1, 2).filter(|hour| *hour < 24)?;
        self.literal(':')?;
        self.digits(1, 2).filter(|minute| *minute < 60)?;
        self.literal(':')?;
        self.digits(1, 2).filter(|second| *second < 60)?;
        if let Some(fraction) = self.0.strip_prefix(['.', ','])
            && fraction.starts_with(|c: char| c.is_ascii_digit())
        {
            self.0 = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        Some(())
    }

    fn zone(&mut self) -> Option<()> {
        if let Some(rest) = self.0.strip_prefix('Z') {
            self.0 = rest;
            return Some(());
        }
        self.0 = self.0.strip_prefix(['+', '-'])?;
        self.digits(2, 2).filter(|hours| *hours <= 24)?;
        self.literal(':')?;
        self.digits(2, 2).filter(|minutes| *minutes <= 60)?;
        Some(())
    }

    fn literal(&mut self, c: char) -> Option<()> {
        self.0 = self.0.strip_prefix(c)?;
        Some(())
    }

    fn digits(&mut self, least: usize, most: usize) -> Option<u32> {
        let count = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        (count >= least).then(|| digits.parse().ok()).flatten()
    }
}

const fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
