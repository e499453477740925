//! The audit log: its policy, and a reading that misses no answered request.
//!
//! The API server writes an event when a request comes in, before anything else happens to it. It
//! writes another when the request is done, which for a large answer can be a moment after the
//! client has read all of it. So the reader sends a marked request and waits until all earlier ones
//! are done.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::builder::Audit;
use crate::error::{Context as _, Error};

/// The user that this crate itself asks as; none of its requests is reported.
pub(crate) const OWN_USER: &str = "controlplane";

/// The path of the marked requests.
pub(crate) const MARK: &str = "/version";

/// Returns the audit policy. Reads by the control plane's own parts are left out, and so are their
/// Leases and Events: nobody asks for them, and there are many.
pub(crate) fn policy(audit: Audit) -> Option<String> {
    let level = match audit {
        Audit::Off => return None,
        Audit::Requests => "Metadata",
        Audit::Bodies => "Request",
    };
    let users = ["system:kube-controller-manager", "system:kube-scheduler", "system:apiserver", "kwok"];
    let noise = json!([{"group": "coordination.k8s.io", "resources": ["leases"]}, {"group": "", "resources": ["events"]},
        {"group": "events.k8s.io", "resources": ["events"]}]);
    let accounts = "system:serviceaccounts:kube-system";
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitManagedFields": true,
        "rules": [
            {"level": "Metadata", "users": [OWN_USER], "nonResourceURLs": [MARK]},
            {"level": "None", "users": [OWN_USER]},
            {"level": "None", "users": users, "verbs": ["get", "list", "watch"]},
            {"level": "None", "userGroups": [accounts], "verbs": ["get", "list", "watch"]},
            {"level": "None", "users": users, "resources": noise},
            {"level": "None", "userGroups": [accounts], "resources": noise},
            {"level": "Metadata", "verbs": ["get", "list", "watch"]},
            {"level": level},
        ],
    });
    Some(policy.to_string())
}

/// The progress of a request at its last entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
pub enum Stage {
    /// It came in, and the server ended before it was done: whether it took effect is not known.
    #[serde(rename = "RequestReceived")]
    Received,
    /// Its answer began: a watch or the like, whose answer goes on, or a 401.
    #[serde(rename = "ResponseStarted")]
    Started,
    /// It was answered.
    #[serde(rename = "ResponseComplete")]
    Complete,
    /// The server panicked over it.
    Panic,
}

/// One request that the API server got.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AuditEvent {
    /// The verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    /// A server-side apply is a `patch`.
    pub verb: String,
    /// The user; empty if nobody was recognised (401).
    pub user: String,
    /// As whom the user was taken, empty for itself.
    pub acted_as: String,
    /// The program that did it, as it names itself.
    pub user_agent: String,
    /// The path with its query.
    pub uri: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// The resource: `deployments`; empty for paths that are no resource.
    pub resource: String,
    /// The subresource: `status`, `scale`; mostly empty.
    pub subresource: String,
    /// The namespace, empty for what has none.
    pub namespace: String,
    /// The object's name, empty for lists.
    pub name: String,
    /// The answer's status code, 0 while there is none.
    pub code: u16,
    /// The answer's error message, empty for success.
    pub message: String,
    /// Indicates a dry run.
    pub dry_run: bool,
    /// Its progress.
    pub stage: Stage,
    /// When it came in.
    pub timestamp: Timestamp,
    /// When it reached the stage.
    pub reached: Timestamp,
    /// The body, where the cluster logs bodies and the request had one.
    pub body: Option<Value>,
}

impl AuditEvent {
    /// Returns whether the request may have changed something: a writing verb and no dry run.
    pub fn is_write(&self) -> bool {
        let writing =
            ["create", "update", "patch", "delete", "deletecollection"].contains(&self.verb.as_str());
        writing && !self.dry_run
    }
}

