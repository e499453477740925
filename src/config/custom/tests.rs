use serde_json::json;

use super::*;
use crate::config::{Config, FetchSetting, VerifyMode};
use crate::manifest::KindScope;
use crate::object::{GroupKind, ObjectId};

fn read(name: &str, spec: Value, allowed: impl Into<CustomSourcePolicy>) -> Result<SourceConfig, String> {
    let object = json!({ "metadata": { "name": name, "generation": 3 }, "spec": spec });
    let custom = CustomSource::read(object, &allowed.into()).unwrap();
    assert_eq!((&*custom.name, custom.generation, &custom.status), (name, 3, &Value::Null));
    custom.config
}

#[test]
fn an_object_is_a_source_as_of_the_file() {
    let url = "https://git.example.org/shop.git";
    let spec = json!({ "git": { "url": url, "ref": "main", "interval": "5m" }, "observe": true });
    let config = read("shop", spec, CustomSources::Remote).unwrap();
    assert!(
        matches!(&config.location, SourceLocation::Git { url: u, reference: Some(r), .. } if u.expose() == url && r == "main")
    );
    assert_eq!((&*config.name, config.mode), ("shop", crate::config::SourceMode::Observe));
}

#[test]
fn what_cannot_be_followed_says_why() {
    #[track_caller]
    fn check(name: &str, spec: Value, allowed: CustomSources, why: &str) {
        let found = read(name, spec, allowed).map(|config| config.name);
        assert!(found.as_ref().is_err_and(|text| text.contains(why)), "{found:?}");
    }
    let remote = json!({ "git": { "url": "https://a.example/b" } });
    check("a.b", remote.clone(), CustomSources::Remote, "metadata.name: not a name");
    check("a", Value::Null, CustomSources::Remote, "spec: invalid type");
    check("a", json!({}), CustomSources::Remote, "neither `git` nor `directory`");
    check("a", json!({ "git": remote["git"], "directory": "/a" }), CustomSources::Any, "both");
    check("a", json!({ "prune": "no" }), CustomSources::Remote, "spec: ");
    let secret = read("a", json!({ "git": "https://a:canary@b/c" }), CustomSources::Any).unwrap_err();
    assert!(secret.contains("https://***@b/c") && !secret.contains("canary"), "{secret}");
    for here in [json!({ "directory": "/etc" }), json!({ "git": { "url": "/srv/a.git" } })] {
        check("a", here.clone(), CustomSources::Remote, "`customSources: any`");
        assert!(read("a", here, CustomSources::Any).is_ok());
    }
    for url in ["file:///srv/a.git", "FILE:///srv/a.git", "file:/srv/a.git", "a/b"] {
        check("a", json!({ "git": { "url": url } }), CustomSources::Remote, "`customSources: any`");
    }
    let transports = [
        "ext::sh -c touch% /tmp/x",
        "fd::3",
        "http://a.example/b",
        "git://a.example/b",
        "ftp://a.example/b",
        "HTTPS://a.example/b",
        "--upload-pack=sh:b",
    ];
    for url in transports {
        for follow in [CustomSources::Remote, CustomSources::Any] {
            check("a", json!({ "git": { "url": url } }), follow, "its transport is not used");
        }
    }
    // For git these are helpers too. No scheme is like that, so they count as paths of this host.
    for url in ["ext::sh -c echo% https://a.example/b", "foo::https://a.example/b"] {
        check("a", json!({ "git": { "url": url } }), CustomSources::Remote, "`customSources: any`");
        check("a", json!({ "git": { "url": url } }), CustomSources::Any, "its transport is not used");
    }
}

#[test]
fn a_list_of_addresses_admits_no_other_transport() {
    for prefix in ["https://a.example/", "/srv", "sh@ext:b"] {
        let allow = Some(vec![prefix.parse().unwrap()]);
        let policy = CustomSourcePolicy { allow, ..CustomSources::Any.into() };
        for url in ["ext::sh -c x", "sh@ext::b", "http://a.example/b", "--upload-pack=sh:b"] {
            let found = read("a", json!({ "git": { "url": url } }), policy.clone());
            assert!(found.as_ref().is_err_and(|text| text.contains("its transport")), "{url}: {found:?}");
        }
    }
}

