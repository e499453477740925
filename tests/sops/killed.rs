//! A process that is killed while a program has files in the open.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use super::*;

/// A kustomize that knows its version and never ends. It is no script, which would not be run.
const ENDLESS: &str = "#include <stdio.h>\n#include <string.h>\n#include <time.h>\n\
    int main(int count, char **words) {\n\
    if (count > 1 && strcmp(words[1], \"version\") == 0) { puts(\"v5.8.2\"); return 0; }\n\
    for (;;) { struct timespec second = {1, 0}; nanosleep(&second, NULL); }\n}\n";

/// The time within which something must have come true.
const LIMIT: Duration = Duration::from_mins(2);

impl Workshop {
    /// Builds the program that never ends, and returns its folder.
    fn endless_kustomize(&self) -> PathBuf {
        let folder = self.path("endless");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("kustomize.c"), ENDLESS).unwrap();
        let mut compiler = Command::new("cc");
        compiler.current_dir(&folder).args(["-O1", "-static", "-o", "kustomize", "kustomize.c"]);
        let output = compiler.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        folder
    }

    /// Returns the files in memory that show the encrypted text.
    fn files_in_the_open(&self) -> Vec<PathBuf> {
        let mut open = Vec::new();
        let mut folders = vec![self.runtime.path().to_owned()];
        while let Some(folder) = folders.pop() {
            // A folder may go meanwhile.
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match fs::read_to_string(&path) {
                    Ok(text) if text.contains(CANARY) => open.push(path),
                    Err(_) if path.is_dir() => folders.push(path),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        open
    }
}

/// Returns how many processes run this program.
fn processes_of(program: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|entry| fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program)).count()
}

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}");
        std::thread::yield_now();
    }
}

#[test]
fn what_a_killed_process_had_in_the_open_is_gone_after_the_next_start() {
    let workshop = Workshop::new();
    workshop.root(&[("kustomization.yaml", "secretGenerator: [{name: env, envs: [db.env]}]\n")]);
    workshop.encrypt_as("app/db.env", &format!("PASSWORD={CANARY}\n"), "dotenv");
    let endless = workshop.endless_kustomize();
    let program = endless.join("kustomize");
    let mut rhumb = workshop.command(&["render", "app"], &[&endless]).spawn().unwrap();
    until("the program has the file in the open", || {
        processes_of(&program) > 0 && !workshop.files_in_the_open().is_empty()
    });
    // A start beside it takes nothing away from it.
    assert!(workshop.rhumb(&["validate", "app"]).0);
    assert_eq!(workshop.files_in_the_open().len(), 1);

    rhumb.kill().unwrap();
    assert_eq!(rhumb.wait().unwrap().signal(), Some(9));
    until("the program ended with it", || processes_of(&program) == 0);
    assert_eq!(workshop.files_in_the_open().len(), 1, "nobody was there to remove it");

    let (succeeds, said) = workshop.rhumb(&["validate", "app"]);
    assert!(succeeds, "{said}");
    workshop.check_nothing_left();
}
