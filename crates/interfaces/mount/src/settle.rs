//! Files that were changed in place and closed are settled in the background: synced, their journals removed. A program that closes a file does not wait for that.

use crate::node::Node;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long a closed file waits, for the case that it is opened again.
const WAIT: Duration = Duration::from_secs(2);
/// Most files that wait, each of which takes two descriptors; with more, the oldest do not.
const WAITING_MAX: usize = 128;

/// What is to be done.
pub(crate) enum Due {
    /// A file is to be settled, if it is still there.
    File(Weak<Node>),
    /// New files are to be synced.
    Turn,
}

/// A file, and until when it waits. One whose last name goes meanwhile is dropped, which gives its room back: it is not kept here.
type Waiting = (Instant, Weak<Node>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Those that could not be settled.
    failed: VecDeque<Waiting>,
    turn: Option<Instant>,
    /// Whether it was the turn of new files last.
    is_turned: bool,
    is_ended: bool,
}

/// The files that wait.
pub(crate) struct Settler {
    /// How long new files may wait to be synced, all together.
    turn: Duration,
    waiting_max: usize,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Settler {
    /// So many files at most wait, if those are fewer than elsewhere: there may be few descriptors.
    pub(crate) fn new(turn: Duration, waiting_max: usize) -> Self {
        Self { turn, waiting_max: waiting_max.min(WAITING_MAX), queue: Mutex::default(), changed: Condvar::default() }
    }

    /// A closed file is to be settled.
    pub(crate) fn add(&self, node: &Arc<Node>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.push_back((Instant::now() + WAIT, Arc::downgrade(node)));
        drop(queue);
        self.changed.notify_one();
    }

    /// One that could not be is tried again, however many there are: not sooner.
    pub(crate) fn add_failed(&self, node: &Arc<Node>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.failed.push_back((Instant::now() + WAIT, Arc::downgrade(node)));
    }

    /// New files are synced as soon as may be.
    pub(crate) fn hasten_turn(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).turn = Some(Instant::now());
        self.changed.notify_one();
    }

    /// Whether no more should wait.
    pub(crate) fn is_full(&self) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.len() + queue.failed.len() >= self.waiting_max
    }

    /// The next that has waited long enough; none at the end.
    pub(crate) fn next(&self) -> Option<Due> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            let turn = *queue.turn.get_or_insert(now + self.turn);
            let retry = queue.failed.front().map(|(due, _)| *due);
            // Where files come faster than they can be settled one is due at any time, and so may a turn be: neither keeps the other waiting.
            let is_files_turn = core::mem::take(&mut queue.is_turned);
            let wait = match queue.waiting.front() {
                _ if queue.is_ended => return None,
                _ if turn <= now && !is_files_turn => {
                    (queue.turn, queue.is_turned) = (None, true);
                    return Some(Due::Turn);
                }
                _ if retry.is_some_and(|retry| retry <= now) => return queue.failed.pop_front().map(|(_, node)| Due::File(node)),
                Some((due, _)) if *due <= now || queue.waiting.len() > self.waiting_max => {
                    return queue.waiting.pop_front().map(|(_, node)| Due::File(node));
                }
                _ if turn <= now => continue,
                Some((due, _)) => (*due).min(turn) - now,
                None => turn - now,
            };
            let wait = retry.map_or(wait, |retry| wait.min(retry - now));
            queue = self.changed.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Nothing waits any more: whoever ends settles what is left.
    pub(crate) fn end(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).is_ended = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_are_synced_in_time_however_many_files_are_due() {
        let settler = Settler::new(Duration::from_millis(5), WAITING_MAX);
        let due = || (Instant::now(), Weak::new());
        let is_turn = (0..100).any(|_| {
            let mut queue = settler.queue.lock().unwrap();
            queue.waiting.resize_with(2 * WAITING_MAX, due);
            queue.failed.resize_with(1, due);
            drop(queue);
            std::thread::sleep(Duration::from_millis(1));
            matches!(settler.next(), Some(Due::Turn))
        });
        assert!(is_turn);
        settler.hasten_turn();
        assert!(matches!(settler.next(), Some(Due::File(_))), "files are settled between two turns");
        assert!(matches!(settler.next(), Some(Due::Turn)));
    }
}
