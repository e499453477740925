//! Renders the revisions of a source, and keeps what came of it in its store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::object::{GroupKind, Revision};

use super::cluster_facts::{ClusterFacts, FactUse};
use super::error::SourceError;
use super::reader::RevisionReader;
use super::rendering::{
    LastRender, RemainingRenderWork, RenderExtent, RenderRequest, RenderRetry, RenderedRoot, RenderedSnapshot,
};
use super::snapshot::RenderId;
use super::source::Source;

/// The pause before roots that were interrupted are tried again, the first time and at most.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(5));

/// Indicates whether an observation rendered something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RenderStep {
    /// Nothing is rendered, or what is was there.
    Kept,
    /// The roots were rendered just now.
    Rendered,
}

impl Source {
    /// Returns whether folders of its revisions may be rendered.
    pub(crate) fn can_render(&self) -> bool {
        self.reader.renderer().is_some()
    }

    /// Returns the id of what was last rendered of it; none where nothing is.
    pub(crate) fn render_id(&self) -> Option<RenderId> {
        self.rendered.as_ref().and_then(|last| last.id)
    }

    /// Returns whether the last pass over its roots had no time for some of them.
    pub(crate) fn has_postponed_roots(&self) -> bool {
        let retry = self.rendered.as_ref().and_then(|last| last.retry);
        retry.is_some_and(|retry| retry.has_postponed)
    }

    /// Sets the facts of the cluster that the next observation renders by.
    pub(crate) fn set_facts(&mut self, facts: ClusterFacts) {
        self.facts = facts;
    }

    /// Returns the facts of the cluster that the last render depends on.
    pub(crate) fn used_facts(&self) -> FactUse {
        self.rendered.as_ref().map(|last| last.used.clone()).unwrap_or_default()
    }

    /// Returns the kinds that the server listed for the last render; none where it depends on no list.
    pub(crate) fn rendered_kinds(&self) -> Option<Arc<BTreeSet<GroupKind>>> {
        self.rendered.as_ref().and_then(|last| last.facts.kinds_listed_for(&last.used))
    }

    /// Renders a revision, unless that was done: what did not change since the last one is kept.
    pub(super) async fn render_revision(&mut self, revision: &Revision) -> Result<RenderStep, SourceError> {
        if !self.can_render() {
            return Ok(RenderStep::Kept);
        }
        let last = self.rendered.clone();
        let facts = self.facts.clone();
        let is_current = |last: &LastRender| !facts.has_difference_in(&last.used, &last.facts);
        let same = last.as_ref().filter(|last| last.revision == *revision && is_current(last));
        let now = (self.store.settings().clock)();
        if let Some(same) = same
            && same.retry.is_none_or(|retry| now < retry.due)
            && (same.id.is_none() || self.has_render(same).await?)
        {
            return Ok(RenderStep::Kept);
        }
        let pause = same.and_then(|last| last.retry).map(|retry| retry.pause);
        if let Some(last) = last.filter(|last| last.id.is_none() && last.revision != *revision)
            && self.is_plain_step(&last.revision, revision).await?
        {
            self.rendered = Some(LastRender { revision: revision.clone(), ..last });
            return Ok(RenderStep::Kept);
        }
        let done = self.render_and_keep(revision, RenderExtent::Bounded).await?;
        let step = if done.is_some() { RenderStep::Rendered } else { RenderStep::Kept };
        self.rendered = Some(LastRender {
            revision: revision.clone(),
            id: done.as_ref().map(|done| done.id),
            retry: done.as_ref().and_then(|done| next_retry(now, pause, done.rest)),
            facts,
            used: done.map(|done| done.used).unwrap_or_default(),
        });
        Ok(step)
    }

    /// Renders a revision that is not in force, unless that was done.
    pub(crate) async fn render_older_revision(&mut self, revision: &Revision) -> Result<(), SourceError> {
        if !self.can_render() {
            return Ok(());
        }
        let (reader, wanted) = (self.reader.clone(), revision.clone());
        let unrendered = self
            .run_blocking(move || match reader.snapshot(&wanted) {
                Err(SourceError::Unrendered { .. }) => Ok(true),
                // The reading reports any other fault.
                _ => Ok(false),
            })
            .await?;
        if unrendered {
            self.render_and_keep(revision, RenderExtent::Whole).await?;
        }
        Ok(())
    }

    /// Returns whether the store still has what was last rendered: it may have been made anew.
    async fn has_render(&self, last: &LastRender) -> Result<bool, SourceError> {
        let (reader, revision, id) = (self.reader.clone(), last.revision.clone(), last.id);
        self.run_blocking(move || Ok(reader.render_id(&revision)? == id)).await
    }

