//! The page, in a real browser.

use std::path::Path;

use serde_json::json;

use crate::support::{Browser, Daemon, Repo, TestNamespace, eventually, until, yaml};

const BUDGET: &str =
    "budget: {maxWorkloads: 1, maxUnavailable: 9, startsPerMinute: 1000, soak: 0s, deadline: 10m}";
const CANARY: &str = "canary-in-a-secret";
const MARKUP: &str = "<img src=x onerror=document.title='hit'> & more";

const LARGE: (u32, u32) = (1280, 900);
const SMALL: (u32, u32) = (360, 740);

/// Starts a daemon and brings it into the middle of a rollout, with something of everything to
/// show.
fn shop(site: &TestNamespace<'_>, repo: &Repo) -> (Daemon, String) {
    let settings = format!("{BUDGET}\nserve: {{listen: '127.0.0.1:0'}}");
    let daemon = site.configured(&site.configuration(repo.path(), &settings));
    let line = daemon.says(&["answering on http://127.0.0.1:"]);
    let address = format!("http://{}/", line.trim_end().rsplit('/').next().unwrap());
    site.await_rollout("web");
    site.await_rollout("api");
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &json!({"data": {"a": "drift"}}));
    site.await_data("env", "a", "one");
    let never = r#"{controlplane/never-ready: "true"}"#;
    repo.write("web.yaml", &yaml::workload("Deployment", "web", 4, "shop/web:2.14.1", never));
    repo.write("api.yaml", &yaml::workload("Deployment", "api", 2, "shop/api:1.9.0", never));
    repo.remove("uploads.yaml");
    let lonely = yaml::config_map("lonely", "a", "one");
    let needs = "metadata:\n  annotations: {rhumb.dev/depends-on: ConfigMap/nothing}";
    repo.write("lonely.yaml", &lonely.replace("metadata:", needs));
    repo.commit(MARKUP);
    (daemon, address)
}

fn manifests() -> Vec<(&'static str, String)> {
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: uploads}\nspec:\n  \
                 accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";
    vec![
        ("env.yaml", yaml::config_map("env", "a", "one")),
        ("token.yaml", yaml::secret("token", "password", CANARY)),
        ("web.yaml", yaml::workload("Deployment", "web", 4, "shop/web:2.13.0", "{}")),
        ("api.yaml", yaml::workload("Deployment", "api", 2, "shop/api:1.8.3", "{}")),
        ("uploads.yaml", claim.to_owned()),
    ]
}

#[test]
fn the_page_shows_what_runs_and_what_does_not() {
    let Some(mut browser) = Browser::start() else { return };
    let site = TestNamespace::new("page");
    let repo = Repo::new(&manifests());
    let (daemon, address) = shop(&site, &repo);
    browser.open(&address, LARGE, "light");
    let shown = browser.shows(&[
        &site.name,
        &repo.head()[..12],
        "Workloads rolling out",
        "1 of 1",
        "1 of 1 workloads are rolling out: Deployment",
        "Needs attention",
        "no source names",
        "lonely.yaml:1",
        "1 repaired",
        "prune waiting",
        &format!("rhumb prune confirm --source {0} {0}/persistentvolumeclaim/uploads", site.name),
        "Drift repaired",
        // The writer, with the field.
        "somebody changed .data.a at ",
        "Rollout started",
        "live",
    ]);
    // Text by others is text, and nothing else.
    assert!(shown.contains(MARKUP), "{shown}");
    assert_eq!(browser.value("document.images.length"), json!(1), "the page's own");
    assert_ne!(browser.value("document.title"), json!("hit"));
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR"));
    browser.picture(&pictures.join("page-light.png"));
    fits(&mut browser, &address, pictures);
    an_object_is_shown(&mut browser, &address, &site);
    nothing_misleads(&mut browser);
    what_went_back_is_shown_in_red(&mut browser);
    what_nobody_looks_after_is_not_called_healthy(&mut browser);
    keys_are_enough(&mut browser, &address);
    news_come_by_themselves(&mut browser, &address, &site, &repo);
    the_end_is_shown(&mut browser, daemon);
}

