//! A plan and a reading as JSON, for machines. The names here are a promise.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::CodedReason;
use crate::change::ImpactKind;
use crate::engine::{Plan, PlannedAction, PlannedObject, PlannedUnit};
use crate::object::{Diagnostic, ManifestOrigin, ObjectId, RenderOrigin, pretty_json};

/// The version of the form that [`plan_json`] writes.
pub(crate) const PLAN_SCHEMA: &str = "rhumb.dev/plan/v1";

#[derive(Serialize)]
struct PlanForm<'a> {
    schema: &'static str,
    source: &'a str,
    revision: Option<&'a str>,
    complete: bool,
    objects: Vec<ObjectForm<'a>>,
    units: Vec<UnitForm>,
    diagnostics: Vec<DiagnosticForm<'a>>,
    summary: PlanSummary,
}

#[derive(Serialize)]
struct ObjectForm<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rendered: Option<RenderForm<'a>>,
    wave: i32,
    action: &'static str,
    impact: ImpactForm,
    fields: Vec<FieldJson<'a>>,
    reason: Option<&'a str>,
    #[serde(flatten)]
    coded: CodedReason,
}

/// The render that an object comes from.
#[derive(Serialize)]
struct RenderForm<'a> {
    root: &'a str,
    renderer: &'a str,
    /// `FILE:LINE` of each place that it was made of: first its own, then those that change it.
    places: Vec<String>,
}

/// Objects that are released together and restart pods, as indexes into `objects`.
#[derive(Serialize)]
struct UnitForm {
    wave: i32,
    objects: Vec<usize>,
    restarts: RestartsForm,
}

#[derive(Serialize)]
struct RestartsForm {
    workloads: usize,
    pods: u32,
}

#[derive(Serialize)]
struct ImpactForm {
    kind: &'static str,
    pods: u32,
}

#[derive(Serialize)]
struct FieldJson<'a> {
    path: &'a str,
    before: Option<&'a Value>,
    after: Option<&'a Value>,
}

#[derive(Serialize)]
struct DiagnosticForm<'a> {
    file: &'a str,
    line: Option<u32>,
    column: Option<u32>,
    severity: String,
    code: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
}

#[derive(Serialize)]
struct PlanSummary {
    create: usize,
    configure: usize,
    unchanged: usize,
    delete: usize,
    recreate: usize,
    wait: usize,
    refuse: usize,
    restarts: RestartsForm,
}

#[derive(Serialize)]
struct ManifestsForm<'a> {
    objects: Vec<&'a Value>,
    diagnostics: Vec<DiagnosticForm<'a>>,
}

/// Returns a plan in the form [`PLAN_SCHEMA`].
pub(crate) fn plan_json(plan: &Plan) -> String {
    let form = PlanForm {
        schema: PLAN_SCHEMA,
        source: &plan.source,
        revision: Some(plan.revision.as_str()).filter(|revision| !revision.is_empty()),
        complete: plan.complete,
        objects: plan.objects.iter().map(object).collect(),
        units: unit_forms(plan),
        diagnostics: sort_diagnostics(&plan.diagnostics),
        summary: summary(plan),
    };
    pretty_json(&form) + "\n"
}

/// Returns the manifests in the order of the files, with their diagnostics.
pub(crate) fn manifests_json(objects: &[&Value], diagnostics: &[Diagnostic]) -> String {
    pretty_json(&ManifestsForm { objects: objects.to_vec(), diagnostics: sort_diagnostics(diagnostics) })
        + "\n"
}

fn summary(plan: &Plan) -> PlanSummary {
    let count = |verdict| plan.objects.iter().filter(|planned| planned.verdict == verdict).count();
    PlanSummary {
        create: count(PlannedAction::Create),
        configure: count(PlannedAction::Configure),
        unchanged: count(PlannedAction::Unchanged),
        delete: count(PlannedAction::Delete),
        recreate: count(PlannedAction::Recreate),
        wait: count(PlannedAction::Wait),
        refuse: count(PlannedAction::Refuse),
        restarts: restart_form(plan.objects.iter()),
    }
}

fn object(planned: &PlannedObject) -> ObjectForm<'_> {
    let edited = planned.origin.as_ref().map(ManifestOrigin::edited_origin);
    ObjectForm {
        group: planned.id.group(),
        version: &planned.gvk.version,
        kind: planned.id.kind(),
        namespace: planned.id.namespace(),
        name: planned.id.name(),
        file: edited.map(|edited| &*edited.file),
        line: edited.map(|edited| edited.line),
        rendered: planned
            .origin
            .as_ref()
            .and_then(|origin| origin.render.as_deref())
            .filter(|render| !render.renderer.is_empty())
            .map(render_form),
        wave: planned.wave,
        action: planned.verdict.label(),
        impact: ImpactForm { kind: impact_word(planned.impact.kind), pods: planned.impact.pods },
        fields: planned
            .fields
            .iter()
            .map(|field| FieldJson {
                path: &field.path,
                before: field.before.as_ref(),
                after: field.after.as_ref(),
            })
            .collect(),
        reason: planned.reason.as_deref(),
        coded: planned.cause.as_ref().map(CodedReason::of).unwrap_or_default(),
    }
}

fn unit_forms(plan: &Plan) -> Vec<UnitForm> {
    let indexes: BTreeMap<&ObjectId, usize> =
        plan.objects.iter().enumerate().map(|(index, planned)| (&planned.id, index)).collect();
    let form = |unit: &PlannedUnit| {
        let objects: Vec<usize> = unit.members.iter().filter_map(|id| indexes.get(id).copied()).collect();
        let restarts = restart_form(objects.iter().filter_map(|index| plan.objects.get(*index)));
        UnitForm { wave: unit.wave, objects, restarts }
    };
    plan.units.iter().map(form).collect()
}

fn restart_form<'a>(objects: impl Iterator<Item = &'a PlannedObject>) -> RestartsForm {
    let restarting: Vec<&PlannedObject> = objects.filter(|planned| planned.restarted_pods() > 0).collect();
    let pods = restarting.iter().map(|planned| planned.restarted_pods()).sum();
    RestartsForm { workloads: restarting.len(), pods }
}

fn render_form(render: &RenderOrigin) -> RenderForm<'_> {
    let origin = |origin: &ManifestOrigin| origin.to_string();
    RenderForm {
        root: &render.root,
        renderer: &render.renderer,
        places: render.places.iter().map(origin).collect(),
    }
}

const fn impact_word(kind: ImpactKind) -> &'static str {
    match kind {
        ImpactKind::None => "none",
        ImpactKind::InPlace => "in-place",
        ImpactKind::Scale => "scale",
        ImpactKind::Restart => "restart",
        ImpactKind::Recreate => "recreate",
    }
}

fn sort_diagnostics(diagnostics: &[Diagnostic]) -> Vec<DiagnosticForm<'_>> {
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort();
    let given = |number: u32| (number > 0).then_some(number);
    sorted
        .into_iter()
        .map(|found| DiagnosticForm {
            file: &found.origin.edited_origin().file,
            line: given(found.origin.edited_origin().line),
            column: given(found.origin.edited_origin().column),
            severity: found.severity.to_string(),
            code: found.code,
            message: &found.message,
            hint: found.hint.as_deref(),
        })
        .collect()
}
