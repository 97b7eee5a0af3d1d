//! The client against a broker: operations through the ring, and everything that can become of the broker meanwhile.

#[path = "common/broker.rs"]
mod broker;
#[path = "common/until.rs"]
mod until;

use broker::{ToyBroker, serve_if_asked, spawn};
use bywash_client::{Client, Config, Extent, Readiness, Route, Session, Stats};
use bywash_core::{Algorithm, Data, Direction, Error, Key, Operation, OwnedOperation, Place, SecretBytes, SessionParams};
use bywash_protocol::Geometry;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use until::until;

/// Not a test of its own: the process that others kill.
#[test]
fn broker_process() {
    serve_if_asked();
}

fn client(socket: &Path, route: Route) -> Client {
    Client::new(Config { socket: Some(socket.to_owned()), route, run: Some("test".into()), ..Config::default() })
}

fn gcm(client: &Client) -> Session {
    client.session(SessionParams::new(Algorithm::Aes256Gcm, Key::Symmetric((&[7; 32]).into())).unwrap()).unwrap()
}

/// Text and nonce of a number, and what becomes of it: by an engine in this process, for comparison.
struct Sample {
    iv: [u8; 12],
    text: Vec<u8>,
    sealed: Vec<u8>,
    tag: [u8; 16],
}

impl Sample {
    fn new(number: u64, len: usize) -> Self {
        let mut iv = [0; 12];
        iv[..8].copy_from_slice(&number.to_le_bytes());
        let text: Vec<u8> = (0..len).map(|at| (at as u64).wrapping_mul(number | 1) as u8).collect();
        let (mut sealed, mut tag) = (text.clone(), [0; 16]);
        let alone = gcm(&Client::new(Config { route: Route::Here, ..Config::default() }));
        run(&alone, Direction::Encrypt, &iv, Data::InPlace(&mut sealed), &mut tag).unwrap();
        Self { iv, text, sealed, tag }
    }

    /// Both ways through a session, in place and apart.
    fn check(&self, session: &Session) {
        let (mut text, mut tag) = (self.text.clone(), [0; 16]);
        assert_eq!(run(session, Direction::Encrypt, &self.iv, Data::InPlace(&mut text), &mut tag), Ok(text.len()));
        assert!(text == self.sealed && tag == self.tag, "wrong bytes");
        let mut plain = vec![0; text.len()];
        let apart = Data::Copy { input: &text, output: &mut plain };
        assert_eq!(run(session, Direction::Decrypt, &self.iv, apart, &mut tag), Ok(text.len()));
        assert!(plain == self.text, "wrong bytes");
    }

    fn owned(&self) -> OwnedOperation {
        OwnedOperation {
            direction: Direction::Encrypt,
            iv: self.iv.to_vec(),
            aad: b"header".to_vec(),
            input: self.text.clone().into(),
            output: SecretBytes::zeroed(self.text.len()),
            tag: vec![0; 16],
        }
    }

    fn check_owned(&self, operation: &OwnedOperation) {
        assert!(*operation.output == self.sealed[..] && operation.tag == self.tag, "wrong bytes");
    }
}

fn run(session: &Session, direction: Direction, iv: &[u8], data: Data<'_>, tag: &mut [u8]) -> Result<usize, Error> {
    session.run(&mut Operation { direction, iv, aad: b"header", data, tag })
}

fn samples() -> Vec<Sample> {
    [0, 1, 15, 16, 1000, 16384, 100_000].into_iter().zip(1..).map(|(len, number)| Sample::new(number, len)).collect()
}

#[test]
fn operations_go_through_the_ring_and_come_back_right() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let broker = ToyBroker::start(&path, Geometry::default());
    let client = client(&path, Route::Auto);
    let session = gcm(&client);
    assert_eq!(client.place(Algorithm::Aes256Gcm, 16), Place::Queue, "by the broker's table");
    samples().iter().for_each(|sample| sample.check(&session));
    assert_eq!(client.stats().queued, 14);
    assert_eq!(client.stats().reruns + client.stats().overflows, 0);
    assert_eq!(*broker.runs.lock().unwrap(), [Some("test".to_owned())]);
    assert!(client.status().starts_with("connected"), "{}", client.status());
    assert_eq!(client.counted(Algorithm::Aes256Gcm), (0, 0), "nothing was run here");
}