#[test]
fn what_may_be_fetched_is_the_word_of_the_configuration() {
    let text = "{follow: any, fetch: {allow: ['oci://ghcr.io/team'], credentials: [{host: ghcr.io, credential: team}]}}";
    let policy: CustomSourcePolicy = serde_yaml::from_str(text).unwrap();
    let git = json!({ "url": "https://a.example/b" });
    let config = read("a", json!({ "git": git }), policy.clone()).unwrap();
    assert_eq!(config.fetch, policy.fetch);
    assert_eq!(config.fetch.setting, FetchSetting::CustomSources);
    let own = json!({ "allow": ["oci://ghcr.io/team/web"] });
    for allowed in [policy, CustomSources::Any.into()] {
        let why = read("a", json!({ "git": git, "fetch": own }), allowed).unwrap_err();
        assert!(why.contains("`customSources.fetch` of the configuration"), "{why}");
    }
    let closed = read("a", json!({ "git": git }), CustomSources::Any).unwrap().fetch;
    assert_eq!((closed.allow, closed.setting), (vec![], FetchSetting::CustomSources));
}

#[test]
fn keys_are_named_and_never_files_of_the_host() {
    let text = "{follow: any, keys: {ours: /etc/ours, ops: ops}, verify: VERIFY}";
    let policy = |verify: &str| -> CustomSourcePolicy {
        let policy: CustomSourcePolicy = serde_yaml::from_str(&text.replace("VERIFY", verify)).unwrap();
        policy.resolve(&Environment { directory: "/rhumb".into(), ..Environment::default() })
    };
    let verified = |policy: CustomSourcePolicy, git: Value| -> Result<_, String> {
        let location = read("a", json!({ "git": git }), policy)?.location;
        let SourceLocation::Git { verify, .. } = location else { panic!("a repository") };
        Ok(verify.map(|verify| (verify.keys.display().to_string(), verify.mode)))
    };
    let url = "https://a.example/b";
    let asking = |keys: &str| json!({ "url": url, "verify": { "keys": keys, "mode": "range" } });
    let found = |file: &str, mode| Ok(Some((file.to_owned(), mode)));
    assert_eq!(verified(policy("null"), json!({ "url": url })), Ok(None));
    assert_eq!(verified(policy("null"), asking("ours")), found("/etc/ours", VerifyMode::Range));
    for keys in ["/etc/ours", "ops2", "../ops", ""] {
        let why = verified(policy("null"), asking(keys)).unwrap_err();
        assert!(why.ends_with("of the configuration; names: ops, ours"), "{why}");
    }
    // The configuration's requirement counts, whatever the object says.
    for git in [json!({ "url": url }), asking("ours"), asking("/etc/passwd")] {
        assert_eq!(verified(policy("{keys: ops}"), git), found("/rhumb/ops", VerifyMode::Head));
    }
    let directory = json!({ "directory": "/srv/a" });
    assert!(read("a", directory.clone(), policy("null")).is_ok());
    assert!(read("a", directory, policy("{keys: ops}")).unwrap_err().contains("carries no signatures"));
    let unknown = serde_yaml::from_str::<CustomSourcePolicy>("{follow: any, verify: {keys: ours}}");
    assert!(unknown.unwrap_err().to_string().contains("there are none"));
}

#[test]
fn only_what_the_configuration_allows_is_named() {
    #[track_caller]
    fn check(follow: CustomSources, allow: &[&str], spec: Value, allowed: bool) {
        let allow = allow.iter().map(|prefix| prefix.parse().unwrap()).collect();
        let found = read("a", spec.clone(), CustomSourcePolicy { allow: Some(allow), ..follow.into() });
        assert_eq!(found.is_ok(), allowed, "{spec}: {found:?}");
    }
    let git = |url: &str| json!({ "git": { "url": url } });
    let team = ["https://git.example.org/team-a/", "/srv/git"];
    check(CustomSources::Remote, &team, git("https://git.example.org/team-a/shop.git"), true);
    check(CustomSources::Remote, &team, git("https://git.example.org/team-b/shop.git"), false);
    check(CustomSources::Remote, &team, git("https://git.example.org/team-a/../team-b"), false);
    check(CustomSources::Remote, &team, git("https://token@git.example.org/team-a/shop.git"), false);
    check(CustomSources::Remote, &team, git("file:///srv/git/shop.git"), false);
    check(CustomSources::Any, &team, git("file:///srv/git/shop.git"), true);
    check(CustomSources::Any, &team, json!({ "directory": "/srv/git/shop" }), true);
    check(CustomSources::Any, &team, json!({ "directory": "/etc" }), false);
    check(CustomSources::Any, &[], git("https://git.example.org/team-a/shop.git"), false);
}

