//! The trace of an engine: a replay gives the same effects, line by line, and no secret is in it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::harness::{Harness, release_key, source};
use super::restart::{both, env, web as web_with_data};
use super::world::{FIRST, SET, World, WorldObject, budget, config, desired, id, reading, workload};
use crate::engine::facts::release_annotation::SealedFacts;
use crate::engine::*;
use crate::object::{
    Gvk, ManifestOrigin, NameWords, Object, ObjectId, PossibleNames, Revision, UnrenderedRoot, hex_text,
};

/// More turns than a walk takes.
const TURNS: usize = 30;

fn recorder(start: Instant) -> TraceRecorder {
    TraceRecorder::new(start, HashKey::of(&[3; 32]).unwrap())
}

/// Returns a process over the world of a test whose calls are recorded, and that has the key.
fn traced() -> Harness {
    let mut harness = Harness::new(3);
    harness.engine = harness.begin(Engine::new_traced(budget(3), recorder(harness.now)));
    harness.handle(Input::Key(ReadState::Value(release_key())));
    harness
}

/// Runs turns of a loop, which calls the engine as the daemon does.
fn run(harness: &mut Harness) {
    for _ in 0..TURNS {
        harness.pass_time(Duration::from_millis(1500));
        let effects = harness.engine.poll(harness.now);
        for ActingEffect { effect: FailedRollout { id, .. }, .. } in effects.failures {
            harness.handle(Input::FailureEvents { id, events: vec!["Back-off pulling image".to_owned()] });
        }
        harness.read_contents();
        for id in effects.keys.into_iter().collect::<BTreeSet<ObjectId>>() {
            let decision = harness.engine.decide(&id, harness.now);
            harness.act(&id, decision);
        }
        harness.keep_claims();
        harness.sync_inventories();
        harness.deliver(usize::MAX);
        harness.finish_rollouts();
        harness.deliver(usize::MAX);
        harness.engine.poll_watches();
    }
}

/// Takes the text of the trace.
fn trace_of(harness: &mut Harness) -> String {
    let TraceChunk { lines, end_reason } = harness.engine.take_trace().unwrap();
    assert_eq!(end_reason, None);
    String::from_utf8(lines).unwrap()
}

/// Replays a trace up to the first line with other effects. Returns its number, and all effects.
fn replay(trace: &str) -> (Option<usize>, Vec<Value>) {
    let mut replay = Replay::new(Instant::now());
    let mut effects = Vec::new();
    for (line, number) in trace.lines().zip(1..) {
        let Some(call) = replay.replay_line(line.as_bytes()).unwrap() else { continue };
        if !call.is_same() {
            return (Some(number), effects);
        }
        effects.push(call.replayed);
    }
    (None, effects)
}

/// Returns the contents that were applied, as decisions name them.
fn applied(effects: &[Value]) -> Vec<&str> {
    effects.iter().filter_map(|effects| effects.pointer("/action/Apply/content")?.as_str()).collect()
}

/// Returns the trace of a rollout that fails and goes back.
fn rollback_trace() -> String {
    let web = |content| desired(&workload("web"), content, "web");
    let mut harness = traced();
    harness.read(reading("r1", &[("web", Some(web(1)))]));
    run(&mut harness);
    harness.world.bad.insert(web(2).hash);
    harness.read(reading("r2", &[("web", Some(web(2)))]));
    run(&mut harness);
    trace_of(&mut harness)
}

#[test]
fn the_replay_of_a_failed_rollouts_way_back_gives_the_same_effects() {
    let (different, effects) = replay(&rollback_trace());
    assert_eq!(different, None);
    let name = |content| format!("#{}", desired(&workload("web"), content, "web").hash);
    assert_eq!(applied(&effects), [name(1), name(2), name(1)]);
}

#[test]
fn a_replay_stops_at_the_line_whose_effects_are_others() {
    let trace = rollback_trace();
    let number = trace.lines().position(|line| line.contains("\"Apply\"")).unwrap() + 1;
    let mut lines: Vec<String> = trace.lines().map(str::to_owned).collect();
    lines[number - 1] = lines[number - 1].replace("\"Apply\"", "\"DryRun\"");
    assert_eq!(replay(&lines.join("\n")).0, Some(number));
}

