//! What a benchmark asks of a device: kernels alone, over data that lies in its memory.

use crate::device::{Launch, Lies, Stream};
use crate::engine::GpuEngine;
use crate::launch::Filling;
use crate::message::Message;
use crate::session::Session;
use bywash_core::{Algorithm, Data, Direction, Key, Operation, Result, SessionParams};
use core::time::Duration;
use std::sync::Barrier;
use std::time::Instant;

/// What [`GpuEngine::resident`] measured.
#[derive(Clone, Copy, Debug)]
pub struct Resident {
    /// Bytes of text of one run, of all streams.
    pub bytes: usize,
    /// How often.
    pub times: u32,
    /// How long all runs took, from the first one's submission to the last one's end.
    pub took: Duration,
}

impl Resident {
    /// Bytes of text a second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 * f64::from(self.times) / self.took.as_secs_f64()
    }
}

impl GpuEngine {
    /// Encrypts all streams' whole input so many times in the device's memory, all at the same time: text read and ciphertext written each time, tags summed up, nothing copied to or from
    /// the host. With `cipher_alone` without the tag.
    ///
    /// # Errors
    /// [`EngineFailed`](bywash_core::Error::EngineFailed); those of a session for an algorithm that it does not do.
    pub fn resident(&self, algorithm: Algorithm, cipher_alone: bool, times: u32) -> Result<Resident> {
        let failed = |reason| self.0.failed(reason);
        let layout = self.0.device.layout();
        let key: Vec<u8> = (0..64).collect();
        let params = SessionParams::new(algorithm, Key::Symmetric(key[..algorithm.key_lengths().0].into()))?;
        let session = Session::open(&self.0, &params)?;
        // A data unit of XTS has 16 MiB at most.
        let bytes = if algorithm.is_xts() { layout.text.min(16 << 20) } else { layout.text };
        let (mut text, mut tag, iv) = (vec![0x5A; bytes], vec![0; params.tag_len()], vec![1; algorithm.usual_iv_len()]);
        let operation = Operation { direction: Direction::Encrypt, iv: &iv, aad: &[], data: Data::InPlace(&mut text), tag: &mut tag };
        let mut filled = Vec::new();
        for _ in 0..self.0.device.streams() {
            let mut stream = self.0.device.stream().map_err(failed)?;
            let mut filling = Filling::new(layout, layout.text);
            Message::new(&session, &operation).give(&operation, bytes, (Lies::Staged, Lies::Staged), &mut filling, &mut *stream);
            let mut launch = filling.launch(&mut *stream);
            if cipher_alone {
                launch.steps.retain(|step| step.kernel.is_cipher());
            }
            filled.push((stream, launch));
        }
        let (streams, together) = (filled.len(), Barrier::new(filled.len()));
        let run = |(mut stream, launch): (Box<dyn Stream>, Launch)| stream.resident(&launch, times, &together);
        let took = std::thread::scope(|scope| {
            let threads: Vec<_> = filled.into_iter().map(|filled| scope.spawn(move || run(filled))).collect();
            let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())));
            ended.collect::<core::result::Result<Vec<_>, String>>()
        });
        let runs = took.map_err(failed)?;
        let (begin, end) = (runs.iter().map(|run| run.start).min(), runs.iter().map(|run| run.end).max());
        let took = begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin);
        Ok(Resident { bytes: bytes * streams, times, took })
    }

    /// Bytes a second that are copied to the device, from it, and each way at the same time: the limits of what goes over it.
    ///
    /// # Errors
    /// [`EngineFailed`](bywash_core::Error::EngineFailed).
    pub fn copies(&self, times: u32) -> Result<[f64; 3]> {
        self.0.check_owner()?;
        let failed = |reason| self.0.failed(reason);
        let bytes = f64::from(times) * self.0.device.layout().text as f64;
        let (mut inward, mut outward) = (self.0.device.stream().map_err(failed)?, self.0.device.stream().map_err(failed)?);
        let mut rate = |there: bool, back: bool| {
            let begin = Instant::now();
            if there {
                inward.start_copies(true, times)?;
            }
            if back {
                outward.start_copies(false, times)?;
            }
            inward.wait().and(outward.wait())?;
            Ok(bytes / begin.elapsed().as_secs_f64())
        };
        rate(true, true).map_err(failed)?;
        Ok([rate(true, false).map_err(failed)?, rate(false, true).map_err(failed)?, rate(true, true).map_err(failed)?])
    }

    /// Bitwise instructions and bytes of memory a second that the device can do, where it says so.
    pub fn limits(&self) -> Option<(f64, f64)> {
        self.0.check_owner().ok().and_then(|()| self.0.device.limits())
    }
}
