//! Clients that misbehave: each hurts itself alone, leaves a line in the log, and the broker goes on.
//!
//! How much slower others become is measured by `cargo bench -p bywash-broker --bench hostile`; here only that they are served.

mod support;

use bywash_core::{Algorithm, Data, Direction, Error, Key, Operation, SessionParams};
use bywash_protocol::{ClientMessage, ControlSocket, Geometry, StatsFormat, WireParams};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{Raw, Served, ctr, ctr_operation, serve, until};

/// Runs `attack` while an honest client works beside it; the honest one must be served throughout.
fn beside(served: &Served, attack: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    // Before the attack, after which nobody of this user is let in for a while.
    let mut client = Raw::connect(&served.path).unwrap();
    std::thread::scope(|scope| {
        let honest = scope.spawn(|| {
            let session = client.open(&ctr()).unwrap();
            let mut done = 0u64;
            while !stop.load(Ordering::Relaxed) || done < 1000 {
                let mut text = [9; 64];
                assert_eq!(client.run(session, Algorithm::Aes256Ctr, &mut ctr_operation(&mut text)), Ok(64));
                assert_ne!(text, [9; 64]);
                done += 1;
            }
        });
        // A failed attack must end the test, not hang it.
        let attacked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attack));
        stop.store(true, Ordering::Relaxed);
        honest.join().unwrap();
        attacked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// A hostile client's way to its region: the file itself.
fn scribble(client: &Raw, offset: u64, bytes: &[u8]) {
    let file = std::fs::File::from(client.region.as_ref().unwrap().try_clone().unwrap());
    file.write_all_at(bytes, offset).unwrap();
}

const RING: u64 = bywash_protocol::layout::AT_RING as u64;

fn attacker(served: &Served) -> (Raw, u32) {
    let mut client = Raw::connect(&served.path).unwrap();
    let session = client.open(&ctr()).unwrap();
    (client, session)
}

#[test]
fn a_slot_that_does_not_exist_costs_the_connection() {
    let served = serve(|_| {});
    beside(&served, || {
        let (client, session) = attacker(&served);
        scribble(&client, RING + 4, &u32::MAX.to_ne_bytes());
        let _ = client.begin(session, &ctr_operation(&mut [1]));
        until("the attacker is disconnected", || client.socket.is_hung_up());
    });
    assert_eq!(served.handle.stats().corrupt, 1);
}

#[test]
fn a_slot_that_was_never_submitted_costs_the_connection() {
    let served = serve(|_| {});
    beside(&served, || {
        let (client, session) = attacker(&served);
        scribble(&client, RING + 4, &200u32.to_ne_bytes());
        let ticket = client.begin(session, &ctr_operation(&mut [1]));
        until("the attacker is disconnected", || client.socket.is_hung_up());
        drop(ticket);
    });
    assert_eq!(served.handle.stats().corrupt, 1);
}

#[test]
fn random_bytes_all_over_the_region_hurt_nobody_else() {
    let served = serve(|config| {
        config.geometry = Geometry { slots: 64, arena_bytes: 1 << 16, trace_cells: 64 };
        config.quotas.back_off_max = Duration::ZERO;
    });
    let head = Geometry { slots: 64, arena_bytes: 1 << 16, trace_cells: 64 }.region_bytes() as u64 - (1 << 16);
    beside(&served, || {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..100 {
            let (client, session) = attacker(&served);
            for _ in 0..50 {
                let word = if random().is_multiple_of(2) { random() % 70 } else { random() };
                scribble(&client, random() % head, &word.to_ne_bytes());
                if client.socket.is_hung_up() {
                    break;
                }
                let _ = client.ring.as_ref().unwrap().begin(session, &ctr_operation(&mut [1; 16]));
            }
        }
    });
    until("the attackers are gone", || served.handle.clients() == 0);
    assert_eq!(served.handle.stats().sessions, 0, "and their sessions with them");
}

#[test]
fn a_flood_of_sessions_ends_at_the_quota() {
    let served = serve(|config| config.quotas.sessions_per_client_max = 100);
    beside(&served, || {
        let (mut client, _) = attacker(&served);
        let mut opened = 1;
        for _ in 0..100_000 {
            match client.open(&ctr()) {
                Ok(_) => opened += 1,
                Err(Error::Quota { setting: "sessions_per_client_max", limit: 100, .. }) if opened == 100 => {}
                Err(Error::Quota { setting: "control_rate_max", .. }) => break,
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(opened, 100);
    });
    let stats = served.handle.stats();
    assert!(stats.quotas_hit["sessions_per_client_max"] > 0, "{:?}", stats.quotas_hit);
}

#[test]
fn a_flood_of_messages_is_slowed_and_never_reading_ends_the_connection() {
    let served = serve(|config| config.quotas.control_rate_max = 20);
    beside(&served, || {
        let (client, _) = attacker(&served);
        let params = ctr();
        let message = ClientMessage::Open { request: 1, params: WireParams::new(&params).unwrap() };
        // It sends and never reads; the broker's answers fill its socket, then the broker lets go of it.
        let failed = (0..1_000_000).find_map(|_| client.socket.send(&message, &[], support::LONG).err());
        assert!(matches!(failed, Some(Error::Unavailable { .. })), "{failed:?}");
    });
    assert!(served.handle.stats().quotas_hit["control_rate_max"] > 0);
}

#[test]
fn completions_never_read_fill_only_ones_own_slots() {
    let served = serve(|_| {});
    beside(&served, || {
        let (client, session) = attacker(&served);
        let ring = client.ring.as_ref().unwrap();
        let kept: Vec<_> = std::iter::from_fn(|| ring.begin(session, &ctr_operation(&mut [1; 16]))).collect();
        assert_eq!(kept.len(), 256);
        until("all are answered", || kept.iter().all(|ticket| ticket.poll().is_some()));
        assert!(ring.begin(session, &ctr_operation(&mut [1])).is_none(), "the attacker itself is stuck");
    });
}

#[test]
fn garbage_on_the_socket_ends_the_connection() {
    let served = serve(|config| config.quotas.back_off_max = Duration::ZERO);
    beside(&served, || {
        for garbage in [&[0xff; 100][..], &[1; 16384], &[0]] {
            let (client, _) = attacker(&served);
            rustix::net::send(&client.socket, garbage, rustix::net::SendFlags::empty()).unwrap();
            until("it is disconnected", || client.socket.is_hung_up());
        }
    });
}

#[test]
fn doorbells_for_nothing_are_noticed() {
    let served = serve(|_| {});
    beside(&served, || {
        let (client, session) = attacker(&served);
        client.run(session, Algorithm::Aes256Ctr, &mut ctr_operation(&mut [1])).unwrap();
        until("the attacker is disconnected", || {
            (0..1000).for_each(|_| client.ring.as_ref().unwrap().nudge());
            client.socket.is_hung_up()
        });
    });
    assert_eq!(served.handle.stats().corrupt, 1);
}

#[test]
fn a_lying_counter_saturates_and_stays_ones_own() {
    let served = serve(|_| {});
    let (client, _) = attacker(&served);
    scribble(&client, 4096, &[0xff; 8192]);
    let mut honest = Raw::connect(&served.path).unwrap();
    let stats: bywash_broker::Stats = serde_json::from_str(&honest.stats(StatsFormat::Json)).unwrap();
    let own = stats.clients.iter().find(|other| other.client == honest.number).unwrap();
    assert!(own.work.is_empty());
    let liar = stats.clients.iter().find(|other| other.client == client.number).unwrap();
    assert!(liar.work.iter().all(|work| work.engine == "here" && work.operations == u64::MAX));
}

/// The most memory that this process has held, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Every slot describes the whole arena as its input: copies of them all would be 256 times as large as what the client has.
#[test]
fn requests_that_overlap_do_not_multiply_the_broker_s_memory() {
    let served = serve(|_| {});
    let mut client = Raw::connect(&served.path).unwrap();
    let session = client.open(&SessionParams::new(Algorithm::Sha256, Key::None).unwrap()).unwrap();
    let before = peak_kib();
    fn digest(output: &mut [u8]) -> Operation<'_> {
        let data = Data::Copy { input: &[], output };
        Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] }
    }
    let geometry = Geometry::default();
    let slots_at = RING + (u64::from(geometry.slots) * 4).next_multiple_of(4096);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Descriptors are changed right after they are written: input from 0, the whole arena long, output at its front.
        scope.spawn(|| {
            let words: Vec<u8> = [0, geometry.arena_bytes, 0, 32].iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
            while !stop.load(Ordering::Relaxed) {
                (0..u64::from(geometry.slots)).for_each(|slot| scribble(&client, slots_at + slot * 128 + 64 + 24, &words));
            }
        });
        let tickets: Vec<_> = (0..256).map(|_| client.begin(session, &digest(&mut [0; 32]))).collect();
        for ticket in tickets {
            ticket.wait(support::SPIN, support::LONG * 10).expect("answered");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let grown = peak_kib() - before;
    assert!(grown < 200 << 10, "{grown} KiB more for a client with an arena of 8 MiB");
}

/// As many connections as there may be that never say Hello, from a user of whom it is not known whether they may.
#[test]
fn those_who_never_say_hello_are_few() {
    let stranger = 65_534;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let served = serve(|config| config.run_token = Some("token".into()));
    std::fs::set_permissions(served.path.parent().unwrap(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = served.path.clone();
    std::thread::spawn(move || {
        // This thread's user alone: the system call itself, and not the C library's, which changes all threads.
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(stranger)).unwrap();
        let silent: Vec<_> = (0..40).map(|_| ControlSocket::connect(&path).unwrap()).collect();
        until("the surplus is let go", || silent.iter().filter(|socket| socket.is_hung_up()).count() == 24);
        drop(silent);
        until("those have made room", || {
            Raw::connect_as(&path, bywash_protocol::VERSION, bywash_protocol::Role::Observe, Some("token")).is_ok()
        });
        let mut known = Raw::connect_as(&path, bywash_protocol::VERSION, bywash_protocol::Role::Observe, Some("token")).unwrap();
        let stats: bywash_broker::Stats = serde_json::from_str(&known.stats(StatsFormat::Json)).unwrap();
        assert!(stats.clients.iter().all(|client| client.uid == stranger), "{stats:?}");
        let file = tempfile::tempfile().unwrap().into();
        let refused = known.ask_with(&ClientMessage::StartRecording { request: 1 }, Some(&file));
        assert!(refused.unwrap_err().to_string().contains("only root and uid"));
    })
    .join()
    .unwrap();
}
