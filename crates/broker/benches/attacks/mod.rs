//! The attackers, each a process until its standard input ends.

use crate::support::{LONG, Raw, ctr, ctr_operation};
use bywash_core::{Algorithm, Data, Direction, Key, Operation, SessionParams};
use bywash_protocol::{ClientMessage, ControlSocket, Role, Ticket, VERSION, WireParams};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const RING: u64 = bywash_protocol::layout::AT_RING as u64;

/// Whether the attacker is to end.
type Stop = Arc<AtomicBool>;

pub(crate) fn run(name: &str, path: &Path, ready: fn()) {
    let stop = Stop::default();
    let told = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().lines().count();
        told.store(true, Relaxed);
        // Whatever it is stuck in.
        std::thread::sleep(Duration::from_secs(2));
        std::process::exit(0);
    });
    ready();
    match name {
        "session flood" => sessions(path, &stop),
        "message flood" => messages(path, &stop),
        "slots full, unread" => unread(path, &stop),
        "slots kept full" => full(path, &stop),
        "heavy requests" => heavy(path, &stop),
        "ring corruption" => corruption(path, &stop),
        "connection flood" => connections(path, &stop),
        "never says Hello" => silent(path, &stop),
        other => panic!("no attack is called {other}"),
    }
}

fn attacker(path: &Path) -> bywash_core::Result<Raw> {
    Raw::connect_as(path, VERSION, Role::Compute, Some("attack"))
}

/// Opens sessions without end, far beyond 100,000; every answer after the quota is a refusal.
fn sessions(path: &Path, stop: &AtomicBool) {
    let mut client = attacker(path).expect("a connection");
    while !stop.load(Relaxed) {
        let _ = client.open(&ctr());
    }
}

/// Sends as fast as the socket takes it; reads only so that it is not thrown out for not reading.
fn messages(path: &Path, stop: &AtomicBool) {
    let client = attacker(path).expect("a connection");
    let params = ctr();
    let message = ClientMessage::Open { request: 1, params: WireParams::new(&params).expect("a key that travels") };
    let mut packet = bywash_protocol::socket::Packet::new();
    while !stop.load(Relaxed) {
        while client.socket.send(&message, &[], Duration::ZERO).is_ok() {}
        while client.socket.receive(&mut packet, Duration::ZERO).is_ok_and(|open| open) {}
    }
}

/// Fills all its slots and never reads an answer.
fn unread(path: &Path, stop: &AtomicBool) {
    let mut client = attacker(path).expect("a connection");
    let session = client.open(&ctr()).expect("a session");
    let ring = client.ring.clone().expect("a ring");
    let _kept: Vec<Ticket> = std::iter::from_fn(|| ring.begin(session, &ctr_operation(&mut [0; 64]))).collect();
    while !stop.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Keeps all its slots full: what is answered is thrown away unread, and its slot filled anew.
fn full(path: &Path, stop: &AtomicBool) {
    let mut client = attacker(path).expect("a connection");
    let session = client.open(&ctr()).expect("a session");
    let ring = client.ring.clone().expect("a ring");
    let mut kept: Vec<Ticket> = Vec::new();
    while !stop.load(Relaxed) {
        kept.extend(std::iter::from_fn(|| ring.begin(session, &ctr_operation(&mut [0; 64]))));
        kept.retain(|ticket| ticket.poll().is_none());
    }
}

/// Keeps its arena full of requests that take a thousand times as long as the honest one's.
fn heavy(path: &Path, stop: &AtomicBool) {
    let mut client = attacker(path).expect("a connection");
    let params = SessionParams::new(Algorithm::Sha256, Key::None).expect("a digest has no key");
    let session = client.open(&params).expect("a session");
    let ring = client.ring.clone().expect("a ring");
    let (input, mut output) = (vec![0; 1 << 20], [0; 32]);
    while !stop.load(Relaxed) {
        let data = Data::Copy { input: &input, output: &mut output };
        let digest = Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] };
        if ring.begin(session, &digest).is_none() {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Breaks the rules, is thrown out, comes back at once.
fn corruption(path: &Path, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let Ok(mut client) = attacker(path) else { continue };
        let Ok(session) = client.open(&ctr()) else { continue };
        let file = std::fs::File::from(client.region.as_ref().expect("a region").try_clone().expect("a descriptor"));
        std::os::unix::fs::FileExt::write_all_at(&file, &u32::MAX.to_ne_bytes(), RING + 4).expect("a write");
        let _ = client.begin(session, &ctr_operation(&mut [0; 64]));
        let mut packet = bywash_protocol::socket::Packet::new();
        // Wakes at the end of the connection.
        let _ = client.socket.receive(&mut packet, LONG);
    }
}

/// Connects, is welcomed or turned away, and leaves.
fn connections(path: &Path, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let _ = attacker(path);
    }
}

/// Makes as many connections as it may, and never says who it is.
fn silent(path: &Path, stop: &AtomicBool) {
    let mut held = Vec::new();
    while !stop.load(Relaxed) {
        if let Ok(socket) = ControlSocket::connect(path) {
            held.push(socket);
        }
        // More than it may have, so that there are always some that the broker has not dropped; they are a few hundred descriptors.
        if held.len() > 1100 {
            held.retain(|socket: &ControlSocket| !socket.is_hung_up());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
