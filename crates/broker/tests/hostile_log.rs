//! The four attacks that are promised to be survived, each with the line that it leaves in the log: 100,000 sessions, answers never
//! read, fuzzed descriptors, a corrupted ring. After each, the broker is up and an honest client is answered.

mod support;

use bywash_core::{Algorithm, Error};
use bywash_protocol::descriptor::DESCRIPTOR_WORDS;
use bywash_protocol::{ClientMessage, Geometry, WireParams};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use support::{LONG, Raw, Served, ctr, ctr_operation, serve, until};

const RING: u64 = bywash_protocol::layout::AT_RING as u64;

/// The log of this process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Waits for a line that holds all of these words.
    fn tells(&self, words: &[&str]) {
        let has = || {
            let text = String::from_utf8(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap();
            text.lines().any(|line| words.iter().all(|word| line.contains(word)))
        };
        until(&format!("the log has a line with {words:?}"), has);
    }
}

/// An empty log, as `bywash serve` writes it by default. One test at a time: brokers of one process share it.
fn log() -> (Log, MutexGuard<'static, ()>) {
    static ONE: Mutex<()> = Mutex::new(());
    static LOG: OnceLock<Log> = OnceLock::new();
    let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let log = LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).with_env_filter("info").init();
        log
    });
    log.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    (log.clone(), turn)
}

fn pid() -> String {
    format!("pid={}", std::process::id())
}

/// A client that was there before the attack.
struct Honest(Raw, u32);

impl Honest {
    fn new(served: &Served) -> Self {
        let mut client = Raw::connect(&served.path).unwrap();
        let session = client.open(&ctr()).unwrap();
        Self(client, session)
    }

    fn is_answered(&self) {
        for _ in 0..100 {
            let mut text = [9; 64];
            assert_eq!(self.0.run(self.1, Algorithm::Aes256Ctr, &mut ctr_operation(&mut text)), Ok(64));
            assert_ne!(text, [9; 64]);
        }
    }
}

#[test]
fn a_hundred_thousand_sessions() {
    let (log, _turn) = log();
    let served = serve(|config| config.quotas.control_rate_max = u32::MAX);
    let honest = Honest::new(&served);
    let mut attacker = Raw::connect(&served.path).unwrap();
    let opened = (0..100_000).filter(|_| match attacker.open(&ctr()) {
        Ok(_) => true,
        Err(Error::Quota { setting: "sessions_per_client_max", limit: 4096, .. }) => false,
        Err(other) => panic!("{other}"),
    });
    assert_eq!(opened.count(), 4096);
    honest.is_answered();
    assert_eq!(served.handle.stats().quotas_hit["sessions_per_client_max"], 100_000 - 4096);
    log.tells(&["WARN", &pid(), "quota used up: open sessions", "limit=4096", "sessions_per_client_max"]);
}

#[test]
fn answers_never_read() {
    let (log, _turn) = log();
    let served = serve(|_| {});
    let honest = Honest::new(&served);
    let mut attacker = Raw::connect(&served.path).unwrap();
    let session = attacker.open(&ctr()).unwrap();
    let ring = attacker.ring.clone().unwrap();
    let kept: Vec<_> = std::iter::from_fn(|| ring.begin(session, &ctr_operation(&mut [1; 16]))).collect();
    until("all are answered", || kept.iter().all(|ticket| ticket.poll().is_some()));
    honest.is_answered();
    let params = ctr();
    let message = ClientMessage::Open { request: 1, params: WireParams::new(&params).unwrap() };
    let failed = (0..1_000_000).find_map(|_| attacker.socket.send(&message, &[], LONG).err());
    assert!(matches!(failed, Some(Error::Unavailable { .. })), "{failed:?}");
    honest.is_answered();
    log.tells(&["WARN", &pid(), "client disconnected for breaking the rules", "it has not read its answers for 1 s"]);
}

