//! The CPU engine: every algorithm of Bywash on the processor that the caller runs on, by AWS-LC; AES in all its modes and
//! ChaCha20-Poly1305 by the kernels of `bywash-bulk`, where the processor has VAES and, for the last, IFMA on 512-bit registers; GCM also where
//! it has AES-NI only, and AES without a tag where it has VAES on 256-bit registers; AEGIS by that crate everywhere; public-key operations that come together eight at a time, by the kernels
//! of `bywash-ifma`, where it has AVX-512 IFMA; and legacy ciphers, for whoever opens a session of one by name, by `bywash-legacy`.
//!
//! AWS-LC is linked in statically with all its symbols prefixed, so it lives in one process with the OpenSSL of an unmodified program.
//! It picks its code by CPU features at run time: VAES and VPCLMULQDQ on 512-bit registers for GCM and XTS, AES-NI for the other
//! modes, SHA-NI, AVX-512 IFMA for RSA; [`CpuEngine::describe`](bywash_core::Engine::describe) says what was found.
//!
//! # How a session is held
//!
//! `Keyed::run` is called by many threads at once, so key state is constant wherever the library allows it, and nothing is allocated or
//! locked on the way:
//!
//! | algorithms | held as | per operation |
//! |---|---|---|
//! | AES, ChaCha20-Poly1305, AEGIS by the kernels | round keys; for GCM powers of the hash key; for ChaCha20-Poly1305 and AEGIS the key | no lock, no allocation |
//! | legacy ciphers | round keys | no lock, no allocation |
//! | GCM, GCM-SIV, ChaCha20-Poly1305 by the library | `EVP_AEAD_CTX` | no lock, no allocation |
//! | CTR, CBC, CCM by the library; CFB, OFB | `AES_KEY` | no lock, no allocation |
//! | Blowfish | `BF_KEY` | no lock, no allocation |
//! | ECB, XTS by the library | a few `EVP_CIPHER_CTX` behind try-locks (`pool`) | one uncontended lock; an allocation only past eight threads at once |
//! | digests | nothing | no lock, no allocation |
//! | HMAC | the hashes of both pads | copied to the stack |
//! | RSA | `RSA` | the library's own lock around blinding factors |
//! | P-256, P-384 | `EC_KEY` | the library allocates points |
//! | X25519, Ed25519 | 32 and 64 bytes | nothing |
//!
//! AEGIS has no library here: without AES instructions it is computed by [`bywash_bulk::aegis`] all the same, a fiftieth as fast. CCM and GCM-SIV have no streams: they
//! need all of a message before its first byte is enciphered.
//!
//! Streams ([`bywash_core::Stream`]) own their state; beginning another message under the same key neither allocates nor expands the
//! key again (except the library's GCM with an IV longer than 16 bytes).
//!
//! # Batches
//!
//! A lone task goes to the library: it is done soonest there, so latency at depth 1 is the library's own. A batch is sorted by algorithm, and of
//! each algorithm with a kernel eight tasks at a time, of any sessions, go through it (`lanes`). Sessions hold both forms of their key; the
//! kernel's is made when a batch first needs it, so that opening a session costs no more than a copy of the key.
//! [`CpuEngine::without_lanes`] is the same engine without kernels, for comparison.
//!
//! # Forks
//!
//! `fork` waits while another thread is in an RSA private operation or an ECDSA or DSA signature of the library's, or draws random bytes: it would leave the child with the
//! library's locks held for ever (`ffi::forks`). At most a second, and what wants to begin meanwhile at most a fifth of one: then the child takes its chances.
//!
//! # What guards secrets
//!
//! - AES, GHASH, ChaCha20, Poly1305, the hashes, X25519, Ed25519, P-256 and P-384 run in constant time in the library's assembly for x86-64 and AArch64.
//! - Each RSA private result is raised to e and compared before it leaves: a computing fault gives away no factor. Library and kernels
//!   blind besides. What fails in a kernel is wiped and computed again by the library.
//! - Modular exponents without a session are used in constant time; by the Chinese remainder theorem each half is computed twice (`exponent`).
//! - Blowfish is not constant-time: it is made of tables that depend on the key. Nor are Twofish and Camellia where the processor lacks AVX-512 with VBMI, BITALG and GFNI: they read
//!   tables at places that depend on key and data, and [`CpuEngine::describe`](bywash_core::Engine::describe) says so.
//! - The kernels' Ed25519 public key, which goes into each signature's hash, is compared with the library's.
//! - ECDSA nonces for the kernels are hashed from fresh random bytes, key and digest, and drawn again where out of range (`lanes::nonce`).
//! - Private keys whose parts do not belong together are refused when the session is opened.
//! - Every object of the library is wiped when it is freed; our own boxes are wiped on drop.
//! - A decryption whose tag is wrong leaves zeros in the output.
//!
//! # Where it is fast, and where not
//!
//! `cargo bench -p bywash-engine-cpu` prints the figures of the machine at hand. Against the OpenSSL 3.0 of Debian 12, on a core with VAES: AES-GCM is
//! about 4 times as fast at 1 KiB and 2.5 times at 16 KiB, and more below; CTR, ECB, XTS and the decryption of CBC are 2.0 to 2.5 times as fast from
//! 4 KiB up, and more below; the encryption of CBC, a chain of blocks that wait for each other, is equal; RSA-2048 is equal and RSA-3072 twice
//! as fast; P-256 and X25519 gain a quarter to a half. ChaCha20-Poly1305 is 1.1 to 2 times as fast. Where the library computes AES (no VAES, or not x86-64), AES-128-XTS is
//! slower, because the library lacks it, and ChaCha20-Poly1305 half as fast.
//!
//! All `unsafe` is in the private module `ffi`, behind safe types; elsewhere a lint denies it.
#![deny(unsafe_code)]