#[test]
fn a_forged_tag_is_refused_and_leaves_no_plaintext() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let _broker = ToyBroker::start(&path, Geometry::default());
    let client = client(&path, Route::Queue);
    let (session, sample) = (gcm(&client), Sample::new(9, 100));
    let (mut tag, mut plain) = (sample.tag, vec![0xEE; 100]);
    tag[3] ^= 1;
    let apart = Data::Copy { input: &sample.sealed, output: &mut plain };
    assert_eq!(run(&session, Direction::Decrypt, &sample.iv, apart, &mut tag), Err(Error::Authentication));
    assert!(plain.iter().all(|&byte| byte == 0));
    assert_eq!(client.stats().queued, 1);
}

#[test]
fn asynchronous_operations_complete_and_ring_the_descriptor() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let _broker = ToyBroker::start(&path, Geometry::default());
    let client = client(&path, Route::Queue);
    let (session, readiness) = (gcm(&client), Readiness::new().unwrap());
    let samples = samples();
    let pending: Vec<_> = samples.iter().map(|sample| session.submit_notifying(sample.owned(), &readiness)).collect();
    for (sample, pending) in samples.iter().zip(pending) {
        sample.check_owned(&pending.wait().unwrap());
    }
    let mut rung = 0;
    while rung < samples.len() as u64 {
        let mut fds = [rustix::event::PollFd::new(&readiness, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, None).unwrap();
        rung += readiness.drain();
    }
    assert_eq!((rung, readiness.drain()), (samples.len() as u64, 0));
    assert_eq!(client.stats().queued, samples.len() as u64);
    assert!(readiness.as_fd().try_clone_to_owned().is_ok());
}

#[test]
fn what_does_not_fit_the_arena_is_run_here() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let _broker = ToyBroker::start(&path, Geometry { slots: 8, arena_bytes: 1 << 16, trace_cells: 64 });
    let client = client(&path, Route::Queue);
    let session = gcm(&client);
    Sample::new(5, 100_000).check(&session);
    assert_eq!((client.stats().queued, client.stats().overflows), (0, 2));
    thread::scope(|scope| {
        for number in 0..16 {
            let session = &session;
            scope.spawn(move || (0..50).for_each(|_| Sample::new(number, 3000).check(session)));
        }
    });
    let Stats { queued, reruns, overflows, .. } = client.stats();
    assert_eq!((queued + overflows, reruns), (2 + 16 * 50 * 2, 0));
    assert!(queued > 0, "some had room");
}

#[test]
fn work_in_place_is_counted_at_the_broker_even_from_before_it_came() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let client = client(&path, Route::Here);
    let session = gcm(&client);
    Sample::new(1, 100).check(&session);
    assert!(client.status().contains("bywash serve"), "{}", client.status());
    let broker = ToyBroker::start(&path, Geometry::default());
    until("the client connects", || {
        client.count(Algorithm::Sha256, 1, 10);
        broker.clients.lock().unwrap().len() == 1
    });
    let region = broker.clients.lock().unwrap()[0].clone();
    until("counts are told", || region.region().usage(Algorithm::Aes256Gcm).operations == 2);
    assert_eq!(client.counted(Algorithm::Aes256Gcm), (2, 200));
    assert_eq!(region.region().usage(Algorithm::Aes256Gcm).bytes, 200);
}