#[test]
fn variables_come_from_objects_that_the_policy_allows() {
    #[track_caller]
    fn check(objects: &str, from: Value, refused: Option<&str>) {
        let policy: CustomSourcePolicy =
            serde_yaml::from_str(&format!("{{follow: remote, objects: {objects}}}")).unwrap();
        let spec =
            json!({ "git": { "url": "https://a.example/b" }, "namespace": "shop", "substituteFrom": [from] });
        let found = read("a", spec, policy).err();
        let refusal = |named: &str| format!("substituteFrom: {named} is not allowed");
        assert_eq!(found.is_some(), refused.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().starts_with(&refused.map(refusal).unwrap_or_default()));
    }
    let own = json!({ "kind": "Secret", "name": "vars" });
    let other = json!({ "kind": "Secret", "name": "vars", "namespace": "ops" });
    check("{}", other.clone(), None);
    check("{namespaces: [shop]}", own.clone(), None);
    check("{namespaces: [shop]}", other, Some("Secret ops/vars"));
    check("{namespaces: [shop], kinds: [ConfigMap]}", own, Some("Secret shop/vars"));
}

#[test]
fn a_secret_is_shown_by_the_rights_of_a_service_account_alone() {
    #[track_caller]
    fn check(policy: &str, account: Option<&str>, from: Value, refused: Option<&str>) {
        let policy: CustomSourcePolicy = serde_yaml::from_str(policy).unwrap();
        let map = json!({ "kind": "ConfigMap", "name": "vars" });
        let mut spec = json!({
            "git": { "url": "https://a.example/b" }, "namespace": "shop", "substituteFrom": [map, from],
        });
        if let Some(account) = account {
            spec["serviceAccountName"] = json!(account);
        }
        let found = read("a", spec, policy).err();
        assert_eq!(found.is_some(), refused.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().contains(refused.unwrap_or_default()));
    }
    let shown = json!({ "kind": "Secret", "name": "vars", "sensitive": false });
    let why = "Secret shop/vars with `sensitive: false` is not allowed without a service account";
    check("remote", None, shown.clone(), Some(why));
    check("remote", Some("shop"), shown.clone(), None);
    check("{follow: remote, defaultServiceAccount: plain}", None, shown.clone(), None);
    check("remote", None, json!({ "kind": "Secret", "name": "vars" }), None);
    check("remote", None, json!({ "kind": "Secret", "name": "vars", "sensitive": true }), None);
    let listed = "{follow: remote, serviceAccounts: [shop]}";
    check(listed, Some("admin"), shown.clone(), Some("admin is not allowed"));
    let bounded = "{follow: remote, objects: {namespaces: [shop], kinds: [ConfigMap]}}";
    check(bounded, Some("shop"), shown, Some("`customSources.objects`"));
}

