//! The requests that a rule hits, and the fault.

use std::time::Duration;

use serde_json::json;

/// A set of requests; without a condition it is all of them.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    methods: Vec<String>,
    contains: Vec<String>,
    prefix: Option<String>,
    suffix: Option<String>,
    query: Vec<String>,
    query_lacks: Vec<String>,
    path_lacks: Vec<String>,
    watch: Option<Kind>,
    user: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Watch,
    Other,
}

/// The part of a request that rules match.
#[derive(Debug, Clone)]
pub(super) struct RequestShape {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) user: String,
}

impl RequestShape {
    fn kind(&self) -> Kind {
        let is_watch = self.query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1");
        if is_watch { Kind::Watch } else { Kind::Other }
    }
}

impl Requests {
    /// Starts with all requests.
    pub fn any() -> Self {
        Self::default()
    }

    /// Keeps an HTTP method: `GET`, `POST`, `PUT`, `PATCH`, `DELETE`; several calls keep each of
    /// the methods.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.methods.push(method.to_owned());
        self
    }

    /// Keeps paths with this text in them; the query is no part of the path.
    #[must_use]
    pub fn path_contains(mut self, text: &str) -> Self {
        self.contains.push(text.to_owned());
        self
    }

    /// Keeps paths without this text in them.
    #[must_use]
    pub fn path_lacks(mut self, text: &str) -> Self {
        self.path_lacks.push(text.to_owned());
        self
    }

    /// Keeps paths that begin so.
    #[must_use]
    pub fn path_prefix(mut self, text: &str) -> Self {
        self.prefix = Some(text.to_owned());
        self
    }

    /// Keeps paths that end so.
    #[must_use]
    pub fn path_suffix(mut self, text: &str) -> Self {
        self.suffix = Some(text.to_owned());
        self
    }

    /// Keeps requests with this text in their query: `dryRun=All`.
    #[must_use]
    pub fn query_contains(mut self, text: &str) -> Self {
        self.query.push(text.to_owned());
        self
    }

    /// Keeps requests without this text in their query.
    #[must_use]
    pub fn query_lacks(mut self, text: &str) -> Self {
        self.query_lacks.push(text.to_owned());
        self
    }

    /// Keeps watches.
    #[must_use]
    pub fn watches(mut self) -> Self {
        self.watch = Some(Kind::Watch);
        self
    }

    /// Keeps everything but watches.
    #[must_use]
    pub fn no_watches(mut self) -> Self {
        self.watch = Some(Kind::Other);
        self
    }

    /// Keeps one user's requests.
    #[must_use]
    pub fn user(mut self, name: &str) -> Self {
        self.user = Some(name.to_owned());
        self
    }

    pub(super) fn holds(&self, shape: &RequestShape) -> bool {
        (self.methods.is_empty() || self.methods.contains(&shape.method))
            && self.contains.iter().all(|text| shape.path.contains(text))
            && !self.path_lacks.iter().any(|text| shape.path.contains(text))
            && self.prefix.as_ref().is_none_or(|text| shape.path.starts_with(text))
            && self.suffix.as_ref().is_none_or(|text| shape.path.ends_with(text))
            && self.query.iter().all(|text| shape.query.contains(text))
            && !self.query_lacks.iter().any(|text| shape.query.contains(text))
            && self.watch.is_none_or(|kind| kind == shape.kind())
            && self.user.as_ref().is_none_or(|user| *user == shape.user)
    }
}

/// The way in which an answer stops before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseCut {
    /// The connection closes without a word (FIN).
    Close,
    /// The connection is reset (RST).
    Reset,
    /// Nothing more comes, and the connection stays open.
    Silence,
}

/// The fault of a request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Nothing; as an early rule it spares requests from later ones, and counts them.
    Pass,
    /// The connection ends before the request reaches the server.
    Refuse(ResponseCut),
    /// The request reaches the server after a time between these two.
    Delay(Duration, Duration),
    /// The request takes effect, and its answer is lost.
    DropAnswer(ResponseCut),
    /// The answer stops after so many bytes of its body.
    Cut(usize, ResponseCut),
    /// The answer's body has only so many bytes, and looks complete.
    Truncate(usize),
    /// The request reaches the server twice, and the second answer is the one that comes back.
    Duplicate,
    /// The request does not reach the server, and this comes back.
    Replace(Answer),
    /// The request takes effect, and this comes back.
    ReplaceAfter(Answer),
}

/// An answer that the server did not give.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Answer {
    /// Makes an answer with a status and a body.
    pub fn new(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), body: body.to_owned() }
    }

    /// Makes an error as the API server words it: 429 and `TooManyRequests`, 410 and `Expired`, 403
    /// and `Forbidden`.
    pub fn error(code: u16, reason: &str) -> Self {
        let status = status(code, reason);
        Self::new(code, &status.to_string()).header("Content-Type", "application/json")
    }

    /// Makes the answer of a watch that begins well and brings an error as its first event.
    pub fn watch_error(code: u16, reason: &str) -> Self {
        let event = json!({"type": "ERROR", "object": status(code, reason)});
        Self::new(200, &format!("{event}\n")).header("Content-Type", "application/json")
    }

    /// Adds a header: `Retry-After`.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

fn status(code: u16, reason: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": format!("fault: {reason}"), "reason": reason, "code": code})
}

/// A fault for some requests.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(super) requests: Requests,
    pub(super) fault: Fault,
    pub(super) skip: u64,
    pub(super) times: u64,
    pub(super) chance: f64,
}

impl Rule {
    /// Does this to all these requests.
    pub const fn new(requests: Requests, fault: Fault) -> Self {
        Self { requests, fault, skip: 0, times: u64::MAX, chance: 1.0 }
    }

    /// Spares the first ones.
    #[must_use]
    pub const fn skip(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// Ends the rule after so many faults.
    #[must_use]
    pub const fn times(mut self, count: u64) -> Self {
        self.times = count;
        self
    }

    /// Draws by lot whether a request is hit: 0.0 is never, 1.0 is always. The proxy's seed
    /// decides.
    #[must_use]
    pub const fn chance(mut self, chance: f64) -> Self {
        self.chance = chance;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_all_needed() {
        let list = ("GET", "/api/v1/namespaces/shop/configmaps", "watch=true&resourceVersion=1");
        let apply = ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web", "dryRun=All&force=true");
        for (requests, (method, path, query), expected) in [
            (Requests::any(), list, true),
            (Requests::any().method("PATCH").method("GET"), list, true),
            (Requests::any().method("PATCH"), list, false),
            (Requests::any().path_contains("/shop/").path_suffix("configmaps"), list, true),
            (Requests::any().path_contains("/shop/").path_suffix("secrets"), list, false),
            (Requests::any().path_prefix("/api/"), apply, false),
            (Requests::any().watches(), list, true),
            (Requests::any().no_watches(), list, false),
            (Requests::any().watches(), apply, false),
            (Requests::any().query_contains("dryRun=All"), apply, true),
            (Requests::any().query_lacks("dryRun="), apply, false),
            (Requests::any().path_lacks("/apis/"), apply, false),
            (Requests::any().path_lacks("/events"), apply, true),
            (Requests::any().user("rhumb"), apply, true),
            (Requests::any().user("other"), apply, false),
        ] {
            let [method, path, query, user] = [method, path, query, "rhumb"].map(str::to_owned);
            let shape = RequestShape { method, path, query, user };
            assert_eq!(requests.holds(&shape), expected, "{requests:?} {shape:?}");
        }
    }
}
