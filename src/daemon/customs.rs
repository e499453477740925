//! Sources that stand in the cluster: which there are, and what each is told of itself.
//!
//! They are listed on a beat. A list that fails changes nothing: what was known goes on being followed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::reconciler::Inquiries;
use crate::cluster::Cluster;
use crate::config::{API_VERSION, CustomSource, CustomSources, custom_path};
use crate::report::{Standing, Status, is_ready, source_conditions};

/// How often they are listed, and told how they stand.
const BEAT: Duration = Duration::from_secs(2);

/// A loop that is younger has not seen everything yet: what was well before is not told to be otherwise by it.
const YOUNG: SignedDuration = SignedDuration::from_secs(10);

/// What this process has to tell one of them.
#[derive(Clone, Debug)]
pub struct Duty {
    /// The generation of the spec that is followed.
    pub generation: i64,
    /// Why it is not followed, in a word and in a sentence.
    pub unusable: Option<(&'static str, String)>,
    /// The cluster, written only as long as the source is this process's.
    pub cluster: Cluster,
}

/// By source.
pub type Duties = BTreeMap<Arc<str>, Duty>;

/// The sources that stand in the cluster. Dropped, they are not looked at any more.
#[derive(Debug)]
pub struct Customs {
    known: watch::Receiver<Vec<CustomSource>>,
    duties: watch::Sender<Duties>,
    _follower: AbortOnDropHandle<()>,
}

impl Customs {
    /// Begins to follow those of a namespace.
    pub fn follow(
        cluster: Cluster,
        namespace: &str,
        allowed: CustomSources,
        running: watch::Receiver<Option<Inquiries>>,
    ) -> Self {
        let (told, known) = watch::channel(Vec::new());
        let (duties, duty) = watch::channel(Duties::new());
        let follower = Follower {
            cluster,
            namespace: namespace.to_owned(),
            path: custom_path(namespace),
            allowed,
            told,
            duties: duty,
            running,
            trouble: None,
        };
        Self { known, duties, _follower: AbortOnDropHandle::new(tokio::spawn(follower.follow())) }
    }

    /// What is known now.
    pub fn known(&self) -> Vec<CustomSource> {
        self.known.borrow().clone()
    }

    /// Waits until something else is known; false where nobody looks any more.
    pub async fn changed(&self, known: &[CustomSource]) -> bool {
        self.known.clone().wait_for(|newer| !is_same(newer, known)).await.is_ok()
    }

    /// Says what is to be told by this process.
    pub fn tell(&self, duties: Duties) {
        self.duties.send_replace(duties);
    }

    /// One cannot be followed after all.
    pub fn unusable(&self, source: &str, reason: &'static str, why: String) {
        self.duties.send_modify(|duties| {
            if let Some(duty) = duties.get_mut(source) {
                duty.unusable = Some((reason, why));
            }
        });
    }
}

/// Whether both ask for the same, whatever they are told of it.
fn is_same(one: &[CustomSource], other: &[CustomSource]) -> bool {
    let asks = |custom: &CustomSource| (custom.name.clone(), custom.generation, custom.config.clone());
    one.iter().map(asks).eq(other.iter().map(asks))
}

struct Follower {
    cluster: Cluster,
    namespace: String,
    path: String,
    allowed: CustomSources,
    told: watch::Sender<Vec<CustomSource>>,
    duties: watch::Receiver<Duties>,
    running: watch::Receiver<Option<Inquiries>>,
    /// Why they cannot be listed, as the log tells it.
    trouble: Option<String>,
}

impl Follower {
    async fn follow(mut self) {
        loop {
            if let Some(customs) = self.list().await {
                self.tell_all(&customs).await;
            }
            tokio::time::sleep(BEAT).await;
        }
    }

    async fn list(&mut self) -> Option<Vec<CustomSource>> {
        let listed = self.cluster.custom_sources(&self.path).await;
        let objects = match listed {
            Ok(objects) => objects,
            Err(error) => {
                let why = error.to_string();
                if self.trouble.as_ref() != Some(&why) {
                    tracing::warn!(
                        "the sources that stand in the cluster: {why}; what is known of them stays in force"
                    );
                }
                self.trouble = Some(why);
                return None;
            }
        };
        self.trouble = None;
        let read = objects.into_iter().filter_map(|object| CustomSource::read(object, self.allowed));
        let mut customs: Vec<CustomSource> = read.collect();
        customs.sort_by(|one, other| one.name.cmp(&other.name));
        self.told.send_if_modified(|known| {
            if is_same(known, &customs) {
                return false;
            }
            tracing::info!("{} sources stand in the cluster", customs.len());
            for (custom, why) in
                customs.iter().filter_map(|custom| Some((custom, custom.config.as_ref().err()?)))
            {
                tracing::warn!(source = %custom.name, "it cannot be followed: {why}");
            }
            known.clone_from(&customs);
            true
        });
        Some(customs)
    }

    async fn tell_all(&self, customs: &[CustomSource]) {
        let duties = self.duties.borrow().clone();
        let inquiries = self.running.borrow().clone();
        if duties.is_empty() {
            return;
        }
        let Some(inquiries) = inquiries else { return };
        let Some(status) = inquiries.status().await else { return };
        for custom in customs {
            if let Some(duty) = duties.get(&*custom.name) {
                self.tell(custom, duty, &status).await;
            }
        }
    }

    async fn tell(&self, custom: &CustomSource, duty: &Duty, status: &Status) {
        let followed = status.sources.iter().find(|source| source.name == custom.name);
        let standing = match (&duty.unusable, followed) {
            (Some((reason, why)), _) => Standing::Unusable(reason, why),
            (None, Some(followed)) => Standing::Followed(followed),
            (None, None) => Standing::Begun,
        };
        let Some(next) = source_conditions(&custom.status, duty.generation, standing, Timestamp::now())
        else {
            return;
        };
        let young = status.at.duration_since(status.process.since) < YOUNG;
        if young && is_ready(&custom.status, duty.generation) && !is_ready(&next, duty.generation) {
            return;
        }
        let head = json!({
            "apiVersion": API_VERSION,
            "kind": "Source",
            "metadata": { "name": custom.name, "namespace": self.namespace },
        });
        if let Err(error) = duty.cluster.tell_custom_source(&self.path, head, &next).await {
            tracing::debug!(source = %custom.name, "its status cannot be written: {error}");
        }
    }
}
