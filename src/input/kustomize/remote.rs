//! The references that kustomize fetches from elsewhere, by its own rules. These decide between a
//! path and an address, so a text is an address exactly where kustomize takes it for one.

use crate::input::paths;

/// Returns whether a file of this name is fetched over HTTP: any text with that scheme.
pub(super) fn is_http(reference: &str) -> bool {
    let scheme = reference.split_once(':').map_or("", |(scheme, _)| scheme);
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Returns whether a folder of this name is cloned by git.
pub(super) fn is_repository(reference: &str) -> bool {
    if reference.starts_with('/') {
        return false;
    }
    let text = reference.split_once('?').map_or(reference, |(text, _)| text);
    let text = without_prefix(text, "git::").unwrap_or(text);
    let known = ["ssh://", "https://", "http://", "file://"];
    let scheme = known.into_iter().find(|scheme| without_prefix(text, scheme).is_some());
    let text = scheme.and_then(|scheme| without_prefix(text, scheme)).unwrap_or(text);
    if scheme == Some("file://") {
        return has_repository_path(text, None);
    }
    let (has_user, text) = match user(text) {
        Some(user) => (true, text.get(user.len() + 1..).unwrap_or_default()),
        None => (false, text),
    };
    let is_github = ["github.com/", "github.com:"].iter().any(|host| without_prefix(text, host).is_some());
    let is_scp = scheme.is_none() && (has_user || is_github);
    if scheme.is_none() && !is_scp {
        return false;
    }
    let (host, path) = match host_end(text, is_scp) {
        Some(end) => (text.get(..=end).unwrap_or_default(), text.get(end + 1..).unwrap_or_default()),
        None => (text, ""),
    };
    !host.is_empty() && has_repository_path(path, Some(2))
}

/// Returns the rest of a text after a prefix, whatever its case.
fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| text.get(prefix.len()..)).flatten()
}

/// Returns the name before the first `@`, where it is a user's.
fn user(text: &str) -> Option<&str> {
    let (user, _) = text.split_once('@')?;
    let mut letters = user.bytes();
    let begins = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic());
    (begins && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'-')).then_some(user)
}

/// Returns where the host of an address ends: before its path, or before a colon as `scp` has it.
fn host_end(text: &str, is_scp: bool) -> Option<usize> {
    let slash = text.find('/');
    if !is_scp {
        return slash;
    }
    let colon = text.find(':');
    match (slash, colon) {
        (None, colon) => colon,
        (Some(slash), Some(colon)) if colon > 0 && colon < slash => Some(colon),
        (slash, _) => slash,
    }
}

/// Returns whether a path names a repository: by a mark, or by as many parts as one has. The folder
/// inside it must not leave it.
fn has_repository_path(path: &str, parts: Option<usize>) -> bool {
    let (repository, inside) = if let Some(at) = path.find("_git/") {
        let rest = path.get(at + 5..).unwrap_or_default();
        let name = rest.find('/').unwrap_or(rest.len());
        (path.get(..at + 5 + name).unwrap_or_default(), rest.get(name..).unwrap_or_default())
    } else if let Some(at) = path.find("//") {
        (path.get(..at).unwrap_or_default(), path.get(at + 2..).unwrap_or_default())
    } else if let Some(at) = path.find(".git") {
        path.split_at(at + 4)
    } else {
        match parts {
            None => (path, ""),
            Some(parts) => match path.match_indices('/').nth(parts - 1) {
                Some((at, _)) => path.split_at(at),
                None if path.split('/').count() == parts => (path, ""),
                None => return false,
            },
        }
    };
    let inside = inside.strip_prefix('/').unwrap_or(inside);
    !repository.is_empty() && (inside.starts_with('/') || paths::join("", inside).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kustomize_clones_is_a_repository() {
        for reference in [
            "https://github.com/org/repo",
            "https://github.com/org/repo//path?ref=v1",
            "HTTPS://example.com/org/repo/path",
            "http://example.com/org/repo.git/path",
            "github.com/org/repo",
            "github.com/org/repo/path?ref=main",
            "GitHub.com:org/repo",
            "git@github.com:org/repo.git",
            "git@gitlab.example.com:org/repo/sub?ref=x",
            "org-1@host.xz:path/to/repo.git/",
            "git::https://example.com/org/repo",
            "git::git@example.com:org/repo",
            "GIT::github.com/org/repo",
            "ssh://git@example.com/org/repo",
            "ssh://example.com:22/org/repo",
            "file:///srv/git/repo",
            "file://relative/repo//sub",
            "https://dev.azure.com/org/project/_git/repo/path",
            "git@ssh.dev.azure.com:v3/org/project/repo",
        ] {
            assert!(is_repository(reference), "{reference}");
        }
    }

    #[test]
    fn what_kustomize_takes_for_a_path_is_none() {
        for reference in [
            "",
            "base",
            "../base",
            "../github.com/org/repo",
            "gitlab.com/org/repo",
            "github.com",
            "github.com/org",
            "example.com/org/repo.git",
            "/github.com/org/repo",
            "1user@host:org/repo",
            "user@host",
            "https://example.com",
            "https://example.com/org",
            "https://github.com/org/repo//../../x",
            "git::base",
            "base?ref=x",
        ] {
            assert!(!is_repository(reference), "{reference}");
        }
    }

    #[test]
    fn what_has_the_scheme_is_fetched() {
        for reference in ["http://x", "https://x/y.yaml", "HTTPS://x", "http:x"] {
            assert!(is_http(reference), "{reference}");
        }
        for reference in ["x", "./http://x", "ftp://x", "httpx://y", "https", "a/http:x"] {
            assert!(!is_http(reference), "{reference}");
        }
    }
}