/// An event as the log has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditLine {
    #[serde(rename = "auditID")]
    id: String,
    stage: Stage,
    #[serde(rename = "requestURI")]
    uri: String,
    verb: String,
    user: User,
    #[serde(default)]
    impersonated_user: Option<User>,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    request_object: Option<Value>,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Debug, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    api_group: String,
    subresource: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
    message: String,
}

impl From<AuditLine> for AuditEvent {
    fn from(line: AuditLine) -> Self {
        let query = line.uri.split_once('?').map_or("", |(_, query)| query);
        Self {
            dry_run: query.split('&').any(|pair| pair.starts_with("dryRun=") && pair != "dryRun="),
            verb: line.verb,
            user: line.user.username,
            acted_as: line.impersonated_user.map(|user| user.username).unwrap_or_default(),
            user_agent: line.user_agent,
            group: line.object_ref.api_group,
            resource: line.object_ref.resource,
            subresource: line.object_ref.subresource,
            namespace: line.object_ref.namespace,
            name: line.object_ref.name,
            code: line.response_status.code,
            message: if line.response_status.code >= 400 {
                line.response_status.message
            } else {
                String::new()
            },
            stage: line.stage,
            timestamp: line.request_received_timestamp,
            reached: line.stage_timestamp,
            body: line.request_object,
            uri: line.uri,
        }
    }
}

/// The state of a request that came in.
#[derive(Debug)]
enum OpenRequest {
    /// It is in the works.
    Working { order: u64, line: Box<AuditLine> },
    /// It is a watch, already reported, that goes on.
    Streaming,
}

/// The follower of the log of one cluster.
#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    offset: u64,
    /// Counts the requests that came in.
    order: u64,
    open: BTreeMap<String, OpenRequest>,
    /// The order of each marked request, by its path and query.
    marks: BTreeMap<String, u64>,
    marked: u64,
    events: Vec<AuditEvent>,
}

impl Reader {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self {
            path,
            offset: 0,
            order: 0,
            open: BTreeMap::new(),
            marks: BTreeMap::new(),
            marked: 0,
            events: Vec::new(),
        }
    }

    /// Names the next marked request.
    pub(crate) fn next_mark(&mut self) -> String {
        self.marked += 1;
        format!("{MARK}?mark={}", self.marked)
    }

    /// Reads on; returns whether the marked request and all that came before it are done, or else
    /// what is missing.
    pub(crate) fn is_complete(&mut self, mark: &str) -> Result<Result<(), String>, Error> {
        self.read()?;
        let Some(limit) = self.marks.get(mark) else {
            return Ok(Err("the log does not show the newest request".to_owned()));
        };
        let pending = self.open.values().find_map(|open| match open {
            OpenRequest::Working { order, line } if order < limit => {
                Some(format!("{} {} is not done", line.verb, line.uri))
            }
            _ => None,
        });
        Ok(pending.map_or(Ok(()), Err))
    }

    /// Returns all events so far, in the order in which they ended.
    pub(crate) fn events(&self) -> Vec<AuditEvent> {
        self.events.clone()
    }

    /// Closes what was open when the server ended.
    pub(crate) fn server_ended(&mut self) -> Result<(), Error> {
        self.read()?;
        let mut cut_off: Vec<_> = std::mem::take(&mut self.open)
            .into_values()
            .filter_map(|open| match open {
                OpenRequest::Working { order, line } => Some((order, line)),
                OpenRequest::Streaming => None,
            })
            .collect();
        cut_off.sort_by_key(|(order, _)| *order);
        self.events
            .extend(cut_off.into_iter().filter(|(_, line)| !is_own(line)).map(|(_, line)| (*line).into()));
        self.end_torn_line()
    }

    /// Ends the half line that a server leaves when it is killed while it writes. The next server
    /// would go on with it.
    fn end_torn_line(&mut self) -> Result<(), Error> {
        let length = match fs::metadata(&self.path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).context(|| format!("look at {}", self.path.display())),
        };
        if length > self.offset {
            let file = File::options().append(true).open(&self.path);
            let ended = file.and_then(|mut file| file.write_all(b"\n"));
            ended.context(|| format!("write to {}", self.path.display()))?;
            self.offset = length + 1;
        }
        Ok(())
    }

    /// Takes in all whole lines that were added.
    fn read(&mut self) -> Result<(), Error> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            // The log appears with the first event.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).context(|| format!("open {}", self.path.display())),
        };
        let mut added = Vec::new();
        file.seek(SeekFrom::Start(self.offset))
            .and_then(|_| file.read_to_end(&mut added))
            .context(|| format!("read {}", self.path.display()))?;
        let complete_bytes = added.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in added[..complete_bytes].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let parsed = serde_json::from_slice(line).map_err(|source| Error::Audit {
                line: String::from_utf8_lossy(line).chars().take(200).collect(),
                source,
            })?;
            self.take(parsed);
        }
        self.offset += complete_bytes as u64;
        Ok(())
    }

    fn take(&mut self, line: AuditLine) {
        match line.stage {
            Stage::Received => {
                self.order += 1;
                if is_own(&line) {
                    self.marks.insert(line.uri.clone(), self.order);
                }
                let id = line.id.clone();
                self.open.insert(id, OpenRequest::Working { order: self.order, line: Box::new(line) });
            }
            Stage::Started => {
                self.open.insert(line.id.clone(), OpenRequest::Streaming);
                self.report(line);
            }
            Stage::Complete | Stage::Panic => {
                // The end of a watch is no request of its own.
                if !matches!(self.open.remove(&line.id), Some(OpenRequest::Streaming)) {
                    self.report(line);
                }
            }
        }
    }

    fn report(&mut self, line: AuditLine) {
        if !is_own(&line) {
            self.events.push(line.into());
        }
    }
}

