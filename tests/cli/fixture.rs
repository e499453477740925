//! A place to run the program in.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A folder of its own, in which the program runs with nothing else around it.
pub(crate) struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// Writes the files, each by its path and text.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self { folder }
    }

    /// Returns a command of the program with the words of this line.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        command.current_dir(self.folder.path()).env_clear().env("HOME", self.folder.path());
        command.args(line.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command line. Returns the terminal's text, with standard error and the exit code set
    /// apart.
    pub(crate) fn run(&self, line: &str) -> String {
        transcript(line, &self.command(line).output().unwrap())
    }

    /// Runs the same, with something on standard input.
    pub(crate) fn run_with_input(&self, line: &str, input: &str) -> String {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        transcript(line, &child.wait_with_output().unwrap())
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn transcript(line: &str, output: &Output) -> String {
    let mut text = format!("$ rhumb {line}\n{}", String::from_utf8_lossy(&output.stdout));
    if !output.stderr.is_empty() {
        text += "--- standard error\n";
        text += &String::from_utf8_lossy(&output.stderr);
    }
    let code = output.status.code().expect("ended by a signal");
    text + &format!("--- exit code {code}")
}
