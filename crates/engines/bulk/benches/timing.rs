//! Whether the time of a kernel depends on key or text: the test of dudect, as `cargo bench -p bywash-ifma --bench timing` describes it.
//!
//! `cargo bench -p bywash-bulk --bench timing -- [--seconds=10] [NAME...]` measures the expansion of keys, and encryption of a short message and of one that
//! takes the long loops; of the AEADs also the refusal of a tag, which in one class differs from the right one in its first byte and in the other in its last. Nonces
//! and lengths are public and the same in both classes; of a nonce of 16 bytes GCM makes a counter that is secret.

#[path = "../../ifma/benches/timing/harness.rs"]
mod harness;

use bywash_bulk::aegis::{aegis128l, aegis128x4, aegis256};
use bywash_bulk::{Text, cbc, ccm, chacha20_poly1305, ctr, ecb, gcm, gcm_siv, xts};
use harness::{Planned, Random, Subject};
use std::hint::black_box;
use std::process::ExitCode;

/// The longest key, that of XTS; other ciphers take its beginning.
const KEY: usize = 64;
/// A message of some blocks, whole ones for the modes that need them.
const SHORT: usize = 48;
/// A message that the long loops take.
const LONG: usize = 2048;

/// A cipher, as this test sees it.
trait Cipher: Sized + 'static {
    /// Takes the beginning of the secret.
    fn new(secret: &[u8; KEY]) -> Self;
    /// Encrypts in place; what is made beside the text is thrown away.
    fn encrypt(&self, text: &mut [u8]);
}

/// The secrets are a key and a text, and what is measured is the encryption.
struct Encryption<C, const LEN: usize> {
    secrets: [u8; KEY],
    text: [u8; LEN],
    cipher: C,
}

impl<C: Cipher, const LEN: usize> Subject for Encryption<C, LEN> {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        random.fill(&mut self.secrets, fixed, &[0; KEY]);
        random.fill(&mut self.text, fixed, &[0; LEN]);
        // The second half of a key of XTS must differ from the first.
        self.secrets[KEY / 2] |= 1;
        self.cipher = C::new(&self.secrets);
    }

    fn run(&mut self) {
        self.cipher.encrypt(black_box(&mut self.text));
    }
}

/// The secret is a key, and what is measured is its expansion.
struct Expansion<C> {
    secrets: [u8; KEY],
    cipher: C,
}

impl<C: Cipher> Subject for Expansion<C> {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        random.fill(&mut self.secrets, fixed, &[0; KEY]);
        self.secrets[KEY / 2] |= 1;
    }

    fn run(&mut self) {
        self.cipher = C::new(black_box(&self.secrets));
    }
}

fn encryption<C: Cipher, const LEN: usize>() -> Box<dyn Subject> {
    let secrets = [1; KEY];
    Box::new(Encryption::<C, LEN> { secrets, text: [0; LEN], cipher: C::new(&secrets) })
}

fn expansion<C: Cipher>() -> Box<dyn Subject> {
    let secrets = [1; KEY];
    Box::new(Expansion { secrets, cipher: C::new(&secrets) })
}

fn of<C: Cipher>([key, short, long]: [&'static str; 3]) -> [Planned; 3] {
    [
        Planned { name: key, leaks: false, make: expansion::<C> },
        Planned { name: short, leaks: false, make: encryption::<C, SHORT> },
        Planned { name: long, leaks: false, make: encryption::<C, LONG> },
    ]
}

/// Where the first wrong byte of a tag stands.
struct Refusal<C> {
    cipher: C,
    right: [u8; 16],
    tag: [u8; 16],
}

/// A cipher that refuses.
trait Aead: Cipher {
    fn tag(&self) -> [u8; 16];
    fn refuse(&self, tag: &[u8; 16]);
}

impl<C: Aead> Subject for Refusal<C> {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        // Fixed: all is right but the last bit. Random: next to nothing is.
        random.fill(&mut self.tag, fixed, &self.right);
        self.tag[15] = self.right[15] ^ 1;
    }

    fn run(&mut self) {
        self.cipher.refuse(black_box(&self.tag));
    }
}

fn refusal<C: Aead>() -> Box<dyn Subject> {
    let cipher = C::new(&[1; KEY]);
    Box::new(Refusal { right: cipher.tag(), tag: [0; 16], cipher })
}

