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

/// One recipient, and who brings it its letters.
struct Carrier {
    recipient: NotifyConfig,
    name: String,
    bag: Arc<Bag>,
    _task: AbortOnDropHandle<()>,
}

/// A carrier for each: the one that it has, where it has one.
fn hired(recipients: Vec<NotifyConfig>, mut known: Vec<Carrier>, rests: &[Duration]) -> Vec<Carrier> {
    let post = Arc::new(Post::new());
    let mut take = |is: &dyn Fn(&NotifyConfig) -> bool| {
        known.iter().position(|carrier| is(&carrier.recipient)).map(|at| known.swap_remove(at))
    };
    // One place may be told of several things: who is the same in all has the first choice.
    let same: Vec<_> = recipients.iter().map(|recipient| take(&|known| known == recipient)).collect();
    let carriers = recipients.into_iter().zip(same).map(|(recipient, same)| {
        match same.or_else(|| take(&|known| known.to == recipient.to)) {
            Some(known) => Carrier { recipient, ..known },
            None => Carrier::new(recipient, post.clone(), rests.to_vec()),
        }
    });
    carriers.collect()
}

impl Carrier {
    fn new(recipient: NotifyConfig, post: Arc<Post>, rests: Vec<Duration>) -> Self {
        let (name, bag) = (letter::name(&recipient.to), Arc::new(Bag::default()));
        let (to, left) = (recipient.to.clone(), Left { name: name.clone(), bag: bag.clone(), underway: 0 });
        let task = async move {
            // What a panic says may hold what was read.
            if let Ok(Some(why)) = tokio::task::spawn_blocking(move || unusable(&to)).await {
                tracing::warn!("{why}");
            }
            carry(left, &post, &rests).await;
        };
        Self { recipient, name, bag, _task: AbortOnDropHandle::new(tokio::spawn(task)) }
    }
}

/// Hands out this, and what has come behind it.
fn hand_out(carriers: &[Carrier], first: Arc<Notice>, coming: &mut mpsc::UnboundedReceiver<Arc<Notice>>) {
    let mut lost = vec![0; carriers.len()];
    let behind = std::iter::from_fn(|| coming.try_recv().ok());
    for notice in std::iter::once(first).chain(behind) {
        for (carrier, lost) in carriers.iter().zip(&mut lost) {
            let letter = wanted(&carrier.recipient, &notice);
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
