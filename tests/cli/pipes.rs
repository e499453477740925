//! Commands that ask a daemon: what they say, and that they end behind a pipe that somebody closes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use crate::fixture::Fixture;
use crate::screen::STATUS;

const EVENT: &str = "data: {\"number\": 1, \"at\": \"2030-01-02T03:04:00Z\", \"reason\": \"Refused\", \
                      \"source\": \"shop\", \"message\": \"ConfigMap env\"}\n\n";

/// Answers each question, and holds the stream of what happens open without another word.
fn answer_on(socket: &Path) {
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        let mut open: Vec<UnixStream> = Vec::new();
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut lines = BufReader::new(&stream).lines();
            let first = lines.next().unwrap().unwrap();
            for line in lines {
                if line.unwrap().is_empty() {
                    break;
                }
            }
            let follows = first.contains("follow=yes");
            let text = match first.split(' ').nth(1).unwrap() {
                "/v1/status" => STATUS,
                page if page.starts_with("/v1/events") => EVENT,
                _ => "{\"items\": []}",
            };
            // The client may be gone.
            let _ = write!(&stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{text}");
            if follows {
                open.push(stream);
            }
        }
    });
}

#[test]
fn who_reads_no_more_is_sent_no_more() {
    for (line, first) in [
        ("events --follow", "2030-01-02 03:04:00 Refused"),
        ("events --follow -o json", "{\"number\": 1"),
        ("status --watch", "SOURCE "),
        ("status --watch -o json", "{"),
    ] {
        let fixture = Fixture::new(&[]);
        answer_on(&fixture.path().join("rhumb.sock"));
        let mut child = fixture.command(&format!("{line} --socket rhumb.sock")).spawn().unwrap();
        let mut shown = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut shown).unwrap();
        assert!(shown.starts_with(first), "{line}: {shown}");
        // Nothing else happens, and still it ends.
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*said), (Some(0), ""), "{line}");
    }
}

#[test]
fn a_source_that_is_not_there_is_reported() {
    let fixture = Fixture::new(&[]);
    answer_on(&fixture.path().join("rhumb.sock"));
    let first_line = "2030-01-02 03:04:00 Refused shop: ConfigMap env\n";
    let said = "--- standard error\nthe daemon has no source shpo now; `rhumb status` lists them. It knows its own \
                events alone: `kubectl get events -A --field-selector reportingComponent=rhumb` shows what a daemon \
                left in the cluster\n";
    for (source, said) in [("shop", ""), ("shpo", said)] {
        let line = format!("events {source} --socket rhumb.sock");
        assert_eq!(fixture.run(&line), format!("$ rhumb {line}\n{first_line}{said}--- exit code 0"));
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {}}}\n",
        "a".repeat(1 << 20)
    );
    let fixture = Fixture::new(&[("big.yaml", &text)]);
    let mut child = fixture.command("render big.yaml").spawn().unwrap();
    // More than a pipe holds: the program is still writing.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