#[test]
fn without_one_fact_the_effects_that_follow_from_it_are_others() {
    let trace = rollback_trace();
    let lines: Vec<&str> = trace.lines().collect();
    let number = lines.iter().rposition(|line| line.contains("{\"Read\":")).unwrap();
    let without: Vec<&str> = [&lines[..number], &lines[number + 1..]].concat();
    assert!(replay(&without.join("\n")).0.is_some_and(|different| different > number));
}

#[test]
fn restarts_for_data_are_replayed_without_the_key() {
    let files = |content| both(env(content), web_with_data(1, &["tls"]));
    let mut harness = traced();
    harness.read(reading("r1", &files(1)));
    let data = ConfigData::of(&config("tls"), &json!({ "data": { "a": "b" } }));
    harness.handle(Input::ConfigData { id: config("tls"), data: ReadState::Value(Some(data)) });
    run(&mut harness);
    harness.read(reading("r2", &files(2)));
    run(&mut harness);
    let trace = trace_of(&mut harness);
    assert!(trace.contains("\"purpose\":\"Restart\""));
    assert_eq!(replay(&trace).0, None);
}

#[test]
fn a_seal_that_was_proven_is_proven_without_the_key() {
    let web = desired(&workload("web"), 1, "web");
    let live_of = |release_revision: &str, key: &HashKey| {
        let thing = WorldObject::settled(web.hash, release_revision, 5);
        let mut live = World::live(&web.id, &thing);
        let release = live.release.take().unwrap();
        let seal =
            ReleaseKey::of(key).seal(SET, &web.id, &release, SealedFacts::of(PruneTiming::AfterUnit, 7));
        LiveObject {
            unproven_release: Some(Box::new(ReleaseAnnotation { release, seal: Some(seal) })),
            ..live
        }
    };
    // With the key of another cluster nothing is proven, and so it is in the replay.
    for (key, answers) in [(release_key(), 1), (HashKey::of(&[8; 32]).unwrap(), 0)] {
        let mut harness = traced();
        harness.engine.observe_object(&web.id, live_of("r1", &key));
        harness.read(reading("r1", &[("web", Some(web.clone()))]));
        let decision = harness.engine.decide(&web.id, harness.now);
        let trace = trace_of(&mut harness);
        let found = trace.lines().filter(|line| line.contains("\"keyAnswer\"")).count();
        assert_eq!(found, answers, "{decision:?}");
        assert_eq!(replay(&trace).0, None);
    }
}

#[test]
fn prunes_beside_a_root_that_does_not_render_are_replayed_without_its_words() {
    const CANARY: &str = "canary7e1f";
    let broken = |words: &str, gone: &[(&str, Option<SharedDesiredObject>)]| {
        let words = NameWords::default().with_text(words.as_bytes()).unwrap();
        let names = PossibleNames::Words(Arc::new(words));
        SourceReading {
            incomplete_reason: Some("root/kustomization.yaml: it does not render".into()),
            unrendered: [UnrenderedRoot { path: "root/kustomization.yaml".into(), names }].into(),
            ..reading("r2", gone)
        }
    };
    let files = ["a", "b", "c"].map(|name| (name, Some(desired(&config(name), 1, name))));
    let mut harness = traced();
    harness.read(reading("r1", &files));
    run(&mut harness);
    harness.read(broken(&format!("{CANARY} a"), &[("a", None), ("b", None)]));
    run(&mut harness);
    // It may name less in another render of the same revision.
    harness.read(broken(CANARY, &[]));
    run(&mut harness);
    let trace = trace_of(&mut harness);
    assert!(!trace.contains(CANARY));
    let (different, effects) = replay(&trace);
    assert_eq!(different, None);
    let deletions = effects.iter().filter(|effects| effects.pointer("/action/Delete").is_some());
    let mut deleted: Vec<&str> = deletions.filter_map(|effects| effects["id"].as_str()).collect();
    deleted.dedup();
    assert_eq!(deleted, ["ConfigMap/shop/b", "ConfigMap/shop/a"]);
}

