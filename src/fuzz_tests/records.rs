//! The texts of ConfigMaps that several processes write: the ledger, rejections, acknowledgements,
//! orders, statements.

use std::collections::BTreeMap;

use super::{FuzzTarget, fuzz, seeds, shape};
use crate::engine::{
    Acknowledgement, HashCiphers, HashKey, RolloutLedger, SourceStatement, is_readable_rejection,
    parse_object_word, parse_orders, parse_rejections, rejections_seal_status, rejections_text,
};
use crate::report::StatusSummary;

const HASH: &str = "00112233445566778899aabbccddeeff";

const WORDS: &[&str] = &[
    "{",
    "}",
    "[]",
    "{}",
    "null",
    "\"claims\":[",
    "\"units\":[",
    "\"past\":[",
    "\"members\":[",
    "\"object\":\"Deployment.apps/shop/web\",",
    "\"object\":\"Secret/shop/a\",",
    "\"content\":\"00112233445566778899aabbccddeeff\",",
    "\"content\":\"~\",",
    "\"content\":\"~00000001.00112233445566778899aabbccddeeff\",",
    "\"good\":\"absent\",",
    "\"good\":\"00112233445566778899aabbccddeeff@c1\",",
    "\"goodInventory\":\"b-v1\",",
    "\"restarted\":\"00112233445566778899aabbccddeeff@00112233445566778899aabbccddeeff\",",
    "\"source\":\"a-v1\",",
    "\"pods\":18446744073709551615,",
    "\"at\":\"2030-01-01T00:00:00Z\",",
    "\"begun\":\"9999-12-31T23:59:59Z\",",
    "\"way\":\"held\",",
    "\"cause\":\"x\",",
    "\"verb\":\"confirm\",",
    "\"uids\":[\"u1\"],",
    "\"requests\":[\"*\"],",
    "\"complete\":true,",
    "\"daemon\":true",
    "\\ud800",
    "\\u0000",
    " ",
    "\n",
    "\r\n",
    "\u{2028}",
];

/// Returns the ciphers of one key.
fn seals() -> HashCiphers {
    let mut seals = HashCiphers::default();
    seals.add(&HashKey::of(b"a key of 32 bytes for this test.").unwrap());
    seals
}

fn unit() -> String {
    format!(
        r#"{{"source":"a-v1","revision":"c2","members":[{{"object":"Deployment.apps/shop/web","content":"{HASH}","good":"{HASH}@c1","restarted":"{HASH}@{HASH}@{HASH}"}},{{"object":"ConfigMap/shop/env","good":"absent"}},{{"object":"Secret/shop/a","content":"~00000001.{HASH}","good":"{HASH}@c1","goodInventory":"b-v1"}}]}}"#
    )
}

fn check_ledger(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let seals = seals();
    let Ok(ledger) = RolloutLedger::parse(&text, &seals) else { return 0 };
    let status = RolloutLedger::seal_status(&text, &seals).unwrap();
    let written = ledger.text(&seals).unwrap();
    assert!(written.len() <= 20 * text.len() + 200, "{} bytes of {}", written.len(), text.len());
    assert_eq!(RolloutLedger::parse(&written, &seals).unwrap(), ledger, "{written}");
    drop(RolloutLedger::parse(&text, &HashCiphers::default()).unwrap().text(&HashCiphers::default()));
    let counts = [ledger.claims.len(), ledger.units.len(), ledger.history.len(), ledger.queue.len()];
    let more =
        [ledger.tallies.len(), ledger.starts.len(), ledger.unreadable_claims.len(), ledger.commits.len()];
    let members: usize = ledger.units.iter().map(|unit| unit.members.len()).sum();
    shape((counts, more, members, ledger.begun.is_some(), format!("{status:?}")))
}

fn check_rejections(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let seals = seals();
    let rejections = parse_rejections(&text, &seals);
    let readable = text.lines().filter(|line| is_readable_rejection(line)).count();
    assert_eq!(rejections.len(), readable, "a line is read, or said to be unreadable");
    let written = rejections_text(&rejections, &seals).unwrap();
    assert!(written.len() <= 20 * text.len() + 200, "{} bytes of {}", written.len(), text.len());
    assert_eq!(parse_rejections(&written, &seals), rejections, "{written}");
    let status = rejections_seal_status(&text, &seals);
    let members: Vec<_> = rejections.iter().map(|rejection| rejection.unit.members.len()).collect();
    shape((members, format!("{status:?}"), readable))
}

fn check_lines(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let acknowledged = Acknowledgement::parse_all(&text);
    assert_eq!(Acknowledgement::parse_all(&Acknowledgement::text(&acknowledged)), acknowledged);
    let statement = SourceStatement::parse(&text);
    if let Ok(statement) = &statement {
        assert_eq!(SourceStatement::parse(&statement.text()).as_ref(), Ok(statement), "{}", statement.text());
    }
    let words = text.lines().filter(|line| parse_object_word(line).is_some()).count();
    let data = BTreeMap::from(
        ["status", "open-objects", "left-alone", "origins"]
            .map(|key| (key.to_owned(), text.clone().into_owned())),
    );
    let summary = StatusSummary::from_data(&data)
        .map(|summary| (summary.objects().count(), summary.unnamed_counts().len()));
    shape((acknowledged.len(), statement.map_err(|why| why.len()).is_ok(), words, summary))
}

