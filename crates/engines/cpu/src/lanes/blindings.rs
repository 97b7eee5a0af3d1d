//! Where a key's blindings wait between batches.
//!
//! Each lane takes one and puts it back when its batch is done. Threads that compute with the same key at once have different ones, and so have
//! processes: a child forgets those that it shares with its parent.

use super::rsa::PrivateLane;
use crate::ffi::{Refused, forks, random};
use bywash_ifma::LANES;
use bywash_ifma::rsa::{BlindTask, Blinding, blind};
use std::sync::Mutex;
use zeroize::Zeroizing;

/// How many are kept for a key: batches of eight threads at once.
const KEPT: usize = 8 * LANES;

/// A key's blindings.
#[derive(Default)]
pub(super) struct Blindings(Mutex<Pool>);

#[derive(Default)]
struct Pool {
    /// The process in which they were made: its number and its generation.
    process: (u32, u32),
    waiting: Vec<Blinding>,
}

impl Blindings {
    /// One that waits, or a worn one.
    pub(super) fn take(&self) -> Blinding {
        self.with(|waiting| waiting.pop()).flatten().unwrap_or_default()
    }

    /// Puts one back, unless it is worn.
    pub(super) fn put(&self, blinding: Blinding) {
        if !blinding.is_worn() {
            self.with(|waiting| {
                if waiting.len() < KEPT {
                    waiting.push(blinding)
                }
            });
        }
    }

    /// `None` if another thread is in there: a process that was forked at such a moment would wait for ever.
    fn with<T>(&self, work: impl FnOnce(&mut Vec<Blinding>) -> T) -> Option<T> {
        let mut pool = self.0.try_lock().ok()?;
        let process = (std::process::id(), forks::generation());
        if pool.process != process {
            *pool = Pool { process, waiting: Vec::with_capacity(KEPT) };
        }
        Some(work(&mut pool.waiting))
    }
}

/// Gives each lane whose blinding is worn a new one, and what else is made by the way to the keys.
pub(super) fn renew(lanes: &mut [PrivateLane<'_>]) -> Result<(), Refused> {
    let mut worn: Vec<_> = lanes.iter_mut().filter(|lane| lane.blinding.is_worn()).collect();
    let Some(first) = worn.first() else { return Ok(()) };
    let mut randoms = Zeroizing::new(vec![0; LANES * first.key.bits() / 8]);
    random::fill(&mut randoms)?;
    // All lanes take the time of one: those that nobody needs now are for the next batch.
    let sources: Vec<_> = worn.iter().map(|lane| (lane.key, lane.blindings)).cycle().take(LANES).collect();
    let mut made: [Blinding; LANES] = Default::default();
    let tasks = sources.iter().zip(randoms.chunks(first.key.bits() / 8)).zip(&mut made);
    blind(&mut tasks.map(|((&(key, _), random), blinding)| BlindTask { key, random, blinding }).collect::<Vec<_>>());
    for (lane, (made, (_, blindings))) in made.into_iter().zip(sources).enumerate() {
        match worn.get_mut(lane) {
            Some(lane) => lane.blinding = made,
            None => blindings.put(made),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::LANES;
    use crate::lanes::rsa::{Private, PrivateForm};
    use crate::lanes::{Kernel, is_supported};

    /// Runs a batch of so many, and says how many of them were verified.
    fn verified(form: &PrivateForm, count: usize) -> usize {
        let input = [7; 128];
        let mut outputs = vec![[0; 128]; count];
        let mut lanes: Vec<_> = outputs.iter_mut().map(|output| form.lane(&input, output).expect("a good key")).collect();
        Private::run(&mut lanes);
        lanes.iter().filter(|lane| Private::leave(lane).is_some()).count()
    }

    fn form() -> Option<PrivateForm> {
        if !is_supported() {
            eprintln!("skipped: this processor has no AVX-512 IFMA");
            return None;
        }
        Some(PrivateForm::of(&bywash_conformance::rsa_private_key(1024)))
    }

    fn waiting(form: &PrivateForm) -> usize {
        form.blindings.0.lock().unwrap().waiting.len()
    }

    #[test]
    fn worn_ones_are_renewed() {
        let Some(form) = form() else { return };
        for _ in 0..600 {
            assert_eq!(verified(&form, 3), 3);
        }
    }

    #[test]
    fn what_is_made_by_the_way_waits() {
        let Some(form) = form() else { return };
        assert_eq!((verified(&form, 1), waiting(&form)), (1, LANES));
        assert_eq!((verified(&form, LANES), waiting(&form)), (LANES, LANES));
    }

    #[test]
    fn another_process_has_its_own() {
        let Some(form) = form() else { return };
        for another in [|(number, generation): (u32, u32)| (number - 1, generation), |(number, generation)| (number, generation + 1)] {
            verified(&form, LANES);
            let mut pool = form.blindings.0.lock().unwrap();
            pool.process = another(pool.process);
            drop(pool);
            assert!(form.blindings.take().is_worn());
            assert_eq!((waiting(&form), verified(&form, 2)), (0, 2));
        }
    }

    #[test]
    fn nobody_waits_for_the_lock() {
        let Some(form) = form() else { return };
        verified(&form, LANES);
        let held = form.blindings.0.lock().unwrap();
        assert_eq!(verified(&form, LANES), LANES);
        assert_eq!(held.waiting.len(), LANES);
    }
}