/// Checks that nothing sticks out, in the dark and on a telephone.
#[track_caller]
fn fits(browser: &mut Browser, address: &str, pictures: &Path) {
    for (size, scheme, name) in [(LARGE, "dark", "page-dark.png"), (SMALL, "light", "page-small.png")] {
        browser.open(address, size, scheme);
        browser.shows(&["Needs attention", "Drift repaired"]);
        let width = browser.value("document.documentElement.scrollWidth");
        assert_eq!(width, json!(size.0), "{name} is as wide as the window");
        browser.picture(&pictures.join(name));
    }
    let dark = "matchMedia('(prefers-color-scheme: dark)').matches + getComputedStyle(document.body).backgroundColor";
    let light = browser.value(dark);
    browser.open(address, LARGE, "dark");
    browser.shows(&["Needs attention"]);
    assert_ne!(browser.value(dark), light);
    browser.is_content();
}

#[track_caller]
fn an_object_is_shown(browser: &mut Browser, address: &str, site: &TestNamespace<'_>) {
    let at = |kind: &str, name: &str| format!("{address}#/object/{kind}/{}/{name}", site.name);
    // Whichever of the two waits differs from what is asked for.
    let difference =
        "[...document.querySelectorAll('.yaml .add, .yaml .del')].map((line) => line.textContent).join()";
    let lines = |name: &str, browser: &mut Browser| {
        browser.open(&at("Deployment.apps", name), LARGE, "light");
        browser.shows(&[&format!("Deployment.apps {}/{name}", site.name), "Revision"]);
        browser.value(difference).as_str().unwrap_or_default().to_owned()
    };
    let both = lines("web", browser) + &lines("api", browser);
    assert!(both.contains('+') && both.contains("image: shop/"), "{both}");
    browser.open(&at("Secret", "token"), LARGE, "light");
    browser.shows(&[&format!("Secret {}/token", site.name), "There is no difference.", "token.yaml:1"]);
    browser.value("document.querySelectorAll('[role=tab]')[1].click()");
    browser.shows(&["password: '<masked>'"]);
    let html = browser.value("document.documentElement.outerHTML");
    for canary in [CANARY, "Y2FuYXJ5"] {
        assert!(!html.as_str().unwrap().contains(canary));
    }
    browser.open(&at("Secret", "nowhere"), LARGE, "light");
    browser.shows(&["no source of this process knows"]);
    browser.complained_of("/nowhere");
    // An object that goes while somebody looks at it is not shown as if it were there.
    browser.open(&at("ConfigMap", "env"), LARGE, "light");
    browser.shows(&["Revision"]);
    let gone = "const asked = fetch; const gone = {message: 'no source of this process knows it'}; window.fetch = (path, more) => \
                path.includes('/env?') ? Promise.resolve(new Response(JSON.stringify(gone), {status: 404})) : asked(path, more); 0";
    browser.value(gone);
    let shown = browser.shows(&["no source of this process knows it"]);
    assert!(!shown.contains("Revision"), "{shown}");
    // Dots lead to no other answer than the address says.
    browser.open(&format!("{address}#/object/../../livez"), LARGE, "light");
    browser.shows(&["Needs attention"]);
}

/// Checks that names and texts are what they look like, also where they are typed into a terminal.
#[track_caller]
fn nothing_misleads(browser: &mut Browser) {
    let typed = r#"typedName({group: 'g', kind: 'Role', namespace: 'a', name: "it's;$(b) \n!x:y"})"#;
    assert_eq!(browser.value(typed), json!("a/role.g/it%27s%3B%24%28b%29%20%0A%21x:y"));
    let shown =
        r"el('p', {title: 'a\u202eb'}, 'a\u202eb', el('b', {}, '\u001b\u200b\u206a\u3164\tc\n')).outerHTML";
    assert_eq!(
        browser.value(shown),
        json!("<p title=\"a\u{fffd}b\">a\u{fffd}b<b>\u{fffd}\u{fffd}\u{fffd}\u{fffd}\tc\n</b></p>")
    );
}

