//! Ciphers in this process, in turn: ours and those of the system's OpenSSL, on the thread's processor time.

use crate::process::output;
use crate::{Error, Options, Result};
use bywash_core::{Algorithm, Direction, Engine, OwnedOperation, SessionParams};
use bywash_engine_cpu::CpuEngine;
use bywash_manager::calibrate::sample;
use bywash_measure::statistics::median;
use bywash_measure::turns::{Clock, Contender, Effort, take_turns};
use std::process::Command;
use std::time::Duration;

/// What takes its turn; the error is in words.
pub(crate) type Rival = Contender<'static, String>;

/// How long and how often.
pub(crate) fn effort(options: &Options) -> Effort {
    let (rounds, slice) = if options.quick { (1, Duration::from_millis(1)) } else { (7, Duration::from_millis(20)) };
    Effort { rounds: options.rounds.unwrap_or(rounds), slice, clock: Clock::Cpu }
}

fn words(error: impl std::fmt::Display) -> Error {
    Error(error.to_string())
}

fn call(operations: usize, mut run: impl FnMut() -> bywash_core::Result<()> + Send + 'static) -> Rival {
    Contender::Calls { threads: vec![Box::new(move || run().map_err(|error| error.to_string()))], operations }
}

/// Both ways of one message, after they have given the same bytes; OpenSSL's is missing where it does not have the algorithm, and says why.
pub(crate) struct Pair {
    pub(crate) ours: Rival,
    pub(crate) openssl: std::result::Result<Rival, String>,
}

/// Encryption of one message of so many bytes with the CPU engine and with OpenSSL, each with a key that is set up already.
pub(crate) fn pair(algorithm: Algorithm, bytes: usize) -> Result<Pair> {
    let (params, mut operation) = sample(algorithm, bytes).map_err(words)?;
    let keyed = CpuEngine::new().open(&params).map_err(words)?;
    keyed.run(&mut operation.borrow()).map_err(words)?;
    let openssl = openssl(&params, operation.clone(), &operation)?;
    Ok(Pair { ours: call(1, move || keyed.run(&mut operation.borrow()).map(drop)), openssl })
}

fn openssl(params: &SessionParams, mut own: OwnedOperation, ours: &OwnedOperation) -> Result<std::result::Result<Rival, String>> {
    let mut session = match bywash_libcrypto::Session::open(params, Direction::Encrypt) {
        Ok(session) => session,
        Err(error) => return Ok(Err(error.to_string())),
    };
    own.output.fill(0);
    session.run(&mut own.borrow()).map_err(words)?;
    if own.output != ours.output {
        return Err(Error(format!("{}: OpenSSL and the CPU engine give different bytes", params.algorithm())));
    }
    Ok(Ok(call(1, move || session.run(&mut own.borrow()))))
}

/// Encryption of many messages in CBC mode side by side, each under its own key; `None` where there is no kernel for it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn side_by_side(algorithm: Algorithm, bytes: usize) -> Option<Rival> {
    use bywash_legacy::des::{Des, TripleDes};
    match algorithm {
        Algorithm::Aes128Cbc if bywash_bulk::is_supported() => Some(aes_side_by_side(bytes)),
        Algorithm::DesCbc => Some(des_side_by_side::<Des>(bytes)),
        Algorithm::TripleDesCbc => Some(des_side_by_side::<TripleDes>(bytes)),
        _ => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn side_by_side(_: Algorithm, _: usize) -> Option<Rival> {
    None
}

/// Messages of AES that its kernel takes at once.
pub(crate) const AES_LANES: usize = 16;
/// Messages of DES and 3DES that theirs takes at once.
pub(crate) const DES_LANES: usize = 512;

#[cfg(target_arch = "x86_64")]
fn aes_side_by_side(bytes: usize) -> Rival {
    use bywash_bulk::{Text, cbc};
    let key = |lane: usize| cbc::Key::new(&[lane as u8; 16]).expect("16 bytes");
    let keys: Vec<cbc::Key> = (0..AES_LANES).map(key).collect();
    let mut chains = [[1; 16]; AES_LANES];
    let mut texts = vec![vec![0; bytes]; AES_LANES];
    call(AES_LANES, move || {
        let lanes = keys.iter().zip(&mut chains).zip(&mut texts);
        let mut tasks: Vec<_> = lanes.map(|((key, chain), text)| cbc::Task { key, chain, text: Text::in_place(text) }).collect();
        cbc::encrypt_many(&mut tasks).map_err(|_| bywash_core::Error::Unavailable { what: "the kernel refuses the text".into() })
    })
}

#[cfg(target_arch = "x86_64")]
fn des_side_by_side<K: bywash_legacy::des::StreamKey + Send + 'static>(bytes: usize) -> Rival {
    use bywash_legacy::des::{Stream, encrypt_cbc_streams};
    let key = |lane: usize| K::new(&vec![lane as u8; K::KEYS[K::KEYS.len() - 1]]).expect("a key of the cipher");
    let keys: Vec<K> = (0..DES_LANES).map(key).collect();
    let mut texts = vec![vec![0; bytes]; DES_LANES];
    call(DES_LANES, move || {
        let mut streams: Vec<_> = keys.iter().zip(&mut texts).map(|(key, data)| Stream { key, chained: [1; 8], data }).collect();
        encrypt_cbc_streams(&mut streams);
        Ok(())
    })
}

/// What `openssl speed` says of a cipher, with processor features taken away from it (OPENSSL_ia32cap(3)).
pub(crate) fn openssl_without(features: &'static str, cipher: &'static str, bytes: usize) -> Rival {
    Contender::Figure(Box::new(move || {
        let mut command = Command::new("openssl");
        command.args(["speed", "-mr", "-seconds", "1", "-bytes", &bytes.to_string(), "-evp", cipher]);
        let said = output(command.env("OPENSSL_ia32cap", features).env("OPENSSL_CONF", "/dev/null")).map_err(|error| error.to_string())?;
        let rate =
            said.lines().find_map(|line| line.strip_prefix("+F:")?.rsplit(':').next()?.parse::<f64>().ok()).filter(|&rate| rate > 0.0);
        rate.map(|rate| (bytes as f64 * 1e9 / rate, rate / bytes as f64))
            .ok_or_else(|| format!("`openssl speed` says what is not understood here: {said}"))
    }))
}

/// Nanoseconds of one message of each, the medians of interleaved rounds.
pub(crate) fn ns(rivals: &mut [Rival], effort: Effort) -> Result<Vec<f64>> {
    let measured = take_turns(rivals, effort, &mut || {}, &|| true);
    measured.into_iter().map(|samples| samples.map(|samples| median(&samples.ns_per_op)).map_err(Error)).collect()
}
