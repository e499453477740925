//! Faults of the repository, on this host and on a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use walkdir::WalkDir;

use crate::desired::FIRST;
use crate::fault::{Fault, Obstacle};
use crate::stage::{Effect, Shape, Stage};
use crate::support::ServerBehavior;

/// Returns all rows.
pub(crate) fn faults() -> Vec<Fault> {
    [histories(), stores(), places(), contents(), servers()].into_iter().flatten().collect()
}

fn histories() -> Vec<Fault> {
    vec![
        Fault::new("a force-push to a sibling", "the branch", |stage| {
            stage.change();
            stage.pass(200, 2000);
            stage.write_next();
            stage.repo.git(&["add", "--all"]);
            stage.repo.git(&["commit", "--quiet", "--amend", "--message", "Change it in another way"]);
            Ok(())
        }),
        Fault::new("a force-push to an older commit, and back", "the branch", |stage| {
            stage.allow(Effect::GoesToOlderCommits);
            stage.change();
            stage.pass(500, 4000);
            stage.while_unknown(|stage| {
                // `fresh` goes in between, and comes back.
                stage.repo.git(&["branch", "kept"]);
                stage.repo.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
                stage.pass(0, 100);
                stage.repo.git(&["reset", "--quiet", "--hard", "kept"]);
            });
            stage.allowance.recreations.insert("fresh".to_owned(), 1);
            stage.allowance.deletions.insert("fresh".to_owned());
            stage.allowance.edits += 2;
            // The controller of a Deployment that is taken up again may take one pod more.
            stage.allowance.pods = 1;
            Ok(())
        }),
        Fault::new("an unrelated history with the same files", "the branch", |stage| {
            stage.write_next();
            stage.repo.git(&["checkout", "--quiet", "--orphan", "other"]);
            stage.commit("Begin anew");
            stage.repo.git(&["branch", "--quiet", "--force", "main", "other"]);
            stage.repo.git(&["checkout", "--quiet", "main"]);
            stage.pass(500, 3000);
            Ok(())
        }),
        Fault::new("a branch that is gone for a while", "the branch", |stage| {
            stage.change();
            stage.pass(0, 1000);
            stage.while_unknown(|stage| {
                stage.repo.git(&["checkout", "--quiet", "--detach"]);
                stage.repo.git(&["branch", "--quiet", "--move", "main", "elsewhere"]);
                stage.repo.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
                stage.pass(1500, 4000);
                stage.repo.git(&["branch", "--quiet", "--move", "elsewhere", "main"]);
            });
            Ok(())
        }),
        Fault::new("thirty commits at once", "the branch", |stage| {
            for _ in 0..30 {
                stage.write_next();
                stage.commit("Change everything");
            }
            stage.allowance.edits += 30;
            stage.allowance.pods = 1;
            Ok(())
        }),
        Fault::new("a lock that somebody left behind", "the repository", |stage| {
            stage.change();
            let locks = ["refs/heads/main.lock", "index.lock", "packed-refs.lock"];
            let locks = locks.map(|name| stage.repo.path().join(".git").join(name));
            for lock in &locks {
                fs::write(lock, "").unwrap();
            }
            stage.pass(1000, 3000);
            for lock in &locks {
                fs::remove_file(lock).unwrap();
            }
            Ok(())
        }),
    ]
}

/// Returns the files of the object store.
fn object_files(repository: &Path) -> Vec<PathBuf> {
    let entries = WalkDir::new(repository.join(".git/objects")).sort_by_file_name().into_iter();
    let files = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
    files.map(walkdir::DirEntry::into_path).collect()
}

/// Spoils files, lets a commit and a start pass, and puts the files back.
fn with_spoiled_files(
    stage: &mut Stage,
    files: &[PathBuf],
    spoil: impl Fn(&Path, &[u8]),
) -> Result<(), Obstacle> {
    let before: Vec<(PathBuf, Vec<u8>)> =
        files.iter().filter_map(|file| Some((file.clone(), fs::read(file).ok()?))).collect();
    if before.is_empty() {
        return Err(Obstacle::Unmet("there is nothing to spoil".to_owned()));
    }
    stage.while_unknown(|stage| {
        for (file, bytes) in &before {
            // Objects are read-only.
            let _ = fs::remove_file(file);
            spoil(file, bytes);
        }
        let empty = stage.random.below(2) == 0;
        if empty {
            stage.daemon().kill();
            crate::processes::empty(stage.daemon().site.state.path());
            stage.daemon().start();
        }
        stage.pass(2000, 4000);
        stage.check_status();
        for (file, bytes) in &before {
            let _ = fs::remove_file(file);
            fs::write(file, bytes).unwrap();
        }
    });
    // A look is asked for by a change of the branch.
    stage.commit("Look again");
    Ok(())
}

