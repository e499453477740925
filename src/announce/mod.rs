//! What happens, told to others over HTTP: to webhooks, to Slack, and to forges as the status of a commit.
//!
//! Owns what is told of which notice (`letter`), what waits for whom (`bag`), and bringing it there, again and again where nobody answers (`post`).
//!
//! **Invariant:** decides nothing, and holds nobody up: what cannot be brought is told in the log, and that is all.

mod bag;
mod letter;
mod post;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use self::bag::Bag;
use self::letter::{Letter, addressed, letter};
use self::post::{Failed, Post};
use crate::config::{NotifyConfig, Recipient};
use crate::report::{Followed, Notice, Recorder};

/// The rests between the tries, in seconds: some ten minutes altogether. Who asks for a longer one has it.
const RESTS: [u64; 8] = [1, 2, 5, 15, 30, 60, 120, 300];

/// Tells these what a recorder is told from now on. Whoever is told before and after a change of them keeps what waits
/// for it; what waits for any other is lost.
pub async fn announce(recipients: watch::Receiver<Vec<NotifyConfig>>, recorder: Recorder) {
    announce_with(recipients, &recorder, &RESTS.map(Duration::from_secs)).await;
}

/// Why nothing can be brought to it as its files are: a token or URL that cannot be read or used. Reads them.
pub fn unusable(to: &Recipient) -> Option<String> {
    post::checked(&addressed(to)).err().map(|why| format!("{} cannot be told: {why}", letter::name(to)))
}

async fn announce_with(
    mut recipients: watch::Receiver<Vec<NotifyConfig>>,
    recorder: &Recorder,
    rests: &[Duration],
) {
    let Followed { mut coming, .. } = recorder.follow(|happening| letter::occasion(happening).is_some());
    let mut carriers = Vec::new();
    loop {
        let now = recipients.borrow_and_update().clone();
        carriers = hired(now, carriers, rests);
        loop {
            tokio::select! {
                biased;
                // First: whoever is configured before something happens is told of it.
                changed = recipients.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                notice = coming.recv() => match notice {
                    Some(notice) => hand_out(&carriers, notice, &mut coming),
                    None => return,
                },
            }
        }
    }
}

/// One recipient, and who brings it its letters. All entries that name the same one share it: what one of them is told
/// of keeps its order with what the others are, and is told once.
struct Carrier {
    to: Recipient,
    entries: Vec<NotifyConfig>,
    name: String,
    bag: Arc<Bag>,
    _task: AbortOnDropHandle<()>,
}

/// A carrier for each: the one that it has, where it has one.
fn hired(recipients: Vec<NotifyConfig>, mut known: Vec<Carrier>, rests: &[Duration]) -> Vec<Carrier> {
    let post = Arc::new(Post::new());
    let mut carriers: Vec<Carrier> = Vec::new();
    for entry in recipients {
        if let Some(shared) = carriers.iter_mut().find(|carrier| carrier.to == entry.to) {
            shared.entries.push(entry);
            continue;
        }
        let kept = known.iter().position(|carrier| carrier.to == entry.to).map(|at| known.swap_remove(at));
        carriers.push(match kept {
            Some(kept) => Carrier { entries: vec![entry], ..kept },
            None => Carrier::new(entry, post.clone(), rests.to_vec()),
        });
    }
    carriers
}

impl Carrier {
    fn new(entry: NotifyConfig, post: Arc<Post>, rests: Vec<Duration>) -> Self {
        let (to, name, bag) = (entry.to.clone(), letter::name(&entry.to), Arc::new(Bag::default()));
        let (looked_at, left) = (to.clone(), Left { name: name.clone(), bag: bag.clone(), underway: 0 });
        let task = async move {
            // What a panic says may hold what was read.
            if let Ok(Some(why)) = tokio::task::spawn_blocking(move || unusable(&looked_at)).await {
                tracing::warn!("{why}");
            }
            carry(left, &post, &rests).await;
        };
        Self { to, entries: vec![entry], name, bag, _task: AbortOnDropHandle::new(tokio::spawn(task)) }
    }
}

/// Hands out this, and what has come behind it.
fn hand_out(carriers: &[Carrier], first: Arc<Notice>, coming: &mut mpsc::UnboundedReceiver<Arc<Notice>>) {
    let mut lost = vec![0; carriers.len()];
    let behind = std::iter::from_fn(|| coming.try_recv().ok());
    for notice in std::iter::once(first).chain(behind) {
        for (carrier, lost) in carriers.iter().zip(&mut lost) {
            let letter = carrier.entries.iter().find_map(|entry| wanted(entry, &notice));
            *lost += letter.map_or(0, |letter| carrier.bag.put(letter));
        }
    }
    for (Carrier { name, .. }, lost) in carriers.iter().zip(lost).filter(|(_, lost)| *lost > 0) {
        tracing::warn!(
            lost,
            "{name} is not told of all that happened: too much waits for it, the oldest goes"
        );
    }
}

fn wanted(recipient: &NotifyConfig, notice: &Notice) -> Option<Letter> {
    let of_source = recipient.sources.is_empty() || recipient.sources.contains(&notice.source);
    let occasion = letter::occasion(notice.reason).filter(|occasion| recipient.on.contains(occasion))?;
    of_source.then(|| letter(&recipient.to, occasion, notice)).flatten()
}

/// The letters to one recipient. Says how many are left when nobody brings them any more.
struct Left {
    name: String,
    bag: Arc<Bag>,
    /// How many are on their way.
    underway: usize,
}

impl Drop for Left {
    fn drop(&mut self) {
        let left = self.bag.len() + self.underway;
        if left > 0 {
            let name = &self.name;
            tracing::warn!(
                left,
                "{name} was not told of what happened: it ended before that, or others are told now"
            );
        }
    }
}

/// Brings letters to one recipient, one after another.
async fn carry(mut left: Left, post: &Post, rests: &[Duration]) {
    loop {
        let letter = left.bag.next().await;
        left.underway = 1;
        bring(&letter, &left, post, rests).await;
        left.underway = 0;
    }
}

async fn bring(letter: &Letter, Left { name, bag, .. }: &Left, post: &Post, rests: &[Duration]) {
    let mut rests = rests.iter();
    while !bag.voids(letter) {
        match (post.bring(letter).await, rests.next()) {
            (Ok(()), _) => return,
            (Err(Failed::ForNow { why, after }), Some(rest)) => {
                let rest = after.unwrap_or_default().max(*rest);
                tracing::debug!("{name}: {why}; again in {} s", rest.as_secs());
                tokio::time::sleep(rest).await;
            }
            (Err(Failed::ForNow { why, .. } | Failed::ForGood(why)), _) => {
                return tracing::warn!("{name} was not told of what happened: {why}");
            }
        }
    }
}

#[cfg(test)]
mod tests;
