//! X25519 and Ed25519.

use crate::{Planned, Random, Subject};
use bywash_ifma::{LANES, ed25519, x25519};
use std::hint::black_box;

pub(crate) fn subjects() -> Vec<Planned> {
    vec![
        Planned { name: "x25519 agree", leaks: false, make: || Agree::against(Some([0; 32 * LANES])) },
        Planned { name: "x25519 agree, dense", leaks: false, make: || Agree::against(Some(dense())) },
        Planned { name: "control: no secret", leaks: false, make: || Agree::against(None) },
        Planned {
            name: "x25519 public value",
            leaks: false,
            make: || Box::new(Public { private: [[0; 32]; LANES], public: [[0; 32]; LANES] }),
        },
        Planned { name: "ed25519 key", leaks: false, make: || Box::new(Expand { seed: [0; 32] }) },
        Planned { name: "ed25519 sign", leaks: false, make: || Box::new(Sign { keys: vec![], signatures: [[0; 64]; LANES] }) },
    ]
}

/// A key for each lane that looks random but is always the same.
fn dense() -> [u8; 32 * LANES] {
    let mut keys = [0; 32 * LANES];
    Random::new(2).fill(&mut keys, false, &[0; 32 * LANES]);
    keys
}

/// With fixed keys, or with random ones in both classes.
struct Agree {
    fixed: Option<[u8; 32 * LANES]>,
    private: [[u8; 32]; LANES],
    shared: [[u8; 32]; LANES],
}

impl Agree {
    fn against(fixed: Option<[u8; 32 * LANES]>) -> Box<dyn Subject> {
        Box::new(Self { fixed, private: [[0; 32]; LANES], shared: [[0; 32]; LANES] })
    }
}

impl Subject for Agree {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        let fixed = fixed & self.fixed.is_some();
        random.fill(self.private.as_flattened_mut(), fixed, &self.fixed.unwrap_or([0; 32 * LANES]));
    }

    fn run(&mut self) {
        let peer = &[9; 32];
        let mut tasks: Vec<_> = self
            .private
            .iter()
            .zip(&mut self.shared)
            .map(|(private, shared)| x25519::AgreeTask { private, peer, shared, nonzero: false })
            .collect();
        x25519::agree(black_box(&mut tasks));
    }
}

struct Public {
    private: [[u8; 32]; LANES],
    public: [[u8; 32]; LANES],
}

impl Subject for Public {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        random.fill(self.private.as_flattened_mut(), fixed, &[0; 32 * LANES]);
    }

    fn run(&mut self) {
        let mut tasks: Vec<_> =
            self.private.iter().zip(&mut self.public).map(|(private, public)| x25519::PublicValueTask { private, public }).collect();
        x25519::public_value(black_box(&mut tasks));
    }
}

struct Expand {
    seed: [u8; 32],
}

impl Subject for Expand {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        random.fill(&mut self.seed, fixed, &[0; 32]);
    }

    fn run(&mut self) {
        black_box(ed25519::Key::new(&self.seed));
    }
}

/// Keys lie in the same places whatever the class.
struct Sign {
    keys: Vec<ed25519::Key>,
    signatures: [[u8; 64]; LANES],
}

impl Subject for Sign {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        let mut seeds = [[0; 32]; LANES];
        random.fill(seeds.as_flattened_mut(), fixed, &[0; 32 * LANES]);
        self.keys.clear();
        self.keys.extend(seeds.iter().map(ed25519::Key::new));
    }

    fn run(&mut self) {
        let message = [0x20; 130];
        let mut tasks: Vec<_> = self
            .keys
            .iter()
            .zip(&mut self.signatures)
            .map(|(key, signature)| ed25519::SignTask { key, message: &message, signature })
            .collect();
        ed25519::sign(black_box(&mut tasks));
    }
}
