//! A panic, in a process of its own on a terminal of its own.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::tcgetattr;

use super::super::screen::Screen;

/// The variable by which the process knows that it is the one that panics.
const ROLE: &str = "RHUMB_TEST_PANICS";

const NAME: &str = "cli::top::tests::panic::a_panic_leaves_the_screen_before_it_says_anything";

#[test]
fn a_panic_leaves_the_screen_before_it_says_anything() {
    if std::env::var_os(ROLE).is_some() {
        let mut screen = Screen::enter().unwrap();
        screen.draw(|frame| frame.render_widget("picture", frame.area())).unwrap();
        panic!("on purpose");
    }
    // The terminal has no size: it is drawn on all the same.
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let other = File::options().read(true).write(true).open(name).unwrap();
    let open = || Stdio::from(other.try_clone().unwrap());
    let before = tcgetattr(&other).unwrap();
    let mut command = Command::new("/usr/bin/setsid");
    command.arg("--ctty").arg(std::env::current_exe().unwrap()).args([NAME, "--exact", "--nocapture"]);
    command.env(ROLE, "1").env_remove("RUST_BACKTRACE").stdin(open()).stdout(open()).stderr(open());
    let mut child = command.spawn().unwrap();
    let status = child.wait().unwrap();
    let after = tcgetattr(&other).unwrap();
    drop((command, other));
    let mut shown = Vec::new();
    // The end of a terminal is an error (EIO).
    let _ = File::from(master).read_to_end(&mut shown);
    let shown = String::from_utf8_lossy(&shown);
    let places = ["\u{1b}[?1049h", "picture", "\u{1b}[?1049l", "on purpose", "\u{1b}[?25h"]
        .map(|text| shown.rfind(text).unwrap_or_else(|| panic!("no {text:?} in {shown:?}")));
    assert!(places.is_sorted(), "{places:?} in {shown:?}");
    assert_eq!(shown.matches("\u{1b}[?1049l").count(), 1, "{shown:?}");
    assert_eq!(before.local_modes, after.local_modes);
    assert!(!status.success());
}