fn flipped(file: &Path, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    for byte in bytes.iter_mut().skip(24).step_by(37) {
        *byte ^= 0x55;
    }
    fs::write(file, bytes).unwrap();
}

fn cut(file: &Path, bytes: &[u8]) {
    fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
}

/// Commits a change while its objects are spoiled: they are so before anybody can read them.
fn spoiled_objects(name: &'static str, spoil: fn(&Path, &[u8])) -> Fault {
    Fault::new(name, "the objects of a commit", move |stage| {
        let known = object_files(stage.repo.path());
        stage.daemon().signal("STOP");
        stage.change();
        let new: Vec<PathBuf> =
            object_files(stage.repo.path()).into_iter().filter(|file| !known.contains(file)).collect();
        let done = with_spoiled_files(stage, &new, spoil);
        stage.daemon().signal("CONT");
        done
    })
}

fn stores() -> Vec<Fault> {
    vec![
        Fault::new("git gc --prune=now, again and again", "the repository", |stage| {
            for _ in 0..4 {
                stage.write_next();
                stage.commit("Change everything");
                stage.repo.git(&["gc", "--quiet", "--prune=now", "--aggressive"]);
                stage.pass(0, 500);
            }
            stage.allowance.edits += 4;
            stage.allowance.pods = 1;
            Ok(())
        }),
        spoiled_objects("corrupt objects", flipped),
        spoiled_objects("objects cut in half", cut),
        spoiled_objects("missing objects", |_, _| {}),
        Fault::new("a corrupt pack", "the pack of the repository", |stage| {
            stage.daemon().signal("STOP");
            stage.change();
            stage.repo.git(&["gc", "--quiet", "--prune=now"]);
            let mut packs = object_files(stage.repo.path());
            packs.retain(|file| file.extension().is_some_and(|extension| extension == "pack"));
            let done = with_spoiled_files(stage, &packs, flipped);
            stage.daemon().signal("CONT");
            done
        }),
    ]
}

fn places() -> Vec<Fault> {
    vec![
        Fault::new("a repository that is away for a while", "the repository", |stage| {
            stage.change();
            stage.pass(0, 1000);
            let path = stage.repo.path().to_owned();
            let away = path.with_extension("away");
            stage.while_unknown(|stage| {
                fs::rename(&path, &away).unwrap();
                stage.pass(2000, 4000);
                fs::rename(&away, &path).unwrap();
            });
            stage.remove_old();
            Ok(())
        }),
        Fault::new("an empty folder in the place of a repository", "the repository", |stage| {
            let path = stage.repo.path().to_owned();
            let away = path.with_extension("away");
            stage.while_unknown(|stage| {
                fs::rename(&path, &away).unwrap();
                fs::create_dir(&path).unwrap();
                let restarts = stage.random.below(2) == 0;
                if restarts {
                    stage.daemon().restart();
                }
                stage.pass(2000, 4000);
                fs::remove_dir_all(&path).unwrap();
                fs::rename(&away, &path).unwrap();
            });
            Ok(())
        }),
        Fault::new("another repository in the place", "the repository", |stage| {
            let path = stage.repo.path().to_owned();
            let away = path.with_extension("away");
            stage.while_unknown(|stage| {
                fs::rename(&path, &away).unwrap();
                let words = ["init", "--quiet", "--initial-branch=main"];
                let made = Command::new("git").args(words).arg(&path).status().unwrap();
                assert!(made.success());
                stage.repo.write("a/own.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own-a}\n");
                stage.repo.commit("Begin");
                stage.pass(2000, 4000);
                fs::remove_dir_all(&path).unwrap();
                fs::rename(&away, &path).unwrap();
            });
            // It was wanted for a while, and is not any more.
            stage.desired.write("a/own.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own-a}\n");
            stage.desired.remove("a/own.yaml");
            stage.desired.keep("own-a");
            stage.allowance.deletions.insert("own-a".to_owned());
            // Two at once would be beyond the blast radius.
            stage.await_live("it is pruned", |stage| stage.observer.live("ConfigMap", "own-a").is_none())?;
            Ok(())
        }),
    ]
}

