//! What the tests share: one control plane, folders of manifests, and runs of the program.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use controlplane::Cluster;
use tempfile::TempDir;

/// The control plane that tests without faults share, each in namespaces of its own.
pub fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| Cluster::builder().audit().start().unwrap_or_else(|error| panic!("{error}")))
}

/// A folder of manifests, and a state directory.
pub struct Place {
    pub files: TempDir,
    pub state: TempDir,
}

impl Place {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let place = Self { files: TempDir::new().unwrap(), state: TempDir::new().unwrap() };
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    pub fn path(&self) -> &Path {
        self.files.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.files.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.files.path().join(name)).unwrap();
    }
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program against a cluster, as its own user of the API.
pub fn rhumb(cluster: &Cluster, place: &Place, arguments: &[&str]) -> Run {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_rhumb"))
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig_for("rhumb").unwrap())
        .env("STATE_DIRECTORY", place.state.path())
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
