//! The lines of a view and of its changes.

use std::collections::BTreeMap;

use super::*;
use crate::render::CodedReason;
use crate::report::ProcessStatus;

fn named(kind: &str, name: &str) -> ObjectRef {
    let group = if kind == "Deployment" { "apps" } else { "" }.to_owned();
    ObjectRef { group, kind: kind.to_owned(), namespace: Some("shop".to_owned()), name: name.to_owned() }
}

fn object(kind: &str, name: &str, phase: Phase, reason: &str) -> ObjectStatus {
    ObjectStatus {
        object: named(kind, name),
        source: "shop".to_owned(),
        phase,
        reason: (!reason.is_empty()).then(|| reason.to_owned()),
        coded: CodedReason::default(),
        revision: Some("0123456789abcdef".to_owned()),
        origin: Some(format!("{name}.yaml:1")),
        wave: 0,
    }
}

fn source(name: &str, objects: &[(Phase, usize)]) -> SourceStatus {
    SourceStatus {
        name: name.to_owned(),
        location: format!("https://git.example.org/{name}.git"),
        revision: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
        author: None,
        subject: None,
        since: Some("2030-01-02T03:03:05Z".parse().unwrap()),
        looked: None,
        changes: Vec::new(),
        drift_repaired: 0,
        complete: true,
        healthy: true,
        objects: objects.iter().copied().collect::<BTreeMap<_, _>>(),
        ..SourceStatus::default()
    }
}

/// Returns a source in trouble, and one that is as it should be.
fn troubled() -> StatusView {
    let counts = [
        (Phase::Settled, 17),
        (Phase::RollingOut, 1),
        (Phase::Waiting, 1),
        (Phase::Refused, 1),
        (Phase::Progressing, 1),
    ];
    let shop = SourceStatus {
        incomplete: Some("env.yaml is not understood".to_owned()),
        prune_waiting: 2,
        ..source("shop", &counts)
    };
    let rolling = WorkloadRolloutStatus {
        object: named("Deployment", "web"),
        source: Some("shop".to_owned()),
        holder: None,
        replicas: 5,
        updated: 2,
        available: 4,
        unavailable: 1,
        step: Some("held at step 1".to_owned()),
    };
    let queued = QueuedWorkloadStatus {
        object: named("Deployment", "api"),
        position: Some(1),
        reason: "1 of 1 workloads are rolling out".to_owned(),
        coded: CodedReason::default(),
    };
    StatusView {
        notes: Vec::new(),
        at: "2030-01-02T03:04:05Z".parse().unwrap(),
        process: Some(ProcessStatus {
            server_silent_since: None,
            version: "9.9.9".to_owned(),
            since: "2030-01-02T03:04:05Z".parse().unwrap(),
            next_resync: "2030-01-02T04:04:05Z".parse().unwrap(),
            queue: 0,
            unfinished_seconds: 0.0,
            longest_seconds: 0.0,
        }),
        sources: vec![shop, source("ops", &[(Phase::Settled, 3), (Phase::LeftAlone, 1)])],
        rollout: RolloutStatus {
            unreadable: None,
            known: true,
            workloads: BoundUsage { used: 1, of: 3 },
            unavailable: BoundUsage { used: 1, of: 10 },
            starts: BoundUsage { used: 1, of: 30 },
            window: 1,
            on_failure: "rollback".to_owned(),
            rolling: vec![rolling],
            queue: vec![queued],
        },
        objects: vec![
            object("ConfigMap", "a", Phase::Progressing, ""),
            object("Deployment", "web", Phase::RollingOut, "2 of 5"),
            object("Deployment", "api", Phase::Waiting, "1 of 1"),
            object("ConfigMap", "env", Phase::Refused, "it is not\nunderstood \u{1b}[2J"),
        ],
    }
}

