//! The packages of Debian for real nodes, unpacked into the cache and installed nowhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

use crate::error::{Context as _, Error};
use crate::programs::{cache_root, hex, lock, progress};

/// containerd with its shim, runc, the network plug-ins, and nft with its libraries.
const PACKAGES: [&str; 6] =
    ["containerd", "runc", "containernetworking-plugins", "nftables", "libnftables1", "libnftnl11"];

/// A folder that is not whole yet.
const HALF_UNPACKED: &str = "half-unpacked-";

/// Returns the folder with the files of the packages, and fills it if nobody did yet.
pub(crate) fn unpacked() -> Result<PathBuf, Error> {
    let root = cache_root()?;
    let directory = root.join(folder_name());
    if directory.is_dir() {
        return Ok(directory);
    }
    fs::create_dir_all(&root).context(|| format!("create {}", root.display()))?;
    let held = lock(&root.join("packages.lock"))?;
    if !directory.is_dir() {
        let half = tempfile::Builder::new()
            .prefix(HALF_UNPACKED)
            .tempdir_in(&root)
            .context(|| format!("create a directory in {}", root.display()))?;
        progress(&format!("downloading {} of Debian; this happens once", PACKAGES.join(", ")));
        unpack(half.path())?;
        let files = half.path().join("files");
        fs::rename(&files, &directory)
            .context(|| format!("move the packages' files to {}", directory.display()))?;
    }
    drop(held);
    Ok(directory)
}

fn folder_name() -> String {
    let digest: [u8; 32] = Sha256::digest(PACKAGES.join(" ")).into();
    format!("packages-{}", hex(&digest[..8]))
}

/// Downloads by lists of its own, which may be newer than the machine's, and leaves those alone.
fn unpack(folder: &Path) -> Result<(), Error> {
    for name in ["lists/partial", "cache/archives/partial", "packages", "files"] {
        let path = folder.join(name);
        fs::create_dir_all(&path).context(|| format!("create {}", path.display()))?;
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.current_dir(folder.join("packages")).arg("--quiet");
        for (option, name) in [("Dir::State::lists", "lists"), ("Dir::Cache", "cache")] {
            command.arg(format!("--option={option}={}", folder.join(name).display()));
        }
        command.arg("--option=APT::Sandbox::User=root").args(arguments);
        run(command)
    };
    apt(&["update"])?;
    apt(&[&["download"][..], &PACKAGES].concat())?;
    let packages = folder.join("packages");
    for entry in fs::read_dir(&packages).context(|| format!("list {}", packages.display()))? {
        let package = entry.context(|| format!("list {}", packages.display()))?.path();
        let mut command = Command::new("dpkg-deb");
        command.arg("--extract").arg(package).arg(folder.join("files"));
        run(command)?;
    }
    Ok(())
}

fn run(mut command: Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().context(|| format!("run {program}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Packages { program, output: text })
}