fn check_orders(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().enumerate();
    let data: BTreeMap<String, String> = lines
        .map(|(nth, line)| {
            let (key, order) = line.split_once(' ').unwrap_or(("17-a0", line));
            (format!("{key}{nth}"), order.to_owned())
        })
        .collect();
    let list = parse_orders(&data);
    let known = list.orders.len() + list.questions.len() + list.refused.len();
    assert_eq!(known, data.len(), "each is read, answered or refused");
    assert_eq!(list.why.is_some(), !list.refused.is_empty(), "who is refused hears why");
    assert!(list.why.as_ref().is_none_or(|why| why.len() <= 300), "{:?}", list.why);
    let verbs: Vec<_> = list.orders.iter().map(|order| std::mem::discriminant(&order.verb)).collect();
    shape((verbs, list.refused.len(), list.why.map(|why| why.len())))
}

#[test]
fn ledger_texts() {
    let claim = format!(
        r#"{{"object":"Deployment.apps/shop/web","source":"a-v1","holder":"b","content":"{HASH}","pods":2,"left":true,"recreates":true,"deadline":600}}"#
    );
    let unit = unit();
    let rest = r#""commits":[{"source":"a-v1","revision":"c2","author":"Ann","subject":"Bake"}],"queue":[{"object":"ConfigMap/shop/env","source":"a-v1","position":3,"of":17,"reason":"x"}],"tallies":[{"source":"a-v1","name":"shop","pods":7,"namespaces":{"shop":7}}],"starts":[{"object":"Deployment.apps/shop/web","source":"a-v1","at":"2030-01-01T00:00:00Z"}],"begun":"2030-01-01T00:00:00Z""#;
    let seeds = seeds(&[
        format!(
            r#"{{"claims":[{claim},{{"workload":"web","pods":3}}],"units":[{unit}],"past":[{unit}],{rest}}}"#
        ),
        format!(r#"{{"claims":[{claim}],"units":[]}}"#),
        "{}".to_owned(),
    ]);
    fuzz(&FuzzTarget { name: "ledger_texts", seeds, words: WORDS, inputs: 3000 }, check_ledger);
}

#[test]
fn rejection_texts() {
    let line =
        |way: &str| format!("{{\"way\":\"{way}\",\"cause\":\"Pod web-1: crash\",\"unit\":{}}}\n", unit());
    let seeds = seeds(&[line("back"), line("held") + &line("back")]);
    fuzz(&FuzzTarget { name: "rejection_texts", seeds, words: WORDS, inputs: 3000 }, check_rejections);
}

#[test]
fn record_lines() {
    let seeds = seeds(&[
        "17-a0 undone: all of it\n18-b1 held: until 2030\n".to_owned(),
        format!(
            "read c2 https://x/y main\nclaims {HASH}\nreleased {HASH}\nsince 1764338069\nstate complete daemon\nasks {HASH}-7\nlooked a-v1={HASH}-3\n"
        ),
        "read -\nclaims *\nreleased\n".to_owned(),
        format!(
            r#"{{"repository":"https://x/y main","read":"c2","requests":["{HASH}"],"released":["{HASH}"],"releasedSince":1764338069,"complete":true,"daemon":true,"observationRequest":"{HASH}-7","answeredRequests":{{"a-v1":"{HASH}-3"}}}}"#
        ),
        r#"{"requests":["*"],"released":[],"complete":false,"daemon":false}"#.to_owned(),
        "Refused Deployment.apps shop/web: it is invalid\nPending ConfigMap env\nand 3 Pending\n".to_owned(),
    ]);
    fuzz(&FuzzTarget { name: "record_lines", seeds, words: WORDS, inputs: 2000 }, check_lines);
}

#[test]
fn order_texts() {
    let order = |verb: &str, argument: &str| {
        format!(
            "17-a0 {{\"verb\":\"{verb}\",\"object\":\"Deployment.apps/shop/web\",\"argument\":\"{argument}\",\"by\":\"ann\",\"at\":\"1970-01-01T00:00:00Z\"}}"
        )
    };
    let seeds = seeds(&[
        format!("{}\n{}", order("undo", "c1"), order("retry", "")),
        format!("{}\n{}", order("promote", &format!("{HASH} 2")), order("promote-full", HASH)),
        "18-b {\"verb\":\"confirm\",\"object\":\"ConfigMap/shop/env\",\"uids\":[\"u1\",\"u2\"]}".to_owned(),
    ]);
    fuzz(&FuzzTarget { name: "order_texts", seeds, words: WORDS, inputs: 8000 }, check_orders);
}
