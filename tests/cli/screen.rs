//! `rhumb top` on a real terminal, asking a socket that answers as a daemon would.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::fixture::Fixture;

const ENTERED: &str = "\u{1b}[?1049h";
const LEFT: &str = "\u{1b}[?1049l";

/// The time limit of waits.
const SCREEN_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) const STATUS: &str = r#"{
  "apiVersion": "status.rhumb.dev/v1", "kind": "Status", "at": "2030-01-02T03:04:05Z",
  "process": {"version": "9.9.9", "since": "2030-01-02T03:04:05Z", "nextResync": "2030-01-02T04:04:05Z", "queue": 0,
              "unfinishedSeconds": 0, "longestSeconds": 0},
  "sources": [{"name": "shop", "location": "/srv/shop.git", "revision": "0123456789abcdef0123456789abcdef01234567",
               "complete": true, "observed": false, "healthy": false, "objects": {"Settled": 2, "Refused": 1},
               "findings": 0, "pruneWaiting": 0}],
  "rollout": {"known": true, "workloads": {"used": 1, "of": 3}, "unavailable": {"used": 1, "of": 10},
              "starts": {"used": 1, "of": 30}, "window": 3, "onFailure": "rollback",
              "rolling": [{"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web", "source": "shop",
                           "replicas": 4, "updated": 2, "available": 3, "unavailable": 1}],
              "queue": []}
}"#;

const ENV: &str = r#"{"kind": "ConfigMap", "namespace": "shop", "name": "env", "source": "shop", "phase": "Refused",
                      "reason": "it is not understood", "origin": "deploy/env.yaml:3"}"#;

const EVENTS: &str = "retry: 2000\n\nid: 1\nevent: event\ndata: {\"number\": 1, \"at\": \"2030-01-02T03:04:00Z\", \
                      \"reason\": \"Refused\", \"source\": \"shop\", \"message\": \"ConfigMap env\"}\n\n";

/// A daemon's answers.
struct Daemon {
    socket: PathBuf,
    is_silent: Arc<AtomicBool>,
}

impl Daemon {
    fn start(folder: &Path) -> Self {
        let socket = folder.join("rhumb.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let is_silent = Arc::new(AtomicBool::new(false));
        let silent = is_silent.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if !silent.load(Ordering::SeqCst) {
                    // The client may be gone.
                    let _ = stream.and_then(answer);
                }
            }
        });
        Self { socket, is_silent }
    }
}

fn answer(stream: UnixStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(&stream).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let page = first.split(' ').nth(1).unwrap_or_default();
    let text = match page {
        "/v1/status" => STATUS.to_owned(),
        "/v1/objects?phase=Refused" => format!("{{\"items\": [{ENV}]}}"),
        "/v1/events?follow=no&after=0" => EVENTS.to_owned(),
        "/v1/objects/ConfigMap/shop/env" => ENV.to_owned(),
        _ => String::new(),
    };
    let length = text.len();
    write!(&stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}")
}

/// The program on a terminal.
struct Screen {
    child: Child,
    master: File,
    /// The end that programs have, kept open so that its modes can be read.
    other: File,
    before: Termios,
    /// The text that was shown and not taken yet, and all of it as it came.
    shown: String,
    raw: String,
    coming: Receiver<Vec<u8>>,
}

impl Screen {
    fn start(fixture: &Fixture, daemon: &Daemon, flags: &str, more: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let other = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&master, size(80, 24)).unwrap();
        let before = tcgetattr(&other).unwrap();
        let rhumb = fixture.command(flags);
        // In a session of its own, as its size is that of the terminal that controls it.
        let mut command = Command::new("/usr/bin/setsid");
        command.arg("--ctty").arg(rhumb.get_program()).arg("top").args(rhumb.get_args());
        command.arg("--socket").arg(&daemon.socket).env_clear().envs(more.iter().copied());
        let open = || Stdio::from(other.try_clone().unwrap());
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
        let master = File::from(master);
        let (sender, coming) = channel();
        let mut reader = master.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, master, other, before, shown: String::new(), raw: String::new(), coming }
    }

    /// Waits for a text, and takes all up to it away.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        loop {
            let seen = words(&self.shown);
            if let Some((_, rest)) = seen.split_once(text) {
                rest.clone_into(&mut self.shown);
                return;
            }
            let more = self.coming.recv_timeout(SCREEN_TIMEOUT);
            assert!(more.is_ok(), "no {text:?} is shown: {:?}", self.shown);
            let more = String::from_utf8_lossy(&more.unwrap_or_default()).into_owned();
            self.shown += &more;
            self.raw += &more;
        }
    }

    fn types(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    fn resize(&self, columns: u16, rows: u16) {
        tcsetwinsize(&self.master, size(columns, rows)).unwrap();
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.other).unwrap().local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Checks that it has ended well, and that the terminal is as it was.
    #[track_caller]
    fn ended(mut self) {
        self.shows(LEFT);
        self.shows("\u{1b}[?25h");
        let status = self.child.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(0), None));
        let after = tcgetattr(&self.other).unwrap();
        let modes =
            |modes: &Termios| (modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes);
        assert_eq!(modes(&after), modes(&self.before));
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Returns the text, with a space where the cursor goes elsewhere (ECMA-48 CUP): blanks are not
/// drawn on a blank screen.
fn words(shown: &str) -> String {
    let mut pieces = shown.split("\u{1b}[");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| c.is_ascii_alphabetic());
        match end.map(|end| (piece.split_at(end + 1), piece.as_bytes()[end])) {
            Some(((_, rest), b'H')) => text = format!("{text} {rest}"),
            Some(((_, rest), b'm')) => text += rest,
            _ => text = format!("{text}\u{1b}[{piece}"),
        }
    }
    text
}