#[test]
fn where_addresses_are_listed_only_branches_and_tags_are_named() {
    #[track_caller]
    fn check(url: &str, reference: &str, listed: bool, allowed: bool) {
        let prefix = |text: &&str| text.parse().unwrap();
        let allow = listed.then(|| ["https://git.example.org/", "/srv"].iter().map(prefix).collect());
        let policy =
            CustomSourcePolicy { follow: CustomSources::Any, allow, ..CustomSourcePolicy::default() };
        let found = read("a", json!({ "git": { "url": url, "ref": reference } }), policy);
        assert_eq!(found.is_ok(), allowed, "{url} {reference}: {found:?}");
    }
    let (remote, here) = ("https://git.example.org/shop.git", "/srv/shop.git");
    let commit = "0123456789abcdefABCDEF0123456789abcdef01";
    for url in [remote, here] {
        for reference in ["main", "HEAD", "refs/heads/main", "refs/tags/v1", "v1.2"] {
            check(url, reference, true, true);
        }
        for reference in [commit, "refs/pull/1/head", "refs/merge-requests/1/head", "refs/changes/1/1"] {
            check(url, reference, true, false);
            check(url, reference, false, true);
        }
    }
    check(remote, "cafe", true, true);
    check(here, "cafe", true, false);
    check(here, "refs/heads/cafe", true, true);
    // In a repository on this host it may be `refs/remotes/fork/main`.
    for (url, reference, allowed) in [
        (remote, "fork/main", true),
        (here, "fork/main", false),
        (here, "refs/heads/fork/main", true),
        (here, "refs/remotes/fork/main", false),
    ] {
        check(url, reference, true, allowed);
        check(url, reference, false, true);
    }
}

#[test]
fn what_a_source_has_at_most_says_the_configuration() {
    #[track_caller]
    fn check(policy: &CustomSourcePolicy, allow: Value, id: (&str, Option<&str>), refused: Option<&str>) {
        let mut spec = json!({ "git": { "url": "https://a.example/b" } });
        if !allow.is_null() {
            spec["allow"] = allow.clone();
        }
        let object = json!({ "metadata": { "name": "a" }, "spec": spec });
        let custom = CustomSource::read(object, policy).unwrap();
        let list = custom.config.unwrap().allow;
        // Deletions with the object are held against the same list.
        assert_eq!(list, custom.allow);
        let scope = if id.1.is_some() { KindScope::Namespaced } else { KindScope::Cluster };
        let id = ObjectId::new(&GroupKind::parse(id.0), id.1, "web");
        let found = list.violation(&id, Some(scope)).map(|refusal| refusal.to_string());
        match refused {
            None => assert_eq!(found, None, "{allow}"),
            Some(part) => {
                assert!(found.as_ref().is_some_and(|words| words.contains(part)), "{allow}: {found:?}");
            }
        }
    }
    let policy = |objects: &str| -> CustomSourcePolicy {
        serde_yaml::from_str(&format!("{{follow: remote, objects: {objects}}}")).unwrap()
    };
    let (shop, ops) = (("ConfigMap", Some("shop")), ("ConfigMap", Some("ops")));
    let team = policy("{namespaces: [shop, web], kinds: [ConfigMap, apps/*]}");
    for allow in [Value::Null, json!({}), json!({ "namespaces": ["shop", "ops"], "clusterScoped": true })] {
        check(&team, allow.clone(), shop, None);
        check(&team, allow.clone(), ops, Some("`customSources.objects.namespaces` of the configuration"));
        check(&team, allow.clone(), ("Secret", Some("shop")), Some("`customSources.objects.kinds`"));
        check(&team, allow, ("Namespace", None), Some("`customSources.objects.clusterScoped`"));
    }
    check(
        &team,
        json!({ "namespaces": ["shop"] }),
        ("ConfigMap", Some("web")),
        Some("`allow.namespaces` of the s"),
    );
    check(&policy("{}"), Value::Null, ("Namespace", None), None);
    // A key without a value, or one that is not known, never allows everything.
    for objects in ["null", "{namespaces: null}", "{namespace: [shop]}", "[shop]"] {
        let text = format!("{{follow: remote, objects: {objects}}}");
        assert!(serde_yaml::from_str::<CustomSourcePolicy>(&text).is_err(), "{objects}");
    }
}

