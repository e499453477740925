//! The errors of helm about a server, distinguished by its words.

use super::error::FetchError;
use super::pull::PulledChart;
use crate::fields::mask_likely_secrets;
use crate::input::kustomize::sanitize_text;

/// The words of servers that ask for other credentials.
const FORBIDDEN_MESSAGES: [&str; 6] = [
    "401 ",
    "403 ",
    "unauthorized",
    "forbidden",
    "requested access to the resource is denied",
    "basic credential not found",
];
/// The words for what is not there.
const MISSING_MESSAGES: [&str; 8] = [
    "no chart version found",
    "no chart name found",
    "could not locate a version matching",
    "manifest unknown",
    "name unknown",
    "404 ",
    ": not found",
    "unable to locate any tags",
];
/// The words for a range that is none.
const INVALID_RANGE_MESSAGES: [&str; 2] = ["improper constraint", "invalid/malformed"];
/// The words where the sandbox denied it a port.
const DENIED_PORT_MESSAGE: &str = "connect: permission denied";

/// Returns the error for what helm said, in which no secret is left.
pub(super) fn helm_fetch_error(stderr: &str, chart: PulledChart<'_>) -> FetchError {
    let PulledChart { address, name, version } = chart;
    let (repository, name, version) = (address.to_string(), name.to_owned(), version.to_owned());
    let lower = stderr.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let message = quote(stderr);
    if has(&INVALID_RANGE_MESSAGES) {
        let reason = "it is neither a version nor a range of them";
        return FetchError::Malformed { subject: "the version", text: sanitize_text(&version), reason };
    }
    if has(&FORBIDDEN_MESSAGES) {
        return FetchError::Forbidden { repository, name, message };
    }
    if has(&MISSING_MESSAGES) {
        return FetchError::NotFound { repository, name, version, message };
    }
    let message = if lower.contains(DENIED_PORT_MESSAGE) {
        format!("{message} (it may connect to the port of the repository alone)")
    } else {
        message
    };
    FetchError::Network { repository, name, message }
}

/// Returns the line of a complaint that names the cause, without what may be a secret in it.
pub(super) fn quote(stderr: &str) -> String {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = || lines().rfind(|line| line.starts_with("Error:"));
    let last = reason_of_index(stderr).or_else(error).or_else(|| lines().next_back());
    let line = last.unwrap_or("it said nothing");
    sanitize_text(&mask_likely_secrets(line.trim_start_matches("Error:").trim()))
}

/// Returns the reason for a missing index, which is on the line after the words.
fn reason_of_index(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines();
    lines.find(|line| line.contains("Unable to get an update"))?;
    lines.next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_helm_tell_what_is_wrong() {
        #[track_caller]
        fn check(stderr: &str, code: &str, expected: &str) {
            let address = "https://charts.example.org/".parse().unwrap();
            let chart = PulledChart { address: &address, name: "web", version: "1.2.3" };
            let error = helm_fetch_error(stderr, chart);
            assert_eq!((error.code(), &*error.to_string()), (code, expected), "{stderr}");
        }
        check(
            "Error: chart \"web\" matching 1.2.3 not found in charts index. (try 'helm repo update'): no chart version found for web-1.2.3\n",
            "chart-not-found",
            "https://charts.example.org/ has no chart web 1.2.3: chart \"web\" matching 1.2.3 not found in charts index. (try 'helm repo update'): no chart version found for web-1.2.3",
        );
        check(
            "Hang tight\n...Unable to get an update from the \"charts\" chart repository (https://charts.example.org/):\n\tlooks like \"https://charts.example.org/\" is not a valid chart repository or cannot be reached: failed to fetch https://charts.example.org/index.yaml : 401 Unauthorized\nError: failed to update the following repositories\n",
            "fetch-failed",
            "https://charts.example.org/ does not let rhumb read the chart web: looks like \"https://charts.example.org/\" is not a valid chart repository or cannot be reached: failed to fetch https://charts.example.org/index.yaml : 401 Unauthorized",
        );
        check(
            "Error: Get \"https://store.example.org/a?X-Signature=0123456789abcdef0123\": dial tcp 10.0.0.1:8443: connect: permission denied",
            "fetch-failed",
            "the chart web cannot be fetched from https://charts.example.org/: Get \"https://store.example.org/a?***\": dial tcp 10.0.0.1:8443: connect: permission denied (it may connect to the port of the repository alone)",
        );
        check(
            "Error: improper constraint: >>1\n",
            "chart-reference",
            "the version \"1.2.3\" is none: it is neither a version nor a range of them",
        );
        check(
            "",
            "fetch-failed",
            "the chart web cannot be fetched from https://charts.example.org/: it said nothing",
        );
    }

    #[test]
    fn a_bad_version_gets_the_hint_for_a_version_and_an_address_that_for_an_address() {
        let hint = |subject| FetchError::Malformed { subject, text: "x".to_owned(), reason: "y" }.hint();
        assert_eq!(hint("the version"), "write one exact version of the chart, as 1.2.3");
        assert!(hint("the repository").starts_with("write it as https://HOST/FOLDER"));
    }

    #[test]
    fn a_quote_is_short() {
        assert!(quote(&"a ".repeat(10_000)).len() < 1000);
    }
}