mod aead;
mod aegis;
mod ccm;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what it takes is for kernels"))]
mod chains;
mod curve;
mod dsa;
mod exponent;
mod feedback;
#[allow(unsafe_code)] // The one door to the library; see its docs.
mod ffi;
mod hash;
mod kernel_aead;
#[cfg_attr(not(target_arch = "x86_64"), path = "kernels/none.rs")]
mod kernels;
#[cfg_attr(not(target_arch = "x86_64"), path = "lanes/none.rs")]
mod lanes;
#[cfg_attr(not(target_arch = "x86_64"), path = "legacy/none.rs")]
mod legacy;
pub mod limit;
#[cfg(target_arch = "x86_64")]
mod long_hash;
mod modes;
mod pool;
mod rsa;
mod xts;

use bywash_core::{
    Algorithm, CrtExp, Direction, DsaSign, DsaVerify, Engine, Error, Key, Keyed, Kind, ModExp, Result, SessionParams, Solo, Task,
};
pub use kernels::narrow::Path;
use once_cell::race::OnceBox;

/// The engine's name, in messages and cost sheets.
const NAME: &str = "cpu";

/// The processor, by AWS-LC and by the kernels of `bywash-ifma` where it has what they need.
#[derive(Clone, Copy, Debug)]
pub struct CpuEngine {
    lanes: bool,
    kernels: bool,
    narrow: Option<Path>,
    aegis: aegis::Path,
    legacy: bool,
}

impl CpuEngine {
    /// With lanes for public-key operations if the processor has AVX-512 IFMA, and with the AES kernels if it has VAES on 512-bit registers.
    pub fn new() -> Self {
        ffi::forks::watch();
        let (lanes, kernels) = (lanes::is_supported(), kernels::is_supported());
        Self { lanes, kernels, narrow: kernels::narrow::best(), aegis: aegis::Path::best(), legacy: legacy::IS_HERE }
    }

    /// [`Self::without_lanes`] but for the AES kernels of a path, as on a processor that has nothing wider. For comparison and tests.
    ///
    /// # Panics
    /// When a session is opened, if the processor does not have the path.
    pub fn on_path(path: Path) -> Self {
        Self { narrow: Some(path), aegis: path.into(), ..Self::without_lanes() }
    }

