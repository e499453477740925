//! The data that the pods of a workload were started with, in an annotation of the workload itself.
//!
//! A new annotation in a template restarts its pods. So the pod template carries a hash of the data
//! only once they have changed. A workload that begins to ask for restarts is not restarted for
//! that. Its pods' first data are *pinned*: these data stand for the template that was there, and
//! going back to them is going back to it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::object::ContentHash;

/// The number of used objects whose change can be recorded.
const MAX_RECORDED_CHANGES: u32 = 64;

/// The data that the pods of a workload were started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigStamp {
    /// The number of the key under which the data were hashed.
    pub key: u32,
    /// The hash over all of them.
    pub data: ContentHash,
    /// Data that stand for a template of their own.
    pub pinned: Option<PinnedConfig>,
    /// The changed objects of the last restart: a bit for each, in their order.
    pub changed: u64,
}

/// Data, and what the pod template has carried with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedConfig {
    /// The hash of the data.
    pub data: ContentHash,
    /// The hash in the template; none where it carried none.
    pub template: Option<ContentHash>,
}

impl ConfigStamp {
    /// Returns the hash in the pod template.
    pub fn template_hash(self) -> Option<ContentHash> {
        match self.pinned {
            Some(pinned) if pinned.data == self.data => pinned.template,
            _ => Some(self.data),
        }
    }

    /// Returns the positions of the objects that changed, from 0, in the order of the objects' ids.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..MAX_RECORDED_CHANGES).filter(move |bit| self.changed >> bit & 1 == 1).map(|bit| bit as usize)
    }
}

/// `data=<hash> key=<hex> as=<hash>:<hash or none> changed=0,2`; the last two only where there is
/// something to say.
impl fmt::Display for ConfigStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data={} key={:08x}", self.data, self.key)?;
        if let Some(PinnedConfig { data, template }) = self.pinned {
            let template = template.map_or_else(|| "none".to_owned(), |hash| hash.to_string());
            write!(f, " as={data}:{template}")?;
        }
        let changed: Vec<String> = self.positions().map(|position| position.to_string()).collect();
        if changed.is_empty() { Ok(()) } else { write!(f, " changed={}", changed.join(",")) }
    }
}

/// A text that does not say which data pods were started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not what pods were started with (for example \"data=<hash> key=<hex>\")")]
pub struct ParseConfigStampError;

impl FromStr for ConfigStamp {
    type Err = ParseConfigStampError;

    fn from_str(text: &str) -> Result<Self, ParseConfigStampError> {
        read(text).ok_or(ParseConfigStampError)
    }
}

fn read(text: &str) -> Option<ConfigStamp> {
    let (mut data, mut key, mut pinned, mut changed) = (None, None, None, 0);
    for word in text.split(' ') {
        match word.split_once('=')? {
            ("data", hash) => data = Some(ContentHash::parse(hash)?),
            ("key", hex) => key = Some(u32::from_str_radix(hex, 16).ok()?),
            ("as", pin) => {
                let (data, template) = pin.split_once(':')?;
                let template = if template == "none" { None } else { Some(ContentHash::parse(template)?) };
                pinned = Some(PinnedConfig { data: ContentHash::parse(data)?, template });
            }
            ("changed", positions) => {
                for position in positions.split(',') {
                    let position: u32 =
                        position.parse().ok().filter(|position| *position < MAX_RECORDED_CHANGES)?;
                    changed |= 1 << position;
                }
            }
            // A later version's.
            _ => {}
        }
    }
    Some(ConfigStamp { key: key?, data: data?, pinned, changed })
}

/// Returns the positions of those that differ, as [`ConfigStamp::changed`] names them.
pub(in crate::engine) fn differing_positions<T: PartialEq>(before: &[T], after: &[T]) -> u64 {
    if before.len() != after.len() {
        return 0;
    }
    let differs = before.iter().zip(after).take(MAX_RECORDED_CHANGES as usize).enumerate();
    differs.filter(|(_, (before, after))| before != after).fold(0, |sum, (bit, _)| sum | 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let (one, two) = (ContentHash::hash_bytes(b"1"), ContentHash::hash_bytes(b"2"));
        let started = |pinned, changed| ConfigStamp { key: 0xab, data: one, pinned, changed };
        for stamp_text in [
            started(None, 0),
            started(Some(PinnedConfig { data: one, template: None }), 0b101),
            started(Some(PinnedConfig { data: two, template: Some(one) }), 1 << 63),
        ] {
            assert_eq!(stamp_text.to_string().parse(), Ok(stamp_text));
        }
        for wrong in ["", "data=1 key=2", &format!("data={one}"), &format!("data={one} key=1 changed=64")] {
            assert_eq!(wrong.parse::<ConfigStamp>(), Err(ParseConfigStampError), "{wrong}");
        }
        assert_eq!(format!("data={one} key=ab later=x").parse(), Ok(started(None, 0)));
    }

    #[test]
    fn pinned_data_stand_for_the_template_that_they_had() {
        let (one, two) = (ContentHash::hash_bytes(b"1"), ContentHash::hash_bytes(b"2"));
        let with = |data, pinned| ConfigStamp { key: 1, data, pinned, changed: 0 }.template_hash();
        assert_eq!(with(one, None), Some(one));
        assert_eq!(with(one, Some(PinnedConfig { data: one, template: None })), None);
        assert_eq!(with(two, Some(PinnedConfig { data: one, template: None })), Some(two));
        assert_eq!(with(one, Some(PinnedConfig { data: one, template: Some(two) })), Some(two));
    }

    #[test]
    fn what_differs_is_reported_by_its_position() {
        assert_eq!(differing_positions(&[1, 2, 3], &[1, 0, 0]), 0b110);
        assert_eq!(differing_positions(&[1], &[1, 2]), 0, "another set of objects");
    }
}