    /// Returns whether only contents of plain files differ, so that there are no roots in both.
    async fn is_plain_step(&self, from: &Revision, to: &Revision) -> Result<bool, SourceError> {
        let (reader, from, to) = (self.reader.clone(), from.clone(), to.clone());
        self.run_blocking(move || Ok(reader.is_plain_step(&from, &to))).await
    }

    /// Renders a revision and stores what came of it. Returns none where it has no roots, else
    /// what is to be known of that.
    async fn render_and_keep(
        &self,
        revision: &Revision,
        extent: RenderExtent,
    ) -> Result<Option<RenderDone>, SourceError> {
        let (reader, wanted, before) = (self.reader.clone(), revision.clone(), self.current.clone());
        let facts = self.facts.clone();
        let rendered =
            self.run_blocking(move || render(&reader, &wanted, before.as_ref(), facts, extent)).await?;
        let Some(rendered) = rendered else { return Ok(None) };
        let (rest, used) = (rendered.rest, rendered.used.clone());
        let lock = self.prepare_store().await?;
        let (store, wanted) = (self.store.clone(), revision.clone());
        let stored = self.run_blocking(move || store.keep_rendered(&lock, &wanted, rendered)).await?;
        let id = RenderId(stored.tree);
        self.reader.remember_roots(stored);
        Ok(Some(RenderDone { id, rest, used }))
    }
}

/// The part of a render that is remembered beside its roots.
struct RenderDone {
    id: RenderId,
    rest: RemainingRenderWork,
    used: FactUse,
}

/// Returns when the work that a pass left is taken up: what had no time at once, what was
/// interrupted after growing pauses.
fn next_retry(now: Instant, last: Option<Duration>, rest: RemainingRenderWork) -> Option<RenderRetry> {
    let has_postponed = match rest {
        RemainingRenderWork::None => return None,
        RemainingRenderWork::Interrupted => false,
        RemainingRenderWork::Postponed => true,
    };
    let pause = match last {
        Some(last) if has_postponed => last,
        Some(last) => (last * 2).clamp(RETRY_PAUSES.0, RETRY_PAUSES.1),
        None if has_postponed => Duration::ZERO,
        None => RETRY_PAUSES.0,
    };
    let due = if has_postponed { now } else { now + pause };
    Some(RenderRetry { due, pause, has_postponed })
}

/// Renders a revision; none where it has no roots. Blocks.
fn render(
    reader: &RevisionReader,
    revision: &Revision,
    before: Option<&Revision>,
    facts: ClusterFacts,
    extent: RenderExtent,
) -> Result<Option<RenderedSnapshot>, SourceError> {
    let reader = &reader.with_shared_handles();
    let Some(renderer) = reader.renderer() else { return Ok(None) };
    let listing = reader.next_listing(revision)?;
    let raw = reader.snapshot_of(revision, &listing)?;
    let has_roots = renderer.has_roots(&raw);
    reader.remembered_roots().set_listing(has_roots.then_some(listing));
    if !has_roots {
        return Ok(None);
    }
    let stored = |revision: &Revision| -> Result<Arc<[RenderedRoot]>, SourceError> {
        Ok(reader.rendered_roots(revision)?.unwrap_or_default())
    };
    let before = before.filter(|before| *before != revision).map(stored).transpose()?;
    let (same, tree) = (stored(revision)?, reader.tree(revision)?);
    let before = before.unwrap_or_default();
    let start = reader.start();
    renderer.render(RenderRequest { raw, start, tree, same, before, facts, extent }).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_had_no_time_is_taken_up_at_once_and_what_was_interrupted_after_growing_pauses() {
        let now = Instant::now();
        let check = |last: Option<u64>, rest: RemainingRenderWork, expected: Option<(u64, u64, bool)>| {
            let retry = next_retry(now, last.map(Duration::from_secs), rest);
            let found = retry.map(|retry| {
                let wait = retry.due.saturating_duration_since(now);
                (wait.as_secs(), retry.pause.as_secs(), retry.has_postponed)
            });
            assert_eq!(found, expected, "{last:?} {rest:?}");
        };
        check(None, RemainingRenderWork::None, None);
        check(Some(10), RemainingRenderWork::None, None);
        check(None, RemainingRenderWork::Interrupted, Some((10, 10, false)));
        check(Some(0), RemainingRenderWork::Interrupted, Some((10, 10, false)));
        check(Some(10), RemainingRenderWork::Interrupted, Some((20, 20, false)));
        check(Some(200), RemainingRenderWork::Interrupted, Some((300, 300, false)));
        check(None, RemainingRenderWork::Postponed, Some((0, 0, true)));
        check(Some(20), RemainingRenderWork::Postponed, Some((0, 20, true)));
    }
}
