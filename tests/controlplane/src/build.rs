//! The Go toolchain and how it builds each program.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Context as _, Error};
use crate::logs;
use crate::part::{self, Program};
use crate::programs::{guarded, progress};

/// The oldest Go release that the modules accept (their go.mod files say so).
const NEEDED: (u32, u32) = (1, 26);
const NEEDED_TEXT: &str = "1.26";

/// The interval at which a build that goes on says so.
const REMINDER: Duration = Duration::from_secs(30);

/// The Go toolchain of this machine.
#[derive(Debug)]
pub(crate) struct Toolchain {
    version: String,
    platform: String,
}

impl Toolchain {
    /// Asks `go` for its version; it must be new enough, since no other toolchain is downloaded.
    pub(crate) fn find() -> Result<Self, Error> {
        let answer =
            go(Path::new(env!("CARGO_MANIFEST_DIR"))).args(["env", "GOVERSION", "GOOS", "GOARCH"]).output();
        let answer = match answer {
            Ok(answer) if answer.status.success() => String::from_utf8_lossy(&answer.stdout).into_owned(),
            Ok(answer) => {
                let stderr = String::from_utf8_lossy(&answer.stderr);
                return Err(unfit(format!("`go env` failed: {}", stderr.trim())));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(unfit("there is no `go` in PATH".to_owned()));
            }
            Err(error) => return Err(unfit(format!("`go` cannot be run: {error}"))),
        };
        let mut lines = answer.lines();
        let version = lines.next().unwrap_or_default().to_owned();
        if release(&version).is_none_or(|found| found < NEEDED) {
            return Err(unfit(format!("`go` is {version}")));
        }
        Ok(Self { version, platform: lines.collect::<Vec<_>>().join("/") })
    }

    /// Returns what of the toolchain goes into a program.
    pub(crate) fn identity(&self) -> String {
        format!("{} {}", self.version, self.platform)
    }
}

fn unfit(found: String) -> Error {
    Error::Go { needed: NEEDED_TEXT, found, programs: part::names(&Program::ALL) }
}

/// Reads `go1.26.8` or `go1.27rc1`; a development toolchain has no release and is refused.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix("go")?.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
    Some((major, minor[..digits].parse().ok()?))
}

fn go(directory: &Path) -> Command {
    let mut command = Command::new("go");
    settings(&mut command, directory);
    command
}

fn settings(command: &mut Command, directory: &Path) {
    command
        .current_dir(directory)
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .env_remove("GOFLAGS");
}

/// Returns the folder with the go.mod that pins a program.
pub(crate) fn module_directory(program: Program) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(program.module())
}

/// Reads a program's version from its go.mod.
pub(crate) fn version(program: Program) -> Result<String, Error> {
    let Some(requirement) = program.requirement() else { return Ok("v0.0".to_owned()) };
    let path = module_directory(program).join("go.mod");
    let text = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
    let required = |line: &str| {
        let line = line.trim().trim_start_matches("require ");
        line.strip_prefix(requirement)
            .filter(|rest| rest.starts_with(' '))
            .and_then(|rest| rest.split_whitespace().next().map(str::to_owned))
    };
    text.lines().find_map(required).ok_or_else(|| Error::Build {
        program: program.file_name(),
        output: format!("{} does not require {requirement}", path.display()),
    })
}

/// Returns the linker's flags: stripped, and with the version that the servers report.
pub(crate) fn ldflags(program: Program) -> Result<String, Error> {
    let version = version(program)?;
    let mut flags = vec!["-s -w".to_owned()];
    match program {
        // They know their versions by themselves.
        Program::Etcd
        | Program::Kustomize
        | Program::Sops
        | Program::AgeKeygen
        | Program::Envsubst
        | Program::Registry
        | Program::RealNode
        | Program::App => {}
        Program::Helm3 => flags.push(format!("-X helm.sh/helm/v3/internal/version.version={version}")),
        Program::Helm4 => flags.push(format!("-X helm.sh/helm/v4/internal/version.version={version}")),
        Program::Kwok => flags.push(format!("-X sigs.k8s.io/kwok/pkg/consts.Version={version}")),
        _ => {
            let mut numbers = version.trim_start_matches('v').split('.');
            let major = numbers.next().unwrap_or_default();
            let minor = numbers.next().unwrap_or_default();
            for (name, value) in [
                ("gitVersion", &*version),
                ("gitMajor", major),
                ("gitMinor", minor),
                ("gitTreeState", "clean"),
            ] {
                flags.push(format!("-X k8s.io/component-base/version.{name}={value}"));
            }
        }
    }
    Ok(flags.join(" "))
}

/// Builds one program into a directory, with a line when it begins and one when it is done.
pub(crate) fn program(
    toolchain: &Toolchain,
    program: Program,
    into: &Path,
    count: &str,
) -> Result<(), Error> {
    let name = program.file_name();
    let version = version(program)?;
    progress(&format!("building {name} {version} with {} ({count})", toolchain.version));
    let begun = Instant::now();
    let log = into.join(format!("{name}.log"));
    let output = File::create(&log).context(|| format!("create {}", log.display()))?;
    let copy = output.try_clone().context(|| format!("duplicate {}", log.display()))?;
    let mut command = guarded(Path::new("go"));
    settings(&mut command, &module_directory(program));
    command
        .args([
            "build",
            "-mod=readonly",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            &ldflags(program)?,
            "-o",
        ])
        .arg(into.join(name))
        .arg(program.package())
        .stdout(output)
        .stderr(copy);
    let status = run(&mut command, name, begun)?;
    if !status.success() {
        return Err(Error::Build { program: name, output: logs::tail(&log) });
    }
    fs::remove_file(&log).context(|| format!("remove {}", log.display()))?;
    progress(&format!("built {name} in {} s", begun.elapsed().as_secs()));
    Ok(())
}

fn run(command: &mut Command, name: &str, begun: Instant) -> Result<ExitStatus, Error> {
    let mut child = command.spawn().context(|| "start `go build`".to_owned())?;
    // `wait` would close the guard's pipe and so end the build.
    let guard = child.stdin.take();
    let mut reminder = begun + REMINDER;
    let status = loop {
        if let Some(status) = child.try_wait().context(|| "wait for `go build`".to_owned())? {
            break status;
        }
        if Instant::now() >= reminder {
            progress(&format!("still building {name}, {} s so far", begun.elapsed().as_secs()));
            reminder += REMINDER;
        }
        thread::sleep(Duration::from_millis(50));
    };
    drop(guard);
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read() {
        for (text, expected) in [
            ("go1.26.8", Some((1, 26))),
            ("go1.26", Some((1, 26))),
            ("go1.27rc1", Some((1, 27))),
            ("go1.9.1", Some((1, 9))),
            ("devel go1.27-abc", None),
            ("", None),
        ] {
            assert_eq!(release(text), expected, "{text}");
        }
    }

    #[test]
    fn versions_come_from_the_modules() {
        let renderers = [Program::Kustomize, Program::Helm3, Program::Helm4];
        let others = [Program::Sops, Program::AgeKeygen, Program::Envsubst, Program::Registry];
        let nodes = [Program::Kubelet, Program::KubeProxy, Program::RealNode];
        for program in Program::ALL.into_iter().chain(renderers).chain(others).chain(nodes) {
            let version = version(program).unwrap();
            assert!(version.starts_with('v') && version.contains('.'), "{program:?}: {version}");
        }
        assert!(ldflags(Program::Apiserver).unwrap().contains(".gitVersion=v1."));
    }
}
