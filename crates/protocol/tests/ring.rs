//! The ring between two mappings, with threads and with processes: every request answered once, with its own bytes.

use bywash_core::{Data, Direction, Operation};
use bywash_protocol::descriptor::Verdict;
use bywash_protocol::socket::Packet;
use bywash_protocol::{BrokerMessage, BrokerRing, ClientRing, ControlSocket, Geometry, Outcome, Region, VERSION};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);

/// Answers requests by adding one to every byte, until interrupted or `total` are done.
fn serve(mut intake: bywash_protocol::Intake, ring: &BrokerRing, total: u32, spin: Duration) {
    let mut done = 0;
    while done < total && !ring.is_interrupted() {
        match intake.take().unwrap() {
            Some(taken) => {
                let mut text = vec![0; taken.job.input.len()];
                ring.read(taken.job.input, &mut text);
                text.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                ring.write(taken.job.output, &text);
                ring.complete(taken, Outcome { verdict: Verdict::Done, written: text.len() as u32 });
                done += 1;
            }
            None => drop(intake.wait(spin, LONG).unwrap()),
        }
    }
    assert_eq!(ring.in_flight(), 0);
}

fn operation(text: &mut [u8]) -> Operation<'_> {
    Operation { direction: Direction::Encrypt, iv: &[], aad: &[], data: Data::InPlace(text), tag: &mut [] }
}

/// Moves `count` requests through the ring, `window` at a time, checking each answer.
fn drive(ring: &Arc<ClientRing>, count: u32, window: usize, spin: Duration) {
    let mut begun = 0;
    let mut pending = std::collections::VecDeque::new();
    while begun < count || !pending.is_empty() {
        while begun < count && pending.len() < window {
            let mut text = begun.to_le_bytes();
            match ring.begin(7, &operation(&mut text)) {
                Some(ticket) => pending.push_back((begun, ticket)),
                None => break,
            }
            begun += 1;
        }
        let Some((number, ticket)) = pending.pop_front() else { continue };
        let outcome = ticket.wait(spin, LONG).expect("answered within the bound");
        assert_eq!(outcome, Outcome { verdict: Verdict::Done, written: 4 });
        let mut back = [0; 4];
        ticket.finish(outcome, &mut operation(&mut back)).unwrap();
        assert_eq!(back, number.to_le_bytes().map(|byte| byte.wrapping_add(1)));
    }
}

fn geometry() -> Geometry {
    Geometry { slots: 64, arena_bytes: 1 << 16, trace_cells: 64 }
}

#[test]
fn a_million_slots_between_threads_with_two_mappings() {
    let (region, file) = Region::create(geometry()).unwrap();
    let (intake, broker) = BrokerRing::new(region);
    let client = ClientRing::new(Region::open(&file).unwrap());
    let (threads, each) = (4, 250_000);
    std::thread::scope(|scope| {
        scope.spawn(|| serve(intake, &broker, threads * each, Duration::from_micros(5)));
        for _ in 0..threads {
            scope.spawn(|| drive(&client, each, 12, Duration::from_micros(5)));
        }
    });
    let mut all = vec![0; 1 << 16];
    assert!(client.begin(7, &operation(&mut all)).is_some(), "everything has come back");
}

#[test]
fn sleeping_sides_wake_each_other() {
    let (region, file) = Region::create(geometry()).unwrap();
    let (intake, broker) = BrokerRing::new(region);
    let client = ClientRing::new(Region::open(&file).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| serve(intake, &broker, 20_000, Duration::ZERO));
        for _ in 0..2 {
            scope.spawn(|| drive(&client, 10_000, 1, Duration::ZERO));
        }
    });
}

/// The child's side of the next test; run without its variable, there is nothing for it to do.
#[test]
fn child_of_the_two_process_test() {
    let Some(path) = std::env::var_os("BYWASH_TEST_RING") else { return };
    let socket = ControlSocket::connect(path.as_ref()).unwrap();
    let mut packet = Packet::new();
    assert!(socket.receive(&mut packet, LONG).unwrap());
    let ring = ClientRing::new(Region::open(&packet.files[0]).unwrap());
    drive(&ring, 200_000, 16, Duration::from_micros(20));
}