fn on_a_screen(test: impl Fn(&mut Screen, &Daemon)) {
    let fixture = Fixture::new(&[]);
    let daemon = Daemon::start(fixture.path());
    let mut screen = Screen::start(&fixture, &daemon, "", &[]);
    screen.shows(ENTERED);
    screen.shows("03:04:05 UTC");
    test(&mut screen, &daemon);
    screen.ended();
}

#[test]
fn whatever_ends_it_the_terminal_is_as_it_was() {
    let ends: [fn(&mut Screen); 6] = [
        |screen| screen.types("q"),
        |screen| screen.types("\u{1b}"),
        |screen| screen.types("\u{3}"),
        |screen| screen.signal(Signal::INT),
        |screen| screen.signal(Signal::TERM),
        |screen| screen.signal(Signal::HUP),
    ];
    for end in ends {
        on_a_screen(|screen, _| {
            screen.shows("? help");
            assert!(screen.is_raw());
            end(screen);
        });
    }
}

#[test]
fn a_terminal_that_goes_away_is_no_crash() {
    let fixture = Fixture::new(&[]);
    let daemon = Daemon::start(fixture.path());
    let mut screen = Screen::start(&fixture, &daemon, "", &[]);
    screen.shows("? help");
    let Screen { mut child, mut master, coming, .. } = screen;
    // The reader has the terminal too: it lets go of it with the next that is shown, as nobody
    // takes it.
    drop(coming);
    master.write_all(b"?").unwrap();
    drop(master);
    // Whichever it finds first: that it was hung up, or that nothing can be read or drawn there.
    let status = child.wait().unwrap();
    assert!(matches!(status.code(), Some(0..=3)), "{status}");
}

#[test]
fn it_goes_on_while_nobody_answers() {
    on_a_screen(|screen, daemon| {
        screen.shows("2/4 new");
        daemon.is_silent.store(true, Ordering::SeqCst);
        screen.shows("no answer since");
        daemon.is_silent.store(false, Ordering::SeqCst);
        // The line below is drawn anew.
        screen.shows("0 of 1 sources healthy");
        screen.types("q");
    });
}

#[test]
fn keys_come_through() {
    on_a_screen(|screen, _| {
        screen.shows("it is not understood");
        screen.types("4\r");
        screen.shows("deploy/env.yaml:3");
        screen.types("\u{1b}");
        screen.shows("Needs attention");
        screen.types("/nowhere\r");
        screen.shows("no match");
        // An arrow is no Esc.
        screen.types("\u{1b}[B?");
        screen.shows("Shift-Tab");
        screen.types("q");
    });
}

#[test]
fn another_size_is_another_picture() {
    on_a_screen(|screen, _| {
        screen.shows("Needs attention");
        screen.resize(40, 10);
        screen.shows("; Tab: Rollouts");
        screen.resize(120, 40);
        screen.shows("Needs attention");
        screen.types("q");
    });
}

#[test]
fn what_cannot_go_to_the_background_comes_back() {
    // Nobody could continue the leader of a session, so the kernel does not stop it.
    on_a_screen(|screen, _| {
        screen.types("\u{1a}");
        screen.shows(LEFT);
        screen.shows(ENTERED);
        screen.shows("Needs attention");
        assert!(screen.is_raw());
        // A shell that has had the terminal meanwhile leaves it in its own modes.
        screen.signal(Signal::CONT);
        screen.shows("Needs attention");
        assert!(screen.is_raw());
        screen.types("q");
    });
}

#[test]
fn colours_are_those_that_were_asked_for() {
    let check = |flags: &str, variables: &[(&str, &str)], is_coloured: bool| {
        let fixture = Fixture::new(&[]);
        let daemon = Daemon::start(fixture.path());
        let mut screen = Screen::start(&fixture, &daemon, flags, variables);
        screen.shows("? help");
        let coloured = screen.raw.contains("[38;5;");
        assert_eq!(coloured, is_coloured, "{flags} {variables:?}: {:?}", screen.raw);
        screen.types("q");
        screen.ended();
    };
    check("", &[], true);
    check("", &[("NO_COLOR", "1")], false);
    check("--color never", &[], false);
    check("--color always", &[("NO_COLOR", "1")], true);
}

#[test]
fn without_a_screen_it_names_what_needs_none() {
    let expected = "\
$ rhumb top
--- standard error
error: `rhumb top` needs a full screen, and standard output is no terminal that has one
hint: `rhumb status --watch` tells each change in lines
--- exit code 2";
    assert_eq!(Fixture::new(&[]).run("top"), expected);
}
