//! The remote repository fails in every way: the last revision stays in force, and nothing is
//! deleted.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Daemon, Remote, Repo, ServerBehavior, TestNamespace, eventually, yaml,
};

/// The time after the remote's return by which a new commit must be there: looks at a failing
/// remote are spread.
const RETURN: Duration = Duration::from_secs(90);

struct RemoteFixture {
    site: TestNamespace<'static>,
    repo: Repo,
    remote: Remote,
    daemon: Daemon,
    sent: AuditWindow<'static>,
    turn: u32,
}

fn daemon(site: &TestNamespace<'_>, remote: &Remote) -> Daemon {
    let mut command = site.command(&["run", &remote.url(), "--ref", "main", "--interval", "1s"]);
    remote.trusted(&mut command);
    Daemon::start(command)
}

/// Starts a daemon that follows a remote, and waits until it is at rest.
fn fixture(name: &str) -> RemoteFixture {
    let site = TestNamespace::new(name);
    let files: Vec<_> =
        (0..4).map(|n| (format!("m{n}.yaml"), yaml::config_map(&format!("m{n}"), "a", "1"))).collect();
    let repo = Repo::new(&files);
    let remote = Remote::of(&repo);
    let daemon = daemon(&site, &remote);
    (0..4).for_each(|n| site.await_data(&format!("m{n}"), "a", "1"));
    let sent = site.window();
    RemoteFixture { site, repo, remote, daemon, sent, turn: 1 }
}

impl RemoteFixture {
    /// Checks that applied objects are defended, and nothing was pruned.
    #[track_caller]
    fn defends(&self) {
        self.site.api.merge(&self.site.at("ConfigMap", "m1"), "them", &json!({"data": {"a": "theirs"}}));
        self.site.await_data("m1", "a", "1");
        self.site.api.delete(&self.site.at("ConfigMap", "m2"));
        self.site.await_data("m2", "a", "1");
        assert!((0..4).all(|n| self.site.has("ConfigMap", &format!("m{n}"))));
        self.sent.assert_no_deletes();
    }

    /// Commits and pushes a change of one object.
    fn push(&mut self) -> String {
        self.turn += 1;
        let wanted = self.turn.to_string();
        self.repo.change("m0.yaml", &yaml::config_map("m0", "a", &wanted));
        self.repo.git(&["push", "--quiet", "--force", "origin", "HEAD:main"]);
        wanted
    }

    /// Checks that commits pushed meanwhile arrive, and a pruning commit prunes.
    #[track_caller]
    fn recovers(&mut self, wanted: &str) {
        self.site.await_data_within(RETURN, "m0", "a", wanted);
        self.repo.remove("m3.yaml");
        self.push();
        self.site.await_absence("ConfigMap", "m3");
        let deleted: Vec<_> = self.sent.deletes().into_iter().map(|event| event.name).collect();
        assert_eq!(deleted, ["m3"]);
        assert!(self.daemon.is_running());
    }

    /// Makes the remote fail so, which is reported with the age of what is in force, and leaves it
    /// so for some looks.
    #[track_caller]
    fn fails(&self, manners: ServerBehavior, words: &str) {
        let (mark, connections) = (self.daemon.mark(), self.remote.connections());
        self.remote.set(manners);
        self.daemon.says_since(mark, &["WARN", words, "in force: ", "last seen"]);
        self.defends();
        eventually("it is looked at again", DEFAULT_TIMEOUT, || {
            let now = self.remote.connections() - connections;
            if now >= 2 { Ok(()) } else { Err(format!("{now} looks")) }
        });
        assert!(self.remote.connections() - connections < 60, "it is looked at in a loop");
    }
}

fn survives(name: &str, manners: ServerBehavior, words: &str) {
    let mut fixture = fixture(name);
    fixture.fails(manners, words);
    let wanted = fixture.push();
    fixture.remote.set(ServerBehavior::Good);
    fixture.recovers(&wanted);
}

#[test]
fn a_remote_that_is_down() {
    survives("git-down", ServerBehavior::Down, "not reachable");
}

#[test]
fn a_remote_that_answers_with_a_page() {
    survives("git-page", ServerBehavior::Page, "names no branch at all");
}

#[test]
fn a_remote_that_answers_with_nothing() {
    survives("git-empty", ServerBehavior::Empty, "names no branch at all");
}

/// Returns the number of processes of git that talk to this server.
fn talking(remote: &Remote) -> usize {
    let listed = Command::new("pgrep").args(["-f", "-c", &remote.url()]).output().unwrap();
    String::from_utf8_lossy(&listed.stdout).trim().parse().unwrap()
}

#[test]
fn a_remote_that_never_answers_is_given_up_and_holds_up_neither_repairs_nor_the_end() {
    let mut fixture = fixture("git-silent");
    for manners in [ServerBehavior::SilentAfterHandshake, ServerBehavior::Silent] {
        fixture.remote.set(manners);
        eventually("a look hangs", DEFAULT_TIMEOUT, || {
            if fixture.remote.open() > 0 { Ok(()) } else { Err("none does") }
        });
        fixture.defends();
    }
    let since = Instant::now();
    assert_eq!(fixture.daemon.stop().code(), Some(0));
    // git would give up after 20 s.
    assert!(since.elapsed() < Duration::from_secs(15), "it took {:?}", since.elapsed());
    eventually("git's processes are gone", DEFAULT_TIMEOUT, || match talking(&fixture.remote) {
        0 => Ok(()),
        some => Err(format!("{some} are there")),
    });
    // A start without a remote: what the cluster shows of ours is defended by what was kept of its
    // revision.
    let wanted = fixture.push();
    fixture.daemon = daemon(&fixture.site, &fixture.remote);
    fixture.daemon.says(&["WARN", "in force: ", "not seen since"]);
    fixture.site.api.merge(&fixture.site.at("ConfigMap", "m1"), "them", &json!({"data": {"a": "theirs"}}));
    fixture.site.await_data("m1", "a", "1");
    fixture.sent.assert_no_deletes();
    fixture.remote.set(ServerBehavior::Good);
    fixture.recovers(&wanted);
}

