//! The policy as words of a command line, and back.
//!
//! They are made and read by the same program, in one fixed order. A variable could come from
//! elsewhere.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::policy::{NetworkReach, ProgramCommand, SandboxLimits, SandboxPolicy};
use crate::config::SandboxMode;

/// The part of a policy that the process raises around itself. Deadline and output are held by who
/// started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SandboxedStart {
    /// The process that started it, without which it must not live.
    pub(super) parent: u32,
    pub(super) mode: SandboxMode,
    pub(super) memory: u64,
    pub(super) processor: u64,
    pub(super) file: u64,
    pub(super) descriptors: u64,
    pub(super) readable: Vec<PathBuf>,
    pub(super) private: PathBuf,
    pub(super) network: NetworkReach,
    /// The program and its arguments; none only sets up the sandbox and reports it.
    pub(super) command: Option<(PathBuf, Vec<OsString>)>,
}

impl SandboxedStart {
    pub(super) fn new(parent: u32, policy: &SandboxPolicy, command: Option<&ProgramCommand>) -> Self {
        let SandboxLimits { memory, processor, file, descriptors, .. } = policy.limits;
        Self {
            parent,
            mode: policy.mode,
            memory,
            processor: processor.as_secs().max(1),
            file,
            descriptors,
            readable: policy.readable.clone(),
            private: policy.private.clone(),
            network: policy.network.clone(),
            command: command.map(|command| (command.program.clone(), command.arguments.clone())),
        }
    }

    pub(super) fn words(&self) -> Vec<OsString> {
        let mode = match self.mode {
            SandboxMode::Full => "full",
            SandboxMode::Seccomp => "seccomp",
        };
        let mut words: Vec<OsString> = vec![mode.into(), self.parent.to_string().into()];
        let numbers = [self.memory, self.processor, self.file, self.descriptors, self.readable.len() as u64];
        words.extend(numbers.map(|number| number.to_string().into()));
        words.extend(self.readable.iter().map(OsString::from));
        words.push(self.private.clone().into());
        words.push(match &self.network {
            NetworkReach::None => NO_NETWORK_WORD.into(),
            NetworkReach::Ports(ports) => {
                ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",").into()
            }
        });
        if let Some((program, arguments)) = &self.command {
            words.push(program.clone().into());
            words.extend(arguments.iter().cloned());
        }
        words
    }

    /// Reads a policy; none where the words are not those of [`Self::words`].
    pub(super) fn read(words: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut words = words.into_iter();
        let mode = match words.next()?.as_bytes() {
            b"full" => SandboxMode::Full,
            b"seccomp" => SandboxMode::Seccomp,
            _ => return None,
        };
        let parent = number(&words.next()?)?;
        let mut numbers = [0; 5];
        for slot in &mut numbers {
            *slot = number(&words.next()?)?;
        }
        let [memory, processor, file, descriptors, readable] = numbers;
        let mut paths = (0..readable).map(|_| words.next().map(PathBuf::from));
        let readable = paths.by_ref().collect::<Option<_>>()?;
        let private = words.next()?.into();
        let network = network(&words.next()?)?;
        let command = words.next().map(|program| (program.into(), words.collect()));
        Some(Self {
            parent: u32::try_from(parent).ok()?,
            mode,
            memory,
            processor,
            file,
            descriptors,
            readable,
            private,
            network,
            command,
        })
    }
}

/// Stands for no network.
const NO_NETWORK_WORD: &str = "none";

fn network(word: &OsStr) -> Option<NetworkReach> {
    match word.to_str()? {
        NO_NETWORK_WORD => Some(NetworkReach::None),
        "" => Some(NetworkReach::Ports(Vec::new())),
        ports => {
            let ports = ports.split(',').map(str::parse);
            ports.collect::<Result<_, _>>().ok().map(NetworkReach::Ports)
        }
    }
}

fn number(word: &OsStr) -> Option<u64> {
    word.to_str()?.parse().ok()
}

/// The prefix of an error after the sandbox is in force.
const STARTED_MESSAGE: &str = "begins\n";

