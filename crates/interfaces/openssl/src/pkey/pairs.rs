//! Key pairs made ahead, several at a time: eight public values side by side take little longer than one alone.
//!
//! A server makes a pair for every handshake. Waiting for other handshakes to make theirs saves less than the waiting costs, and a lone client's has nobody to
//! wait for; but that a thread which has made some pairs will make more is nearly certain. So it makes the next ones together.
//!
//! A pair is given away once. A forked child drops what its parent had ready, and so does a thread that ends.

use super::parts::Group;
use crate::ahead::Ahead;
use bywash_client::{Client, Gather, Moment, Session};
use bywash_core::{Direction, Key as CoreKey, OwnedOperation, SecretBytes, SessionParams};
use core::cell::RefCell;

/// So many are made together, as many as kernels have lanes.
const TOGETHER: usize = 8;

/// A private key and its public value.
pub(super) struct Pair {
    pub(super) private: SecretBytes,
    pub(super) public: Vec<u8>,
}

/// What a thread has ready on one group.
struct Ready {
    group: Group,
    ahead: Ahead,
    pairs: Vec<Pair>,
    /// Where they are made; it has learnt how long that takes.
    gather: Gather,
}

thread_local! {
    static READY: RefCell<Vec<Ready>> = const { RefCell::new(Vec::new()) };
}

fn with<R>(group: Group, run: impl FnOnce(&mut Ready) -> R) -> Option<R> {
    let found = |all: &mut Vec<Ready>| {
        let index = all.iter().position(|ready| ready.group == group).unwrap_or_else(|| {
            all.push(Ready { group, ahead: Ahead::new(), pairs: Vec::new(), gather: Gather::new() });
            all.len() - 1
        });
        run(&mut all[index])
    };
    READY.try_with(|all| all.try_borrow_mut().ok().map(|mut all| found(&mut all))).ok().flatten()
}

impl Ready {
    /// The next pair; `Err` says whether more are to be made.
    fn next(&mut self) -> Result<Pair, bool> {
        if !self.ahead.ask() {
            self.pairs.clear();
        }
        self.pairs.pop().ok_or(self.ahead.is_worth_it())
    }

    fn keep(&mut self, pairs: Vec<Pair>) {
        if self.ahead.may_keep() {
            self.pairs = pairs;
        }
    }
}

/// A pair made ahead; none where this thread makes few, or its engine gains nothing by making them together.
pub(super) fn take(group: Group, client: &Client) -> Option<Pair> {
    match with(group, Ready::next)? {
        Ok(pair) => Some(pair),
        Err(false) => None,
        Err(true) => {
            // Not within the thread's state: engine and random generator are others' code.
            let mut gather = with(group, |ready| core::mem::take(&mut ready.gather))?;
            let made = make(group, client, &mut gather);
            let Some(mut made) = made else {
                // To find that out costs a draw: it is not asked again with every pair.
                with(group, |ready| ready.ahead.gained_nothing());
                return None;
            };
            let first = made.pop();
            // Only now: where not all were made, some are still in it.
            with(group, |ready| {
                ready.gather = gather;
                ready.keep(made);
            });
            first
        }
    }
}

fn make(group: Group, client: &Client, gather: &mut Gather) -> Option<Vec<Pair>> {
    let algorithm = group.public_value()?;
    let mut waiting = Vec::with_capacity(TOGETHER);
    for private in group.private_keys(TOGETHER)? {
        let session = client.session(SessionParams::new(algorithm, CoreKey::EcPrivate(private.clone())).ok()?).ok()?;
        if !session.may_gather() {
            return None;
        }
        waiting.push((gather.add(&session, operation(&session)).ok()?, private));
    }
    while gather.waiting() > 0 {
        gather.fire(Moment::Blocking);
    }
    let made = |(ticket, private)| Some(Pair { private, public: gather.take(ticket)?.ok()?.output.to_vec() });
    waiting.into_iter().map(made).collect()
}

fn operation(session: &Session) -> OwnedOperation {
    let output = SecretBytes::zeroed(session.params().algorithm().output_len(0));
    let empty = || SecretBytes::zeroed(0);
    OwnedOperation { direction: Direction::Compute, iv: Vec::new(), aad: Vec::new(), input: empty(), output, tag: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::nist::Nist;
    use super::*;
    use crate::ahead::ONE_BY_ONE;
    use bywash_client::Config;
    use bywash_core::{Data, Operation};
    use std::collections::HashSet;

    const GROUPS: [Group; 3] = [Group::X25519, Group::Nist(Nist::P256), Group::Nist(Nist::P384)];

    /// The public value of a private key, computed by itself.
    fn public_of(client: &Client, group: Group, private: &SecretBytes) -> Vec<u8> {
        let algorithm = group.public_value().unwrap();
        let session = client.session(SessionParams::new(algorithm, CoreKey::EcPrivate(private.clone())).unwrap()).unwrap();
        let mut public = vec![0; algorithm.output_len(0)];
        let data = Data::Copy { input: &[], output: &mut public };
        session.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] }).unwrap();
        public
    }

    fn has_lanes(client: &Client, group: Group) -> bool {
        let key = CoreKey::EcPrivate(group.private_keys(1).unwrap().remove(0));
        client.session(SessionParams::new(group.public_value().unwrap(), key).unwrap()).unwrap().may_gather()
    }

    #[test]
    fn pairs_belong_together_and_none_is_given_twice() {
        let client = Client::new(Config::default());
        for group in GROUPS {
            let taken: Vec<Option<Pair>> = (0..ONE_BY_ONE as usize + 3 * TOGETHER).map(|_| take(group, &client)).collect();
            assert!(taken[..ONE_BY_ONE as usize].iter().all(Option::is_none));
            if !has_lanes(&client, group) {
                assert!(taken.iter().all(Option::is_none), "nothing is gained by making them together");
                continue;
            }
            let taken: Vec<Pair> = taken.into_iter().flatten().collect();
            assert_eq!(taken.len(), 3 * TOGETHER);
            let different: HashSet<&[u8]> = taken.iter().map(|pair| &*pair.public).collect();
            assert_eq!(different.len(), taken.len());
            for pair in &taken {
                assert_eq!(pair.public, public_of(&client, group, &pair.private));
            }
        }
    }

    #[test]
    fn a_child_gives_away_none_of_its_parents() {
        let client = Client::new(Config::default());
        let group = Group::X25519;
        (0..=ONE_BY_ONE).for_each(|_| drop(take(group, &client)));
        let ready = || with(group, |ready| ready.pairs.iter().map(|pair| pair.public.clone()).collect::<Vec<_>>()).unwrap();
        let parents = ready();
        if parents.is_empty() {
            assert!(!has_lanes(&client, group));
            eprintln!("skipped: no lanes here");
            return;
        }
        // SAFETY: the child looks at its own memory, allocates no lock that another thread may hold, and exits.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0);
            if child == 0 {
                let given = with(group, Ready::next);
                libc::_exit(i32::from(!matches!(given, Some(Err(true)))));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert_eq!(status, 0, "the child had a pair of its parent's to give away");
        }
        assert_eq!(ready(), parents, "the parent still has them");
    }
}
