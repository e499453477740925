//! Folders that include themselves, and folders that are built far too often.

use std::sync::Arc;

use super::file::FileReference;

/// One folder includes another.
#[derive(Clone, Debug)]
pub(super) struct FolderEdge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The file that says so, and where.
    pub(super) file: Arc<str>,
    pub(super) reference: FileReference,
}

/// The faults in the way in which folders include each other.
pub(super) enum CycleRefusal<'a> {
    /// This inclusion closes a circle.
    Cycle(&'a FolderEdge),
    /// There are more ways to the folders than may be built.
    TooManyBuilds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FolderState {
    New,
    Open,
    /// The number of builds of itself and all below it.
    Done(u64),
}

/// Walks the inclusions from the first folder, each once.
pub(super) fn refusals(folders: usize, edges: &[FolderEdge], most: u64) -> Vec<CycleRefusal<'_>> {
    let mut out: Vec<Vec<&FolderEdge>> = vec![Vec::new(); folders];
    for edge in edges {
        if let Some(out) = out.get_mut(edge.from) {
            out.push(edge);
        }
    }
    let mut states = vec![FolderState::New; folders];
    let mut stack: Vec<(usize, usize, u64)> = vec![(0, 0, 1)];
    let (mut refusals, mut builds) = (Vec::new(), 0);
    while let Some((folder, next, count)) = stack.pop() {
        let Some(edge) = out.get(folder).and_then(|edges| edges.get(next)) else {
            set(&mut states, folder, FolderState::Done(count));
            match stack.last_mut() {
                Some((_, _, above)) => *above = above.saturating_add(count),
                None => builds = count,
            }
            continue;
        };
        set(&mut states, folder, FolderState::Open);
        match states.get(edge.to).copied() {
            Some(FolderState::New) => {
                stack.push((folder, next + 1, count));
                stack.push((edge.to, 0, 1));
            }
            Some(FolderState::Done(below)) => stack.push((folder, next + 1, count.saturating_add(below))),
            Some(FolderState::Open) | None => {
                refusals.push(CycleRefusal::Cycle(edge));
                stack.push((folder, next + 1, count));
            }
        }
    }
    if builds > most {
        refusals.push(CycleRefusal::TooManyBuilds);
    }
    refusals
}

fn set(states: &mut [FolderState], folder: usize, state: FolderState) {
    if let Some(slot) = states.get_mut(folder) {
        *slot = state;
    }
}