/// Commits something that cannot be used, and takes it back. An object that is removed beside it is
/// pruned later.
fn unusable(name: &'static str, spoil: impl Fn(&Stage) + Send + Sync + 'static, mend: fn(&Stage)) -> Fault {
    Fault::new(name, "the files of a commit", move |stage| {
        stage.while_unknown(|stage| {
            stage.remove("a/old.yaml");
            spoil(stage);
            stage.repo.commit("Break it");
            stage.pass(1500, 3000);
            let restarts = stage.random.below(3) == 0;
            if restarts {
                stage.daemon().restart();
            }
            stage.pass(1000, 2000);
            stage.check_status();
        });
        mend(stage);
        stage.repo.commit("Mend it");
        Ok(())
    })
}

fn contents() -> Vec<Fault> {
    let file = |stage: &Stage, text: &str| stage.repo.write("a/zz.yaml", text);
    let gone = |stage: &Stage| stage.repo.remove("a/zz.yaml");
    let folder = |stage: &Stage| stage.repo.path().join(FIRST);
    vec![
        unusable("a file that does not parse", move |stage| file(stage, "a: [b\n"), gone),
        unusable(
            "a file that ends in the middle",
            move |stage| file(stage, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"z"),
            gone,
        ),
        unusable(
            "bytes that are no text",
            move |stage| fs::write(folder(stage).join("zz.yaml"), [0xff, 0xfe, 0x00, 0x61]).unwrap(),
            gone,
        ),
        unusable(
            "conflict markers of a merge",
            move |stage| file(stage, "<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> other\n"),
            gone,
        ),
        unusable(
            "a symbolic link out of the repository",
            move |stage| std::os::unix::fs::symlink("/etc/passwd", folder(stage).join("zz.yaml")).unwrap(),
            gone,
        ),
        unusable(
            "the folder of the source is gone",
            |stage| {
                stage.repo.git(&["add", "--all"]);
                stage.repo.git(&["mv", FIRST, "moved"]);
            },
            |stage| {
                stage.repo.git(&["mv", "moved", FIRST]);
            },
        ),
        unusable(
            "an empty tree",
            |stage| {
                stage.repo.git(&["rm", "--quiet", "-r", "--cached", "."]);
                for entry in fs::read_dir(folder_of(stage)).unwrap().filter_map(Result::ok) {
                    fs::remove_file(entry.path()).unwrap();
                }
            },
            |stage| {
                stage.repo.git(&["checkout", "--quiet", "HEAD~1", "--", "."]);
                let _ = fs::remove_file(folder_of(stage).join("old.yaml"));
            },
        ),
    ]
}

fn folder_of(stage: &Stage) -> PathBuf {
    stage.repo.path().join(FIRST)
}

/// Lets the git server behave so around both commits.
fn served(name: &'static str, behavior: ServerBehavior) -> Fault {
    Fault::new(name, "the git server", move |stage| {
        let Some(remote) = &stage.remote else {
            return Err(Obstacle::Unmet("there is no server".to_owned()));
        };
        remote.set(behavior);
        let before = remote.connections();
        stage.change();
        stage.remove_old();
        stage.while_unknown(|stage| stage.pass(4000, 7000));
        stage.check_status();
        let Some(remote) = &stage.remote else { return Ok(()) };
        let calls = remote.connections() - before;
        remote.set(ServerBehavior::Good);
        if calls == 0 { Err(Obstacle::Unmet("the server was not asked".to_owned())) } else { Ok(()) }
    })
    .of(Shape::Remote)
}

fn servers() -> Vec<Fault> {
    vec![
        served("a git server that is down", ServerBehavior::Down),
        served("a git server that is silent", ServerBehavior::Silent),
        served("a git server that takes requests and is silent", ServerBehavior::SilentAfterHandshake),
        served("a git server that shows a page for people", ServerBehavior::Page),
        served("a git server that answers with nothing", ServerBehavior::Empty),
        served("a git server that sends a byte a second", ServerBehavior::Slow),
        served("a git server that refuses", ServerBehavior::Repeating),
        served("a git server that sends elsewhere", ServerBehavior::Elsewhere("somebody:secret")),
        served("a git server without an end", ServerBehavior::Endless),
    ]
}
