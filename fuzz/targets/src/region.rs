//! A region whose client writes whatever the bytes say, wherever they say, and the broker's half that must take it.

use bywash_protocol::descriptor::Verdict;
use bywash_protocol::{BrokerRing, Geometry, Outcome, Region};
use rustix::fd::OwnedFd;
use std::time::Duration;

const GEOMETRY: Geometry = Geometry { slots: 8, arena_bytes: 4096, trace_cells: 64 };
/// Bytes of one write: an offset and a word.
const STEP: usize = 8;
/// Requests that the broker takes between two writes, at most: a ring has no more.
const TAKEN_MAX: usize = 16;

/// Each eight bytes are a word written at an offset; after each, the broker takes what it finds, reads, answers, and counts.
pub fn region(bytes: &[u8]) {
    let (region, file) = Region::create(GEOMETRY).expect("a region");
    let mut cursor = region.trace_now();
    let (mut intake, ring) = BrokerRing::new(region);
    for step in bytes.chunks_exact(STEP) {
        write(&file, step);
        for _ in 0..TAKEN_MAX {
            let taken = match intake.take() {
                Ok(Some(taken)) => taken,
                Ok(None) => break,
                // The broker is done with this client.
                Err(corrupt) => return assert!(!corrupt.to_string().is_empty()),
            };
            let mut input = vec![0; taken.job.input.len()];
            ring.read(taken.job.input, &mut input);
            ring.write(taken.job.output, &input[..input.len().min(taken.job.output.len())]);
            ring.complete(taken, Outcome::failed(Verdict::NoSession));
        }
        assert_eq!(ring.in_flight(), 0);
        let mut entries = 0;
        ring.region().drain_trace(&mut cursor, |_| entries += 1);
        assert!(entries <= GEOMETRY.trace_cells, "bounded work");
        // Nothing there: it must come back at once, whatever the words say.
        let _ = intake.wait(Duration::ZERO, Duration::ZERO);
    }
    for &algorithm in bywash_core::Algorithm::ALL {
        let _ = ring.region().usage(algorithm);
    }
}

/// An offset within the region, a multiple of four (what lies beyond is sealed off), and the word.
fn write(file: &OwnedFd, step: &[u8]) {
    let word = |at: usize| u32::from_le_bytes(core::array::from_fn(|byte| step[at + byte]));
    let offset = (u64::from(word(0)) % GEOMETRY.region_bytes() as u64) & !3;
    rustix::io::pwrite(file, &word(4).to_ne_bytes(), offset).expect("a write inside");
}

/// Where things lie: the table in the protocol's docs.
const RING: u32 = 12288;
const SLOT: u32 = RING + 4096;

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let steps = |steps: &[(u32, u32)]| steps.iter().flat_map(|&(at, word)| [at.to_le_bytes(), word.to_le_bytes()].concat()).collect();
    vec![
        // An honest request of sixteen bytes in slot 0, twice.
        steps(&[(SLOT + 64 + 28, 16), (SLOT + 64 + 36, 16), (SLOT, 2), (RING, 1), (SLOT, 2), (RING + 4, 1)]),
        // A slot that does not exist; a slot in the wrong state; a range that wraps.
        steps(&[(RING, 9)]),
        steps(&[(SLOT, 4), (RING, 1)]),
        steps(&[(SLOT + 64 + 24, u32::MAX), (SLOT + 64 + 28, 2), (SLOT, 2), (RING, 1)]),
        // The tail of the trace ring, turned far ahead and back.
        steps(&[(SLOT + 4096, 1000), (SLOT + 4096, 3), (SLOT + 4100, u32::MAX)]),
        // Counters.
        steps(&[(4096, u32::MAX), (4100, u32::MAX), (4096 + 1024, 1)]),
    ]
}
