//! The credential plugin of a kubeconfig (`client.authentication.k8s.io`), as a child with a
//! deadline.
//!
//! kube could run it too, but never ends one that hangs, and starts the next one beside it. Every
//! caller would wait meanwhile, and report a silent server.

use std::io::IsTerminal as _;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::{Either, select};
use jiff::Timestamp;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use rustix::process::{Pid, Signal};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::classify;
use super::credentials::is_token;
use super::error::ClusterFault;

/// The environment that the service manager sets for this process and none of its children.
const SERVICE_VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// The longest answer, in bytes.
const MAX_PLUGIN_OUTPUT_BYTES: u64 = 1 << 20;

/// The time limit for output after its end: a process that it left behind may hold its pipes open.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct ExecCredential {
    status: Option<ExecCredentialStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExecCredentialStatus {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Indicates whether the plugin may ask a person at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PluginInteraction {
    Allowed,
    Denied,
}

/// All processes of a plugin, which are killed once it is no longer waited for.
struct PluginProcessGroup(Option<Pid>);

impl Drop for PluginProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            // Only fails when no process is left.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs the plugin, where there is one, and puts what it gives in its place. Returns until when
/// that holds.
pub(super) async fn run_plugin(
    user: &mut AuthInfo,
    timeout: Duration,
) -> Result<Option<Timestamp>, ClusterFault> {
    // These take precedence over it.
    if user.token.is_some() || user.password.is_some() {
        return Ok(None);
    }
    let Some(plugin) = user.exec.take() else { return Ok(None) };
    let output = match tokio::time::timeout(timeout, run(&plugin)).await {
        Ok(output) => output?,
        Err(_) => return Err(hanging_fault()),
    };
    let answer: ExecCredential = serde_json::from_slice(&output).map_err(|_| unreadable_fault())?;
    let status = answer.status.ok_or_else(unreadable_fault)?;
    let expires = status.expiration_timestamp.map(|text| text.parse::<Timestamp>());
    let expires = expires.transpose().map_err(|_| unreadable_fault())?;
    let given =
        |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let token = given(status.token);
    if token.as_deref().is_some_and(|token| !is_token(token)) {
        return Err(unreadable_fault());
    }
    match (given(status.client_certificate_data), given(status.client_key_data)) {
        (Some(certificate), Some(key)) => {
            user.client_certificate_data = Some(STANDARD.encode(certificate));
            user.client_key_data = Some(STANDARD.encode(key).into());
        }
        _ if token.is_none() => return Err(unreadable_fault()),
        _ => {}
    }
    user.token = token.map(Into::into);
    Ok(expires)
}

/// Returns the fault of a plugin that may answer later.
pub(super) fn hanging_fault() -> ClusterFault {
    ClusterFault::Plugin { reason: "the credential plugin gives no answer".to_owned() }
}

/// Returns the fault for an answer that cannot be read. The next answer may be another one.
fn unreadable_fault() -> ClusterFault {
    ClusterFault::Plugin { reason: "the credential plugin's answer cannot be read".to_owned() }
}

/// Returns its standard output, once it has ended.
async fn run(plugin: &ExecConfig) -> Result<Vec<u8>, ClusterFault> {
    let mode = plugin.interactive_mode.as_ref();
    let somebody = mode != Some(&ExecInteractiveMode::Never) && std::io::stdin().is_terminal();
    let interaction = if somebody { PluginInteraction::Allowed } else { PluginInteraction::Denied };
    let mut child = plugin_command(plugin, interaction)?.spawn().map_err(|error| {
        let message = classify::without_errno(&error.to_string()).to_lowercase();
        ClusterFault::Config { reason: format!("the credential plugin cannot be started: {message}") }
    })?;
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let mut group = PluginProcessGroup(pid.filter(|_| interaction == PluginInteraction::Denied));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut out, mut message) = (Vec::new(), Vec::new());
    let status = {
        let read =
            async { tokio::try_join!(read_answer(stdout, &mut out), read_complaints(stderr, &mut message)) };
        match select(pin!(child.wait()), pin!(read)).await {
            Either::Left((status, read)) => {
                group.0 = None;
                tokio::time::timeout(OUTPUT_DRAIN_TIMEOUT, read).await.unwrap_or(Ok(((), ())))?;
                status
            }
            Either::Right((read, wait)) => {
                read?;
                wait.await
            }
        }
    };
    group.0 = None;
    match status {
        Ok(status) if status.success() => Ok(out),
        Ok(status) => Err(classify::plugin_fault(status, &message)),
        Err(_) => {
            Err(ClusterFault::Plugin { reason: "how the credential plugin ended is not known".to_owned() })
        }
    }
}

fn plugin_command(plugin: &ExecConfig, interaction: PluginInteraction) -> Result<Command, ClusterFault> {
    let wrong = |problem: &str| ClusterFault::Config { reason: format!("the credential plugin {problem}") };
    let program = plugin.command.as_ref().ok_or_else(|| wrong("has no command"))?;
    let mut info = json!({
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": { "interactive": interaction == PluginInteraction::Allowed },
    });
    if plugin.provide_cluster_info {
        let cluster =
            serde_json::to_value(&plugin.cluster).map_err(|_| wrong("cannot be given the cluster"))?;
        info["spec"]["cluster"] = cluster;
    }
    let mut command = Command::new(program);
    command.args(plugin.args.iter().flatten());
    for name in SERVICE_VARIABLES {
        command.env_remove(name);
    }
    for pair in plugin.env.iter().flatten() {
        if let (Some(name), Some(value)) = (pair.get("name"), pair.get("value")) {
            command.env(name, value);
        }
    }
    command.env("KUBERNETES_EXEC_INFO", info.to_string());
    command.stdout(Stdio::piped()).kill_on_drop(true);
    if interaction == PluginInteraction::Denied {
        // Its complaints go into our own error, without anything that looks like a token.
        command.stdin(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    }
    Ok(command)
}

/// Reads its answer. Output that is longer than any answer is not read to its end, which may never
/// come.
async fn read_answer(
    stdout: Option<impl AsyncRead + Unpin>,
    bytes: &mut Vec<u8>,
) -> Result<(), ClusterFault> {
    let Some(stdout) = stdout else { return Ok(()) };
    // A pipe that breaks has an end too.
    let _ = stdout.take(MAX_PLUGIN_OUTPUT_BYTES).read_to_end(bytes).await;
    if (bytes.len() as u64) < MAX_PLUGIN_OUTPUT_BYTES { Ok(()) } else { Err(unreadable_fault()) }
}

/// Reads its standard error to the end, so that it never waits for a reader. Keeps the beginning
/// alone.
async fn read_complaints(
    stderr: Option<impl AsyncRead + Unpin>,
    bytes: &mut Vec<u8>,
) -> Result<(), ClusterFault> {
    let Some(mut stderr) = stderr else { return Ok(()) };
    let _ = (&mut stderr).take(MAX_PLUGIN_OUTPUT_BYTES).read_to_end(bytes).await;
    let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
    Ok(())
}
