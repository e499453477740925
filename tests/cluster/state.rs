//! The state directory is only a cache. Without it, or with a broken one, everything is found again
//! in git and in the cluster, or there is a clear error. Nothing is ever deleted because of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Daemon, ProgramOutput, Remote, Repo, ServerBehavior, TestNamespace,
    eventually, run, yaml,
};

struct StateFixture {
    site: TestNamespace<'static>,
    repo: Repo,
    remote: Remote,
    sent: AuditWindow<'static>,
}

/// Returns a place where a daemon that has ended has applied from a remote.
fn fixture(name: &str) -> StateFixture {
    let site = TestNamespace::new(name);
    let files: Vec<_> =
        (0..4).map(|n| (format!("m{n}.yaml"), yaml::config_map(&format!("m{n}"), "a", "1"))).collect();
    let repo = Repo::new(&files);
    let remote = Remote::of(&repo);
    let fixture = StateFixture { sent: site.window(), site, repo, remote };
    let mut daemon = fixture.daemon();
    (0..4).for_each(|n| fixture.site.await_data(&format!("m{n}"), "a", "1"));
    // The store is made before the first revision is read, and the pins when nothing is left to do.
    await_pin(&fixture.site);
    assert_eq!(daemon.stop().code(), Some(0));
    StateFixture { sent: fixture.site.window(), ..fixture }
}

impl StateFixture {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.site.command(arguments);
        self.remote.trusted(&mut command);
        command
    }

    fn daemon(&self) -> Daemon {
        Daemon::start(self.command(&["run", &self.remote.url(), "--interval", "1s"]))
    }

    fn apply(&self) -> ProgramOutput {
        run(self.command(&["apply", &self.remote.url(), "--ref", "main", "--prune"]))
    }

    fn store(&self) -> PathBuf {
        below(self.site.state.path(), "revisions.git")
    }

    /// Commits a change, and removes one of the objects.
    fn push(&self, wanted: &str) {
        self.repo.write("m0.yaml", &yaml::config_map("m0", "a", wanted));
        self.repo.git(&["rm", "--quiet", "--ignore-unmatch", "m3.yaml"]);
        self.repo.commit("Change");
        self.repo.git(&["push", "--quiet", "origin", "HEAD:main"]);
    }

    fn drift(&self) {
        self.site.api.merge(&self.site.at("ConfigMap", "m1"), "them", &json!({"data": {"a": "theirs"}}));
    }

    /// Starts the daemon again, and checks that it does what a commit asks for after that.
    #[track_caller]
    fn starts_again(&self, words: &[&str]) {
        self.drift();
        let daemon = self.daemon();
        self.site.await_data("m1", "a", "1");
        self.sent.assert_no_deletes();
        if !words.is_empty() {
            daemon.says(words);
        }
        self.push("2");
        self.site.await_data("m0", "a", "2");
        self.site.await_absence("ConfigMap", "m3");
        let deleted: Vec<_> = self.sent.deletes().into_iter().map(|event| event.name).collect();
        assert_eq!(deleted, ["m3"]);
        let made = self.sent.writes().into_iter().filter(|event| event.code == 201).count();
        assert_eq!(made, 0);
    }
}

/// Waits until a revision is pinned in the store of the site's only source.
#[track_caller]
pub(crate) fn await_pin(site: &TestNamespace<'_>) {
    eventually("the revision is kept", DEFAULT_TIMEOUT, || {
        let pins = below(site.state.path(), "revisions.git").join("refs/rhumb/keep");
        if fs::read_dir(pins).is_ok_and(|mut pins| pins.next().is_some()) { Ok(()) } else { Err("it is not") }
    });
}

/// Returns the first folder of this name below another.
fn below(folder: &Path, name: &str) -> PathBuf {
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        if next.ends_with(name) {
            return next;
        }
        left.extend(fs::read_dir(&next).into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    folder.join(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        for path in fs::read_dir(&next).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() { left.push(path) } else { found.push(path) }
        }
    }
    found
}

