//! The names of this process and its host in the records that all processes of a cluster share.

use crate::object::ContentHash;

/// The kernel's name for the time since which this host runs.
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// The namespace in which this process has its number.
const PROCESS_NAMESPACE_LINK: &str = "/proc/self/ns/pid";

/// The number of characters of a mark: as many as no two hosts of a cluster share.
const MARK_CHARS: usize = 12;

/// Returns a name for this process that no other one has, on this host or another.
/// [`crate::engine::RolloutLedger::holder_of`] reads it.
pub(super) fn holder() -> String {
    let (process, began) = (std::process::id(), jiff::Timestamp::now().as_nanosecond());
    let random = super::random_fraction().to_bits() >> 16;
    format!("{process}-{began:x}-{random:x}-{}@{}", process_mark(), host_name())
}

/// Returns the name of this host.
pub(super) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns a mark of the clock of this host: whoever has the same one has the same clock. Where the
/// host has no name for itself, it is that of this call alone.
pub(super) fn clock_mark() -> String {
    hash_mark(&std::fs::read(BOOT_ID_FILE).unwrap_or_else(|_| unknown_mark().into_bytes()))
}

/// Returns a mark of the numbers of processes here: whoever has the same one means the same process
/// by a number.
pub(crate) fn process_mark() -> String {
    let namespace = std::fs::read_link(PROCESS_NAMESPACE_LINK).unwrap_or_else(|_| unknown_mark().into());
    hash_mark(format!("{} {}", clock_mark(), namespace.display()).as_bytes())
}

/// Returns what no other process, and no later call, has for itself.
fn unknown_mark() -> String {
    format!("{} {}", std::process::id(), jiff::Timestamp::now().as_nanosecond())
}

fn hash_mark(bytes: &[u8]) -> String {
    ContentHash::hash_bytes(bytes).to_string().chars().take(MARK_CHARS).collect()
}