#[test]
fn a_source_shows_its_server_what_the_configuration_binds_to_its_address() {
    #[track_caller]
    fn check(policy: &str, url: &str, expected: &str) {
        let policy: CustomSourcePolicy = serde_yaml::from_str(policy).unwrap();
        // The name of a Source is chosen by whoever writes it.
        let config = read("team-a", json!({ "git": { "url": url } }), policy).unwrap();
        let shown = match config.credentials {
            CredentialUse::Own => "its own".to_owned(),
            CredentialUse::Bound(name, address) => format!("{name} at {address}"),
            CredentialUse::Nothing => "none".to_owned(),
        };
        assert_eq!(shown, expected, "{url}");
    }
    let url = "https://git.example.org/team-a/shop.git";
    check("remote", url, "its own");
    check("{follow: remote}", url, "its own");
    check("{follow: remote, allow: ['https://git.example.org/']}", url, "none");
    let bound = "{follow: remote, credentials: {a: 'https://git.example.org/team-a/'}}";
    check(bound, url, "a at https://git.example.org/team-a");
    check(bound, "https://git.example.org/team-b/shop.git", "none");
    check(bound, "https://git.example.org/team-a/../team-b/shop.git", "none");
    let lists = "{follow: remote, allow: ['https://git.example.org/'], credentials: {a: 'https://git.example.org/team-a/'}}";
    check(lists, url, "a at https://git.example.org/team-a");
    check(lists, "https://git.example.org/team-b/shop.git", "none");
}

#[test]
fn an_object_acts_as_an_account_that_the_configuration_allows() {
    #[track_caller]
    fn check(policy: &str, spec: Value, expected: Result<Option<&str>, &str>) {
        let policy: CustomSourcePolicy = serde_yaml::from_str(policy).unwrap();
        let mut spec = spec;
        spec["git"] = json!({ "url": "https://a.example/b" });
        let found = read("a", spec, policy).map(|config| config.service_account);
        match (&found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.as_ref().map(ServiceAccountName::as_str), expected),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            _ => panic!("{found:?} is not {expected:?}"),
        }
    }
    let names = |name: &str| json!({ "serviceAccountName": name });
    check("remote", json!({}), Ok(None));
    check("remote", names("shop"), Ok(Some("shop")));
    check("remote", names("kube-system:admin"), Err("service account"));
    check("remote", json!({ "serviceAccountName": 1 }), Err("service account"));
    let default = "{follow: remote, defaultServiceAccount: plain}";
    check(default, json!({}), Ok(Some("plain")));
    check(default, names("shop"), Ok(Some("shop")));
    let listed = "{follow: remote, serviceAccounts: [shop]}";
    check(listed, names("shop"), Ok(Some("shop")));
    check(listed, names("admin"), Err("`customSources.serviceAccounts`"));
    check(listed, json!({}), Err("no serviceAccountName"));
    let both = "{follow: remote, defaultServiceAccount: plain, serviceAccounts: [shop]}";
    check(both, json!({}), Ok(Some("plain")));
    check(both, names("plain"), Ok(Some("plain")));
    check(both, names("admin"), Err("not allowed"));
}

#[test]
fn a_name_in_both_is_the_files() {
    let custom = |name: &str, spec: Value| {
        CustomSource::read(json!({ "metadata": { "name": name }, "spec": spec }), &CustomSources::Any.into())
            .unwrap()
    };
    let all = [
        custom("a", json!({ "directory": "/cluster" })),
        custom("b", json!({ "directory": "/cluster" })),
        custom("c", json!({})),
    ];
    let mut config = Config::default();
    config.sources.extend(custom("a", json!({ "directory": "/file" })).config);
    let joined = config.with_custom_sources(&all);
    let places: Vec<_> = joined.sources.iter().map(|source| (&*source.name, &source.location)).collect();
    let (file, cluster) =
        (SourceLocation::Directory("/file".into()), SourceLocation::Directory("/cluster".into()));
    assert_eq!(places, [("a", &file), ("b", &cluster)]);
}

fn object(metadata: Value, policy: &str, spec: Value) -> CustomSource {
    let mut object =
        json!({ "metadata": { "name": "shop", "uid": "u", "resourceVersion": "7" }, "spec": spec });
    for (key, value) in metadata.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    if !policy.is_empty() {
        object["spec"]["deletionPolicy"] = json!(policy);
    }
    CustomSource::read(object, &CustomSources::Any.into()).unwrap()
}