#[test]
fn an_overview_says_what_rolls_what_waits_and_what_is_wrong() {
    let text = Overview::of(&troubled(), DetailLevel::Short).text(Palette::Plain);
    let expected = "\
SOURCE  REVISION      AGE  OBJECTS  STATE
shop    0123456789ab  1m        21  1 progressing, 1 rolling, 1 waiting, 1 refused
                                    incomplete: env.yaml is not understood
                                    2 pending deletions: `rhumb prune list --source shop`
ops     0123456789ab  1m         4  healthy, 1 left alone

rollout budget: 1 of 3 workloads (now at most 1), 1 of 10 pods unavailable
rhumb 9.9.9 since 2030-01-02 03:04:05 UTC; next resync 04:04:05 UTC

OBJECT                    PHASE        WHY
shop/deployment.apps/web  RollingOut   2 of 5 pods are new, 4 available; held at step 1
shop/deployment.apps/api  Waiting      number 1 in the rollout queue: 1 of 1 workloads are rolling out
shop/configmap/env        Refused      it is not understood \u{fffd}[2J
shop/configmap/a          Progressing
";
    assert_eq!(text, expected);
}

#[test]
fn a_workload_that_rolls_out_has_the_phase_that_its_source_counts() {
    let row = |change: &dyn Fn(&mut StatusView)| {
        let mut view = troubled();
        change(&mut view);
        let text = Overview::of(&view, DetailLevel::Short).text(Palette::Plain);
        text.lines().find(|line| line.starts_with("shop/deployment.apps/web")).unwrap().to_owned()
    };
    let numbers = "2 of 5 pods are new, 4 available; held at step 1";
    let shown = |phase: &str, why: &str| format!("shop/deployment.apps/web  {phase:<12} {why}");
    for phase in [Phase::Quarantined, Phase::RolledBack, Phase::Refused] {
        let failed = row(&|view| view.objects[1] = object("Deployment", "web", phase, "it failed"));
        assert_eq!(failed, shown(&phase.to_string(), &format!("{numbers}; it failed")));
    }
    // One that needs no attention is not listed by its source.
    assert_eq!(row(&|view| drop(view.objects.remove(1))), shown("RollingOut", numbers));
}

#[test]
fn the_pods_of_another_processs_workload_are_not_known_and_its_claim_is_as_old_as_the_ledger() {
    let mut view = troubled();
    let roll = &mut view.rollout.rolling[0];
    (roll.holder, roll.step) = (Some("source b, process 7 on vm".to_owned()), None);
    let shown = |view: &StatusView| (rollout_text(&view.rollout.rolling[0]), budget_text(&view.rollout));
    let budget = "rollout budget: 1 of 3 workloads (now at most 1), 1 of 10 pods unavailable";
    let seen = "2 of 5 pods are new, 4 available; claimed by source b, process 7 on vm";
    assert_eq!(shown(&view), (seen.to_owned(), budget.to_owned()));
    let roll = &mut view.rollout.rolling[0];
    (roll.replicas, roll.updated, roll.available) = (0, 0, 0);
    let claimed = "claimed by source b, process 7 on vm, as the rollout ledger was last read";
    let budget = format!("{budget}, as the rollout ledger was last read");
    assert_eq!(shown(&view), (claimed.to_owned(), budget));
}

#[test]
fn a_source_with_errors_is_not_called_healthy() {
    let settled = source("ops", &[(Phase::Settled, 3)]);
    let view = troubled();
    assert_eq!(state(&view, &settled).1, "healthy");
    let unhealthy = SourceStatus { healthy: false, ..settled };
    assert_eq!(state(&view, &unhealthy).1, "errors in its files");
}

#[test]
fn wide_is_complete() {
    let mut view = troubled();
    view.objects
        .extend((0..30).map(|number| object("ConfigMap", &format!("z{number:02}"), Phase::Failed, "no")));
    let short = Overview::of(&view, DetailLevel::Short).text(Palette::Plain);
    assert!(short.ends_with("and 14 more: `rhumb status -o wide` lists them\n"), "{short}");
    let wide = Overview::of(&view, DetailLevel::Wide).text(Palette::Plain);
    for text in ["0123456789abcdef0123456789abcdef01234567", "https://git.example.org/ops.git", "z29.yaml:1"]
    {
        assert!(wide.contains(text) && !short.contains(text), "{text}");
    }
}

#[test]
fn changes_are_reported_row_by_row() {
    let before = Overview::of(&troubled(), DetailLevel::Short);
    assert_eq!(before.new_lines(&before), [""; 0]);
    let mut view = troubled();
    view.rollout.rolling[0].updated = 3;
    view.objects.retain(|object| object.phase != Phase::Refused);
    view.sources[0].objects.remove(&Phase::Refused);
    view.sources[0].incomplete = None;
    let news = Overview::of(&view, DetailLevel::Short).new_lines(&before);
    let expected = [
        "shop  0123456789ab  20  1 progressing, 1 rolling, 1 waiting",
        "shop/deployment.apps/web  RollingOut  3 of 5 pods are new, 4 available; held at step 1",
        "shop/configmap/env  is settled, or gone",
    ];
    assert_eq!(news, expected);
    // A change of a whole source names it.
    let news = before.new_lines(&Overview::of(&view, DetailLevel::Short));
    assert!(news.contains(&"shop  incomplete: env.yaml is not understood".to_owned()), "{news:?}");
}

/// Reads the words from where it is judged, after a daemon with the time since when.
#[test]
fn that_nothing_is_pruned_is_said_once() {
    let why = "nothing is pruned while Widget.example.com cannot be listed: the server has no such kind";
    for unlisted in [why.to_owned(), format!("since 2030-01-02 03:04:05 UTC: {why}")] {
        let source = SourceStatus { unlisted: Some(unlisted.clone()), ..source("shop", &[]) };
        assert_eq!(source_notes(&source), [(TextStyle::Warning, unlisted)]);
    }
}

#[test]
fn the_state_of_a_source_is_its_worst() {
    let view = troubled();
    let state_of = |source: &SourceStatus| state(&view, source);
    let check = |change: &dyn Fn(&mut SourceStatus), style: TextStyle, expected: &str| {
        let mut source = source("shop", &[(Phase::Settled, 1)]);
        change(&mut source);
        assert_eq!(state_of(&source), (style, expected.to_owned()));
    };
    check(&|_| {}, TextStyle::Added, "healthy");
    check(&|source| source.revision = None, TextStyle::Waiting, "not read yet");
    check(&|source| source.observed = true, TextStyle::Added, "healthy, only observed");
    check(&|source| source.paused = Some(String::new()), TextStyle::Added, "healthy, paused");
    // Nobody looks after these, so nobody can say that they are well.
    let left = |source: &mut SourceStatus| source.objects = [(Phase::LeftAlone, 2)].into();
    check(&left, TextStyle::Added, "2 left alone");
    let opted_out =
        |source: &mut SourceStatus| source.objects = [(Phase::Settled, 7), (Phase::OptedOut, 1)].into();
    check(&opted_out, TextStyle::Waiting, "1 left alone by annotation");
    let many = [(Phase::RollingOut, 2), (Phase::Failed, 1)];
    check(&|source| source.objects.extend(many), TextStyle::Error, "1 failed, 2 rolling");
    check(&|source| source.incomplete = Some("so".to_owned()), TextStyle::Error, "incomplete");
    // From the cluster alone nobody knows which revision was read.
    let mut alone = troubled();
    alone.process = None;
    alone.sources[1].revision = None;
    assert_eq!(state(&alone, &alone.sources[1]).1, "healthy, 1 left alone");
}

#[test]
fn a_source_is_shown_without_the_others() {
    let mut view = troubled();
    view.rollout.queue.push(QueuedWorkloadStatus {
        object: named("Deployment", "elsewhere"),
        position: Some(2),
        reason: String::new(),
        coded: CodedReason::default(),
    });
    assert!(view.clone().of_source("none").is_none());
    let ops = view.clone().of_source("ops").unwrap();
    assert!(ops.is_healthy() && ops.objects.is_empty(), "{ops:?}");
    assert!(ops.rollout.rolling.is_empty() && ops.rollout.queue.is_empty(), "{ops:?}");
    let shop = view.of_source("shop").unwrap();
    assert_eq!((shop.sources.len(), shop.rollout.queue.len(), shop.objects.len()), (1, 1, 4));
}

#[test]
fn one_object_is_reported_with_all_that_is_known() {
    let view = troubled();
    let text = object_text(&view.objects[1], &view.rollout, Palette::Plain);
    let expected = "\
shop/deployment.apps/web
  source   shop
  phase    RollingOut
  reason   2 of 5
  rollout  2 of 5 pods are new, 4 available; held at step 1
  revision 0123456789abcdef
  file     web.yaml:1
";
    assert_eq!(text, expected);
}

#[test]
fn findings_are_shown_or_said_to_be_more() {
    let check = |findings: usize, shown: &[&str], expected: &[&str]| {
        let first_findings = shown.iter().map(|finding| (*finding).to_owned()).collect();
        let source = SourceStatus { findings, first_findings, ..source("shop", &[(Phase::Settled, 1)]) };
        let notes: Vec<String> = source_notes(&source).into_iter().map(|(_, text)| text).collect();
        assert_eq!(notes, expected);
    };
    let (one, other) = ("env.yaml:3:1: error: unknown key", "web.yaml:7:2: warning: it is odd");
    check(0, &[], &[]);
    check(1, &[one], &["1 finding in its files:", &format!("  {one}")]);
    check(2, &[one, other], &["2 findings in its files:", &format!("  {one}"), &format!("  {other}")]);
    check(3, &[one], &["3 findings in its files, the first of them:", &format!("  {one}")]);
    // An earlier version tells the number alone.
    check(3, &[], &["3 findings in its files: `rhumb validate` shows them"]);
}