/// Returns the words of the verdict on a source with these objects, the colour of its dot, and the
/// title.
fn verdict(browser: &mut Browser, objects: &str) -> [serde_json::Value; 3] {
    // In one go, before the next answer of the daemon comes.
    let script = format!(
        "(() => {{
            const kept = state.status;
            const source = {{...kept.sources[0], complete: true, objects: {objects}}};
            const process = {{...kept.process, serverSilentSince: undefined}};
            state.status = {{...kept, process, sources: [source], rollout: {{...kept.rollout, unreadable: undefined}}}};
            draw();
            const top = document.getElementById('verdict');
            const shown = [top.textContent, getComputedStyle(top, '::before').backgroundColor, document.title];
            state.status = kept;
            draw();
            return shown;
        }})()"
    );
    serde_json::from_value(browser.value(&script)).unwrap()
}

/// Returns the colour of a verdict's dot.
fn dot(browser: &mut Browser, name: &str) -> serde_json::Value {
    let probe = format!(
        "(() => {{
            const probe = document.body.appendChild(document.createElement('i'));
            probe.className = 'verdict {name}';
            const color = getComputedStyle(probe, '::before').backgroundColor;
            probe.remove();
            return color;
        }})()"
    );
    browser.value(&probe)
}

/// Shows a status in which nothing is held, nothing fails any more, and yet the newest content does
/// not run.
#[track_caller]
fn what_went_back_is_shown_in_red(browser: &mut Browser) {
    let (bad, good) = (dot(browser, "bad"), dot(browser, "good"));
    assert_ne!(bad, good);
    let [words, color, title] = verdict(browser, "{Settled: 3}");
    assert_eq!([words, color, title], [json!("Everything is healthy"), good, json!("rhumb")]);
    let check = |objects: &str, expected: &str, browser: &mut Browser| {
        let [words, color, title] = verdict(browser, objects);
        let expected = [json!(expected), bad.clone(), json!(format!("{expected} – rhumb"))];
        assert_eq!([words, color, title], expected, "{objects}");
    };
    check("{Settled: 3, RolledBack: 1}", "1 rolled back", browser);
    check("{Refused: 2, RolledBack: 1}", "2 need attention, 1 rolled back", browser);
    let gauge = |used: u32, browser: &mut Browser| {
        browser.value(&format!("gauge('pods', {used}, 3).querySelector('dd').textContent"))
    };
    assert_eq!(gauge(2, browser), json!("2 of 3"));
    assert_eq!(gauge(11, browser), json!("11, at most 3"), "no part of what there is");
}

/// Shows what a person or a manifest takes out of rhumb's hands. It is counted, and is not shown in
/// the green of what is healthy.
#[track_caller]
fn what_nobody_looks_after_is_not_called_healthy(browser: &mut Browser) {
    let [good, bad, held, rest] = ["good", "bad", "held", "rest"].map(|name| dot(browser, name));
    assert!(![&good, &bad, &rest].contains(&&held) && good != rest, "{good} {bad} {held} {rest}");
    let check = |objects: &str, expected: &str, color: &serde_json::Value, browser: &mut Browser| {
        let [words, dot, title] = verdict(browser, objects);
        let expected_title =
            if *color == good { "rhumb".to_owned() } else { format!("{expected} – rhumb") };
        let expected = [json!(expected), color.clone(), json!(expected_title)];
        assert_eq!([words, dot, title], expected, "{objects}");
    };
    check("{Settled: 3, OptedOut: 1}", "1 left alone by annotation", &held, browser);
    check("{Settled: 3, Held: 1, Paused: 1}", "2 held or paused", &held, browser);
    check("{Settled: 3, LeftAlone: 2}", "2 left alone, all else is healthy", &good, browser);
    check("{LeftAlone: 2}", "2 left alone", &rest, browser);
    let all = "1 held or paused, 1 left alone by annotation, 2 left alone";
    check("{LeftAlone: 2, OptedOut: 1, Held: 1}", all, &held, browser);
    let worse = "1 rolled back, 1 left alone by annotation, 2 left alone";
    check("{LeftAlone: 2, OptedOut: 1, RolledBack: 1}", worse, &bad, browser);
}

