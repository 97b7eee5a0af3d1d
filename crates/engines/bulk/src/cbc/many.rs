//! Many messages side by side: sixteen chains, each with its own key and length, and the next message for a chain that ends. The last that is left goes on alone.

use super::{Key, encrypt};
use crate::Error;
use crate::aes::{KEYS_MAX, Schedule, rounds};
use crate::blocks::check;
use crate::memory::{self, BLOCK, Burst, LANES, Lanes, Text};
use crate::ordered;
use core::arch::x86_64::*;

/// One message to encrypt.
pub struct Task<'a> {
    /// Under which key.
    pub key: &'a Key,
    /// The IV; becomes that of what follows.
    pub chain: &'a mut [u8; BLOCK],
    /// Whole blocks.
    pub text: Text<'a>,
}

impl Task<'_> {
    fn schedule(&self) -> &Schedule {
        &self.key.0[0]
    }
}

/// Encrypts messages of any lengths under any keys, sixteen at a time, best with the longest first; keys of one length go together. One that is not whole blocks is an
/// error, and nothing is done then.
pub fn encrypt_many(tasks: &mut [Task<'_>]) -> Result<(), Error> {
    tasks.iter().try_for_each(|task| check(&task.text))?;
    let mut sides = Sides::new();
    #[allow(unsafe_code)]
    // SAFETY: a key exists only where the processor has the features; without a task there is nothing to run.
    unsafe {
        if tasks.iter().any(|task| task.schedule().rounds() == 10) {
            run::<10>(tasks, &mut sides);
        }
        if tasks.iter().any(|task| task.schedule().rounds() == 12) {
            run::<12>(tasks, &mut sides);
        }
        if tasks.iter().any(|task| task.schedule().rounds() == 14) {
            run::<14>(tasks, &mut sides);
        }
    }
    Ok(())
}

/// Round keys and chaining values of each lane. Wiped when dropped.
#[repr(align(64))]
struct Sides {
    keys: [[[u8; BLOCK]; LANES]; KEYS_MAX],
    chains: [[u8; BLOCK]; LANES],
}

impl Sides {
    const fn new() -> Self {
        Self { keys: [[[0; BLOCK]; LANES]; KEYS_MAX], chains: [[0; BLOCK]; LANES] }
    }

    fn set(&mut self, lane: usize, task: &Task<'_>) {
        self.chains[lane] = *task.chain;
        for (i, keys) in self.keys.iter_mut().enumerate().take(task.schedule().rounds() + 1) {
            keys[lane] = *task.schedule().bytes(i);
        }
    }

    fn mirror(&mut self, lane: usize, of: usize) {
        self.chains[lane] = self.chains[of];
        for keys in &mut self.keys {
            keys[lane] = keys[of];
        }
    }
}

impl Drop for Sides {
    fn drop(&mut self) {
        memory::wipe(self.keys.as_flattened_mut());
    }
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn run<const R: usize>(tasks: &mut [Task<'_>], sides: &mut Sides) {
    let mut lanes = Lanes::empty();
    let mut owners: [Option<usize>; LANES] = [None; LANES];
    let mut next = 0;
    loop {
        for (lane, owner) in owners.iter_mut().enumerate() {
            if lanes.left(lane) > 0 && owner.is_some() {
                continue;
            }
            if let Some(done) = owner.take() {
                *tasks[done].chain = sides.chains[lane];
            }
            while next < tasks.len() && (tasks[next].schedule().rounds() != R || tasks[next].text.len() == 0) {
                next += 1;
            }
            if let Some(task) = tasks.get_mut(next) {
                sides.set(lane, task);
                lanes.set(lane, &mut task.text);
                *owner = Some(next);
                next += 1;
            }
        }
        let Some((busy, owner)) = owners.iter().enumerate().find_map(|(lane, owner)| Some((lane, (*owner)?))) else { return };
        if owners.iter().flatten().count() == 1 {
            let Task { key, chain, text } = &mut tasks[owner];
            **chain = sides.chains[busy];
            let done = text.len() - lanes.left(busy) * BLOCK;
            return encrypt::<R>(&key.0[0], chain, text, done);
        }
        for (lane, owner) in owners.iter().enumerate() {
            if owner.is_none() {
                sides.mirror(lane, busy);
                lanes.mirror(lane, busy);
            }
        }
        chain::<R>(sides, lanes.burst());
    }
}

/// Enciphers a burst.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn chain<const R: usize>(sides: &mut Sides, mut burst: Burst<'_, '_>) {
    let keys = &sides.keys;
    let quads = |blocks: &[[u8; BLOCK]; LANES]| [0, 4, 8, 12].map(|first| memory::four(blocks, first));
    let mut chains = quads(&sides.chains);
    for i in 0..burst.blocks() {
        let given = burst.load(i);
        for (j, (chain, given)) in chains.iter_mut().zip(given).enumerate() {
            *chain = _mm512_ternarylogic_epi64::<0x96>(*chain, given, memory::four(&keys[0], 4 * j));
        }
        rounds!(R, round, {
            for (j, chain) in chains.iter_mut().enumerate() {
                *chain = ordered::encrypt_round(*chain, memory::four(&keys[round], 4 * j));
            }
        });
        for (j, chain) in chains.iter_mut().enumerate() {
            *chain = _mm512_aesenclast_epi128(*chain, memory::four(&keys[R], 4 * j));
        }
        burst.store(i, chains);
    }
    for (j, chain) in chains.into_iter().enumerate() {
        memory::set_four(&mut sides.chains, 4 * j, chain);
    }
    burst.finish();
}
