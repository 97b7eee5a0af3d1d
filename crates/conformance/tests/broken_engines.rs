//! The suite is worth something only if a wrong engine fails it: each engine here is the CPU engine with one fault.

use bywash_conformance::{Area, Options, Report, run};
use bywash_core::{
    Algorithm, CostSheet, CrtExp, Data, Direction, Engine, Error, Hashing, Keyed, ModExp, Operation, Result, SessionParams, Stream, Task,
};
use bywash_engine_cpu::CpuEngine;
use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Nothing, but only these three are done.
    Partial,
    /// The last bit of outputs of 1000 bytes and more is turned.
    FlipsABit,
    /// Decryption accepts every tag.
    IgnoresTheTag,
    /// A forged message is refused, its plaintext left in the output.
    LeavesPlaintext,
    /// Only the first 12 bytes of a tag are looked at.
    ComparesHalfATag,
    /// The CTR counter loses its carry out of 32 bits.
    LosesACarry,
    /// One byte behind the output is written.
    WritesBeyond,
    /// The number of bytes written is wrong.
    Miscounts,
    /// Two threads at once get each other's way.
    IsNotThreadSafe,
    /// A message in two pieces comes out wrong after the first.
    ForgetsBetweenPieces,
    /// A copy of a message in pieces and what it was copied from are one.
    SharesMessages,
    /// Messages in pieces look at no more than 16 bytes of an IV.
    CutsIvs,
    /// Hashing in pieces begins anew with the second piece.
    ForgetsHashedPieces,
    /// A copy of a message being hashed and what it was copied from are one.
    SharesHashedState,
    /// A message that has been ended is still there when the next begins.
    HashesOn,
    /// The last task of a batch of nine or more is left undone.
    DropsATask,
    /// Two lanes of a batch of public-key operations get each other's results.
    SwapsLanes,
    /// One refused operation of a batch of eight or more spoils its neighbour.
    SpoilsANeighbour,
    /// Every key opens, with a fixed one put in place of bad ones.
    OpensBadKeys,
    /// An RSA input that is not below n is reduced instead of refused.
    ReducesRsaInputs,
    /// Numbers that come without a session are taken as if the exponent's last bit were 1.
    RoundsExponents,
    /// An odd number of bytes makes it panic.
    Panics,
    /// The cost sheet is somebody else's.
    LiesAboutCosts,
}

struct Broken(Fault);

static CAPABLE: OnceLock<Vec<Algorithm>> = OnceLock::new();

impl Engine for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn describe(&self) -> String {
        format!("the CPU engine with the fault {:?}", self.0)
    }

    fn capabilities(&self) -> &[Algorithm] {
        match self.0 {
            Fault::Partial => &[Algorithm::Aes128Ctr, Algorithm::Aes256Gcm, Algorithm::Sha256],
            // On processors that are not x86-64 the CPU engine lacks legacy ciphers.
            _ => CAPABLE.get_or_init(|| CpuEngine::new().capabilities().to_vec()),
        }
    }

    fn workers(&self) -> usize {
        1
    }

    fn cost_sheet(&self) -> Option<CostSheet> {
        (self.0 == Fault::LiesAboutCosts).then(|| CostSheet::empty("another"))
    }

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        let algorithm = params.algorithm();
        if !self.supports(algorithm) {
            return Err(Error::Unsupported { engine: "broken".into(), algorithm });
        }
        let opened = CpuEngine::new().open(params);
        let inner = match opened {
            Err(Error::BadKey { .. }) if self.0 == Fault::OpensBadKeys => {
                CpuEngine::new().open(&SessionParams::new(Algorithm::Sha256, bywash_core::Key::None)?)?
            }
            opened => opened?,
        };
        Ok(Box::new(BrokenKeyed { fault: self.0, params: params.clone(), inner, inside: AtomicUsize::new(0) }))
    }

    fn mod_exp(&self, numbers: &ModExp<'_>, out: &mut [u8]) -> Result<()> {
        let mut exponent = numbers.exponent.to_vec();
        if let (Fault::RoundsExponents, Some(last)) = (self.0, exponent.last_mut()) {
            *last |= 1;
        }
        CpuEngine::new().mod_exp(&ModExp { exponent: &exponent, ..*numbers }, out)
    }

    fn crt_exp(&self, numbers: &CrtExp<'_>, out: &mut [u8]) -> Result<()> {
        let mut base = numbers.base.to_vec();
        if let (Fault::RoundsExponents, Some(last)) = (self.0, base.last_mut()) {
            *last |= 1;
        }
        CpuEngine::new().crt_exp(&CrtExp { base: &base, ..*numbers }, out)
    }

    fn run(&self, batch: &mut [Task<'_>]) {
        let done = if self.0 == Fault::DropsATask && batch.len() >= 9 { batch.len() - 1 } else { batch.len() };
        for task in &mut batch[..done] {
            task.outcome = task.keyed.run(&mut task.operation);
        }
        match self.0 {
            Fault::SwapsLanes => swap_lanes(batch),
            Fault::SpoilsANeighbour if batch.len() >= 8 => {
                let refused = batch.iter().position(|task| matches!(task.outcome, Err(Error::Authentication | Error::InputRange { .. })));
                if let Some(place) = refused {
                    let neighbour = &mut batch[place.checked_sub(1).unwrap_or(1)];
                    output(&mut neighbour.operation.data).fill(0);
                }
            }
            _ => {}
        }
    }
}

