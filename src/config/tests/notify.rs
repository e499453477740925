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
    let of_all = |to| NotifyConfig { to, sources: NotifiedSources::All, on: NotificationEvent::ALL.into() };
    let slack = NotifyConfig {
        to: Recipient::Slack { url: "/etc/rhumb/u".into() },
        sources: NotifiedSources::Named(vec!["shop".to_owned()]),
        on: [NotificationEvent::Failed].into(),
    };
    let expected = vec![slack, of_all(forge), of_all(webhook)];
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

/// Returns a file with these keys of its `Configuration`, and sources of these names and locations.
fn file(keys: &str, sources: &[(&str, &str)]) -> String {
    let source = |(name, location): &(&str, &str)| {
        format!(
            "---\napiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {name}}}\nspec: {location}\n"
        )
    };
    let sources: String = sources.iter().map(source).collect();
    format!("apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{keys}\n{sources}")
}

const SHOP: (&str, &str) = ("shop", "{git: {url: 'https://gitlab.com/acme/shop'}}");
const TEAM: (&str, &str) = ("team", "{git: {url: 'https://gitlab.com/acme/shop.git', path: team}}");
const SITE: (&str, &str) = ("site", "{git: {url: 'https://gitlab.com/acme/site'}}");
const FILES: (&str, &str) = ("files", "{directory: m}");

#[test]
fn a_status_that_nobody_will_see_is_known() {
    let check = |keys: &str, expected: &[&str]| {
        let config = read("rhumb.yaml", &file(keys, &[SHOP, FILES]), &environment()).unwrap();
        let said: Vec<String> = config.commit_status_errors().iter().map(ToString::to_string).collect();
        assert_eq!(said, expected, "{keys}");
    };
    check(
        "notify: [{gitlab: {repository: a/b, token: t}, sources: [shop, files, elsewhere]}]",
        &["no commit status of the source files at a/b: it is a directory, and has no commits"],
    );
    check(
        "notify: [{gitlab: {repository: acme/shop, token: t}}, {slack: {urlFile: u}, sources: [files]}]",
        &[],
    );
    let elsewhere = "notify: [{gitlab: {repository: acme/other, token: t}}]";
    let expected = "no commit status at acme/other: no source follows it by an address of its server, and \
                    `sources` names none";
    check(elsewhere, &[expected]);
    check(&format!("customSources: any\n{elsewhere}"), &[]);
}

#[test]
fn a_repository_shows_the_sources_that_are_named_or_follow_it() {
    let check = |entry: &str, expected: NotifiedSources| {
        let text = file(&format!("notify: [{entry}]"), &[SHOP, TEAM, SITE, FILES]);
        let recipients = read("rhumb.yaml", &text, &environment()).unwrap().recipients();
        let found: Vec<_> = recipients.into_iter().map(|recipient| recipient.sources).collect();
        assert_eq!(found, [expected], "{entry}");
    };
    let of = |names: &[&str]| NotifiedSources::Named(names.iter().map(|&name| name.to_owned()).collect());
    check("{gitlab: {repository: acme/shop, token: t}}", of(&["shop", "team"]));
    check("{gitlab: {repository: acme/other, token: t}}", of(&[]));
    // A mirror or a clone on this host is not known by its address.
    check("{gitlab: {repository: acme/other, token: t}, sources: [shop]}", of(&["shop"]));
    check("{slack: {urlFile: u}}", NotifiedSources::All);
}