#[test]
fn work_in_place_is_traced_while_the_broker_records() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let broker = ToyBroker::start(&path, Geometry::default());
    let client = client(&path, Route::Here);
    let (session, sample) = (gcm(&client), Sample::new(3, 64));
    sample.check(&session);
    let ring = broker.clients.lock().unwrap()[0].clone();
    let mut cursor = ring.region().trace_now();
    broker.board.set_recording(true);
    sample.check(&session);
    let mut stream = session.stream(Direction::Encrypt, &sample.iv).unwrap();
    let mut text = sample.text.clone();
    stream.aad(b"header").unwrap();
    stream.update(Data::InPlace(&mut text[..40])).unwrap();
    stream.update(Data::InPlace(&mut text[40..])).unwrap();
    assert_eq!((stream.finish().unwrap(), text), (sample.tag, sample.sealed.clone()));
    // Nothing but signed (GMAC).
    stream.start(&sample.iv).unwrap();
    stream.aad(b"header").unwrap();
    stream.finish().unwrap();
    drop(stream);
    let began = client.begin().unwrap();
    client.trace(began, client.number(), Algorithm::Aes128Gcm, Direction::Decrypt, Extent::whole(5));
    broker.board.set_recording(false);
    assert!(client.begin().is_none());
    sample.check(&session);
    let mut seen = Vec::new();
    assert_eq!(ring.region().drain_trace(&mut cursor, |entry| seen.push((entry.direction, entry.bytes, entry.calls))), 0);
    assert_eq!(
        seen,
        [
            (Direction::Encrypt, 64, 1),
            (Direction::Decrypt, 64, 1),
            (Direction::Encrypt, 64, 2),
            (Direction::Encrypt, 6, 1),
            (Direction::Decrypt, 5, 1)
        ]
    );
}

#[test]
fn no_broker_and_no_permission_are_told_in_words_and_change_nothing() {
    let place = tempfile::tempdir().unwrap();
    let absent = client(&place.path().join("absent"), Route::Queue);
    Sample::new(1, 1000).check(&gcm(&absent));
    assert!(absent.status().contains("no broker listens"), "{}", absent.status());
    assert_eq!(absent.stats().overflows, 2);

    let file = place.path().join("file");
    std::fs::write(&file, b"not a socket").unwrap();
    Sample::new(2, 1000).check(&gcm(&client(&file, Route::Queue)));

    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: root has permission on every socket; run as another user to see the refusal");
        return;
    }
    let path = place.path().join("s");
    let _broker = ToyBroker::start(&path, Geometry::default());
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let shut_out = client(&path, Route::Queue);
    Sample::new(3, 1000).check(&gcm(&shut_out));
    assert!(shut_out.status().contains("no permission"), "{}", shut_out.status());
}

#[test]
fn without_a_broker_the_queue_is_this_processs_own_manager() {
    let client = Client::new(Config { route: Route::Queue, ..Config::default() });
    let (session, samples) = (gcm(&client), samples());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| samples.iter().for_each(|sample| sample.check(&session)));
        }
    });
    let pending: Vec<_> = samples.iter().map(|sample| session.submit(sample.owned())).collect();
    samples.iter().zip(pending).for_each(|(sample, pending)| sample.check_owned(&pending.wait().unwrap()));
    // While one thread makes the manager, the others do not wait for it but work here.
    let stats = client.stats();
    assert_eq!(stats.queued + stats.overflows, 4 * 2 * 7 + 7);
    assert!(stats.queued >= 2 * 7 + 7, "{} queued: what the maker of the manager ran, and all that was submitted after it", stats.queued);
}

