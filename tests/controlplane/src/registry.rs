//! A registry of charts and images on loopback, with TLS.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::error::{Context as _, Error};
use crate::logs;
use crate::part::Program;
use crate::ports::Port;
use crate::programs::{ProgramSet, Programs, guarded};

/// The variable that names a directory to take it from instead.
const DIRECTORY: &str = "RHUMB_REGISTRY_BIN";
/// The longest time until it answers.
const DEADLINE: Duration = Duration::from_secs(120);

/// A registry that ends with this value.
#[derive(Debug)]
pub struct Registry {
    folder: TempDir,
    port: Port,
    child: Child,
    /// Its group is killed when this closes.
    guard: Option<ChildStdin>,
}

/// The certificate that a registry shows, and the logins that it asks for.
#[derive(Clone, Copy, Debug)]
pub struct RegistryOptions<'a> {
    /// Its certificate, PEM.
    pub certificate: &'a str,
    /// The private key, PEM.
    pub key: &'a str,
    /// Lines of `htpasswd -B` with those who may read and write; none for everybody.
    pub logins: Option<&'a str>,
}

impl Registry {
    /// Starts one on a free port of loopback, and builds it if nobody did yet.
    pub fn start(options: RegistryOptions<'_>) -> Result<Self, Error> {
        let program = find()?;
        let folder = TempDir::new().context(|| "create a directory".to_owned())?;
        let port = Port::reserve()?;
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).context(|| format!("write {}", path.display()))
        };
        write("tls.crt", options.certificate)?;
        write("tls.key", options.key)?;
        if let Some(logins) = options.logins {
            write("htpasswd", logins)?;
        }
        write("config.yml", &configuration(folder.path(), port.number(), options.logins.is_some()))?;
        let log = folder.path().join("log");
        let output = fs::File::create(&log).context(|| format!("create {}", log.display()))?;
        let mut command = guarded(&program);
        command.arg("serve").arg(folder.path().join("config.yml"));
        command.env_clear().stdout(Stdio::null()).stderr(output);
        let mut child = command.spawn().context(|| "start the registry".to_owned())?;
        let guard = child.stdin.take();
        let mut registry = Self { folder, port, child, guard };
        registry.wait()?;
        Ok(registry)
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Returns what it said so far: a line for each request among others.
    pub fn log(&self) -> Result<String, Error> {
        let log = self.folder.path().join("log");
        fs::read_to_string(&log).context(|| format!("read {}", log.display()))
    }

    fn wait(&mut self) -> Result<(), Error> {
        let until = Instant::now() + DEADLINE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port())).is_err() {
            let ended = self.child.try_wait().context(|| "wait for the registry".to_owned())?;
            if ended.is_some() || Instant::now() >= until {
                let said = logs::tail(&self.folder.path().join("log"));
                return Err(io::Error::other(said)).context(|| "start the registry".to_owned());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.guard.take());
        // It is killed already.
        let _ = self.child.wait();
    }
}

fn find() -> Result<PathBuf, Error> {
    let set = ProgramSet::REGISTRY;
    let programs = match std::env::var_os(DIRECTORY).filter(|value| !value.is_empty()) {
        Some(directory) => Programs::given(DIRECTORY, directory, set.programs)?,
        None => Programs::cached(set)?,
    };
    Ok(programs.path(Program::Registry))
}

/// Returns the configuration, as JSON, which is YAML too.
fn configuration(folder: &Path, port: u16, asks: bool) -> String {
    let mut all = serde_json::json!({
        "version": 0.1,
        "log": { "level": "info" },
        "storage": { "filesystem": { "rootdirectory": folder.join("data") } },
        "http": {
            "addr": format!("127.0.0.1:{port}"),
            "tls": { "certificate": folder.join("tls.crt"), "key": folder.join("tls.key") },
        },
    });
    if let Some(all) = all.as_object_mut().filter(|_| asks) {
        let login = serde_json::json!({ "htpasswd": { "realm": "charts", "path": folder.join("htpasswd") } });
        all.insert("auth".to_owned(), login);
    }
    all.to_string()
}
