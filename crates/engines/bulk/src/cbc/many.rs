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
        self.key.0.encrypt()
    }
}

/// Encrypts messages of any lengths under any keys, sixteen at a time, best with the longest first; keys of one length go together, and take least time where they are the
/// same. One that is not whole blocks is an error, and nothing is done then.
pub fn encrypt_many(tasks: &mut [Task<'_>]) -> Result<(), Error> {
    tasks.iter().try_for_each(|task| check(&task.text))?;
    #[allow(unsafe_code)]
    // SAFETY: a key exists only where the processor has the features; without a task there is nothing to run.
    unsafe {
        run_some::<10>(tasks);
        run_some::<12>(tasks);
        run_some::<14>(tasks);
    }
    Ok(())
}

/// Runs the tasks whose keys have so many rounds.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn run_some<const R: usize>(tasks: &mut [Task<'_>]) {
    let mut of_length = tasks.iter().filter(|task| task.schedule().rounds() == R).map(|task| task.key);
    let Some(key) = of_length.next() else { return };
    if of_length.all(|other| core::ptr::eq(key, other)) {
        run::<R>(tasks, None, key.0.encrypt());
    } else {
        run::<R>(tasks, Some(&mut LaneKeys([[[0; BLOCK]; LANES]; KEYS_MAX])), key.0.encrypt());
    }
}

/// Round keys of each lane. Wiped when dropped.
#[repr(align(64))]
struct LaneKeys([[[u8; BLOCK]; LANES]; KEYS_MAX]);

impl LaneKeys {
    fn set(&mut self, lane: usize, schedule: &Schedule) {
        for (i, keys) in self.0.iter_mut().enumerate().take(schedule.rounds() + 1) {
            keys[lane] = *schedule.bytes(i);
        }
    }

    fn mirror(&mut self, lane: usize, of: usize) {
        for keys in &mut self.0 {
            keys[lane] = keys[of];
        }
    }
}

impl Drop for LaneKeys {
    fn drop(&mut self) {
        memory::wipe(self.0.as_flattened_mut());
    }
}

/// Chaining values of each lane.
#[repr(align(64))]
struct Chains([[u8; BLOCK]; LANES]);

/// The tasks whose keys have `R` rounds. Where there are no `keys` of each lane all have the `shared` one.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn run<const R: usize>(tasks: &mut [Task<'_>], mut keys: Option<&mut LaneKeys>, shared: &Schedule) {
    let mut lanes = Lanes::empty();
    let mut chains = Chains([[0; BLOCK]; LANES]);
    let mut owners: [Option<usize>; LANES] = [None; LANES];
    let mut next = 0;
    loop {
        for (lane, owner) in owners.iter_mut().enumerate() {
            if lanes.left(lane) > 0 && owner.is_some() {
                continue;
            }
            if let Some(done) = owner.take() {
                *tasks[done].chain = chains.0[lane];
            }
            while next < tasks.len() && (tasks[next].schedule().rounds() != R || tasks[next].text.len() == 0) {
                next += 1;
            }
            if let Some(task) = tasks.get_mut(next) {
                chains.0[lane] = *task.chain;
                if let Some(keys) = &mut keys {
                    keys.set(lane, task.schedule());
                }
                lanes.set(lane, &mut task.text);
                *owner = Some(next);
                next += 1;
            }
        }
        let Some((busy, owner)) = owners.iter().enumerate().find_map(|(lane, owner)| Some((lane, (*owner)?))) else { return };
        if owners.iter().flatten().count() == 1 {
            let Task { key, chain, text } = &mut tasks[owner];
            **chain = chains.0[busy];
            let done = text.len() - lanes.left(busy) * BLOCK;
            return encrypt::<R>(key.0.encrypt(), chain, text, done);
        }
        for (lane, _) in owners.iter().enumerate().filter(|(_, owner)| owner.is_none()) {
            chains.0[lane] = chains.0[busy];
            if let Some(keys) = &mut keys {
                keys.mirror(lane, busy);
            }
            lanes.mirror(lane, busy);
        }
        let burst = lanes.burst();
        match &keys {
            Some(keys) => chain::<R>(&mut chains, burst, |round, quad| memory::four(&keys.0[round], 4 * quad)),
            None => {
                let keys = shared.all::<R>();
                chain::<R>(&mut chains, burst, |round, _| keys[round]);
            }
        }
    }
}

/// Enciphers a burst with the round keys of each four lanes.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn chain<const R: usize>(chains: &mut Chains, mut burst: Burst<'_, '_>, keys: impl Fn(usize, usize) -> __m512i) {
    let mut state = [0, 4, 8, 12].map(|first| memory::four(&chains.0, first));
    for i in 0..burst.blocks() {
        let given = burst.load(i);
        for (j, (state, given)) in state.iter_mut().zip(given).enumerate() {
            *state = _mm512_ternarylogic_epi64::<0x96>(*state, given, keys(0, j));
        }
        rounds!(R, round, {
            for (j, state) in state.iter_mut().enumerate() {
                *state = ordered::encrypt_round(*state, keys(round, j));
            }
        });
        for (j, state) in state.iter_mut().enumerate() {
            *state = _mm512_aesenclast_epi128(*state, keys(R, j));
        }
        burst.store(i, state);
    }
    for (j, state) in state.into_iter().enumerate() {
        memory::set_four(&mut chains.0, 4 * j, state);
    }
    burst.finish();
}