/// More than the ring has room for: what finds none waits for what is before it, and nothing is computed in place.
#[test]
fn many_are_at_the_broker_before_the_first_is_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let _broker = ToyBroker::start(&path, Geometry { slots: 16, arena_bytes: 1 << 19, trace_cells: 64 });
    let client = client(&path, Route::Queue);
    let session = gcm(&client);
    until("the broker is used", || {
        Sample::new(1, 100).check(&session);
        client.stats().queued > 0
    });
    let before = client.stats();
    let samples: Vec<Sample> = (0..500).map(|number| Sample::new(number, [0, 100, 5_000, 70_000][number as usize % 4])).collect();
    let mut texts: Vec<_> = samples.iter().map(|sample| (sample.text.clone(), [0; 16])).collect();
    let mut operations: Vec<_> = samples
        .iter()
        .zip(&mut texts)
        .map(|(sample, (text, tag))| {
            let data = Data::InPlace(text);
            (&session, Operation { direction: Direction::Encrypt, iv: &sample.iv, aad: b"header", data, tag })
        })
        .collect();
    let outcomes = bywash_client::run_many(&mut operations);
    for ((sample, (text, tag)), outcome) in samples.iter().zip(&texts).zip(outcomes) {
        assert_eq!(outcome, Ok(sample.text.len()));
        assert!(*text == sample.sealed && *tag == sample.tag, "wrong bytes");
    }
    let stats = client.stats();
    assert_eq!((stats.queued - before.queued, stats.overflows - before.overflows), (500, 0));
}

/// A stopped broker answers nothing and hangs up on nobody.
#[test]
fn a_hung_broker_costs_one_bounded_wait() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let mut broker = spawn(&path);
    let client = client(&path, Route::Queue);
    let (session, sample) = (gcm(&client), Sample::new(1, 1000));
    until("the broker is used", || {
        sample.check(&session);
        client.stats().queued > 0
    });
    let pid = rustix::process::Pid::from_child(&broker);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    until("every thread of the broker has stopped", || is_stopped(&broker));
    let before = client.stats();
    let pending = session.submit(sample.owned());
    sample.check(&session);
    sample.check_owned(&pending.wait().unwrap());
    let after = client.stats();
    assert!(after.reruns > before.reruns && after.queued == before.queued, "{before:?} {after:?}");
    assert!(client.status().starts_with("working in this process"), "{}", client.status());
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    broker.kill().unwrap();
    broker.wait().unwrap();
}

/// The house's promise: nothing lost, nothing twice, no wrong byte, whatever becomes of the broker. Every other one is given the time to be found: on a loaded
/// machine 100 ms are not enough to start one, let alone to do work.
#[test]
fn a_broker_killed_every_100_ms_costs_no_operation() {
    const THREADS: u64 = 8;
    const LIVES: u64 = 30;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let client = client(&path, Route::Queue);
    let (session, over, done) = (gcm(&client), AtomicBool::new(false), AtomicU64::new(0));
    let samples = Arc::new(samples());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (session, samples, over, done) = (&session, &samples, &over, &done);
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    if thread % 4 == 0 {
                        let pending: Vec<_> = samples.iter().map(|sample| session.submit(sample.owned())).collect();
                        samples.iter().zip(pending).for_each(|(sample, pending)| sample.check_owned(&pending.wait().unwrap()));
                        done.fetch_add(samples.len() as u64, Relaxed);
                    } else {
                        samples.iter().for_each(|sample| sample.check(session));
                        done.fetch_add(2 * samples.len() as u64, Relaxed);
                    }
                }
            });
        }
        let _ends = Over(&over);
        for life in 0..LIVES {
            let before = client.stats();
            let mut broker = spawn(&path);
            thread::sleep(Duration::from_millis(100));
            if life % 2 == 0 {
                until("the broker is used", || {
                    let now = client.stats();
                    now.connections > before.connections && now.queued > before.queued
                });
            }
            broker.kill().unwrap();
            broker.wait().unwrap();
        }
    });
    let Stats { queued, reruns, overflows, connections, .. } = client.stats();
    assert_eq!(queued + reruns + overflows, done.load(Relaxed), "each operation ended once");
    assert!(queued >= LIVES / 2 && connections >= LIVES / 2, "{queued} queued on {connections} connections: the brokers were not used");
    eprintln!("{queued} queued, {reruns} run again here, {overflows} run here at once, {connections} connections");
}

/// Tells threads to end when it is dropped, also by a failed assertion, which would else wait for them for ever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn is_stopped(process: &std::process::Child) -> bool {
    let mut tasks = std::fs::read_dir(format!("/proc/{}/task", process.id())).unwrap();
    tasks.all(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap().contains(") T "))
}
