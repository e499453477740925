//! kubectl with a home of its own.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

use crate::cluster::Cluster;
use crate::error::{Context as _, Error};
use crate::part::Program;

impl Cluster {
    /// Runs kubectl as `admin` and returns what it prints; anything but success is an error.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String, Error> {
        self.kubectl_in(arguments, "")
    }

    /// Runs kubectl as `admin` with a text on its standard input (`-f -`) and returns what it
    /// prints.
    pub fn kubectl_in(&self, arguments: &[&str], input: &str) -> Result<String, Error> {
        if !self.program(Program::Kubectl).is_file() {
            return Err(Error::Absent("kubectl: the directory of its programs has none"));
        }
        let action = || format!("run kubectl {}", arguments.join(" "));
        let mut command = self.kubectl_command();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context(action)?;
        let stdin = child.stdin.take();
        // kubectl may print before it has read everything, so both go on at once.
        let (fed, output) = thread::scope(|scope| {
            let feeder =
                scope.spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes())));
            let output = child.wait_with_output();
            (feeder.join(), output)
        });
        let output = output.context(action)?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(Error::Kubectl {
                args: arguments.join(" "),
                status: output.status.to_string(),
                stderr: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
                stdout,
            });
        }
        // A successful kubectl that did not want its whole input is fine.
        drop(fed);
        Ok(stdout)
    }

    /// Prepares a kubectl command as `admin`; `--kubeconfig` makes it another user's.
    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(self.program(Program::Kubectl));
        command.env("HOME", self.home()).env("KUBECONFIG", self.kubeconfig());
        command
    }
}