/// The reports of the process while it still is this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StartReport {
    /// The sandbox works, and the program begins.
    Started,
    /// This part cannot be set up here, and the policy asks for it.
    Unsupported { part: String, reason: String },
    /// The program is none that can be run.
    NoProgram(String),
    /// Anything else that went wrong before the program ran.
    Failed(String),
    /// The sandbox works, with the newest Landlock that the kernel has.
    Works { landlock: u32 },
}

impl StartReport {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Started => STARTED_MESSAGE.to_owned(),
            Self::Unsupported { part, reason } => format!("unsupported\n{part}\n{reason}"),
            Self::NoProgram(reason) => format!("no-program\n{reason}"),
            Self::Failed(reason) => format!("failed\n{reason}"),
            Self::Works { landlock } => format!("stands\n{landlock}"),
        }
    }

    /// Reads the last report. None where nothing was said: the process ended before it began.
    pub(super) fn read(text: &str) -> Option<Self> {
        let last = text.strip_prefix(STARTED_MESSAGE).filter(|last| !last.is_empty()).unwrap_or(text);
        let (kind, rest) = last.split_once('\n')?;
        Some(match kind {
            "unsupported" => {
                let (part, reason) = rest.split_once('\n')?;
                Self::Unsupported { part: part.to_owned(), reason: reason.to_owned() }
            }
            "begins" => Self::Started,
            "no-program" => Self::NoProgram(rest.to_owned()),
            "stands" => Self::Works { landlock: rest.parse().ok()? },
            _ => Self::Failed(rest.to_owned()),
        })
    }
}

/// Returns a path without the bytes that no file has in its name.
pub(super) fn path_text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn start(readable: &[&str], command: Option<(&str, &[&[u8]])>) -> SandboxedStart {
        SandboxedStart {
            parent: 7,
            mode: SandboxMode::Seccomp,
            memory: 1 << 40,
            processor: 60,
            file: 0,
            descriptors: 64,
            readable: readable.iter().map(PathBuf::from).collect(),
            private: "/run/private".into(),
            network: NetworkReach::None,
            command: command.map(|(program, arguments)| {
                let arguments = arguments.iter().map(|word| OsString::from_vec(word.to_vec()));
                (program.into(), arguments.collect())
            }),
        }
    }

    #[test]
    fn words_are_read_as_they_were_written() {
        for expected in [
            start(&[], None),
            start(&["/a", "/b c"], Some(("/usr/bin/kustomize", &[]))),
            start(&["--full", "7"], Some(("-", &[b"build", b"", b"--", b"\xff\n"]))),
            SandboxedStart { network: NetworkReach::Ports(Vec::new()), ..start(&[], None) },
            SandboxedStart {
                network: NetworkReach::Ports(vec![53, 443]),
                ..start(&["/a"], Some(("/b", &[])))
            },
        ] {
            assert_eq!(SandboxedStart::read(expected.words()), Some(expected.clone()), "{expected:?}");
        }
    }

    #[test]
    fn other_words_are_none() {
        let words_of_start = start(&["/a"], None).words();
        for length in 0..words_of_start.len() {
            assert_eq!(SandboxedStart::read(words_of_start[..length].to_vec()), None, "{length}");
        }
        for (number, word) in [(0, "none"), (1, "-1"), (2, "many"), (6, "2"), (9, "443;"), (9, "65536")] {
            let mut words = words_of_start.clone();
            words[number] = word.into();
            assert_eq!(SandboxedStart::read(words), None, "{number}: {word}");
        }
    }

    #[test]
    fn reports_are_read_as_they_were_written() {
        for expected in [
            StartReport::Started,
            StartReport::Unsupported { part: "landlock".to_owned(), reason: "a\nb".to_owned() },
            StartReport::NoProgram("/bin/x: no".to_owned()),
            StartReport::Failed(String::new()),
            StartReport::Works { landlock: 7 },
        ] {
            assert_eq!(StartReport::read(&expected.text()), Some(expected.clone()), "{expected:?}");
        }
        assert_eq!(StartReport::read(""), None);
        let late = StartReport::NoProgram("/bin/x: no".to_owned());
        assert_eq!(StartReport::read(&(StartReport::Started.text() + &late.text())), Some(late));
    }
}