#[test]
fn fuzzed_descriptors() {
    let (log, _turn) = log();
    let geometry = Geometry { slots: 8, arena_bytes: 1 << 16, trace_cells: 64 };
    let served = serve(|config| {
        config.geometry = geometry;
        config.quotas.back_off_max = Duration::ZERO;
        config.quotas.connect_rate_max = u32::MAX;
    });
    let honest = Honest::new(&served);
    // The slot table follows the ring's one page.
    let descriptor = RING + 4096 + 64;
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    for _ in 0..200 {
        let mut attacker = Raw::connect(&served.path).unwrap();
        let session = attacker.open(&ctr()).unwrap();
        let file = std::fs::File::from(attacker.region.as_ref().unwrap().try_clone().unwrap());
        for _ in 0..8 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            // An honest request with one word of its descriptor overwritten while the broker may be reading it.
            let word = seed % DESCRIPTOR_WORDS as u64;
            let _ticket = attacker.ring.as_ref().unwrap().begin(session, &ctr_operation(&mut [1; 16]));
            for slot in 0..8 {
                file.write_all_at(&(seed as u32).to_ne_bytes(), descriptor + slot * 128 + word * 4).unwrap();
            }
            // Into the ring again, with the descriptor as it is now.
            let _second = attacker.ring.as_ref().unwrap().begin(session, &ctr_operation(&mut [1; 16]));
        }
        raw_submission(&file, seed as u32);
        attacker.ring.as_ref().unwrap().nudge();
        drop(attacker);
        honest.is_answered();
    }
    until("the attackers are gone", || served.handle.clients() == 1);
    honest.is_answered();
    // For sure one that no race can make honest.
    let mut attacker = Raw::connect(&served.path).unwrap();
    attacker.open(&ctr()).unwrap();
    let file = std::fs::File::from(attacker.region.as_ref().unwrap().try_clone().unwrap());
    raw_submission(&file, u32::MAX);
    attacker.ring.as_ref().unwrap().nudge();
    until("it is disconnected", || attacker.socket.is_hung_up());
    assert!(served.handle.stats().corrupt >= 1);
    log.tells(&["WARN", &pid(), "client disconnected for breaking the rules"]);
}

/// Slot 0, every word of its descriptor the same, submitted in the ring's first cell, without the client library's help.
fn raw_submission(file: &std::fs::File, word: u32) {
    let words: Vec<u8> = [word; DESCRIPTOR_WORDS].into_iter().flat_map(u32::to_ne_bytes).collect();
    file.write_all_at(&words, RING + 4096 + 64).unwrap();
    file.write_all_at(&2u32.to_ne_bytes(), RING + 4096).unwrap();
    file.write_all_at(&1u32.to_ne_bytes(), RING).unwrap();
}

#[test]
fn a_corrupted_ring_and_the_way_back() {
    let (log, _turn) = log();
    let served = serve(|_| {});
    let honest = Honest::new(&served);
    let mut attacker = Raw::connect(&served.path).unwrap();
    let session = attacker.open(&ctr()).unwrap();
    let file = std::fs::File::from(attacker.region.as_ref().unwrap().try_clone().unwrap());
    file.write_all_at(&u32::MAX.to_ne_bytes(), RING + 4).unwrap();
    let _ = attacker.begin(session, &ctr_operation(&mut [1]));
    until("the attacker is disconnected", || attacker.socket.is_hung_up());
    honest.is_answered();
    log.tells(&["WARN", &pid(), "client disconnected for breaking the rules: the ring names slot 4294967294 of 256"]);
    let again = Raw::connect(&served.path).err().expect("its user stays out for a moment").to_string();
    assert!(again.contains("broke the protocol's rules") && again.contains("may connect again in"), "{again}");
    log.tells(&["WARN", &pid(), "connection refused", "broke the protocol's rules"]);
    until("the user is let in again", || Raw::connect(&served.path).is_ok());
}