#[test]
fn a_slow_remote_is_given_up_and_tried_again() {
    survives("git-slow", ServerBehavior::Slow, "Operation too slow");
}

#[test]
fn a_history_that_was_rewritten_is_followed() {
    let mut fixture = fixture("git-forced");
    fixture.repo.git(&["checkout", "--quiet", "--orphan", "other"]);
    let wanted = fixture.push();
    fixture.site.await_data_within(RETURN, "m0", "a", &wanted);
    fixture.defends();
    fixture.recovers(&wanted);
}

#[test]
fn a_branch_that_was_deleted_deletes_nothing() {
    let mut fixture = fixture("git-branch");
    fixture.repo.git(&["push", "--quiet", "origin", "HEAD:trunk"]);
    // HEAD leads elsewhere, and is there: the server's answer is a whole one.
    let head = |name: &str| {
        std::fs::write(fixture.remote.path().join("HEAD"), format!("ref: refs/heads/{name}\n")).unwrap();
    };
    head("trunk");
    let mark = fixture.daemon.mark();
    fixture.repo.git(&["push", "--quiet", "origin", ":main"]);
    fixture.daemon.says_since(mark, &["WARN", "main is gone", "nothing is deleted", "in force: "]);
    fixture.defends();
    let wanted = fixture.push();
    fixture.recovers(&wanted);
}

#[test]
fn what_a_killed_fetch_left_behind_does_not_get_in_the_way() {
    let mut fixture = fixture("git-litter");
    fixture.daemon.kill();
    let store = walk(fixture.site.state.path(), "revisions.git");
    std::fs::write(store.join("shallow.lock"), "").unwrap();
    std::fs::create_dir_all(store.join("objects/pack")).unwrap();
    std::fs::write(store.join("objects/pack/tmp_pack_abc123"), "PACK half of it").unwrap();
    let wanted = fixture.push();
    fixture.daemon = daemon(&fixture.site, &fixture.remote);
    fixture.site.await_data_within(RETURN, "m0", "a", &wanted);
    fixture.defends();
    fixture.recovers(&wanted);
}

/// Returns the first folder of this name below another.
fn walk(folder: &std::path::Path, name: &str) -> std::path::PathBuf {
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        if next.ends_with(name) {
            return next;
        }
        left.extend(std::fs::read_dir(&next).into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    panic!("no {name} below {}", folder.display());
}

/// Returns a URL whose helper makes a file, where git is let to run it, and the path of that file.
fn helper_url(folder: &tempfile::TempDir) -> (String, PathBuf) {
    let made = folder.path().join("made");
    (format!("ext::touch {}", made.display()), made)
}

#[test]
fn a_repository_whose_url_is_a_command_is_refused_and_the_command_is_not_run() {
    let site = TestNamespace::new("git-helper");
    let folder = tempfile::tempdir().unwrap();
    let (url, made) = helper_url(&folder);
    let refusal = "remote helpers are not run: use https://, ssh:// or a path";
    for command in ["apply", "diff"] {
        let refused = site.rhumb(&[command, &url]);
        assert_ne!(refused.code, 0, "{refused:#?}");
        refused.says(&[refusal]);
    }
    Daemon::start(site.command(&["run", &url])).says(&[refusal]);
    let head = "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: git-helper}\n";
    site.configured(&format!("{head}spec: {{git: {{url: '{url}'}}}}\n")).says(&[refusal]);
    assert!(!made.exists());
    // It would have been: git runs it, where that is allowed.
    Command::new("git").args(["ls-remote", &url]).env("GIT_ALLOW_PROTOCOL", "ext").output().unwrap();
    assert!(made.exists());
}

#[test]
fn a_submodule_whose_url_is_a_command_is_not_read_and_the_command_is_not_run() {
    let site = TestNamespace::new("git-submodule");
    let folder = tempfile::tempdir().unwrap();
    let (url, made) = helper_url(&folder);
    let repo = Repo::new(&[("map.yaml", yaml::config_map("map", "a", "1"))]);
    repo.write(".gitmodules", &format!("[submodule \"sub\"]\n\tpath = sub\n\turl = \"{url}\"\n"));
    repo.git(&["add", ".gitmodules"]);
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", repo.head())]);
    repo.git(&["commit", "--quiet", "--message", "Add a submodule"]);
    let remote = Remote::of(&repo);
    // A repository on this host may ask for it by its own configuration too.
    let update = format!("!touch {}", made.display());
    for (key, value) in [
        ("submodule.sub.url", &*url),
        ("submodule.sub.active", "true"),
        ("submodule.sub.update", &*update),
        ("submodule.recurse", "true"),
        ("fetch.recurseSubmodules", "true"),
    ] {
        repo.git(&["config", key, value]);
    }
    let refusal = ["WARN", "sub", "a submodule or nested repository is not read"];
    let mut fetched = daemon(&site, &remote);
    fetched.says(&refusal);
    site.await_data("map", "a", "1");
    assert_eq!(fetched.stop().code(), Some(0));
    let here = site.with_empty_state();
    let mut local = here.daemon(repo.path());
    local.says(&refusal);
    site.api.merge(&site.at("ConfigMap", "map"), "them", &json!({"data": {"a": "theirs"}}));
    site.await_data("map", "a", "1");
    assert_eq!(local.stop().code(), Some(0));
    assert!(!made.exists());
}