fn is_own(line: &AuditLine) -> bool {
    line.user.username == OWN_USER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, stage: &str, verb: &str, user: &str, uri: &str) -> String {
        let now = "2026-01-01T00:00:00.000000Z";
        json!({"auditID": id, "stage": stage, "verb": verb, "requestURI": uri, "user": {"username": user},
            "responseStatus": {"code": 200}, "requestReceivedTimestamp": now, "stageTimestamp": now})
        .to_string()
            + "\n"
    }

    #[test]
    fn all_before_the_mark_must_be_done() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut reader = Reader::new(path.clone());
        let mark = reader.next_mark();
        assert!(reader.is_complete(&mark).unwrap().is_err(), "nothing is logged yet");
        let mut log = line("a", "RequestReceived", "patch", "rhumb", "/x?dryRun=All")
            + &line("w", "RequestReceived", "watch", "rhumb", "/w")
            + &line("w", "ResponseStarted", "watch", "rhumb", "/w")
            + &line("m", "RequestReceived", "get", OWN_USER, &mark)
            + &line("z", "RequestReceived", "create", "rhumb", "/z");
        fs::write(&path, &log).unwrap();
        assert!(reader.is_complete(&mark).unwrap().unwrap_err().contains("patch /x"));
        log += &line("a", "ResponseComplete", "patch", "rhumb", "/x?dryRun=All");
        log += "{\"torn";
        fs::write(&path, &log).unwrap();
        assert_eq!(reader.is_complete(&mark).unwrap(), Ok(()));
        let seen: Vec<_> =
            reader.events().into_iter().map(|event| (event.verb, event.dry_run, event.stage)).collect();
        assert_eq!(
            seen,
            [("watch".to_owned(), false, Stage::Started), ("patch".to_owned(), true, Stage::Complete)]
        );

        reader.server_ended().unwrap();
        let last = reader.events().pop().unwrap();
        assert_eq!((last.verb.as_str(), last.stage), ("create", Stage::Received));
        assert!(fs::read_to_string(&path).unwrap().ends_with("{\"torn\n"));
        let mark = reader.next_mark();
        assert!(reader.is_complete(&mark).unwrap().is_err());
    }
}