#[test]
fn a_deleted_state_directory_is_made_again() {
    let fixture = fixture("state-gone");
    for entry in fs::read_dir(fixture.site.state.path()).unwrap() {
        fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    fixture.starts_again(&[]);
}

#[test]
fn a_state_directory_full_of_nonsense_is_moved_aside_and_made_again() {
    let fixture = fixture("state-broken");
    for file in files(&fixture.store()) {
        fs::remove_file(&file).unwrap();
        fs::write(&file, "nonsense").unwrap();
    }
    fixture.starts_again(&["damaged store"]);
}

#[test]
fn a_lost_object_in_the_store_is_fetched_again() {
    let fixture = fixture("state-hole");
    let packs = files(&fixture.store().join("objects"));
    assert!(!packs.is_empty());
    for pack in &packs {
        fs::remove_file(pack).unwrap();
    }
    fixture.starts_again(&[]);
}

#[test]
fn a_state_directory_that_goes_while_the_daemon_runs_is_made_again() {
    let fixture = fixture("state-pulled");
    let _daemon = fixture.daemon();
    fixture.drift();
    fixture.site.await_data("m1", "a", "1");
    let trash = TempDir::new().unwrap();
    for entry in fs::read_dir(fixture.site.state.path()).unwrap() {
        let entry = entry.unwrap();
        fs::rename(entry.path(), trash.path().join(entry.file_name())).unwrap();
    }
    fixture.drift();
    fixture.site.await_data("m1", "a", "1");
    fixture.sent.assert_no_deletes();
    fixture.push("2");
    fixture.site.await_data("m0", "a", "2");
    fixture.site.await_absence("ConfigMap", "m3");
}

#[test]
fn neither_git_nor_state_is_no_reason_to_delete() {
    let fixture = fixture("state-nothing");
    for entry in fs::read_dir(fixture.site.state.path()).unwrap() {
        fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    fixture.remote.set(ServerBehavior::Down);
    let mut daemon = fixture.daemon();
    daemon.says(&["WARN", "not reachable"]);
    fixture.apply().ends(2).says(&["not reachable"]);
    assert!(daemon.is_running());
    fixture.sent.assert_silent();
    fixture.remote.set(ServerBehavior::Good);
    fixture.push("2");
    fixture.site.await_data("m0", "a", "2");
    fixture.site.await_absence("ConfigMap", "m3");
}

/// Returns a command whose files cannot grow, as on a full disk. The signal for it is ignored, so
/// that the system call fails. Pipes are no files.
fn on_a_full_disk(command: &Command) -> Command {
    let mut full = Command::new("/bin/sh");
    full.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]).arg(command.get_program());
    full.args(command.get_args());
    full.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    full.env_remove("RUST_LOG");
    full
}

#[test]
fn a_state_directory_that_cannot_be_written_is_a_clear_error_and_deletes_nothing() {
    let fixture = fixture("state-closed");
    fixture.push("2");
    let elsewhere = TempDir::new().unwrap();
    let file = elsewhere.path().join("file");
    fs::write(&file, "a file is where the directory should be").unwrap();
    let full = elsewhere.path().join("full");
    for path in [file.as_path(), Path::new("/proc/sys/rhumb"), &full] {
        let url = fixture.remote.url();
        for arguments in
            [&["apply", &url, "--ref", "main", "--prune"], &["run", &url, "--ref", "main", "--interval=1s"]]
        {
            let mut command = fixture.command(arguments);
            command.env("STATE_DIRECTORY", path);
            if path == full {
                command = on_a_full_disk(&command);
            }
            if arguments[0] == "apply" {
                let ended = run(command);
                assert!([2, 3].contains(&ended.code), "{ended:#?}");
                ended.says(&["state directory", path.to_str().unwrap()]);
            } else {
                let daemon = Daemon::start(command);
                daemon.says(&["state directory", path.to_str().unwrap()]);
            }
            fixture.sent.assert_silent();
        }
    }
    // With a place to write to it goes on.
    fixture.apply().ends(0);
    assert!(!fixture.site.has("ConfigMap", "m3"));
    assert_eq!(fixture.site.data("m0", "a"), "2");
}
