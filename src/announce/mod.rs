//! What happens, told to others over HTTP: to webhooks, to Slack, and to forges as the status of a commit.
//!
//! Owns what is told of which notice (`letter`), and bringing it there, again and again where nobody answers.
//!
//! **Invariant:** decides nothing, and holds nobody up: what cannot be brought is told in the log, and that is all.

mod letter;
mod post;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use self::letter::{Letter, letter};
use self::post::{Failed, Post};
use crate::config::NotifyConfig;
use crate::report::{Notice, Notices, Recorder};

/// So many wait for one recipient that does not answer; what comes then is not told to it.
const WAITING: usize = 64;

/// The rests between the tries, in seconds: some ten minutes altogether.
const RESTS: [u64; 8] = [1, 2, 5, 15, 30, 60, 120, 300];

/// Tells these what a recorder is told from now on. What waits for any of them is lost when there are others.
pub async fn announce(mut recipients: watch::Receiver<Vec<NotifyConfig>>, recorder: Recorder) {
    let rests = RESTS.map(Duration::from_secs);
    loop {
        let now = recipients.borrow_and_update().clone();
        tokio::select! {
            () = announce_to(now, &recorder, &rests) => return,
            changed = recipients.changed() => if changed.is_err() { return },
        }
    }
}

/// Tells these as long as anything can happen.
async fn announce_to(recipients: Vec<NotifyConfig>, recorder: &Recorder, rests: &[Duration]) {
    let Notices { mut coming, .. } = recorder.after(u64::MAX);
    let post = Arc::new(Post::new());
    let mut carriers = JoinSet::new();
    let doors: Vec<_> = recipients
        .into_iter()
        .map(|recipient| {
            let (door, letters) = mpsc::channel(WAITING);
            let name = letter::name(&recipient.to);
            carriers.spawn(carry(letters, name.clone(), post.clone(), rests.to_vec()));
            (recipient, name, door)
        })
        .collect();
    loop {
        let notice = match coming.recv().await {
            Ok(notice) => notice,
            Err(RecvError::Lagged(missed)) => {
                tracing::debug!(missed, "not announced: it came too fast");
                continue;
            }
            Err(RecvError::Closed) => return,
        };
        for (recipient, name, door) in &doors {
            if let Some(letter) = wanted(recipient, &notice)
                && door.try_send(letter).is_err()
            {
                tracing::warn!("{name} was not told of what happened: too much waits for it");
            }
        }
    }
}

fn wanted(recipient: &NotifyConfig, notice: &Notice) -> Option<Letter> {
    let of_source = recipient.sources.is_empty() || recipient.sources.contains(&notice.source);
    let occasion = letter::occasion(notice.reason).filter(|occasion| recipient.on.contains(occasion))?;
    of_source.then(|| letter(&recipient.to, occasion, notice)).flatten()
}

/// The letters to one recipient. Says how many are left when nobody brings them any more.
struct Bag {
    name: String,
    letters: mpsc::Receiver<Letter>,
    /// How many are on their way.
    underway: usize,
}

impl Drop for Bag {
    fn drop(&mut self) {
        let left = self.letters.len() + self.underway;
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
async fn carry(letters: mpsc::Receiver<Letter>, name: String, post: Arc<Post>, rests: Vec<Duration>) {
    let mut bag = Bag { name: name.clone(), letters, underway: 0 };
    while let Some(letter) = bag.letters.recv().await {
        bag.underway = 1;
        let mut rests = rests.iter();
        loop {
            match (post.bring(&letter).await, rests.next()) {
                (Ok(()), _) => break,
                (Err(Failed::ForNow(why)), Some(rest)) => {
                    tracing::debug!("{name}: {why}; again in {} s", rest.as_secs());
                    tokio::time::sleep(*rest).await;
                }
                (Err(Failed::ForNow(why) | Failed::ForGood(why)), _) => {
                    tracing::warn!("{name} was not told of what happened: {why}");
                    break;
                }
            }
        }
        bag.underway = 0;
    }
}

#[cfg(test)]
mod tests;
