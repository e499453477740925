//! A real browser without a screen: Chromium, driven by its own protocol over a pipe.

use std::io::{BufRead as _, BufReader, Write as _, stderr};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::wait::{DEFAULT_TIMEOUT, eventually};

/// Under which of these names it is installed depends on who packages it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Its answers take no longer, also on a busy machine.
const BROWSER_TIMEOUT: Duration = Duration::from_mins(1);

/// One page in a browser of its own.
pub(crate) struct Browser {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<Value>,
    number: u64,
    session: Option<String>,
    /// The browser's own complaints: errors of scripts, and whatever the policy forbids.
    complaints: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts it; none, loudly, where none is installed.
    pub(crate) fn start() -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let found = NAMES.iter().find(|name| {
            let asked =
                Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            asked.is_ok_and(|status| status.success())
        });
        let Some(name) = found else {
            // Not by `eprintln!`, which a test that passes keeps to itself.
            let _ = writeln!(stderr(), "SKIPPED: there is no Chromium (`apt-get install chromium`)");
            return None;
        };
        // It hears orders on the file descriptor 3, and answers on 4.
        let line = format!(
            "exec {name} --headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
             --disable-background-networking --remote-debugging-pipe --user-data-dir={} about:blank \
             3<&0 4>&1 1>/dev/null 2>&1",
            profile.path().display()
        );
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &line]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (orders, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (to, answers) = channel();
        thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { return };
                if to.send(message).is_err() {
                    return;
                }
            }
        });
        let (number, session, complaints) = (0, None, Vec::new());
        let mut browser = Self { child, orders, answers, number, session, complaints, _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach)["sessionId"].as_str().map(str::to_owned);
        browser.session = session;
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    #[track_caller]
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Returns the result, or the browser's error.
    #[track_caller]
    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.number += 1;
        let mut order = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            order["sessionId"] = session.as_str().into();
        }
        let mut text = order.to_string().into_bytes();
        text.push(0);
        self.orders.write_all(&text).unwrap();
        loop {
            let answer = self
                .answers
                .recv_timeout(BROWSER_TIMEOUT)
                .unwrap_or_else(|error| panic!("{method}: {error}"));
            if answer["id"] == self.number {
                let error = &answer["error"];
                return if error.is_null() { Ok(answer["result"].clone()) } else { Err(error.clone()) };
            }
            let complains = ["Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"];
            if answer["method"].as_str().is_some_and(|method| complains.contains(&method)) {
                self.complaints.push(answer["params"].to_string());
            }
        }
    }

    /// Goes to an address in a window of this size.
    #[track_caller]
    pub(crate) fn open(&mut self, address: &str, (width, height): (u32, u32), scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features);
        self.call("Page.navigate", json!({"url": address}));
    }

    /// Takes any certificate from now on.
    #[track_caller]
    pub(crate) fn trust_everybody(&mut self) {
        self.call("Security.setIgnoreCertificateErrors", json!({"ignore": true}));
    }

    /// Returns the value of an expression.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Runs a script that leads to another page, which may come before the script's own end.
    #[track_caller]
    pub(crate) fn leave_by(&mut self, script: &str) {
        if let Err(error) = self.try_call("Runtime.evaluate", json!({"expression": script})) {
            assert!(is_of_navigation(&error), "{script}: {error}");
        }
    }

    /// Waits until the page shows all these texts.
    #[track_caller]
    pub(crate) fn shows(&mut self, texts: &[&str]) -> String {
        eventually(&format!("the page shows {texts:?}"), DEFAULT_TIMEOUT, || {
            let script = "document.body ? document.body.innerText : ''";
            let asked = json!({"expression": script, "returnByValue": true});
            // Between two pages there is none to be asked.
            let shown = match self.try_call("Runtime.evaluate", asked) {
                Ok(answer) => answer["result"]["value"].as_str().unwrap_or_default().to_owned(),
                Err(error) if is_of_navigation(&error) => return Err(error.to_string()),
                Err(error) => panic!("{script}: {error}"),
            };
            // Headings are shown in capital letters.
            let lower = shown.to_lowercase();
            if texts.iter().all(|text| lower.contains(&text.to_lowercase())) { Ok(shown) } else { Err(shown) }
        })
    }

    /// Presses a key.
    #[track_caller]
    pub(crate) fn press(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", event);
        }
        if key == "Enter" {
            let event = json!({"type": "char", "key": key, "text": "\r"});
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Keeps a picture of the whole page.
    #[track_caller]
    pub(crate) fn picture(&mut self, file: &Path) {
        let answer =
            self.call("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": true}));
        let bytes = STANDARD.decode(answer["data"].as_str().unwrap()).unwrap();
        assert!(bytes.len() > 5_000, "a picture of nothing");
        std::fs::write(file, bytes).unwrap();
    }

    /// Forgets what the browser complained of on purpose.
    #[track_caller]
    pub(crate) fn complained_of(&mut self, text: &str) {
        eventually("the browser complains", DEFAULT_TIMEOUT, || {
            // Its answer comes after all that was complained of.
            let _ = self.try_call("Runtime.evaluate", json!({"expression": "1"}));
            let before = self.complaints.len();
            self.complaints.retain(|complaint| !complaint.contains(text));
            if self.complaints.len() < before { Ok(()) } else { Err("it does not") }
        });
    }

    /// Fails where the browser complained of anything.
    #[track_caller]
    pub(crate) fn is_content(&self) {
        assert!(self.complaints.is_empty(), "{:#?}", self.complaints);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether the browser says that a page went away meanwhile.
fn is_of_navigation(error: &Value) -> bool {
    let text = error["message"].as_str().unwrap_or_default();
    ["navigated", "context"].iter().any(|word| text.contains(word))
}