    /// Without kernels, whatever the processor has: the library computes everything, one by one, but AEGIS, of which it has nothing, which is computed without AES
    /// instructions. Legacy ciphers, of which it has Blowfish alone, are missing.
    pub fn without_lanes() -> Self {
        ffi::forks::watch();
        Self { lanes: false, kernels: false, narrow: None, aegis: aegis::Path::Portable, legacy: false }
    }

    /// The path of an algorithm for which there is no wider kernel.
    fn narrow_path(&self, algorithm: Algorithm) -> Option<Path> {
        self.narrow.filter(|&path| !self.kernels && kernels::narrow::has(path, algorithm))
    }
}

impl Default for CpuEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine for CpuEngine {
    fn name(&self) -> &str {
        NAME
    }

    fn describe(&self) -> String {
        let found = features();
        let found = if found.is_empty() { "no cryptographic instructions".to_owned() } else { found.join(", ") };
        let lanes = if self.lanes { "; public keys 8 at a time" } else { "" };
        let has = |algorithm| self.kernels && kernels::has(algorithm);
        let aes = if has(Algorithm::Aes128Gcm) { "; AES 4 blocks at a time" } else { "" };
        let chacha = if has(Algorithm::ChaCha20Poly1305) { "; ChaCha20 16 blocks at a time" } else { "" };
        let narrow = match self.narrow_path(Algorithm::Aes128Gcm) {
            Some(_) if self.narrow_path(Algorithm::Aes128Ctr).is_some() => "; AES 2 blocks at a time",
            Some(_) => "; AES-GCM by kernels",
            None => "",
        };
        let legacy = if self.legacy && !legacy::is_constant_time() { "; Twofish and Camellia not in constant time" } else { "" };
        format!("{}; {found}{lanes}{aes}{chacha}{narrow}{legacy}", ffi::library::version())
    }

    fn is_local(&self) -> bool {
        true
    }

    fn capabilities(&self) -> &[Algorithm] {
        static WITHOUT_LEGACY: OnceBox<Vec<Algorithm>> = OnceBox::new();
        if self.legacy {
            return Algorithm::ALL;
        }
        WITHOUT_LEGACY.get_or_init(|| {
            let has = |algorithm: Algorithm| feedback::has(algorithm) || !algorithm.is_legacy_cipher();
            Box::new(Algorithm::ALL.iter().copied().filter(|&algorithm| has(algorithm)).collect())
        })
    }

