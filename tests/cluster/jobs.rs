//! Jobs, which end, and whose templates never change.

use serde_json::json;

use crate::support::{Folder, Repo, TestNamespace, until, yaml};

/// Returns a Job that ends at once, with an annotation on it and lines in its spec.
fn job(name: &str, image: &str, annotations: &str, spec: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  annotations: {{{annotations}}}
spec:
{spec}  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: {image}
"
    )
}

/// Waits until a Job has succeeded and its controller has written so for the last time.
fn await_end(site: &TestNamespace<'_>, name: &str) {
    until(&format!("{name} has ended"), || {
        let status = site.value("Job", name, "/status");
        status["succeeded"] == json!(1) && status["completionTime"].is_string()
    });
}

fn uid(site: &TestNamespace<'_>, name: &str) -> String {
    site.value("Job", name, "/metadata/uid").as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_job_with_another_template_is_refused_with_the_rule() {
    let site = TestNamespace::new("job-changed");
    let folder = Folder::new(&[
        ("job.yaml", job("migrate", "migrate:1", "", "")),
        ("env.yaml", yaml::config_map("env", "a", "one")),
    ]);
    site.apply(folder.path(), &["--wait"]).ends(0);
    let before = uid(&site, "migrate");
    folder.write("job.yaml", &job("migrate", "migrate:2", "", ""));
    folder.write("env.yaml", &yaml::config_map("env", "a", "two"));
    for output in ["text", "unified"] {
        let diff = site.diff(folder.path(), &["-o", output]).ends(1);
        diff.says(&["! Job job-changed/migrate"]);
        diff.says(&["refused: ", "spec.template: field is immutable; with the annotation"]);
        diff.says(&["1 to configure", "1 refused"]);
    }
    let apply = site.apply(folder.path(), &[]).ends(1);
    apply.says(&["job.batch/migrate", "refused", "immutable", "rhumb.dev/recreate"]);
    assert_eq!(uid(&site, "migrate"), before);
    assert_eq!(site.data("env", "a"), "two");
    folder.write("job.yaml", &job("migrate", "migrate:2", "rhumb.dev/recreate: \"true\"", ""));
    let diff = site.diff(folder.path(), &[]).ends(1);
    diff.says(&["± Job job-changed/migrate"]);
    diff.says(&["-", "image: migrate:1"]);
    diff.says(&["+", "image: migrate:2"]);
    let plan = site.apply(folder.path(), &["-o", "json"]).ends(0).json();
    assert_eq!(
        (&plan["summary"]["recreate"], &plan["summary"]["create"]),
        (&json!(1), &json!(0)),
        "{plan:#}"
    );
    assert_ne!(uid(&site, "migrate"), before);
}

#[test]
fn a_job_that_allows_it_is_deleted_and_created_again() {
    let site = TestNamespace::new("job-again");
    let allowed = |image: &str| job("migrate", image, "rhumb.dev/recreate: \"true\"", "");
    let repo = Repo::new(&[("job.yaml", allowed("migrate:1"))]);
    let _daemon = site.daemon(repo.path());
    site.await_object("Job", "migrate");
    await_end(&site, "migrate");
    let (before, window) = (uid(&site, "migrate"), site.window());
    site.diff(repo.path(), &[]).ends(0);
    repo.change("job.yaml", &allowed("migrate:2"));
    until("the Job is another one", || {
        let now = uid(&site, "migrate");
        !now.is_empty() && now != before
    });
    await_end(&site, "migrate");
    let image = site.value("Job", "migrate", "/spec/template/spec/containers/0/image");
    assert_eq!(image, json!("migrate:2"));
    assert_eq!(window.deletes().len(), 1);
    // One try in place that the server refused, and the creation.
    assert_eq!(window.to("jobs", "migrate").iter().filter(|event| event.verb == "patch").count(), 2);
}

#[test]
fn a_job_that_has_ended_is_settled() {
    let site = TestNamespace::new("job-ended");
    let folder = Folder::new(&[("job.yaml", job("migrate", "migrate:1", "", ""))]);
    site.apply(folder.path(), &["--wait"]).ends(0);
    let window = site.window();
    site.with_empty_state().apply(folder.path(), &[]).ends(0).says(&["job.batch/migrate", "unchanged"]);
    site.diff(folder.path(), &[]).ends(0);
    window.assert_silent();
}

fn a_job_goes_away_by_itself(site: &TestNamespace<'_>, ttl: u32) {
    let mortal = |image: &str| job("migrate", image, "", &format!("  ttlSecondsAfterFinished: {ttl}\n"));
    let repo =
        Repo::new(&[("job.yaml", mortal("migrate:1")), ("env.yaml", yaml::config_map("env", "a", "one"))]);
    let window = site.window();
    let mut daemon = site.configured(&site.configuration(repo.path(), "resync: 1s"));
    daemon.says(&["created", "migrate"]);
    site.await_absence("Job", "migrate");
    // A commit and some resyncs later it is still gone.
    for value in ["two", "three"] {
        let mark = daemon.mark();
        repo.change("env.yaml", &yaml::config_map("env", "a", value));
        site.await_data("env", "a", value);
        daemon.says_since(mark, &["read"]);
    }
    assert!(!site.has("Job", "migrate"));
    assert_eq!(window.to("jobs", "migrate").len(), 1);
    daemon.stop();
    // A new process without a state directory knows it as well.
    let new = site.with_empty_state();
    new.diff(repo.path(), &[]).ends(0);
    new.apply(repo.path(), &[]).ends(0);
    assert_eq!(window.to("jobs", "migrate").len(), 1);
    // Another content is another Job.
    repo.change("job.yaml", &mortal("migrate:2"));
    new.apply(repo.path(), &[]).ends(0);
    assert_eq!(window.to("jobs", "migrate").len(), 2);
}

#[test]
fn a_job_that_ended_and_went_away_by_itself_is_not_created_again() {
    a_job_goes_away_by_itself(&TestNamespace::new("job-ttl"), 2);
}

#[test]
fn a_job_that_goes_away_in_the_moment_in_which_it_ends_is_not_created_again() {
    a_job_goes_away_by_itself(&TestNamespace::new("job-ttl-zero"), 0);
}

#[test]
fn a_job_that_somebody_deletes_before_it_ended_is_created_again() {
    let site = TestNamespace::new("job-deleted");
    let long = job("migrate", "migrate:1", "", "  ttlSecondsAfterFinished: 100\n")
        .replace("    spec:\n", "    metadata: {annotations: {controlplane/run-for: 100s}}\n    spec:\n");
    let repo = Repo::new(&[("job.yaml", long)]);
    let _daemon = site.daemon(repo.path());
    site.await_object("Job", "migrate");
    let before = uid(&site, "migrate");
    site.api.delete(&format!("{}?propagationPolicy=Background", site.at("Job", "migrate")));
    until("it is there again", || {
        let now = uid(&site, "migrate");
        !now.is_empty() && now != before
    });
}
