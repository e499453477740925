//! A running `rhumb run`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::wait::{DEFAULT_TIMEOUT, eventually};

/// A running daemon. Dropped, it is killed; what it logged is shown when the test fails.
pub(crate) struct Daemon {
    child: Child,
    said: Arc<OutputLines>,
    /// Kills the daemon if the test's process is killed itself: the other end of this pipe waits
    /// for that.
    watchdog: Child,
    lifeline: Option<ChildStdin>,
}

#[derive(Default)]
struct OutputLines {
    lines: Mutex<Vec<String>>,
    more: Condvar,
    /// Set once there is nothing more to read.
    is_all: AtomicBool,
}

impl Daemon {
    /// Starts a prepared command.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(OutputLines::default());
        let (lines, stderr) = (Arc::clone(&said), BufReader::new(child.stderr.take().unwrap()));
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                lines.lines.lock().unwrap().push(line);
                lines.more.notify_all();
            }
            lines.is_all.store(true, Ordering::SeqCst);
        });
        let mut watchdog = Command::new("/bin/sh")
            .args(["-c", "read -r never; kill -9 \"$1\"", "watchdog", &child.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lifeline = watchdog.stdin.take();
        Self { child, said, watchdog, lifeline }
    }

    /// Returns the id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns all that it logged.
    pub(crate) fn log(&self) -> String {
        self.said.lines.lock().unwrap().join("\n")
    }

    /// Returns all that it logged to its last word, once it has ended. Lines may be read later than
    /// its end is seen.
    #[allow(dead_code, reason = "only the search for secrets reads all of it")]
    #[track_caller]
    pub(crate) fn full_log(&self) -> String {
        let all = || self.said.is_all.load(Ordering::SeqCst).then_some(()).ok_or("there may be more");
        eventually("the log is read to its end", DEFAULT_TIMEOUT, all);
        self.log()
    }

    /// Returns the number of lines that it has logged.
    pub(crate) fn mark(&self) -> usize {
        self.said.lines.lock().unwrap().len()
    }

    /// Waits for a line with all these texts in it.
    #[track_caller]
    pub(crate) fn says(&self, texts: &[&str]) -> String {
        self.says_since(0, texts)
    }

    /// Waits for a line with all these texts in it, among those after a mark.
    #[track_caller]
    pub(crate) fn says_since(&self, mark: usize, texts: &[&str]) -> String {
        let deadline = Instant::now() + DEFAULT_TIMEOUT;
        let mut lines = self.said.lines.lock().unwrap();
        loop {
            let found = lines.iter().skip(mark).find(|line| texts.iter().all(|text| line.contains(text)));
            if let Some(line) = found {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(lines);
                panic!("the daemon did not say {texts:?}");
            }
            lines = self.said.more.wait_timeout(lines, left).unwrap().0;
        }
    }

    /// Returns whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.dismiss_watchdog();
    }

    /// Ends it with SIGTERM, and waits until it did.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.ended(Duration::from_mins(1))
    }

    /// Returns the state of its process, at last `Z`, and the processor time that it has taken.
    /// These are the fields 3, 14 and 15 of `stat` (proc(5)), the times in hundredths of a second.
    fn process_state(&self) -> (char, Duration) {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        let hundredths: u64 = fields[11..=12].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        (fields[0].chars().next().unwrap(), Duration::from_millis(hundredths * 10))
    }

    /// Returns the processor time that it has taken so far.
    pub(crate) fn processor_time(&self) -> Duration {
        self.process_state().1
    }

    /// Waits until it has ended, and returns the processor time that it has taken in all.
    #[track_caller]
    pub(crate) fn last_processor_time(&self) -> Duration {
        eventually("the daemon ends", DEFAULT_TIMEOUT, || match self.process_state() {
            ('Z', taken) => Ok(taken),
            (state, _) => Err(format!("it is in state {state}")),
        })
    }

    /// Waits until it ended by itself.
    #[track_caller]
    pub(crate) fn ended(&mut self, limit: Duration) -> ExitStatus {
        let child = &mut self.child;
        let status = eventually("the daemon ends", limit, || child.try_wait().unwrap().ok_or("it runs"));
        self.dismiss_watchdog();
        status
    }

    /// Sends it a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let number = self.pid().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &number]).status().unwrap();
        assert!(sent.success(), "kill -{name}");
    }

    /// Ends the watchdog, which must not outlive the daemon's process id.
    fn dismiss_watchdog(&mut self) {
        let _ = self.watchdog.kill();
        let _ = self.watchdog.wait();
        self.lifeline = None;
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("--- what the daemon said:\n{}\n---", self.log());
        }
    }
}
