//! Faults of the configuration: storms of reloads, and bad ones in between.

use crate::fault::Fault;
use crate::stage::{SETTINGS, Stage};

/// Returns a reload with these settings and keys of the source.
fn reload(stage: &mut Stage, settings: &str, spec: &str) {
    let text = stage.configuration(0, settings, spec);
    stage.daemon().reload(&text);
}

/// Reloads around both commits, each time another configuration, and the right one at last.
fn storm(name: &'static str, texts: &'static [(&'static str, &'static str)]) -> Fault {
    Fault::new(name, "the configuration", move |stage| {
        stage.change();
        for round in 0..5 {
            for (settings, spec) in texts {
                let settings =
                    if settings.is_empty() { SETTINGS.to_owned() } else { format!("{settings}\n") };
                reload(stage, &settings, spec);
                stage.pass(20, 800);
            }
            if round == 2 {
                stage.remove_old();
            }
        }
        reload(stage, SETTINGS, "");
        Ok(())
    })
}

/// Returns all rows.
pub(crate) fn faults() -> Vec<Fault> {
    const NARROW: &str =
        "budget: {maxWorkloads: 1, maxUnavailable: 1, startsPerMinute: 1000, soak: 1s}\napi: {timeout: 1s}";
    vec![
        storm("reloads of the same configuration", &[("", ""), ("", "")]),
        storm("reloads of two configurations in turns", &[(NARROW, ""), ("", "")]),
        storm(
            "reloads of broken configurations",
            &[("budget: [", ""), ("", ""), ("nonsense: 1", ""), ("", "  nonsense: 1")],
        ),
        storm("reloads that forbid pruning and allow it", &[("", "  prune: false"), ("", "")]),
        storm("reloads that observe and do not", &[("", "  observe: true"), ("", "")]),
        storm(
            "reloads with another poll and resync",
            &[
                (
                    "resync: 1s\nbudget: {maxWorkloads: 1, maxUnavailable: 1, startsPerMinute: 1000, soak: 0s}",
                    "",
                ),
                ("", ""),
            ],
        ),
        Fault::new("a source that goes and comes again", "the configuration", |stage| {
            stage.change();
            stage.pass(0, 1500);
            let with = stage.daemon().configuration().to_owned();
            // Another source, whose folder is nowhere, takes its place.
            let without = with.replace(&stage.source_name("a"), &stage.source_name("z"));
            let without = without.replace("path: a", "path: z");
            stage.while_unknown(|stage| {
                stage.daemon().reload(&without);
                stage.pass(1000, 3000);
                stage.remove_old();
                stage.pass(500, 1000);
            });
            stage.daemon().reload(&with);
            Ok(())
        }),
        Fault::new("a configuration file that is gone", "the configuration", |stage| {
            let file = stage.daemon().folder().join("rhumb.yaml");
            let text = stage.daemon().configuration().to_owned();
            stage.change();
            std::fs::remove_file(&file).unwrap();
            stage.daemon().signal("HUP");
            stage.pass(500, 2000);
            stage.remove_old();
            stage.pass(500, 1000);
            stage.daemon().reload(&text);
            Ok(())
        }),
        Fault::new("SIGHUP a hundred times", "the process", |stage| {
            stage.change();
            for _ in 0..100 {
                stage.daemon().signal("HUP");
                stage.pass(0, 30);
            }
            Ok(())
        }),
    ]
}
