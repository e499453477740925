//! An image of the program for the registry of the nodes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use controlplane::Renderers;
use serde_json::json;
use tempfile::TempDir;

/// Gives the registry an image `rhumb` that trusts a certificate.
///
/// There is no builder of images here, so the Dockerfile of the example is not what makes it. It
/// has the program of this build without its debug information, `sh` and `git` of this machine, the
/// libraries of each, and `kustomize`. It has no `helm`, `ssh` and `gpg`. User and entry point are
/// those of the Dockerfile.
pub(crate) fn add(cluster: &controlplane::Cluster, trusted: &str) {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("rhumb");
    run("strip", &["-o", program.to_str().unwrap(), env!("CARGO_BIN_EXE_rhumb")]);
    let file = folder.path().join("layer.tar");
    let mut layer = Layer { archive: tar::Builder::new(File::create(&file).unwrap()), paths: Vec::new() };
    layer.add_program("/usr/bin/rhumb", &program);
    layer.add_program("/bin/sh", Path::new("/bin/sh"));
    layer.add_program("/usr/bin/git", &find("git"));
    let helper = PathBuf::from(run("git", &["--exec-path"]).trim()).join("git-remote-https");
    layer.add_program(helper.to_str().unwrap(), &helper);
    // It needs no libraries.
    let kustomize = Renderers::find().unwrap().kustomize;
    layer.add("/usr/bin/kustomize", 0o755, &fs::read(kustomize).unwrap());
    layer.add("/etc/ssl/certs/ca-certificates.crt", 0o644, trusted.as_bytes());
    layer.archive.into_inner().unwrap();
    let settings = json!({
        "User": "65534:65534", "Env": ["PATH=/usr/bin:/bin"], "WorkingDir": "/", "Entrypoint": ["/usr/bin/rhumb"],
    });
    cluster.add_image("rhumb", &file, &settings).unwrap();
}

struct Layer {
    archive: tar::Builder<File>,
    /// The paths that it has already.
    paths: Vec<String>,
}

impl Layer {
    /// Adds a program, with the libraries that the loader finds for it.
    fn add_program(&mut self, path: &str, program: &Path) {
        self.add(path, 0o755, &fs::read(program).unwrap());
        let libraries = run("ldd", &[program.to_str().unwrap()]);
        for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
            self.add(library, 0o755, &fs::read(library).unwrap());
        }
    }

    fn add(&mut self, path: &str, mode: u32, content: &[u8]) {
        if self.paths.iter().any(|known| known == path) {
            return;
        }
        self.paths.push(path.to_owned());
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        self.archive.append_data(&mut header, path.trim_start_matches('/'), content).unwrap();
    }
}

fn find(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
    places.find(|place| place.is_file()).unwrap()
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