/// Swaps the outputs of the second and the third task, if both did the same public-key operation.
fn swap_lanes(batch: &mut [Task<'_>]) {
    let [_, second, third, ..] = batch else { return };
    let algorithm = |task: &Task<'_>| task.keyed.as_any().downcast_ref::<BrokenKeyed>().map(|keyed| keyed.params.algorithm());
    if algorithm(second) == algorithm(third) && algorithm(second).is_some_and(Algorithm::is_public_key) {
        output(&mut second.operation.data).swap_with_slice(output(&mut third.operation.data));
    }
}

struct BrokenKeyed {
    fault: Fault,
    params: SessionParams,
    inner: Box<dyn Keyed>,
    /// Threads in `run` at this moment.
    inside: AtomicUsize,
}

fn output<'a>(data: &'a mut Data<'_>) -> &'a mut [u8] {
    match data {
        Data::InPlace(buffer) => buffer,
        Data::Copy { output, .. } => output,
    }
}

impl BrokenKeyed {
    /// What decrypting gives if nobody looks at the tag.
    fn decrypt_blindly(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let mut stream = self.inner.stream(Direction::Decrypt, operation.iv)?;
        stream.aad(operation.aad)?;
        let len = operation.data.input_len();
        stream.update(operation.data.reborrow())?;
        Ok(len)
    }

    fn decrypt(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let before = operation.data.input().to_vec();
        let outcome = self.inner.run(operation);
        if outcome != Err(Error::Authentication) {
            return outcome;
        }
        if let Data::InPlace(buffer) = &mut operation.data {
            buffer.copy_from_slice(&before);
        }
        match self.fault {
            Fault::IgnoresTheTag => self.decrypt_blindly(operation),
            Fault::LeavesPlaintext => self.decrypt_blindly(operation).and(outcome),
            _ => {
                let mut stream = self.inner.stream(Direction::Decrypt, operation.iv)?;
                stream.aad(operation.aad)?;
                let len = operation.data.input_len();
                stream.update(operation.data.reborrow())?;
                let tag = stream.finish()?;
                let compared = operation.tag.len().min(12);
                if tag[..compared] == operation.tag[..compared] {
                    return Ok(len);
                }
                output(&mut operation.data).fill(0);
                outcome
            }
        }
    }

    fn lose_carry(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let mut counter = [0; 16];
        counter.copy_from_slice(operation.iv);
        let low = u32::from_be_bytes([counter[12], counter[13], counter[14], counter[15]]);
        let until = (u32::MAX - low) as usize * 16 + 16;
        let len = operation.data.input_len();
        let mut text = operation.data.input().to_vec();
        let (front, back) = text.split_at_mut(len.min(until));
        self.inner.stream(operation.direction, operation.iv)?.update(Data::InPlace(front))?;
        counter[12..].fill(0);
        self.inner.stream(operation.direction, &counter)?.update(Data::InPlace(back))?;
        output(&mut operation.data)[..len].copy_from_slice(&text);
        Ok(len)
    }
}

impl Keyed for BrokenKeyed {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let algorithm = self.params.algorithm();
        let aead = self.params.tag_len() > 0 && operation.direction != Direction::Compute;
        let others = self.inside.fetch_add(1, Ordering::SeqCst);
        std::thread::yield_now();
        let overlapped = others > 0 || self.inside.load(Ordering::SeqCst) > 1;
        let outcome = match self.fault {
            Fault::IgnoresTheTag | Fault::LeavesPlaintext | Fault::ComparesHalfATag
                if aead && operation.direction == Direction::Decrypt =>
            {
                self.decrypt(operation)
            }
            Fault::LosesACarry if matches!(algorithm, Algorithm::Aes128Ctr) => self.lose_carry(operation),
            Fault::Panics if operation.data.input_len() % 2 == 1 => panic!("an odd number of bytes"),
            Fault::ReducesRsaInputs => match self.inner.run(operation) {
                Err(Error::InputRange { .. }) => Ok(operation.data.output_len()),
                outcome => outcome,
            },
            _ => self.inner.run(operation),
        };
        self.inside.fetch_sub(1, Ordering::SeqCst);
        let written = outcome?;
        let spoil = match self.fault {
            Fault::FlipsABit => written >= 1000,
            Fault::IsNotThreadSafe => overlapped,
            _ => false,
        };
        let output = output(&mut operation.data);
        if spoil && written > 0 {
            output[written - 1] ^= 1;
        }
        if self.fault == Fault::WritesBeyond && written < output.len() {
            output[written] ^= 1;
        }
        Ok(if self.fault == Fault::Miscounts { written + 1 } else { written })
    }

    fn stream(&self, direction: Direction, iv: &[u8]) -> Result<Box<dyn Stream>> {
        let state = Arc::new(Mutex::new(self.inner.stream(direction, seen(self.fault, iv))?));
        Ok(Box::new(BrokenStream { fault: self.fault, iv: iv.to_vec(), pieces: 0, state }))
    }

    fn hashing(&self) -> Result<Box<dyn Hashing>> {
        let state = Arc::new(Mutex::new(self.inner.hashing()?));
        Ok(Box::new(BrokenHashing { fault: self.fault, pieces: 0, state }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct BrokenHashing {
    fault: Fault,
    pieces: usize,
    state: Arc<Mutex<Box<dyn Hashing>>>,
}

impl Hashing for BrokenHashing {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        self.pieces += 1;
        if self.fault == Fault::ForgetsHashedPieces && self.pieces == 2 {
            state.reset()?;
        }
        state.update(data)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        self.pieces = 0;
        let mut state = self.state.lock().unwrap();
        if self.fault != Fault::HashesOn {
            return state.finish(out);
        }
        let before = state.duplicate()?;
        let written = state.finish(out);
        *state = before;
        written
    }

    fn reset(&mut self) -> Result<()> {
        self.pieces = 0;
        self.state.lock().unwrap().reset()
    }

    fn duplicate(&self) -> Result<Box<dyn Hashing>> {
        let state = match self.fault {
            Fault::SharesHashedState => Arc::clone(&self.state),
            _ => Arc::new(Mutex::new(self.state.lock().unwrap().duplicate()?)),
        };
        Ok(Box::new(Self { fault: self.fault, pieces: self.pieces, state }))
    }
}

struct BrokenStream {
    fault: Fault,
    iv: Vec<u8>,
    pieces: usize,
    state: Arc<Mutex<Box<dyn Stream>>>,
}

/// As much of an IV as a message in pieces looks at.
fn seen(fault: Fault, iv: &[u8]) -> &[u8] {
    if fault == Fault::CutsIvs && iv.len() <= 128 { &iv[..iv.len().min(16)] } else { iv }
}

impl Stream for BrokenStream {
    fn start(&mut self, iv: &[u8]) -> Result<()> {
        self.pieces = 0;
        self.state.lock().unwrap().start(seen(self.fault, iv))
    }

    fn aad(&mut self, aad: &[u8]) -> Result<()> {
        self.state.lock().unwrap().aad(aad)
    }

    fn update(&mut self, data: Data<'_>) -> Result<()> {
        self.pieces += 1;
        let mut state = self.state.lock().unwrap();
        if self.fault == Fault::ForgetsBetweenPieces && self.pieces == 2 {
            state.start(&self.iv)?;
        }
        state.update(data)
    }

    fn finish(&mut self) -> Result<[u8; 16]> {
        self.state.lock().unwrap().finish()
    }

    fn chaining_value(&self) -> [u8; 16] {
        self.state.lock().unwrap().chaining_value()
    }

    fn duplicate(&self) -> Result<Box<dyn Stream>> {
        let state = match self.fault {
            Fault::SharesMessages => Arc::clone(&self.state),
            _ => Arc::new(Mutex::new(self.state.lock().unwrap().duplicate()?)),
        };
        Ok(Box::new(Self { fault: self.fault, iv: self.iv.clone(), pieces: self.pieces, state }))
    }
}

fn report(fault: Fault, areas: &[Area]) -> Report {
    run(&Broken(fault), &Options { areas: areas.to_vec(), ..Options::default() })
}

/// The area must fail, with the fault's algorithm among the failures.
fn caught(fault: Fault, area: Area, algorithm: impl Into<Option<Algorithm>>) {
    let algorithm = algorithm.into();
    if let Some(algorithm) = algorithm.filter(|&algorithm| !Broken(fault).supports(algorithm)) {
        return println!("skipped: this processor has no {algorithm}");
    }
    let report = report(fault, &[area]);
    assert!(!report.passed(), "{fault:?} passes {area:?}:\n{report}");
    assert!(report.failed.contains_key(&(area, algorithm)), "{fault:?} is not pinned on {algorithm:?}:\n{report}");
    let text = report.to_string();
    assert!(text.contains("FAILED") && text.contains("BYWASH_SEED="), "{text}");
}

#[test]
fn without_a_fault_the_wrapper_passes() {
    let quick = [Area::CipherVectors, Area::Streams, Area::Forgeries, Area::Batches, Area::Refusals, Area::Declarations, Area::Robustness];
    let report = report(Fault::None, &quick);
    assert!(report.passed(), "{report}");
    assert!(report.checks_of(Area::CipherVectors, Algorithm::Aes128Cbc) > 500, "{report}");
    if Broken(Fault::None).supports(Algorithm::Rc6_128Ctr) {
        let said = report.skipped.iter().any(|skip| skip.algorithm == Some(Algorithm::Rc6_128Ctr) && skip.reason.contains("published"));
        assert!(said, "what no published vector reaches is not looked for:\n{report}");
    }
}

#[test]
fn a_partial_engine_passes_with_the_rest_listed_as_skipped() {
    let report = report(Fault::Partial, Area::ALL);
    assert!(report.passed(), "{report}");
    assert!(report.checks_of(Area::Aeads, Algorithm::Aes256Gcm) > 10_000, "{report}");
    assert_eq!(report.checks_of(Area::Aeads, Algorithm::Aes128Gcm), 0);
    assert!(report.skipped.iter().any(|skip| skip.algorithm == Some(Algorithm::Aes128Gcm) && skip.reason.contains("capabilities")));
}

#[test]
fn wrong_bytes_are_caught() {
    caught(Fault::FlipsABit, Area::Ciphers, Algorithm::Aes256Xts);
    caught(Fault::FlipsABit, Area::Ciphers, Algorithm::BlowfishCbc);
    caught(Fault::FlipsABit, Area::Aeads, Algorithm::ChaCha20Poly1305);
    caught(Fault::FlipsABit, Area::Aeads, Algorithm::Aes128GcmSiv);
    caught(Fault::FlipsABit, Area::Aeads, Algorithm::Aegis128X4);
    caught(Fault::LosesACarry, Area::Counters, Algorithm::Aes128Ctr);
}

#[test]
fn wrong_tags_are_caught() {
    caught(Fault::IgnoresTheTag, Area::Forgeries, Algorithm::Aes256Gcm);
    caught(Fault::IgnoresTheTag, Area::AeadVectors, Algorithm::ChaCha20Poly1305);
    caught(Fault::IgnoresTheTag, Area::AeadVectors, Algorithm::Aegis256);
    caught(Fault::ComparesHalfATag, Area::Forgeries, Algorithm::Aes192Ccm);
    caught(Fault::ComparesHalfATag, Area::Forgeries, Algorithm::Aes128Gcm);
    caught(Fault::LeavesPlaintext, Area::Forgeries, Algorithm::Aes192Gcm);
}

#[test]
fn wrong_bookkeeping_is_caught() {
    caught(Fault::WritesBeyond, Area::HashVectors, Algorithm::Sha256);
    caught(Fault::Miscounts, Area::HashVectors, Algorithm::HmacSha512);
    caught(Fault::Miscounts, Area::HashVectors, Algorithm::Ripemd160);
    // Which algorithm the dropped task has depends on the seed.
    assert!(!report(Fault::DropsATask, &[Area::Batches]).passed());
    caught(Fault::ForgetsBetweenPieces, Area::Streams, Algorithm::Aes256Gcm);
    caught(Fault::ForgetsBetweenPieces, Area::Streams, Algorithm::Aes128Ofb);
    caught(Fault::ForgetsBetweenPieces, Area::Counters, Algorithm::Aes192Gcm);
    for algorithm in [Algorithm::Aes128Gcm, Algorithm::ChaCha20Poly1305, Algorithm::Aegis128L, Algorithm::Aes256Xts, Algorithm::Aes192Cbc] {
        caught(Fault::SharesMessages, Area::Streams, algorithm);
    }
    caught(Fault::CutsIvs, Area::Streams, Algorithm::Aes256Gcm);
    caught(Fault::ForgetsHashedPieces, Area::Streams, Algorithm::Sha1);
    caught(Fault::SharesHashedState, Area::Streams, Algorithm::HmacSha256);
    caught(Fault::HashesOn, Area::Streams, Algorithm::HmacRipemd160);
    caught(Fault::IsNotThreadSafe, Area::Threads, Algorithm::Aes128Ecb);
    caught(Fault::LiesAboutCosts, Area::Declarations, None);
}

#[test]
fn wrong_lanes_are_caught() {
    let pinned = |fault, algorithms: &[Algorithm]| {
        let report = report(fault, &[Area::Batches]);
        for &algorithm in algorithms {
            assert!(report.failed.contains_key(&(Area::Batches, Some(algorithm))), "{fault:?} is not pinned on {algorithm}:\n{report}");
        }
    };
    use Algorithm as A;
    pinned(Fault::SwapsLanes, &[A::Rsa2048Private, A::Rsa1024Public, A::EcdsaP256Sign, A::EcdhP384, A::X25519, A::Ed25519Sign]);
    pinned(Fault::SpoilsANeighbour, &[A::Rsa2048Private, A::EcdhP256, A::X25519]);
}

#[test]
fn wrong_leniency_is_caught() {
    caught(Fault::OpensBadKeys, Area::Refusals, Algorithm::Rsa2048Private);
    caught(Fault::OpensBadKeys, Area::CurveVectors, Algorithm::EcdsaP256Verify);
    caught(Fault::RoundsExponents, Area::PublicKeys, None);
    caught(Fault::ReducesRsaInputs, Area::PublicKeys, Algorithm::Rsa2048Public);
}

#[test]
fn a_panic_is_caught_and_reported() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let report = report(Fault::Panics, &[Area::Robustness]);
    std::panic::set_hook(quiet);
    assert!(report.failures.iter().any(|failure| failure.what.contains("panics")), "{report}");
}