    fn workers(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn batch_max(&self) -> usize {
        Algorithm::ALL.iter().map(|&algorithm| self.lanes(algorithm)).max().unwrap_or(1)
    }

    fn lanes(&self, algorithm: Algorithm) -> usize {
        if self.lanes { lanes::count(algorithm) } else { 1 }
    }

    fn together(&self, algorithm: Algorithm, direction: Direction) -> usize {
        let chains = match direction {
            Direction::Encrypt if algorithm.is_legacy_cipher() && self.legacy => legacy::chains(algorithm),
            Direction::Encrypt if self.kernels => kernels::chains(algorithm),
            _ => 1,
        };
        chains.max(self.lanes(algorithm))
    }

    fn run(&self, batch: &mut [Task<'_>]) {
        // Alone, an operation is done sooner by the library, and nothing is allocated on the way.
        if let [task] = batch {
            return alone(task);
        }
        let mut tasks: Vec<_> = batch.iter_mut().collect();
        if self.kernels {
            kernels::encrypt_together(&mut tasks);
        }
        if self.legacy {
            legacy::encrypt_together(&mut tasks);
        }
        if self.lanes { lanes::run(tasks) } else { tasks.into_iter().for_each(alone) }
    }

    fn solo(&self, algorithm: Algorithm) -> Option<Box<dyn Solo>> {
        if self.kernels {
            return kernels::solo(algorithm);
        }
        self.narrow.and_then(|path| kernels::narrow::solo(path, algorithm))
    }

    fn mod_exp(&self, numbers: &ModExp<'_>, out: &mut [u8]) -> Result<()> {
        exponent::mod_exp(numbers, out)
    }

    fn crt_exp(&self, numbers: &CrtExp<'_>, out: &mut [u8]) -> Result<()> {
        exponent::crt_exp(numbers, out)
    }

    fn dsa_sign(&self, asked: &DsaSign<'_>, r: &mut [u8], s: &mut [u8]) -> Result<()> {
        dsa::sign(asked, r, s)
    }

    fn dsa_verify(&self, asked: &DsaVerify<'_>) -> Result<bool> {
        dsa::verify(asked)
    }

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        let algorithm = params.algorithm();
        match (algorithm.kind(), params.key()) {
            (_, Key::Symmetric(key)) if feedback::has(algorithm) => feedback::open(algorithm, key),
            (_, Key::Symmetric(key)) if algorithm.is_legacy_cipher() && self.legacy => legacy::open(algorithm, key),
            _ if algorithm.is_legacy_cipher() => Err(Error::Unsupported { engine: NAME.to_owned(), algorithm }),
            (_, Key::Symmetric(key)) if aegis::has(algorithm) => aegis::open(self.aegis, algorithm, key, params.tag_len()),
            (_, Key::Symmetric(key)) if self.kernels && kernels::has(algorithm) => kernels::open(algorithm, key, params.tag_len()),
            (_, Key::Symmetric(key)) if let Some(path) = self.narrow_path(algorithm) => {
                kernels::narrow::open(path, algorithm, key, params.tag_len())
            }
            (Kind::Aead { .. }, Key::Symmetric(key)) if algorithm.is_ccm() => ccm::open(algorithm, key),
            (Kind::Aead { .. }, Key::Symmetric(key)) => aead::open(algorithm, key, params.tag_len()),
            (Kind::Cipher { iv: 0, .. }, Key::Symmetric(key)) => modes::open_ecb(algorithm, key),
            (Kind::Cipher { .. }, Key::Symmetric(key)) if algorithm.is_xts() => xts::open(algorithm, key),
            (Kind::Cipher { block: 1, .. }, Key::Symmetric(key)) => modes::open_ctr(algorithm, key),
            (Kind::Cipher { .. }, Key::Symmetric(key)) => modes::open_cbc(algorithm, key),
            (Kind::Digest { .. }, Key::None) => hash::open_digest(algorithm),
            (Kind::Mac { .. }, Key::Symmetric(key)) => hash::open_mac(algorithm, key),
            (Kind::RsaPrivate { .. }, Key::RsaPrivate(key)) => rsa::open_private(algorithm, key),
            (Kind::RsaPublic { .. }, Key::RsaPublic(key)) => rsa::open_public(algorithm, key),
            (_, key) => curve::open(algorithm, key),
        }
    }
}

/// Runs a task by its session's own way.
fn alone(task: &mut Task<'_>) {
    task.outcome = task.keyed.run(&mut task.operation);
}

/// The CPU features that the library's faces depend on, where present.
fn features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let found = [
        (is_x86_feature_detected!("aes"), "AES-NI"),
        (is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx512f"), "VAES-512"),
        (is_x86_feature_detected!("vpclmulqdq"), "VPCLMULQDQ"),
        (is_x86_feature_detected!("avx512ifma"), "AVX512-IFMA"),
        (is_x86_feature_detected!("sha"), "SHA-NI"),
        (is_x86_feature_detected!("avx2"), "AVX2"),
    ];
    #[cfg(target_arch = "aarch64")]
    let found = [
        (std::arch::is_aarch64_feature_detected!("aes"), "AES"),
        (std::arch::is_aarch64_feature_detected!("pmull"), "PMULL"),
        (std::arch::is_aarch64_feature_detected!("sha2"), "SHA2"),
        (std::arch::is_aarch64_feature_detected!("sha3"), "SHA512"),
    ];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let found: [(bool, &'static str); 0] = [];
    found.into_iter().filter_map(|(present, name)| present.then_some(name)).collect()
}

/// The library refused something that had passed every check.
fn failed(doing: &str) -> Error {
    Error::EngineFailed { engine: NAME.to_owned(), reason: format!("the library refused {doing}") }
}

/// An operation of a kind that the session's algorithm does not have.
fn wrong(algorithm: Algorithm, what: &'static str) -> Error {
    Error::WrongOperation { algorithm, what }
}
