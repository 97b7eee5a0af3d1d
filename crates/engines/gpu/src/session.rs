//! A session on the GPU: its expanded key, on the host. Devices have keys only for the time of a launch.

use crate::engine::Inner;
use crate::host::aes::Schedule;
use crate::host::ghash;
use bywash_core::{Algorithm, Error, Key, Keyed, Operation, Result, SessionParams, Task};
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use zeroize::Zeroizing;

/// What each mode needs.
pub(crate) enum Material {
    Ctr(Schedule),
    Gcm(Schedule, Box<ghash::Powers>),
    /// Data, tweaks.
    Xts(Schedule, Schedule),
    ChaCha(Zeroizing<Vec<u8>>),
}

/// A key on this engine.
pub(crate) struct Session {
    /// Tells sessions apart within a launch; never used twice.
    pub(crate) id: u64,
    pub(crate) material: Material,
    /// What kernels read of it: planes of the schedule, and powers of H after them.
    pub(crate) words: Zeroizing<Vec<u32>>,
    engine: Arc<Inner>,
}

impl Session {
    pub(crate) fn open(engine: &Arc<Inner>, params: &SessionParams) -> Result<Self> {
        use Algorithm::*;
        engine.check_owner()?;
        let algorithm = params.algorithm();
        let Key::Symmetric(key) = params.key() else {
            return Err(Error::Unsupported { engine: engine.name.clone(), algorithm });
        };
        let material = match algorithm {
            Aes128Ctr | Aes192Ctr | Aes256Ctr => Material::Ctr(Schedule::new(key)),
            Aes128Gcm | Aes192Gcm | Aes256Gcm => {
                let schedule = Schedule::new(key);
                let powers = Box::new(ghash::Powers::new(ghash::element(&schedule.encrypt([0; 16]))));
                Material::Gcm(schedule, powers)
            }
            Aes128Xts | Aes256Xts => {
                let (data, tweaks) = key.split_at(key.len() / 2);
                Material::Xts(Schedule::new(data), Schedule::new(tweaks))
            }
            ChaCha20Poly1305 => Material::ChaCha(Zeroizing::new(key.to_vec())),
            _ => return Err(Error::Unsupported { engine: engine.name.clone(), algorithm }),
        };
        let words = Zeroizing::new(match &material {
            Material::Ctr(schedule) | Material::Xts(schedule, _) => schedule.planes().to_vec(),
            Material::Gcm(schedule, powers) => {
                let mut words = Vec::with_capacity(schedule.planes().len() + ghash::WORDS);
                words.extend_from_slice(schedule.planes());
                words.extend(powers.words());
                words
            }
            Material::ChaCha(_) => Vec::new(),
        });
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Ok(Self { id: NEXT.fetch_add(1, Ordering::Relaxed), material, words, engine: engine.clone() })
    }
}

impl Keyed for Session {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let mut task = [Task::new(self, operation.reborrow())];
        self.engine.run(&mut task);
        let [task] = task;
        task.outcome
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
