//! One row: a fault, its place, and its injection.

use crate::invariant::Invariant;
use crate::stage::{Shape, Stage};

/// The reason for which a run says nothing.
#[derive(Clone, Debug)]
pub(crate) enum Obstacle {
    /// The fault met nothing: the run did not test it.
    Unmet(String),
    /// This machine does not let it be injected.
    Unsupported(String),
}

type Injection = Box<dyn Fn(&mut Stage) -> Result<(), Obstacle> + Send + Sync>;

/// Indicates whether other runs may share the cluster meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterUse {
    /// They may.
    Shared,
    /// The fault is about the cluster itself.
    Alone,
}

/// One row of the table.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    /// The place where it is injected.
    pub(crate) place: &'static str,
    pub(crate) shape: Shape,
    pub(crate) sharing: ClusterUse,
    /// The invariant that the bench breaks itself.
    pub(crate) must_break: Option<Invariant>,
    inject: Injection,
}

impl Fault {
    /// Returns a fault of one daemon that follows a repository on this host.
    pub(crate) fn new(
        name: &'static str,
        place: &'static str,
        inject: impl Fn(&mut Stage) -> Result<(), Obstacle> + Send + Sync + 'static,
    ) -> Self {
        let (shape, sharing) = (Shape::Local, ClusterUse::Shared);
        Self { name, place, shape, sharing, must_break: None, inject: Box::new(inject) }
    }

    /// Sets the daemons and sources.
    pub(crate) fn of(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    /// Lets no other run share the cluster.
    pub(crate) fn alone(self) -> Self {
        Self { sharing: ClusterUse::Alone, ..self }
    }

    /// Lets the run count as good only where an invariant is seen to be broken.
    pub(crate) fn must_break(self, invariant: Invariant) -> Self {
        Self { must_break: Some(invariant), ..self }
    }

    /// Injects the fault and heals it.
    pub(crate) fn inject(&self, stage: &mut Stage) -> Result<(), Obstacle> {
        (self.inject)(stage)
    }
}