// The later status of one commit would hide the earlier one of another source.
#[test]
fn no_two_sources_have_one_status() {
    #[track_caller]
    fn check(keys: &str, sources: &[(&str, &str)], expected: Option<&str>) {
        let found = read("rhumb.yaml", &file(keys, sources), &environment());
        let shown = found.err().map(|found| {
            let [fault] = &found[..] else { panic!("{keys}: {found:?}") };
            assert_eq!(fault.hint.as_deref(), Some(HINT), "{keys}");
            format!("{}: {}", fault.origin.line, fault.message)
        });
        assert_eq!(shown.as_deref(), expected, "{keys}");
    }
    const HINT: &str = "put {source} into it, for example staging/{source}, or name one source under `sources`, and let no two \
         contexts begin and end alike";
    let shared = |line: u32, first: &str, second: &str| {
        format!(
            "{line}: the sources `{first}` and `{second}` have the same `context` at acme/shop, and would overwrite \
             each other's status"
        )
    };
    let entry = |context: &str, sources: &str| {
        format!("- gitlab: {{repository: acme/shop, token: t, context: '{context}'}}\n{sources}")
    };
    let keys = |entries: &[String]| format!("notify:\n{}", entries.concat());
    let fixed = keys(&[entry("deploy", "")]);
    check(&fixed, &[SHOP, SITE, FILES], None);
    check(&fixed, &[SHOP, TEAM], Some(&shared(4, "shop", "team")));
    check(&keys(&[entry("eu/{source}", "")]), &[SHOP, TEAM], None);
    check(&keys(&[entry("deploy", "  sources: [team]\n")]), &[SHOP, TEAM], None);
    let both = keys(&[entry("deploy", "  sources: [shop, site]\n")]);
    check(&both, &[SHOP, SITE], Some(&shared(4, "shop", "site")));
    let apart = [entry("deploy", "  sources: [shop]\n"), entry("deploy", "  sources: [team]\n")];
    check(&keys(&apart), &[SHOP, TEAM], Some(&shared(6, "shop", "team")));
    let in_two_cases = |forge: &str| {
        let entries = [("Deploy", "shop"), ("deploy", "team")].map(|(context, source)| {
            format!(
                "- {forge}: {{repository: acme/shop, token: t, context: {context}}}\n  sources: [{source}]\n"
            )
        });
        keys(&entries)
    };
    check(&in_two_cases("github"), &[SHOP, TEAM], Some(&shared(6, "shop", "team")));
    check(&in_two_cases("gitlab"), &[SHOP, TEAM], None);
    let crossed = [entry("rhumb/{source}", ""), entry("rhumb/shop", "  sources: [team]\n")];
    check(&keys(&crossed), &[SHOP, TEAM], Some(&shared(5, "shop", "team")));
    let again = [entry("deploy", "  on: [failed]\n"), entry("deploy", "  on: [succeeded]\n")];
    check(&keys(&again), &[SHOP], None);
    let message = "5: the `context` `deploy` at acme/shop is the same for all sources of the cluster, which would \
                   overwrite each other's status";
    check(&format!("customSources: any\n{fixed}"), &[SHOP], Some(message));
    let named = keys(&[entry("deploy", "  sources: [team-in-cluster]\n")]);
    check(&format!("customSources: any\n{named}"), &[SHOP], None);
}

// Somebody who may create a Source in the cluster chooses its name.
#[test]
fn no_name_of_a_source_in_the_cluster_leads_to_the_status_of_another() {
    #[track_caller]
    fn check(contexts: &[(&str, Option<&str>)], expected: Option<&str>) {
        let entry = |(context, source): &(&str, Option<&str>)| {
            let sources = source.map(|source| format!("  sources: [{source}]\n")).unwrap_or_default();
            format!("- gitlab: {{repository: acme/shop, token: t, context: '{context}'}}\n{sources}")
        };
        let entries: String = contexts.iter().map(entry).collect();
        let text = file(&format!("customSources: any\nnotify:\n{entries}"), &[SITE]);
        let found = read("rhumb.yaml", &text, &environment());
        let shown = found.err().map(|found| {
            let [fault] = &found[..] else { panic!("{contexts:?}: {found:?}") };
            fault.message.clone()
        });
        assert_eq!(shown.as_deref(), expected, "{contexts:?}");
    }
    let taken = "by the `context` `rhumb/{source}` at acme/shop, a source `prod` of the cluster would overwrite the \
                 status of the source `site`";
    check(&[("rhumb/prod", Some("site")), ("rhumb/{source}", None)], Some(taken));
    check(&[("rhumb/{source}", None), ("rhumb/prod", Some("site"))], Some(taken));
    let twice = "by the `context` `{source}/{source}` at acme/shop, a source `prod` of the cluster would overwrite \
                 the status of the source `site`";
    check(&[("prod/prod", Some("site")), ("{source}/{source}", None)], Some(twice));
    let met = "by the `context` `rhumb/eu-{source}` at acme/shop and by `rhumb/{source}`, two sources of the cluster \
               would overwrite each other's status";
    check(&[("rhumb/{source}", None), ("rhumb/eu-{source}", None)], Some(met));
    // No source has such a name.
    check(&[("rhumb/the prod", Some("site")), ("rhumb/{source}", None)], None);
    check(&[("prod/test", Some("site")), ("{source}/{source}", None)], None);
    check(&[("deploy", Some("site")), ("rhumb/{source}", None)], None);
    check(&[("eu/{source}", None), ("rhumb/{source}", None)], None);
    check(&[("rhumb/{source}", None), ("rhumb/{source}", None)], None);
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
