//! Recipients of notifications.

use super::*;

#[test]
fn whom_it_tells_is_read() {
    let notify = |keys: &str| read("rhumb.yaml", &configuration(keys), &environment()).unwrap().notify;
    let found = notify(
        "notify: [{slack: {urlFile: u}, sources: [shop], on: [failed]}, {gitlab: {repository: a/b/c, token: t}}, \
         {webhook: {url: 'http://[::1]:80/x', token: ~/t}}]",
    );
    let forge = Recipient::Forge {
        forge: Forge::GitLab,
        url: "https://gitlab.com".to_owned(),
        repository: "a/b/c".to_owned(),
        token: "/etc/rhumb/t".into(),
        context: "rhumb/{source}".to_owned(),
    };
    let webhook = Recipient::Webhook {
        url: UrlSource::Url("http://[::1]:80/x".to_owned()),
        token: Some("/home/ann/t".into()),
    };
    let of = |to, sources: &[&str], on: &[NotificationEvent]| NotifyConfig {
        to,
        sources: sources.iter().map(|&source| source.to_owned()).collect(),
        on: on.iter().copied().collect(),
    };
    let expected = vec![
        of(Recipient::Slack { url: "/etc/rhumb/u".into() }, &["shop"], &[NotificationEvent::Failed]),
        of(forge, &[], &NotificationEvent::ALL),
        of(webhook, &[], &NotificationEvent::ALL),
    ];
    assert_eq!(found, expected);
    assert!(!format!("{found:?}").contains("::1"), "{found:?}");
}

#[test]
fn a_forge_gets_a_context_of_its_own_and_may_be_named_by_number() {
    let text = "notify: [{gitlab: {repository: 42, token: t, context: 'eu/{source}'}}]";
    let recipients = read("rhumb.yaml", &configuration(text), &environment()).unwrap().notify;
    let Recipient::Forge { repository, context, .. } = &recipients[0].to else { panic!("{recipients:?}") };
    assert_eq!((&**repository, &**context), ("42", "eu/{source}"));
}

// It has no commit that could have a status.
#[test]
fn a_directory_that_a_forge_would_be_notified_of_is_known() {
    let source = |name: &str, place: &str| {
        format!(
            "---\napiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {name}}}\nspec: {place}\n"
        )
    };
    let notify = "notify: [{gitlab: {repository: a/b, token: t}, sources: [shop, files, elsewhere]}, \
                  {gitlab: {repository: a/c, token: t}}, {slack: {urlFile: u}, sources: [files]}]\n";
    let text = [
        format!("apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{notify}"),
        source("shop", "{git: {url: 'https://h/a'}}"),
        source("files", "{directory: m}"),
    ];
    let config = read("rhumb.yaml", &text.concat(), &environment()).unwrap();
    let said: Vec<String> = config.directory_status_errors().iter().map(ToString::to_string).collect();
    let expected = "no commit status of the source files at a/b: it is a directory, and has no commits";
    assert_eq!(said, [expected]);
}

#[test]
fn what_looks_like_a_secret_is_not_repeated() {
    for text in [
        "resync: 'hunter2hunter2hunter2'",
        "resync: hunter2hunter2hunter2",
        "hunter2hunter2hunter2: 1",
        "api: {qps: hunter2hunter2hunter2}",
        "notify: [{webhook: {url: 'http://h/hunter2hunter2hunter2'}}]",
        "resync: *hunter2hunter2hunter2",
        "resync: \"hunter2hunter2hunter2",
        "customSources: hunter2hunter2hunter2",
    ] {
        let shown = faults(&configuration(text));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    // Nor are numbers, which need no letters to be one.
    assert!(!faults(&configuration("context: 8347298347298347")).contains("8347298347298347"));
}

#[test]
fn whom_it_cannot_tell_is_a_fault() {
    fn check(entry: &str, expected: &[&str]) {
        let shown = faults(&configuration(&format!("notify:\n- {entry}")));
        assert!(expected.iter().all(|part| shown.contains(part)), "{entry}: {shown}");
    }
    check("{sources: [shop]}", &["10:3 an entry", "exactly one of webhook, slack, github, gitea and gitlab"]);
    check(
        "{slack: {urlFile: u}, webhook: {url: 'https://h'}}",
        &["exactly one of", "give each its own entry"],
    );
    check("{webhook: {}}", &["a webhook has either `url` or `urlFile`"]);
    check("{webhook: {url: 'https://h', urlFile: u}}", &["a webhook has either `url` or `urlFile`"]);
    check("{webhook: {url: 'http://example.org/x'}}", &["goes to an https URL without credentials"]);
    check("{webhook: {url: 'https://a:b@example.org'}}", &["goes to an https URL without credentials"]);
    check("{gitea: {repository: a/b, token: t}}", &["the forge has no `url`", "https://git.example.org"]);
    check("{github: {repository: shop, token: t}}", &["`shop` is no repository", "acme/shop"]);
    check("{github: {repository: a/.., token: t}}", &["`a/..` is no repository"]);
    check("{github: {repository: 42, token: t}}", &["`42` is no repository"]);
    check("{github: {repository: [a], token: t}}", &["for example acme/shop"]);
    for url in ["https://h?a=b", "https://h/#a"] {
        let entry = format!("{{gitea: {{url: '{url}', repository: a/b, token: t}}}}");
        check(&entry, &["has a query or a fragment", "https://git.example.org"]);
    }
    for context in ["", " a", "a{b}", "{source", "a\\tb", &"a".repeat(129)] {
        let entry = format!("{{github: {{repository: a/b, token: t, context: \"{context}\"}}}}");
        check(&entry, &["10:3 the `context` cannot be that of a status", "staging/{source}"]);
    }
    check("{slack: {url: 'https://h/secret'}}", &["urlFile"]);
    check("{slack: {urlFile: u}, on: [always]}", &["always", "rolled-back"]);
}
