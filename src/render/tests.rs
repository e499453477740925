use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;
use crate::change::{FieldChange, Impact, ImpactKind};
use crate::engine::{Plan, PlanBasis, PlannedAction, PlannedObject, PlannedUnit, Reason};
use crate::object::{Diagnostic, GroupKind, Gvk, ManifestOrigin, ObjectId};

fn planned(gvk: Gvk, namespace: Option<&str>, name: &str, verdict: PlannedAction) -> PlannedObject {
    PlannedObject::new(ObjectId::new(&gvk.group_kind(), namespace, name), gvk, verdict)
}

fn deployment(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 4, "template": {"spec": {"containers": [
            {"image": "proxy:1", "name": "proxy"},
            {"args": ["--verbose"], "image": image, "name": "web", "ports": [{"containerPort": 80}]},
        ]}}},
    })
}

fn place(file: &str, line: u32) -> ManifestOrigin {
    ManifestOrigin::new(file.into(), line, 1)
}

fn plan() -> Plan {
    let core = |kind| Gvk::new("", "v1", kind);
    let apps = |kind| Gvk::new("apps", "v1", kind);
    let config = |value| json!({"apiVersion": "v1", "data": {"log": value}, "kind": "ConfigMap"});
    let restarts = Impact { kind: ImpactKind::Restart, pods: 4 };
    Plan {
        basis: PlanBasis::Cluster,
        source: "shop".to_owned(),
        revision: "c0ffee".repeat(6) + "c0ff",
        complete: true,
        guarded: false,
        objects: vec![
            PlannedObject {
                origin: Some(place("base/namespace.yaml", 1)),
                after: Some(Arc::new(
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
                )),
                ..planned(core("Namespace"), None, "shop", PlannedAction::Create)
            },
            PlannedObject {
                origin: Some(place("deploy/config.yaml", 1)),
                impact: Impact { kind: ImpactKind::InPlace, pods: 0 },
                fields: vec![FieldChange {
                    path: ".data.log".to_owned(),
                    before: Some(json!("info")),
                    after: Some(json!("debug")),
                }],
                before: Some(Arc::new(config("info"))),
                after: Some(Arc::new(config("debug"))),
                ..planned(core("ConfigMap"), Some("shop"), "web", PlannedAction::Configure)
            },
            PlannedObject {
                origin: Some(place("deploy/web.yaml", 12)),
                impact: restarts,
                fields: vec![FieldChange {
                    path: ".spec.template.spec.containers[name=\"web\"].image".to_owned(),
                    before: Some(json!("web:1")),
                    after: Some(json!("web:2")),
                }],
                before: Some(Arc::new(deployment("web:1"))),
                after: Some(Arc::new(deployment("web:2"))),
                ..planned(apps("Deployment"), Some("shop"), "web", PlannedAction::Configure)
            },
            PlannedObject {
                origin: Some(place("deploy/api.yaml", 1)),
                impact: Impact { kind: ImpactKind::Scale, pods: 3 },
                reason: Some("the namespace shop is not there yet".to_owned()),
                ..planned(apps("Deployment"), Some("shop"), "api", PlannedAction::Wait)
            },
            PlannedObject {
                origin: Some(place("deploy/service.yaml", 1)),
                reason: Some("spec.clusterIP is immutable\nand differs".to_owned()),
                ..planned(core("Service"), Some("shop"), "web", PlannedAction::Refuse)
            },
            PlannedObject {
                origin: Some(place("deploy/migrate.yaml", 1)),
                impact: Impact { kind: ImpactKind::Recreate, pods: 1 },
                ..planned(Gvk::new("batch", "v1", "Job"), Some("shop"), "migrate", PlannedAction::Recreate)
            },
            PlannedObject {
                impact: Impact { kind: ImpactKind::Scale, pods: 2 },
                before: Some(Arc::new(json!({"apiVersion": "apps/v1", "kind": "StatefulSet"}))),
                ..planned(apps("StatefulSet"), Some("shop"), "queue", PlannedAction::Delete)
            },
            planned(core("Service"), Some("shop"), "queue", PlannedAction::Unchanged),
        ],
        units: Vec::new(),
        diagnostics: Vec::new(),
        notes: Vec::new(),
    }
}

