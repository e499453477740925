//! The parts of the control plane and the programs behind them.

use std::fmt;

/// One process of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The store.
    Etcd,
    /// The API server.
    Apiserver,
    /// The controllers: Deployments, Jobs, garbage collection, namespaces and so on.
    ControllerManager,
    /// The scheduler.
    Scheduler,
    /// KWOK, which plays the nodes' kubelets, the volume provisioner and the load balancer.
    Kwok,
    /// Nodes with kubelets and containers, if any are asked for.
    RealNodes,
}

impl Part {
    /// All parts, in the order in which they start.
    pub const ALL: [Self; 6] =
        [Self::Etcd, Self::Apiserver, Self::ControllerManager, Self::Scheduler, Self::Kwok, Self::RealNodes];

    /// The parts of a cluster whose nodes are all played.
    pub(crate) const PLAYED: [Self; 5] =
        [Self::Etcd, Self::Apiserver, Self::ControllerManager, Self::Scheduler, Self::Kwok];

    /// Returns the name of the part's program.
    pub const fn name(self) -> &'static str {
        self.program().file_name()
    }

    /// Returns the parts that do nothing sensible without this one. The API server is left out, as
    /// it waits for etcd well enough.
    pub(crate) const fn clients(self) -> &'static [Self] {
        match self {
            Self::Etcd | Self::Apiserver => &[Self::ControllerManager, Self::Scheduler, Self::Kwok],
            _ => &[],
        }
    }

    pub(crate) const fn program(self) -> Program {
        match self {
            Self::Etcd => Program::Etcd,
            Self::Apiserver => Program::Apiserver,
            Self::ControllerManager => Program::ControllerManager,
            Self::Scheduler => Program::Scheduler,
            Self::Kwok => Program::Kwok,
            Self::RealNodes => Program::RealNode,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One program that is built here: of the control plane, or one that renders, encrypts, puts in
/// variables or keeps charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Etcd,
    Apiserver,
    ControllerManager,
    Scheduler,
    Kwok,
    Kubectl,
    Kustomize,
    Helm3,
    Helm4,
    Sops,
    AgeKeygen,
    Envsubst,
    Registry,
    Kubelet,
    KubeProxy,
    RealNode,
    App,
}

impl Program {
    /// The programs of the control plane, in the order in which they are built.
    pub(crate) const ALL: [Self; 6] =
        [Self::Etcd, Self::Kwok, Self::Apiserver, Self::ControllerManager, Self::Scheduler, Self::Kubectl];

    /// Returns the file that the program is kept in.
    pub(crate) const fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Apiserver => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::Kubectl => "kubectl",
            Self::Kustomize => "kustomize",
            Self::Helm3 | Self::Helm4 => "helm",
            Self::Sops => "sops",
            Self::AgeKeygen => "age-keygen",
            Self::Envsubst => "envsubst",
            Self::Registry => "registry",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::RealNode => "real-node",
            Self::App => "app",
        }
    }

    /// Returns the folder of this crate whose go.mod pins the program.
    pub(crate) const fn module(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Kwok => "kwok",
            Self::Kustomize => "kustomize",
            Self::Helm3 => "helm3",
            Self::Helm4 => "helm4",
            Self::Sops | Self::AgeKeygen => "sops",
            Self::Envsubst => "envsubst",
            Self::Registry => "registry",
            Self::RealNode | Self::App => "node",
            _ => "kubernetes",
        }
    }

    /// Returns the module that has the program, as go.mod requires it; none for one that is all our
    /// own.
    pub(crate) const fn requirement(self) -> Option<&'static str> {
        Some(match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::Kwok => "sigs.k8s.io/kwok",
            Self::Kustomize => "sigs.k8s.io/kustomize/kustomize/v5",
            Self::Helm3 => "helm.sh/helm/v3",
            Self::Helm4 => "helm.sh/helm/v4",
            Self::Sops => "github.com/getsops/sops/v3",
            Self::AgeKeygen => "filippo.io/age",
            Self::Envsubst => "github.com/fluxcd/pkg/envsubst",
            Self::Registry => "github.com/distribution/distribution/v3",
            Self::RealNode | Self::App => return None,
            _ => "k8s.io/kubernetes",
        })
    }

    /// Returns the Go package to build.
    pub(crate) const fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::Apiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Kustomize => "sigs.k8s.io/kustomize/kustomize/v5",
            Self::Helm3 => "helm.sh/helm/v3/cmd/helm",
            Self::Helm4 => "helm.sh/helm/v4/cmd/helm",
            Self::Sops => "github.com/getsops/sops/v3/cmd/sops",
            Self::AgeKeygen => "filippo.io/age/cmd/age-keygen",
            // A program of our own around the library.
            Self::Envsubst => ".",
            Self::Registry => "github.com/distribution/distribution/v3/cmd/registry",
            Self::Kubelet => "k8s.io/kubernetes/cmd/kubelet",
            Self::KubeProxy => "k8s.io/kubernetes/cmd/kube-proxy",
            Self::RealNode => "./host",
            Self::App => "./app",
        }
    }
}

/// Lists the programs' names for a message.
pub(crate) fn names(programs: &[Program]) -> String {
    programs.iter().map(|program| program.file_name()).collect::<Vec<_>>().join(", ")
}
