//! The outcome of a run: its output, and the part of the sandbox that ended it.

use std::fmt;
use std::time::Duration;

use rustix::process::Signal;

/// The part of its time that a process has used at least when the kernel stops it. The kernel stops
/// it by ticks and reports the time that was really used, which differ on a busy host.
const MIN_USED_TIME_RATIO: f64 = 0.5;

/// A part of the sandbox that stopped a program, or a call of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SandboxPart {
    /// Landlock: a file outside of what it may reach.
    Files,
    /// seccomp: a system call that it may not make.
    SystemCalls,
    /// The limit of memory.
    Memory,
    /// The limit of processor time.
    Processor,
    /// The limit of a file's size.
    FileSize,
    /// The limit of open descriptors.
    Descriptors,
    /// The limit of what it may print.
    Output,
    /// The limit of time.
    Deadline,
}

impl SandboxPart {
    /// Returns whether it bounds how much a program may use, and not what it reaches.
    pub const fn is_limit(self) -> bool {
        !matches!(self, Self::Files | Self::SystemCalls)
    }
}

impl fmt::Display for SandboxPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "it reached for a file outside of its input",
            Self::SystemCalls => "it made a system call that it may not make",
            Self::Memory => "it asked for more memory than it may have",
            Self::Processor => "it used more processor time than it may have",
            Self::FileSize => "it wrote a larger file than it may",
            Self::Descriptors => "it opened more files at once than it may",
            Self::Output => "it printed more than it may",
            Self::Deadline => "it ran longer than it may",
        })
    }
}

/// The output of a program that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutput {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub output: Vec<u8>,
    /// The beginning and the end of its standard error.
    pub stderr: String,
    /// Its time on all processors.
    pub processor: Duration,
}

impl RunOutput {
    /// Returns whether it says that all went well.
    pub fn is_success(&self) -> bool {
        self.code == 0
    }

    /// Returns the part of the sandbox that it complains of, where it failed. The kernel answers a
    /// call with an error number, and only the program knows which one ended it.
    pub fn denied_part(&self) -> Option<SandboxPart> {
        if self.is_success() { None } else { find_denied_part(&self.stderr) }
    }
}

/// The complaints of programs about each part: the C library's words and Go's.
const LIMIT_MESSAGES: [(&str, SandboxPart); 10] = [
    ("out of memory", SandboxPart::Memory),
    ("cannot allocate memory", SandboxPart::Memory),
    ("failed to reserve", SandboxPart::Memory),
    ("failed to create new os thread", SandboxPart::Memory),
    // Go's garbage collector does not look whether it got memory for itself.
    ("runtime/mgc", SandboxPart::Memory),
    ("file too large", SandboxPart::FileSize),
    ("too many open files", SandboxPart::Descriptors),
    ("operation not permitted", SandboxPart::SystemCalls),
    ("permission denied", SandboxPart::Files),
    ("resource temporarily unavailable", SandboxPart::Memory),
];

fn find_denied_part(stderr: &str) -> Option<SandboxPart> {
    let stderr = stderr.to_lowercase();
    LIMIT_MESSAGES.into_iter().find(|(words, _)| stderr.contains(words)).map(|(_, part)| part)
}

/// Returns the part of the sandbox that a signal comes from, if it comes from one.
pub(super) fn part_of_signal(signal: i32, used: Duration, limit: Duration) -> Option<SandboxPart> {
    match signal {
        signal if signal == Signal::SYS.as_raw() => Some(SandboxPart::SystemCalls),
        signal if signal == Signal::XFSZ.as_raw() => Some(SandboxPart::FileSize),
        signal if signal == Signal::XCPU.as_raw() => Some(SandboxPart::Processor),
        signal if signal == Signal::KILL.as_raw() && used >= limit.mul_f64(MIN_USED_TIME_RATIO) => {
            Some(SandboxPart::Processor)
        }
        _ => None,
    }
}

/// Reads the processor time from a process's line in `/proc`, whose clock ticks so often a second.
pub(super) fn processor_time(stat: &str, ticks: u64) -> Option<Duration> {
    // The name is in brackets and may hold anything; user and system time come eleven words on.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    let total = words.next()?.ok()?.checked_add(words.next()?.ok()?)?;
    Some(Duration::from_millis(total.checked_mul(1000)?.checked_div(ticks)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_the_part() {
        #[track_caller]
        fn check(stderr: &str, expected: Option<SandboxPart>) {
            let output = RunOutput {
                code: 1,
                output: Vec::new(),
                stderr: stderr.to_owned(),
                processor: Duration::ZERO,
            };
            assert_eq!(output.denied_part(), expected, "{stderr}");
            assert_eq!(RunOutput { code: 0, ..output }.denied_part(), None, "{stderr}");
        }
        check("open /etc/passwd: permission denied", Some(SandboxPart::Files));
        check("fork/exec /bin/sh: operation not permitted", Some(SandboxPart::SystemCalls));
        check("fatal error: runtime: out of memory", Some(SandboxPart::Memory));
        check("probe: Cannot allocate memory", Some(SandboxPart::Memory));
        check("fatal error: failed to reserve page summary memory", Some(SandboxPart::Memory));
        check(
            "runtime: failed to create new OS thread (have 5 already; errno=12)",
            Some(SandboxPart::Memory),
        );
        let collector = "runtime.(*spanQueue).tryDrain(0x7)\n\truntime/mgcmark_greenteagc.go:520 +0x5d";
        check(&format!("SIGSEGV: segmentation violation\n{collector}"), Some(SandboxPart::Memory));
        check("[signal SIGSEGV: segmentation violation]\nmain.main()\n\tmain.go:5", None);
        check("open x: too many open files", Some(SandboxPart::Descriptors));
        check("write x: File too large", Some(SandboxPart::FileSize));
        check("Error: no such file or directory", None);
        check("", None);
    }

    #[test]
    fn a_signal_names_the_part() {
        #[track_caller]
        fn check(signal: Signal, used: u64, expected: Option<SandboxPart>) {
            let used_time = Duration::from_millis(used);
            let part = part_of_signal(signal.as_raw(), used_time, Duration::from_secs(2));
            assert_eq!(part, expected, "{signal:?} after {used} ms");
        }
        check(Signal::SYS, 0, Some(SandboxPart::SystemCalls));
        check(Signal::XFSZ, 0, Some(SandboxPart::FileSize));
        check(Signal::KILL, 2000, Some(SandboxPart::Processor));
        check(Signal::KILL, 1000, Some(SandboxPart::Processor));
        check(Signal::KILL, 990, None);
        check(Signal::SEGV, 2000, None);
    }

    #[test]
    fn processor_times_are_read() {
        let line = "12 (a ) b) Z 1 12 12 0 -1 4 1 0 0 0 150 25 0 0 20 0 1 0 99 0 0";
        assert_eq!(processor_time(line, 100), Some(Duration::from_millis(1750)));
        assert_eq!(processor_time(line, 0), None);
        assert_eq!(processor_time("12 (a) Z 1", 100), None);
        assert_eq!(processor_time("", 100), None);
    }
}