#[test]
fn no_secret_is_in_a_trace() {
    const CANARY: &str = "canary-7e1f";
    let login = id("", "Secret", "shop", "login");
    let body = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "login", "namespace": "shop" },
        "stringData": { "password": CANARY },
    });
    let gvk = Gvk::new("", "v1", "Secret");
    let origin = ManifestOrigin::of_file("login");
    let object = Object { id: login.clone(), gvk, body: Arc::new(body.clone()), origin };
    let blob = [0xab; 20];
    let content = Arc::new(DesiredObject::of(&object, BodyLocation { source: FIRST, blob, index: 0 }, SET));
    let mut harness = traced();
    let data = ConfigData::of(&login, &body);
    harness.handle(Input::ConfigData { id: login.clone(), data: ReadState::Value(Some(data)) });
    harness.read(reading("r1", &[("login", Some(content.clone()))]));
    run(&mut harness);
    let release = ContentRef { hash: content.hash, revision: Revision::new("r1") };
    harness.handle(Input::OlderContent { id: login.clone(), release, content: Some(content.clone()) });
    let trace = trace_of(&mut harness);
    assert!(trace.contains("Secret/shop/login"));
    let data_hash = serde_json::to_value(data).unwrap();
    let key = hex_text(&[7; 32]);
    let secrets = [
        CANARY.to_owned(),
        content.hash.to_string(),
        hex_text(&blob),
        data_hash.as_str().unwrap().trim_start_matches('!').to_owned(),
        key,
    ];
    for secret in secrets {
        assert!(!trace.contains(&secret), "{secret} is in the trace");
    }
    assert_eq!(replay(&trace).0, None);
}

#[test]
fn a_trace_ends_before_a_line_that_is_too_long() {
    let mut engine = Engine::new_traced(budget(3), recorder(Instant::now()).with_max_line_bytes(600));
    engine.add_source(source("test", &"long".repeat(200)));
    engine.take_dirty();
    let TraceChunk { lines, end_reason } = engine.take_trace().unwrap();
    assert_eq!(String::from_utf8(lines).unwrap().lines().count(), 1);
    assert!(end_reason.is_some_and(|why| why.ends_with("is longer than 600")));
}

#[test]
fn what_is_no_line_of_a_trace_is_refused_with_its_reason() {
    #[track_caller]
    fn check(line: &str, expected: &str) {
        let mut engine = Engine::new_traced(budget(3), recorder(Instant::now()));
        let begun = engine.take_trace().unwrap().lines;
        let mut replay = Replay::new(Instant::now());
        assert!(replay.replay_line(begun.trim_ascii_end()).unwrap().is_some_and(|call| call.is_same()));
        let error = replay.replay_line(line.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    check("", "not a line of a trace: ");
    check("{}", "not a line of a trace: missing field `call`");
    check(r#"{"call":"guess"}"#, "not a line of a trace: unknown variant `guess`");
    check(r#"{"call":"handle","at":5,"given":"Guess"}"#, "not a line of a trace: unknown variant `Guess`");
    check(r#"{"call":"poll"}"#, "the time is missing");
    check(
        r#"{"call":"handle","at":5,"given":{"InventoryLocked":{"source":0}}}"#,
        "source 0 was not declared",
    );
    check(r#"{"call":"new","given":{"form":0,"version":"0.0.1","budget":1}}"#, "not a line of a trace: ");
    let older = json!({"call": "new", "given": {"form": 1, "version": "0.0.1", "budget": budget(3)}});
    let other_form = "version 0.0.1 of rhumb has written it in form 1, and this one reads form 2";
    check(&older.to_string(), other_form);
    let first = Replay::new(Instant::now()).replay_line(br#"{"call":"poll","at":5}"#).unwrap_err();
    assert_eq!(first.to_string(), "not the beginning of a trace: its first line makes an engine");
}
