//! The word of the gate, by itself.

#[path = "../src/word.rs"]
mod word;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use word::Word;

/// So many come while a gate is shut that has nobody inside. A fork copies the word at such a moment: whoever is counted then is taken for one who was in the midst
/// of a request. Enough that they are seen on one processor too, which leaves some of them in the midst of coming.
const COME: u64 = 3_000_000;

#[test]
fn nobody_is_counted_who_comes_while_it_is_shut() {
    let (gate, stop, refused) = (Word::new(), AtomicBool::new(false), AtomicU64::new(0));
    assert!(gate.enter() && gate.look().inside() == 1);
    assert!(!gate.shut().is_shut(), "it was open");
    assert!(gate.leave().is_shut(), "who leaves is told to wake the one that forks");
    let counted = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    assert!(!gate.enter());
                    refused.fetch_add(1, SeqCst);
                }
            });
        }
        let mut counted = 0_u64;
        while refused.load(SeqCst) < COME {
            counted += (0..100).filter(|_| gate.look().inside() != 0).count() as u64;
            std::thread::yield_now();
        }
        stop.store(true, SeqCst);
        counted
    });
    assert_eq!(counted, 0, "seen beside {COME} who came");
    gate.open();
    assert!(gate.enter() && !gate.leave().is_shut() && gate.look().inside() == 0);
    assert_eq!(gate.set(1, true).inside(), 0);
    assert!(gate.look().is_shut() && gate.look().inside() == 1 && !gate.address().is_null());
}
