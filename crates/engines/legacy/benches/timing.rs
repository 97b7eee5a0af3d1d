//! Whether the time of a vector kernel depends on key or data: the test of dudect, as `cargo bench -p bywash-ifma --bench timing` describes it.
//!
//! `cargo bench -p bywash-legacy --bench timing -- [--seconds=10] [NAME...]` measures key schedules, encryption and decryption of some blocks, and encryption
//! of one alone.

#[path = "../../ifma/benches/timing/harness.rs"]
mod harness;

use bywash_legacy::des::{Des, TripleDes};
use bywash_legacy::{BlockCipher, Camellia, Form, Rc6, Serpent, Twofish};
use harness::{Planned, Random, Subject};
use std::hint::black_box;
use std::process::ExitCode;

/// The longest key; of 3DES 24 bytes are taken, of DES eight.
const KEY: usize = 32;
/// Bytes of the message: more than one block of each cipher, and no whole group.
const DATA: usize = 48;

/// What is measured, of a cipher.
#[derive(Clone, Copy)]
enum Part {
    Schedule,
    Encryption,
    Decryption,
    OneBlock,
}

struct Measured<C> {
    part: Part,
    secrets: [u8; KEY + DATA],
    cipher: C,
}

impl<C: BlockCipher> Measured<C> {
    fn key(&self) -> &[u8] {
        &self.secrets[..C::KEYS[C::KEYS.len() - 1]]
    }

    fn new(part: Part) -> Self {
        let secrets = [0; KEY + DATA];
        let cipher = C::new(&secrets[..C::KEYS[C::KEYS.len() - 1]]).expect("a key");
        Self { part, secrets, cipher }
    }
}

impl<C: BlockCipher> Subject for Measured<C> {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        random.fill(&mut self.secrets, fixed, &[0; KEY + DATA]);
        self.cipher = C::new(self.key()).expect("a key");
    }

    fn run(&mut self) {
        let data = &mut self.secrets[KEY..];
        match self.part {
            Part::Schedule => self.cipher = C::new(self.key()).expect("a key"),
            Part::Encryption => self.cipher.encrypt_blocks(data),
            Part::Decryption => self.cipher.decrypt_blocks(data),
            Part::OneBlock => self.cipher.encrypt_blocks(&mut data[..C::BLOCK]),
        }
        black_box(&self.cipher);
    }
}

fn subjects<C: BlockCipher + 'static>(names: [&'static str; 4]) -> [Planned; 4] {
    let [schedule, encryption, decryption, one_block] = names;
    [
        Planned { name: schedule, leaks: false, make: || Box::new(Measured::<C>::new(Part::Schedule)) },
        Planned { name: encryption, leaks: false, make: || Box::new(Measured::<C>::new(Part::Encryption)) },
        Planned { name: decryption, leaks: false, make: || Box::new(Measured::<C>::new(Part::Decryption)) },
        Planned { name: one_block, leaks: false, make: || Box::new(Measured::<C>::new(Part::OneBlock)) },
    ]
}

fn main() -> ExitCode {
    let mut all = vec![
        subjects::<Des>(["DES schedule", "DES encryption", "DES decryption", "DES alone"]),
        subjects::<TripleDes>(["3DES schedule", "3DES encryption", "3DES decryption", "3DES alone"]),
    ];
    if Form::best().is_vector() {
        all.extend([
            subjects::<Serpent>(["Serpent schedule", "Serpent encryption", "Serpent decryption", "Serpent alone"]),
            subjects::<Twofish>(["Twofish schedule", "Twofish encryption", "Twofish decryption", "Twofish alone"]),
            subjects::<Camellia>(["Camellia schedule", "Camellia encryption", "Camellia decryption", "Camellia alone"]),
            subjects::<Rc6>(["RC6 schedule", "RC6 encryption", "RC6 decryption", "RC6 alone"]),
        ]);
    } else {
        println!(
            "skipped but for DES and 3DES: this processor lacks AVX-512 VBMI or GFNI, and the portable forms of Twofish and Camellia depend on their secrets"
        );
    }
    harness::run(all.into_iter().flatten())
}