/// Goes from the top to an object and back, without a pointer.
#[track_caller]
fn keys_are_enough(browser: &mut Browser, address: &str) {
    browser.open("about:blank", LARGE, "light");
    browser.open(address, LARGE, "light");
    browser.shows(&["Needs attention"]);
    eventually("the keys lead to an object", crate::support::DEFAULT_TIMEOUT, || {
        browser.press("Tab", 9);
        let there = browser.value("document.activeElement.getAttribute('href') || ''");
        let there = there.as_str().unwrap().to_owned();
        if there.starts_with("#/object/") { Ok(()) } else { Err(there) }
    });
    browser.press("Enter", 13);
    until("the object is shown", || {
        browser.value("location.hash").as_str().unwrap().starts_with("#/object/")
    });
    browser.shows(&["Difference", "Overview"]);
    browser.press("Escape", 27);
    browser.shows(&["Needs attention", "Recent commits"]);
}

#[track_caller]
fn news_come_by_themselves(browser: &mut Browser, address: &str, site: &TestNamespace<'_>, repo: &Repo) {
    browser.open("about:blank", LARGE, "light");
    browser.open(address, LARGE, "light");
    browser.shows(&["Needs attention", "live"]);
    browser.value("window.same = true");
    repo.change("env.yaml", &yaml::config_map("env", "a", "two"));
    browser.shows(&[&repo.head()[..12]]);
    site.await_data("env", "a", "two");
    assert_eq!(browser.value("window.same"), json!(true), "it was not loaded again");
    browser.is_content();
}

#[track_caller]
fn the_end_is_shown(browser: &mut Browser, mut daemon: Daemon) {
    daemon.stop();
    browser.shows(&["rhumb does not answer", "no answer"]);
}

const TOKEN: &str = "canary-token-0123456789abcdef";

/// Reaches the page over TLS, where there is no socket, as in a pod.
#[test]
fn a_browser_signs_in_with_the_token() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    for (name, text) in
        [("key", own.signing_key.serialize_pem()), ("cert", own.cert.pem()), ("token", TOKEN.to_owned())]
    {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let at = dir.path().display();
    let keys = format!(
        "serve: {{listen: '127.0.0.1:0', tls: {{cert: {at}/cert, key: {at}/key}}, token: {at}/token}}"
    );
    let site = TestNamespace::new("sign-in");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let daemon = site.configured(&site.configuration(repo.path(), &keys));
    let line = daemon.says(&["answering on https://127.0.0.1:"]);
    let port = line.trim_end().rsplit(':').next().unwrap();
    let address = format!("https://localhost:{port}/");
    browser.trust_everybody();
    browser.open(&address, SMALL, "dark");
    browser.shows(&["Sign in", "serve.token"]);
    browser.picture(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("page-sign-in.png"));
    browser.complained_of("401");
    let send = |token: &str| {
        format!(
            "document.getElementById('token').value = '{token}'; document.querySelector('button').click()"
        )
    };
    browser.leave_by(&send("another-0123456789abcdef"));
    browser.shows(&["This is not the token."]);
    browser.complained_of("401");
    browser.leave_by(&send(TOKEN));
    browser.shows(&["Events", "live", &repo.head()[..12]]);
    assert_eq!(browser.value("document.cookie"), json!(""), "no script sees it");
    // News come over the same session, which ends with its token.
    repo.change("env.yaml", &yaml::config_map("env", "a", "two"));
    browser.shows(&[&repo.head()[..12]]);
    browser.is_content();
    std::fs::write(dir.path().join("token"), "another-0123456789abcdef").unwrap();
    repo.change("env.yaml", &yaml::config_map("env", "a", "three"));
    browser.shows(&["Sign in", "serve.token"]);
    assert!(!daemon.log().contains(TOKEN));
}