macro_rules! aeads {
    ($($module:ident, $key:literal, $nonce:literal, |$bytes:ident| $new:expr;)*) => {
        $(impl Cipher for $module::Key {
            fn new(secret: &[u8; KEY]) -> Self {
                let $bytes = secret.first_chunk::<$key>().expect("a shorter key");
                $new
            }

            fn encrypt(&self, text: &mut [u8]) {
                self.seal(&[1; $nonce], b"header", Text::in_place(text), black_box(&mut [0; 16])).expect("lengths that fit");
            }
        }

        impl Aead for $module::Key {
            fn tag(&self) -> [u8; 16] {
                let mut tag = [0; 16];
                self.seal(&[1; $nonce], b"header", Text::in_place(&mut [0; SHORT]), &mut tag).expect("lengths that fit");
                tag
            }

            fn refuse(&self, tag: &[u8; 16]) {
                let mut text = [0; SHORT];
                self.seal(&[1; $nonce], b"header", Text::in_place(&mut text), black_box(&mut [0; 16])).expect("lengths that fit");
                assert!(self.open(&[1; $nonce], b"header", Text::in_place(&mut text), tag).is_err(), "a wrong tag");
            }
        })*
    };
}

aeads! {
    gcm, 32, 12, |key| Self::new(key).expect("a key's length");
    gcm_siv, 32, 12, |key| Self::new(key).expect("a key's length");
    ccm, 32, 12, |key| Self::new(key).expect("a key's length");
    chacha20_poly1305, 32, 12, |key| Self::new(key);
    aegis128l, 16, 16, |key| Self::new(key);
    aegis128x4, 16, 16, |key| Self::new(key);
    aegis256, 32, 32, |key| Self::new(key);
}

/// GCM with a nonce of 16 bytes: the counter begins at a hash of it under a secret key, so where it carries is a secret too.
struct HashedNonce(gcm::Key);

impl Cipher for HashedNonce {
    fn new(secret: &[u8; KEY]) -> Self {
        Self(gcm::Key::new(&secret[..16]).expect("a key's length"))
    }

    fn encrypt(&self, text: &mut [u8]) {
        self.0.seal(&[1; 16], b"header", Text::in_place(text), black_box(&mut [0; 16])).expect("lengths that fit");
    }
}

macro_rules! modes {
    ($($module:ident, $key:literal, |$self:ident, $text:ident| $encrypt:expr;)*) => {
        $(impl Cipher for $module::Key {
            fn new(secret: &[u8; KEY]) -> Self {
                Self::new(&secret[..$key]).expect("a key's length")
            }

            fn encrypt(&$self, $text: &mut [u8]) {
                $encrypt
            }
        })*
    };
}

modes! {
    ctr, 16, |self, text| self.apply(&[1; 16], Text::in_place(text));
    ecb, 24, |self, text| self.decrypt(Text::in_place(text)).expect("whole blocks");
    cbc, 32, |self, text| self.encrypt(&mut [1; 16], Text::in_place(text)).expect("whole blocks");
    xts, 64, |self, text| self.encrypt(&[1; 16], Text::in_place(text)).expect("a unit");
}

fn main() -> ExitCode {
    if !chacha20_poly1305::is_supported() {
        println!("skipped: this processor has no VAES with AVX-512 IFMA");
        return ExitCode::SUCCESS;
    }
    let all = [
        of::<gcm::Key>(["GCM key", "GCM 48 bytes", "GCM 2 KiB"]),
        of::<HashedNonce>(["GCM-16 key", "GCM-16 48 bytes", "GCM-16 2 KiB"]),
        of::<gcm_siv::Key>(["GCM-SIV key", "GCM-SIV 48 bytes", "GCM-SIV 2 KiB"]),
        of::<ccm::Key>(["CCM key", "CCM 48 bytes", "CCM 2 KiB"]),
        of::<chacha20_poly1305::Key>(["ChaCha20 key", "ChaCha20 48 bytes", "ChaCha20 2 KiB"]),
        of::<aegis128l::Key>(["AEGIS-128L key", "AEGIS-128L 48 bytes", "AEGIS-128L 2 KiB"]),
        of::<aegis128x4::Key>(["AEGIS-128X4 key", "AEGIS-128X4 48 bytes", "AEGIS-128X4 2 KiB"]),
        of::<aegis256::Key>(["AEGIS-256 key", "AEGIS-256 48 bytes", "AEGIS-256 2 KiB"]),
        of::<ctr::Key>(["CTR key", "CTR 48 bytes", "CTR 2 KiB"]),
        of::<ecb::Key>(["ECB key", "ECB 48 bytes", "ECB 2 KiB"]),
        of::<cbc::Key>(["CBC key", "CBC 48 bytes", "CBC 2 KiB"]),
        of::<xts::Key>(["XTS key", "XTS 48 bytes", "XTS 2 KiB"]),
    ];
    let refusals = [
        Planned { name: "GCM refusal", leaks: false, make: refusal::<gcm::Key> },
        Planned { name: "GCM-SIV refusal", leaks: false, make: refusal::<gcm_siv::Key> },
        Planned { name: "CCM refusal", leaks: false, make: refusal::<ccm::Key> },
        Planned { name: "ChaCha20 refusal", leaks: false, make: refusal::<chacha20_poly1305::Key> },
        Planned { name: "AEGIS-128L refusal", leaks: false, make: refusal::<aegis128l::Key> },
    ];
    harness::run(all.into_iter().flatten().chain(refusals))
}
