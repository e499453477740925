//! The cluster's certificate authorities and everything that they sign.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::error::Error;

/// The group whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";

/// The name that the fault proxy has before the API server.
pub(crate) const FRONT_PROXY: &str = "front-proxy-client";

/// A certificate with its key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// One certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// The authorities of one cluster and its service account key.
pub(crate) struct Pki {
    cluster: Authority,
    /// The authority of front proxies is another one: the API server would else take its
    /// certificate for a user's.
    front: Authority,
    accounts: KeyPair,
}

impl Pki {
    /// Makes new authorities.
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self {
            cluster: Authority::new("controlplane-ca")?,
            front: Authority::new("controlplane-front-proxy-ca")?,
            accounts: generate("service accounts")?,
        })
    }

    /// Returns the cluster's authority as PEM.
    pub(crate) fn ca_pem(&self) -> String {
        self.cluster.0.pem()
    }

    /// Returns the front proxies' authority as PEM.
    pub(crate) fn front_ca_pem(&self) -> String {
        self.front.0.pem()
    }

    /// Returns the key that service account tokens are signed with, as PEM: private, public.
    pub(crate) fn account_keys(&self) -> (String, String) {
        (self.accounts.serialize_pem(), self.accounts.public_key_pem())
    }

    /// Issues a client certificate of a user in some groups.
    pub(crate) fn user(&self, name: &str, groups: &[&str]) -> Result<Pair, Error> {
        self.cluster.client(name, groups)
    }

    /// Issues the certificate by which the fault proxy may speak for any user.
    pub(crate) fn front_proxy(&self) -> Result<Pair, Error> {
        self.front.client(FRONT_PROXY, &[])
    }

    /// Issues the serving certificate of everything that listens on loopback.
    pub(crate) fn server(&self) -> Result<Pair, Error> {
        let subject = "the servers";
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let names: Vec<String> = names.map(str::to_owned).into();
        let mut params = CertificateParams::new(names).map_err(certificate(subject))?;
        serve_at(&mut params, &[Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 96, 0, 1)]);
        self.cluster.issue(subject, params, "kube-apiserver", &[])
    }

    /// Issues the serving certificate of the kubelets at some addresses.
    pub(crate) fn kubelet(&self, addresses: &[Ipv4Addr]) -> Result<Pair, Error> {
        let mut params = CertificateParams::default();
        serve_at(&mut params, addresses);
        self.cluster.issue("the kubelets", params, "kubelet", &[])
    }
}

impl Authority {
    fn new(name: &str) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, generate(name)?).map_err(certificate(name))?;
        Ok(Self(issuer))
    }

    fn client(&self, name: &str, groups: &[&str]) -> Result<Pair, Error> {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(name, params, name, groups)
    }

    fn issue(
        &self,
        subject: &str,
        mut params: CertificateParams,
        name: &str,
        groups: &[&str],
    ) -> Result<Pair, Error> {
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = generate(subject)?;
        let signed = params.signed_by(&key, &self.0).map_err(certificate(subject))?;
        Ok(Pair { certificate: signed.pem(), key: key.serialize_pem() })
    }
}

/// Lets a certificate serve at some addresses.
fn serve_at(params: &mut CertificateParams, addresses: &[Ipv4Addr]) {
    for address in addresses {
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(*address)));
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
}

/// Makes a P-256 key.
fn generate(subject: &str) -> Result<KeyPair, Error> {
    KeyPair::generate().map_err(certificate(subject))
}

fn certificate(subject: &str) -> impl FnOnce(rcgen::Error) -> Error {
    let subject = subject.to_owned();
    move |source| Error::Certificate { subject, source }
}