#[test]
fn two_processes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring.sock");
    let listener = bywash_protocol::Listener::bind(&path).unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_of_the_two_process_test", "--nocapture"])
        .env("BYWASH_TEST_RING", &path)
        .spawn()
        .unwrap();
    let socket = listener.accept(LONG).unwrap();
    let (region, file) = Region::create(geometry()).unwrap();
    let (intake, ring) = BrokerRing::new(region);
    socket.send(&BrokerMessage::Welcome { version: VERSION, client: 1, broker_pid: 1 }, &[file.as_fd()], LONG).unwrap();
    serve(intake, &ring, 200_000, Duration::from_micros(20));
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_full_ring_and_a_full_arena_say_so() {
    let (region, file) = Region::create(geometry()).unwrap();
    let (mut intake, broker) = BrokerRing::new(region);
    let client = ClientRing::new(Region::open(&file).unwrap());
    let mut text = [0; 64];
    let tickets: Vec<_> = (0..64).map(|_| client.begin(1, &operation(&mut text)).unwrap()).collect();
    assert!(client.begin(1, &operation(&mut text)).is_none(), "no slot is left");
    drop(tickets);
    assert!(client.begin(1, &operation(&mut text)).is_none(), "the broker still has them");
    while let Some(taken) = intake.take().unwrap() {
        broker.complete(taken, Outcome::failed(Verdict::Unavailable));
    }
    let mut large = vec![0; 1 << 16];
    assert!(client.begin(1, &operation(&mut large[1..])).is_some(), "the whole arena is free again");
    assert!(client.begin(1, &operation(&mut text)).is_none(), "no room is left");
}

/// Whether these bytes stand anywhere in a region.
fn stands_in(file: &impl AsFd, bytes: &[u8]) -> bool {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::from(file.as_fd().try_clone_to_owned().unwrap());
    let mut all = vec![0; geometry().region_bytes()];
    file.read_exact_at(&mut all, 0).unwrap();
    all.windows(bytes.len()).any(|window| window == bytes)
}

#[test]
fn secrets_leave_the_arena_however_a_request_ends() {
    let (region, file) = Region::create(geometry()).unwrap();
    let (mut intake, broker) = BrokerRing::new(region);
    let client = ClientRing::new(Region::open(&file).unwrap());
    let (input, output) = (*b"a decrypted premaster secret", *b"or what came of it at last..");
    let mut answer = |verdict| {
        let taken = intake.take().unwrap().unwrap();
        if verdict == Verdict::Done {
            broker.write(taken.job.output, &output);
        }
        broker.complete(taken, Outcome { verdict, written: output.len() as u32 });
    };
    for verdict in [Verdict::Done, Verdict::Authentication] {
        // Taken over; dropped after the answer; given up before the answer, which then comes late.
        let begin = || client.begin(1, &operation(&mut input.clone())).unwrap();
        let (taken_over, dropped, given_up) = (begin(), begin(), begin());
        assert!(stands_in(&file, &input));
        drop(given_up);
        (0..3).for_each(|_| answer(verdict));
        let outcome = taken_over.poll().unwrap();
        taken_over.finish(outcome, &mut operation(&mut input.clone())).unwrap();
        drop(dropped);
        // The late answer is swept up by the next request.
        drop(client.begin(1, &operation(&mut [0; 28])).unwrap());
        answer(Verdict::Unavailable);
        assert!(!stands_in(&file, &input) && !stands_in(&file, &output), "{verdict:?}");
    }
}

#[test]
fn any_completion_wakes_a_watcher() {
    let (region, file) = Region::create(geometry()).unwrap();
    let (mut intake, broker) = BrokerRing::new(region);
    let client = ClientRing::new(Region::open(&file).unwrap());
    let ticket = client.begin(1, &operation(&mut [1])).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seen = 0;
            while ticket.poll().is_none() {
                seen = client.wait_any(seen, LONG);
            }
        });
        std::thread::sleep(Duration::from_millis(10));
        let taken = intake.take().unwrap().unwrap();
        broker.complete(taken, Outcome::failed(Verdict::Timeout));
    });
}

#[test]
fn an_interrupt_ends_waiting() {
    let (region, _file) = Region::create(geometry()).unwrap();
    let (mut intake, ring) = BrokerRing::new(region);
    std::thread::scope(|scope| {
        scope.spawn(move || assert!(!intake.wait(Duration::ZERO, LONG).unwrap()));
        std::thread::sleep(Duration::from_millis(10));
        ring.interrupt();
    });
}