#[test]
fn the_finalizer_is_there_exactly_as_long_as_something_is_to_be_deleted() {
    #[track_caller]
    fn check(
        metadata: &Value,
        policy: &str,
        observe: bool,
        tie: FinalizerState,
        life: Option<SourceLifecycle>,
    ) {
        let custom = object(metadata.clone(), policy, json!({ "directory": "/shop", "observe": observe }));
        assert_eq!(custom.finalizer_state(), tie);
        assert_eq!(custom.followed_config().map(|config| config.life), life);
    }
    let (lives, ends) = (Some(SourceLifecycle::Active), Some(SourceLifecycle::Deleting));
    let fresh = json!({});
    let tied = json!({ "finalizers": ["a", SOURCE_FINALIZER] });
    let deleted = json!({ "finalizers": ["a"], "deletionTimestamp": "2030-01-01T00:00:00Z" });
    let going = json!({ "finalizers": [SOURCE_FINALIZER], "deletionTimestamp": "2030-01-01T00:00:00Z" });
    for orphan in ["", "Orphan"] {
        check(&fresh, orphan, false, FinalizerState::Correct, lives);
        check(&tied, orphan, false, FinalizerState::Unneeded, lives);
        check(&deleted, orphan, false, FinalizerState::Correct, None);
        check(&going, orphan, false, FinalizerState::Unneeded, None);
    }
    check(&fresh, "Delete", false, FinalizerState::Missing, None);
    check(&tied, "Delete", false, FinalizerState::Correct, lives);
    check(&going, "Delete", false, FinalizerState::KeptUntilEmpty, ends);
    // Without its finalizer it was never followed, or a person took it off.
    check(&deleted, "Delete", false, FinalizerState::Correct, None);
    check(&fresh, "Delete", true, FinalizerState::Correct, lives);
    check(&tied, "Delete", true, FinalizerState::Unneeded, lives);
    check(&going, "Delete", true, FinalizerState::Unneeded, None);
    let custom = object(tied, "", json!({}));
    assert_eq!(custom.finalizers(FinalizerState::Unneeded), Some(vec!["a".to_owned()]));
    assert_eq!(custom.finalizers(FinalizerState::Correct), None);
    let both = Some(vec!["a".to_owned(), SOURCE_FINALIZER.to_owned()]);
    assert_eq!(object(deleted, "", json!({})).finalizers(FinalizerState::Missing), both);
}

#[test]
fn what_cannot_be_understood_is_not_begun_and_can_be_deleted() {
    let going = json!({ "finalizers": [SOURCE_FINALIZER], "deletionTimestamp": "2030-01-01T00:00:00Z" });
    let unknown = json!({ "colour": "red" });
    // It came with its finalizer, and was never followed.
    let mut named = going.clone();
    named["name"] = json!("a.b");
    let spec = json!({ "directory": "/shop" });
    assert_eq!(object(named, "Delete", spec).finalizer_state(), FinalizerState::Unneeded);
    assert_eq!(object(json!({}), "Delete", unknown.clone()).finalizer_state(), FinalizerState::Correct);
    let custom = object(going.clone(), "Delete", unknown);
    let config = custom.followed_config().unwrap();
    assert_eq!(
        (&*config.name, config.life, config.prune),
        ("shop", SourceLifecycle::Deleting, PrunePolicy::On)
    );
    assert_eq!(config.allow, AllowList::default());
    // Only objects within the allow-list may be deleted.
    let bounded = json!({ "colour": "red", "allow": { "kinds": ["ConfigMap"] } });
    let allow = |spec: Value| object(going.clone(), "Delete", spec).followed_config().unwrap().allow;
    assert_eq!(allow(bounded).kinds, Some(["ConfigMap".parse().unwrap()].into()));
    assert_eq!(allow(json!({ "allow": { "namespaces": null } })), AllowList::deny_all());
    let kept = object(going.clone(), "Delete", json!({ "directory": "/shop", "prune": false }));
    assert_eq!(kept.followed_config().unwrap().prune, PrunePolicy::On);
    // A value that is neither word means nothing that could not be undone.
    let unclear = object(going, "delete", json!({ "directory": "/shop" }));
    assert_eq!(
        (unclear.policy, unclear.finalizer_state()),
        (DeletionPolicy::Orphan, FinalizerState::Unneeded)
    );
    assert!(unclear.config.unwrap_err().starts_with("spec.deletionPolicy: unknown variant `delete`"));
}
