//! The fetches of several sources at once.

use std::sync::atomic::Ordering;
use std::thread;

use crate::archives::chart;
use crate::fixture::{Fixture, word};
use crate::server::{Answer, Certificate, ChartServer, SlowAnswers, index};

#[test]
fn two_fetches_run_at_once_whatever_the_number_of_sources() {
    let certificate = Certificate::new();
    let server = ChartServer::start(&certificate);
    let url = format!("https://127.0.0.1:{}/stable", server.port);
    let slow = SlowAnswers::new();
    let charts = index(&[["web", "1.0.0", "web-1.0.0.tgz"]]);
    server.answer("/stable/index.yaml", Answer::Slow(slow.clone(), charts));
    server.answer("/stable/web-1.0.0.tgz", Answer::Content(chart("web", "1.0.0", "v1")));
    let allow = format!("{{allow: ['{url}']}}");
    let sources: Vec<Fixture> = (0..6).map(|_| Fixture::trusting(certificate.clone(), &allow)).collect();
    let words: Vec<String> = thread::scope(|scope| {
        let fetch = |source: &Fixture| word(&source.fetch([&url, "web", "1.0.0"]).unwrap());
        let runs: Vec<_> = sources.iter().map(|source| scope.spawn(move || fetch(source))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(words, ["v1"; 6]);
    assert_eq!(slow.most.load(Ordering::SeqCst), 2);
}
