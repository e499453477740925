//! The shop's repository: a bare one to push to, and a working copy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;
use walkdir::WalkDir;

use crate::stage::{ErrorContext as _, Failure, Outcome};

/// The manifests that the repository begins with.
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/shop");

/// A pod that takes this long to get ready makes a rollout that can be watched.
const READY_DELAY: (&str, &str) = (
    "  template:\n    metadata:\n",
    "  template:\n    metadata:\n      annotations: {controlplane/ready-delay: 400ms}\n",
);

/// The repository.
#[derive(Debug)]
pub(crate) struct Shop {
    /// The directory that the commands are run in.
    pub(crate) place: PathBuf,
}

impl Shop {
    /// The working copy's name.
    pub(crate) const COPY: &'static str = "shop";
    /// The name of the repository that is followed.
    pub(crate) const REPOSITORY: &'static str = "shop.git";

    /// Makes the repository with its first commit.
    pub(crate) async fn found(place: &Path) -> Outcome<Self> {
        let shop = Self { place: place.to_owned() };
        copy(Path::new(MANIFESTS), &shop.copy())?;
        shop.edit("web/deployment.yaml", READY_DELAY.0, READY_DELAY.1)?;
        shop.run(place, &["init", "--quiet", "--bare", "--initial-branch=main", Self::REPOSITORY]).await?;
        shop.git(&["init", "--quiet", "--initial-branch=main"]).await?;
        shop.git(&["config", "user.name", "A developer"]).await?;
        shop.git(&["config", "user.email", "developer@example.org"]).await?;
        shop.git(&["remote", "add", "origin", &format!("../{}", Self::REPOSITORY)]).await?;
        shop.commit("Open the shop").await?;
        shop.git(&["push", "--quiet", "--set-upstream", "origin", "main"]).await?;
        Ok(shop)
    }

    /// Returns the working copy.
    pub(crate) fn copy(&self) -> PathBuf {
        self.place.join(Self::COPY)
    }

    /// Replaces a text in a file of the working copy.
    pub(crate) fn edit(&self, file: &str, from: &str, to: &str) -> Outcome {
        let path = self.copy().join(file);
        let text = fs::read_to_string(&path).expected(format!("to read {}", path.display()))?;
        if !text.contains(from) {
            return Err(Failure::new(format!("{from:?} in examples/shop/{file}"), "it is not there"));
        }
        fs::write(&path, text.replace(from, to)).expected(format!("to write {}", path.display()))
    }

    /// Writes a new file of the working copy.
    pub(crate) fn write(&self, file: &str, text: &str) -> Outcome {
        let path = self.copy().join(file);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).expected(format!("to make {}", folder.display()))?;
        fs::write(&path, text).expected(format!("to write {}", path.display()))
    }

    /// Removes a file of the working copy.
    pub(crate) fn remove(&self, file: &str) -> Outcome {
        fs::remove_file(self.copy().join(file)).expected(format!("to remove {file}"))
    }

    /// Commits everything.
    pub(crate) async fn commit(&self, message: &str) -> Outcome {
        self.git(&["add", "--all"]).await?;
        self.git(&["commit", "--quiet", "--message", message]).await
    }

    /// Pushes.
    pub(crate) async fn push(&self) -> Outcome {
        self.git(&["push", "--quiet"]).await
    }

    async fn git(&self, arguments: &[&str]) -> Outcome {
        self.run(&self.copy(), arguments).await
    }

    /// Runs git without the hooks, signatures and templates of whoever watches.
    async fn run(&self, directory: &Path, arguments: &[&str]) -> Outcome {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(directory)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .output()
            .await
            .expected("to start git (2.39 or newer)")?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format!("git {} to work", arguments.join(" ")), said.trim()))
    }
}

fn copy(from: &Path, to: &Path) -> Outcome {
    for entry in WalkDir::new(from) {
        let entry = entry.expected(format!("to read {}", from.display()))?;
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(Path::new("")));
        let done = if entry.file_type().is_dir() {
            fs::create_dir_all(&target)
        } else {
            fs::copy(entry.path(), &target).map(drop)
        };
        done.expected(format!("to write {}", target.display()))?;
    }
    Ok(())
}