impl Diagnostic {
    /// Adds the text of the line at fault.
    fn with_excerpt(mut self, line: impl Into<String>) -> Self {
        self.excerpt = Some(line.into());
        self
    }
}

fn finding() -> Diagnostic {
    let origin = ManifestOrigin::new("deploy/web.yaml".into(), 3, 5);
    Diagnostic::error(origin, "duplicate-key", "the key `name` is given twice, first on line 2")
        .hint("keep one of them")
        .with_excerpt("    name: web")
}

#[test]
fn a_plan_reads_as_a_list_of_changes() {
    assert_snapshot!(text(&plan(), Palette::Plain), @r"
    + Namespace shop  base/namespace.yaml:1
    ~ ConfigMap shop/web  deploy/config.yaml:1
        data:
      -   log: info
      +   log: debug
    ~ Deployment shop/web  restarts 4 pods  deploy/web.yaml:12
        spec:
          template:
            spec:
              containers:
              - args:
      -         image: web:1
      +         image: web:2
                name: web
    ? Deployment shop/api  starts 3 pods  deploy/api.yaml:1
        waits: the namespace shop is not there yet
    ! Service shop/web  deploy/service.yaml:1
        refused: spec.clusterIP is immutable
          and differs
    ± Job shop/migrate  recreates 1 pod  deploy/migrate.yaml:1
    - StatefulSet shop/queue  stops 2 pods

    1 to create, 2 to configure, 1 to recreate, 1 to delete, 1 unchanged, 1 waiting, 1 refused
    ");
}

#[test]
fn what_restarts_is_listed_in_the_order_of_its_release() {
    let full_plan = plan();
    let of = |kind: &str, name: &str| ObjectId::new(&GroupKind::parse(kind), Some("shop"), name);
    let (config, web, service) = (of("ConfigMap", "web"), of("Deployment.apps", "web"), of("Service", "web"));
    let job = of("Job.batch", "migrate");
    let parts = [
        vec![job.clone()],
        vec![config.clone(), service.clone(), web.clone()],
        vec![of("Deployment.apps", "api")],
    ];
    let late =
        |planned: &PlannedObject| PlannedObject { wave: i32::from(planned.id == job) * 2, ..planned.clone() };
    let objects: Vec<PlannedObject> = full_plan.objects.iter().map(late).collect();
    let units = crate::engine::units(&objects, &parts);
    let expected = [
        PlannedUnit { wave: 0, members: vec![config, web, service] },
        PlannedUnit { wave: 2, members: vec![job] },
    ];
    assert_eq!(units, expected);
    let plan = Plan { objects, units, ..full_plan };
    let printed = text(&plan, Palette::Plain);
    let order = printed.split("\n\n").find(|part| part.starts_with("restarts")).unwrap();
    assert_snapshot!(order, @r"
    restarts, in order of release:
      1. wave 0: Deployment shop/web restarts 4 pods; with ConfigMap shop/web; refused: Service shop/web
      2. wave 2: Job shop/migrate recreates 1 pod
    2 workloads, 5 pods, in 2 units
    ");
    let json: Value = serde_json::from_str(&plan_json(&plan)).unwrap();
    assert_eq!(
        json["units"][0],
        json!({"wave": 0, "objects": [1, 2, 4], "restarts": {"workloads": 1, "pods": 4}})
    );
    assert_eq!(json["summary"]["restarts"], json!({"workloads": 2, "pods": 5}));
    assert_eq!(json["objects"][5]["wave"], json!(2));
}

#[test]
fn what_holds_for_several_objects_is_said_once() {
    let config = |name: &str, verdict, reason: &str| PlannedObject {
        reason: Some(reason.to_owned()),
        ..planned(Gvk::new("", "v1", "ConfigMap"), Some("shop"), name, verdict)
    };
    let unchecked = "not checked by the server yet, as the namespace shop is made first";
    let beyond = "12 of 30 objects would be pruned at once,\nbeyond the blast radius";
    let starts = Impact { kind: ImpactKind::InPlace, pods: 4 };
    let web = planned(Gvk::new("apps", "v1", "Deployment"), Some("shop"), "web", PlannedAction::Create);
    let changed = PlannedObject {
        reason: Some("somebody changed it".to_owned()),
        before: Some(Arc::new(json!({"a": 1}))),
        after: Some(Arc::new(json!({"a": 2}))),
        ..planned(Gvk::new("", "v1", "Service"), Some("shop"), "a", PlannedAction::Configure)
    };
    let several = Plan {
        objects: vec![
            config("env", PlannedAction::Create, unchecked),
            PlannedObject { impact: starts, reason: Some(unchecked.to_owned()), ..web },
            changed.clone(),
            PlannedObject { id: ObjectId::new(&GroupKind::new("", "Service"), Some("shop"), "b"), ..changed },
            config("a", PlannedAction::Wait, beyond),
            config("b", PlannedAction::Wait, beyond),
            config("c", PlannedAction::Delete, "no longer wanted"),
            config("d", PlannedAction::Delete, "no longer wanted"),
            config("e", PlannedAction::Refuse, "it belongs to Helm"),
            config("f", PlannedAction::Refuse, "it belongs to Helm"),
            config("g", PlannedAction::Refuse, "it belongs to Flux"),
            config("h", PlannedAction::Unchanged, "its annotation asks to keep it"),
        ],
        ..plan()
    };
    assert_snapshot!(text(&several, Palette::Plain), @r"
    + ConfigMap shop/env
    + Deployment shop/web  starts 4 pods
    ~ Service shop/a
        somebody changed it
      - a: 1
      + a: 2
    ~ Service shop/b
        somebody changed it
      - a: 1
      + a: 2
    ? ConfigMap shop/a
    ? ConfigMap shop/b
    - ConfigMap shop/c
    - ConfigMap shop/d
    ! ConfigMap shop/e
        refused: it belongs to Helm
    ! ConfigMap shop/f
        refused: it belongs to Helm
    ! ConfigMap shop/g
        refused: it belongs to Flux
    = ConfigMap shop/h
        kept: its annotation asks to keep it

    + 2 objects: not checked by the server yet, as the namespace shop is made first
    ? all 2 wait: 12 of 30 objects would be pruned at once, beyond the blast radius
    - all 2 are deleted: no longer wanted

    2 to create, 2 to configure, 2 to delete, 0 unchanged, 1 kept, 2 waiting, 3 refused
    ");
    assert_snapshot!(held_back_text(&plan(), Palette::Plain), @r"
    ? Deployment shop/api  starts 3 pods  deploy/api.yaml:1
        waits: the namespace shop is not there yet
    ! Service shop/web  deploy/service.yaml:1
        refused: spec.clusterIP is immutable
          and differs

    1 to create, 2 to configure, 1 to recreate, 1 to delete, 1 unchanged, 1 waiting, 1 refused
    ");
}

#[test]
fn a_plan_reads_as_a_patch() {
    assert_snapshot!(unified_diff(&plan(), Palette::Plain), @r"
    --- /dev/null
    +++ b/v1.Namespace..shop
    @@ -0,0 +1,4 @@
    +apiVersion: v1
    +kind: Namespace
    +metadata:
    +  name: shop
    --- a/v1.ConfigMap.shop.web
    +++ b/v1.ConfigMap.shop.web
    @@ -1,4 +1,4 @@
     apiVersion: v1
     data:
    -  log: info
    +  log: debug
     kind: ConfigMap
    --- a/apps.v1.Deployment.shop.web
    +++ b/apps.v1.Deployment.shop.web
    @@ -12,7 +12,7 @@
             name: proxy
           - args:
             - --verbose
    -        image: web:1
    +        image: web:2
             name: web
             ports:
             - containerPort: 80
    --- a/apps.v1.StatefulSet.shop.queue
    +++ /dev/null
    @@ -1,2 +0,0 @@
    -apiVersion: apps/v1
    -kind: StatefulSet
    ");
}

#[test]
fn a_plan_reads_as_names() {
    assert_snapshot!(names(&plan()), @r"
    namespace/shop
    configmap/web
    deployment.apps/web
    deployment.apps/api
    service/web
    job.batch/migrate
    statefulset.apps/queue
    ");
}

#[test]
fn a_reason_of_a_plan_has_its_code_and_its_values() {
    let service = planned(Gvk::new("", "v1", "Service"), None, "web", PlannedAction::Wait);
    let cause = Some(Reason::Inventory("shop".into()));
    let plan = Plan { objects: vec![PlannedObject { cause, ..service }], ..Plan::default() };
    let form: Value = serde_json::from_str(&plan_json(&plan)).unwrap();
    let object = &form["objects"][0];
    let expected = (&json!("WaitingForInventory"), &json!({"configMap": "shop"}));
    assert_eq!((&object["code"], &object["details"]), expected);
}

#[test]
fn a_plan_reads_as_json() {
    let full_plan = plan();
    let objects = full_plan.objects[2..3].to_vec();
    let plan = Plan { objects, diagnostics: vec![finding()], complete: false, ..full_plan };
    assert_snapshot!(plan_json(&plan), @r#"
    {
      "schema": "rhumb.dev/plan/v1",
      "source": "shop",
      "revision": "c0ffeec0ffeec0ffeec0ffeec0ffeec0ffeec0ff",
      "complete": false,
      "objects": [
        {
          "group": "apps",
          "version": "v1",
          "kind": "Deployment",
          "namespace": "shop",
          "name": "web",
          "file": "deploy/web.yaml",
          "line": 12,
          "wave": 0,
          "action": "configure",
          "impact": {
            "kind": "restart",
            "pods": 4
          },
          "fields": [
            {
              "path": ".spec.template.spec.containers[name=\"web\"].image",
              "before": "web:1",
              "after": "web:2"
            }
          ],
          "reason": null
        }
      ],
      "units": [],
      "diagnostics": [
        {
          "file": "deploy/web.yaml",
          "line": 3,
          "column": 5,
          "severity": "error",
          "code": "duplicate-key",
          "message": "the key `name` is given twice, first on line 2",
          "hint": "keep one of them"
        }
      ],
      "summary": {
        "create": 0,
        "configure": 1,
        "unchanged": 0,
        "delete": 0,
        "recreate": 0,
        "wait": 0,
        "refuse": 0,
        "restarts": {
          "workloads": 1,
          "pods": 4
        }
      }
    }
    "#);
}

#[test]
fn what_is_not_known_is_null() {
    let diagnostics = vec![Diagnostic::file_error("", "no-source", "the branch main is gone")];
    let plan = Plan { source: "shop".to_owned(), diagnostics, ..Plan::default() };
    assert_snapshot!(plan_json(&plan), @r#"
    {
      "schema": "rhumb.dev/plan/v1",
      "source": "shop",
      "revision": null,
      "complete": false,
      "objects": [],
      "units": [],
      "diagnostics": [
        {
          "file": "",
          "line": null,
          "column": null,
          "severity": "error",
          "code": "no-source",
          "message": "the branch main is gone",
          "hint": null
        }
      ],
      "summary": {
        "create": 0,
        "configure": 0,
        "unchanged": 0,
        "delete": 0,
        "recreate": 0,
        "wait": 0,
        "refuse": 0,
        "restarts": {
          "workloads": 0,
          "pods": 0
        }
      }
    }
    "#);
}

#[test]
fn summaries_say_why_nothing_is_pruned() {
    let none = Plan { complete: true, ..Plan::default() };
    assert_snapshot!(summary(&none, SummaryTense::Would), @"0 to create, 0 to configure, 0 to delete, 0 unchanged");
    assert_snapshot!(summary(&plan(), SummaryTense::Did), @"1 created, 2 configured, 1 recreated, 1 pruned, 1 unchanged, 1 waiting, 1 refused");
    let gone = Diagnostic::file_error("", "no-source", "the branch main is gone");
    let one = Plan { complete: false, diagnostics: vec![gone.clone()], ..Plan::default() };
    assert_snapshot!(summary(&one, SummaryTense::Would), @r"
    nothing is pruned: the branch main is gone
    0 to create, 0 to configure, 0 to delete, 0 unchanged
    ");
    let two = Plan { complete: false, diagnostics: vec![finding(), gone], ..Plan::default() };
    assert_snapshot!(summary(&two, SummaryTense::Would), @r"
    nothing is pruned: deploy/web.yaml:3: the key `name` is given twice, first on line 2 (and 1 more error)
    0 to create, 0 to configure, 0 to delete, 0 unchanged
    ");
}

#[test]
fn colour_is_the_only_difference_between_palettes() {
    let plan = Plan { diagnostics: vec![finding()], ..plan() };
    for form in [text, unified_diff, |plan: &Plan, palette| diagnostics(&plan.diagnostics, palette)] {
        let (bare, coloured) = (form(&plan, Palette::Plain), form(&plan, Palette::Colour));
        let stripped = coloured.split('\u{1b}').enumerate().fold(String::new(), |text, (number, piece)| {
            text + if number == 0 { piece } else { piece.split_once('m').unwrap().1 }
        });
        assert_eq!(stripped, bare);
        assert_ne!(coloured, bare);
    }
}

#[test]
fn a_name_makes_no_lines_of_its_own() {
    let mut plan = plan();
    let lines = |plan: &Plan| [text, unified_diff].map(|form| form(plan, Palette::Plain).lines().count());
    let before = lines(&plan);
    for planned in &mut plan.objects {
        let name = format!("{}\n- Namespace prod\u{1b}[2J", planned.id.name());
        planned.id = ObjectId::new(&planned.id.group_kind(), planned.id.namespace(), &name);
    }
    for unit in &mut plan.units {
        unit.members = plan.objects.iter().map(|planned| planned.id.clone()).collect();
    }
    assert_eq!(lines(&plan), before);
    let line = progress_line(&plan.objects[0].id, ApplyLine::Created, Palette::Plain);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(!(text(&plan, Palette::Plain) + &line).contains('\u{1b}'));
}

#[test]
fn an_outline_shows_what_leads_to_a_change() {
    fn check(before: Value, after: Value) -> String {
        let planned = PlannedObject {
            before: Some(Arc::new(before)),
            after: Some(Arc::new(after)),
            ..planned(Gvk::new("", "v1", "ConfigMap"), None, "a", PlannedAction::Configure)
        };
        let printed = text(&Plan { objects: vec![planned], ..Plan::default() }, Palette::Plain);
        let (_, below) = printed.split_once('\n').unwrap();
        below.split_once("\n\n").unwrap().0.to_owned()
    }
    assert_snapshot!(check(json!({"a": {"b": 1, "c": 2}, "d": 3}), json!({"a": {"b": 1}, "d": 4})), @r"
      a:
    -   c: 2
    - d: 3
    + d: 4
    ");
    assert_snapshot!(check(json!({"l": [{"k": 1}, {"k": 2}]}), json!({"l": [{"k": 1}, {"k": 3}, {"k": 4}]})), @r"
      l:
    - - k: 2
    + - k: 3
    + - k: 4
    ");
    assert_snapshot!(
        check(json!({"data": {"run": "one\ntwo\nthree\n", "x": "1"}}), json!({"data": {"run": "one\n2\nthree\n", "x": "1"}})), @r"
      data:
        run: |
    -     two
    +     2
    "
    );
    assert_snapshot!(
        check(
            json!({"c": [{"image": "a", "name": "a", "ports": [{"port": 1}]}]}),
            json!({"c": [{"image": "a", "name": "a", "ports": [{"port": 2}]}]}),
        ), @r"
      c:
      - image: a
        name: a
        ports:
    -   - port: 1
    +   - port: 2
    "
    );
}

#[test]
fn progress_reads_like_kubectl() {
    let web = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
    let shop = ObjectId::new(&GroupKind::new("", "Namespace"), None, "shop");
    let lines = [
        progress_line(&shop, ApplyLine::Created, Palette::Plain),
        progress_line(&web, ApplyLine::Created, Palette::Plain),
        progress_line(&web, ApplyLine::Configured, Palette::Plain),
        progress_line(&web, ApplyLine::Unchanged, Palette::Plain),
        progress_line(&web, ApplyLine::Recreated, Palette::Plain),
        progress_line(&web, ApplyLine::Pruned, Palette::Plain),
        progress_line(&web, ApplyLine::Waiting("the namespace shop\nis not there yet"), Palette::Plain),
        progress_line(&shop, ApplyLine::Kept("its annotation asks to keep it"), Palette::Plain),
        progress_line(&web, ApplyLine::LeftAlone("its annotation asks it"), Palette::Plain),
        progress_line(&shop, ApplyLine::Refused("the server says\u{1b}[31m no"), Palette::Plain),
    ];
    assert_snapshot!(lines.concat(), @r"
    namespace/shop created
    deployment.apps/web created (shop)
    deployment.apps/web configured (shop)
    deployment.apps/web unchanged (shop)
    deployment.apps/web recreated (shop)
    deployment.apps/web pruned (shop)
    deployment.apps/web (shop) waiting: the namespace shop is not there yet
    namespace/shop kept: its annotation asks to keep it
    deployment.apps/web (shop) left alone: its annotation asks it
    namespace/shop refused: the server says�[31m no
    ");
}

#[test]
fn diagnostics_show_the_line() {
    let place = |line, column| ManifestOrigin::new("a.yaml".into(), line, column);
    let long = format!("{{{}\"name\": 1{}", "\"key\": 1, ".repeat(20), ", \"key\": 1".repeat(20));
    let found = [
        finding(),
        Diagnostic::warning(place(9, 0), "b", "without a column").with_excerpt("  text"),
        Diagnostic::error(place(2, 3), "a", "with a tab, \u{1b}[2Jand worse")
            .with_excerpt("\t\u{1b}[2Jkey: 1"),
        Diagnostic::error(place(4, 202), "a", "on a long line").with_excerpt(long),
        Diagnostic::error(place(5, 99), "a", "beyond the end").with_excerpt("a: 1"),
        Diagnostic::error(place(6, 6), "a", "after wide characters").with_excerpt("語語: @x"),
        Diagnostic::error(place(8, 4), "a", "after a tab").with_excerpt("a:\t@x"),
        Diagnostic::file_error("a.yaml", "a", "about the whole file"),
        Diagnostic::file_error("", "a", "about nothing in particular"),
    ];
    assert_snapshot!(diagnostics(&found, Palette::Plain), @r#"
    error: about nothing in particular
    a.yaml: error: about the whole file
    a.yaml:2:3: error: with a tab, �[2Jand worse
        �[2Jkey: 1
         ^
    a.yaml:4:202: error: on a long line
        …"key": 1, "key": 1, "key": 1, "key": 1, "key": 1, "key": 1, "name": 1, "key": 1, "key": 1, "key": 1,…
                                                                     ^
    a.yaml:5:99: error: beyond the end
        a: 1
    a.yaml:6:6: error: after wide characters
        語語: @x
               ^
    a.yaml:8:4: error: after a tab
        a: @x
           ^
    a.yaml:9: warning: without a column
        text
    deploy/web.yaml:3:5: error: the key `name` is given twice, first on line 2
        name: web
        ^
      hint: keep one of them
    "#);
    assert_eq!(tally(&found), "8 errors, 1 warning");
    assert_eq!(tally(&found[1..2]), "1 warning");
    assert_eq!(tally(&[]), "");
    let accent = Diagnostic::error(place(1, 5), "a", "after one of no width").with_excerpt("e\u{301}: @x");
    assert!(diagnostics(&[accent], Palette::Plain).ends_with("    e\u{301}: @x\n       ^\n"));
}
