//! Sessions whose requests go to one engine, then to another, while engines fail and the broker goes and comes back: the bytes show nothing of it.

use crate::Device;
use crate::testing::{Ranges, device};
use bywash_broker::{Broker, BrokerConfig, BrokerHandle};
use bywash_client::{Client, Config, Route};
use bywash_core::{Algorithm, Data, Engine, Error, Keyed, Result, SessionParams, Task, Time};
use bywash_cryptodev_abi::linux::*;
use bywash_manager::{Costs, Manager, ManagerConfig, PolicyKind, find};
use bywash_policy::{Decision, EngineId, EngineInfo, Event, Policy, Request, RequestId};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;

/// An engine of the house that counts what it did, and fails when it is told to.
struct Watched {
    inner: Arc<dyn Engine>,
    fails: AtomicBool,
    done: AtomicUsize,
    failed: AtomicUsize,
}

impl Watched {
    fn new(name: &str) -> Arc<Self> {
        let inner = find(&[name.parse().unwrap()]).unwrap().present.remove(0);
        Arc::new(Self { inner, fails: AtomicBool::new(false), done: AtomicUsize::new(0), failed: AtomicUsize::new(0) })
    }
}

impl Engine for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }
    fn capabilities(&self) -> &[Algorithm] {
        self.inner.capabilities()
    }
    fn workers(&self) -> usize {
        self.inner.workers()
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        self.inner.open(params)
    }
    fn run(&self, batch: &mut [Task<'_>]) {
        self.inner.run(batch);
        self.done.fetch_add(batch.len(), SeqCst);
        if !self.fails.load(SeqCst) {
            return;
        }
        self.failed.fetch_add(batch.len(), SeqCst);
        for task in batch {
            // Half of it is there, and half is not.
            let (Data::InPlace(output) | Data::Copy { output, .. }) = &mut task.operation.data;
            let half = output.len() / 2;
            output[half..].fill(0xEE);
            task.outcome = Err(Error::EngineFailed { engine: self.name().to_owned(), reason: "it was told to".into() });
        }
    }
}

/// Each request goes to the engine whose turn it is, if that can do it and is up.
#[derive(Default)]
struct Turns {
    waiting: VecDeque<Request>,
    busy: [bool; 2],
    down: [bool; 2],
    turn: usize,
}

impl Policy for Turns {
    fn name(&self) -> &'static str {
        "turns"
    }
    fn event(&mut self, _now: Time, event: Event<'_>) {
        match event {
            Event::Arrived(request) => self.waiting.push_back(request),
            Event::Cancelled(id) => self.waiting.retain(|waiting| waiting.id != id),
            Event::Finished { engine, .. } => self.busy[usize::from(engine.0)] = false,
            Event::EngineUp(engine) => self.down[usize::from(engine.0)] = false,
            Event::EngineDown(engine) => self.down[usize::from(engine.0)] = true,
            _ => {}
        }
    }
    fn decide(&mut self, _now: Time, batch: &mut Vec<RequestId>) -> Decision {
        let Some(request) = self.waiting.front() else { return Decision::Idle };
        let can = |engine: &usize| request.engines.contains(EngineId(*engine as u8)) && !self.busy[*engine] && !self.down[*engine];
        let Some(engine) = [self.turn % 2, (self.turn + 1) % 2].into_iter().find(can) else { return Decision::Idle };
        batch.extend(self.waiting.pop_front().map(|request| request.id));
        self.busy[engine] = true;
        self.turn += 1;
        Decision::Dispatch(EngineId(engine as u8))
    }
}

fn turns(_engines: &[EngineInfo]) -> Box<dyn Policy> {
    Box::<Turns>::default()
}

fn serve(path: &Path, engines: &[Arc<Watched>]) -> (BrokerHandle, JoinHandle<Result<()>>) {
    let mut config = ManagerConfig::new(engines.iter().map(|engine| engine.clone() as Arc<dyn Engine>).collect());
    (config.policy, config.costs) = (PolicyKind::Other(turns), Costs::Given(Vec::new()));
    // One that fails is asked again all the same, or most requests would not meet the failure.
    config.failures_max = u32::MAX;
    let broker = Broker::bind(BrokerConfig::new(path.to_owned(), Manager::new(config).unwrap())).unwrap();
    (broker.handle(), broker.spawn().unwrap())
}

/// A session of each of these (cipher, key, MAC), whose requests go on one where the other ended.
const SESSIONS: [(u32, u32, u32, u16); 7] = [
    (CRYPTO_AES_CBC, 16, CRYPTO_SHA1_HMAC, COP_ENCRYPT),
    (CRYPTO_AES_CBC, 32, CRYPTO_SHA2_256_HMAC, COP_DECRYPT),
    (CRYPTO_3DES_CBC, 24, 0, COP_ENCRYPT),
    (CRYPTO_AES_ECB, 16, CRYPTO_MD5, COP_ENCRYPT),
    (CRYPTO_AES_CTR, 24, 0, COP_ENCRYPT),
    (CRYPTO_AES_OFB, 16, 0, COP_DECRYPT),
    (0, 0, CRYPTO_SHA1, COP_ENCRYPT),
];
const LENGTHS: [u32; 6] = [16, 1024, 8192, 64, 8208, 20_000];

/// A program: its open file, its memory, its sessions.
struct Side {
    device: Device,
    sessions: Vec<u32>,
}

impl Side {
    fn new(device: Device) -> Self {
        let memory = Ranges::default();
        let key = memory.put(&core::array::from_fn::<u8, 64, _>(|index| index as u8 * 3 + 1));
        let open = |(cipher, keylen, mac, _): (u32, u32, u32, u16)| {
            let argument = memory.put_struct(&SessionOp { cipher, keylen, key, mac, mackeylen: 20, mackey: key, ses: 0 });
            device.request(CIOCGSESSION, argument, &memory).unwrap();
            memory.get_struct::<SessionOp>(argument).ses
        };
        let sessions = SESSIONS.map(open).to_vec();
        Self { device, sessions }
    }

    /// Request number so and so at each session; all that is written. No request gives an IV; every fifth ends a message.
    fn requests(&self, number: usize) -> Vec<Vec<u8>> {
        let one = |(which, ses): (usize, &u32)| {
            let memory = Ranges::default();
            let len = LENGTHS[(number + which) % LENGTHS.len()];
            let text: Vec<u8> = (0..len as usize).map(|at| (at * (number + 3) + which) as u8).collect();
            let (src, dst, mac) = (memory.put(&text), memory.put(&text), memory.put(&[0; 32]));
            let flags = match number % 5 {
                0 => COP_FLAG_UPDATE | COP_FLAG_RESET,
                4 => COP_FLAG_FINAL,
                // The hash alone has whole messages too, which may be queued.
                2 if which == 6 => 0,
                _ => COP_FLAG_UPDATE,
            };
            let asked = CryptOp { ses: *ses, op: SESSIONS[which].3, flags, len, src, dst, mac, iv: 0 };
            self.device.request(CIOCCRYPT, memory.put_struct(&asked), &memory).unwrap();
            [memory.get(dst, text.len()), memory.get(mac, 32)].concat()
        };
        self.sessions.iter().enumerate().map(one).collect()
    }
}

#[test]
fn sessions_move_between_engines_and_their_bytes_do_not_show_it() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s");
    let engines = [Watched::new("board:ixp425"), Watched::new("cpu")];
    let (board, cpu) = (&engines[0], &engines[1]);
    let (broker, thread) = serve(&path, &engines);
    let client = Client::new(Config { socket: Some(path.clone()), route: Route::Queue, ..Config::default() });
    let (ours, wanted) = (Side::new(Device::new(client.clone())), Side::new(device()));
    let mut numbers = 0..;
    let mut compare = |ours: &Side, wanted: &Side, when: &str| {
        for number in numbers.by_ref().take(20) {
            let (ours, wanted) = (ours.requests(number), wanted.requests(number));
            for (which, (ours, wanted)) in ours.iter().zip(&wanted).enumerate() {
                assert!(ours == wanted, "session {which}, request {number}: other bytes {when}");
            }
        }
    };
    let counts = || (board.done.load(SeqCst), cpu.done.load(SeqCst));
    compare(&ours, &wanted, "by turns");
    let (by_board, by_cpu) = counts();
    assert!(by_board >= 20 && by_cpu >= 20, "the module did {by_board}, the processor {by_cpu}");
    // What the module is asked for here is whole messages and blocks; a message in pieces is hashed in the caller's place, so of one session the cipher was there and the MAC here.
    assert!(client.counted(Algorithm::HmacSha1).0 > 0 && client.counted(Algorithm::Aes128Cbc).0 == 0);
    board.fails.store(true, SeqCst);
    compare(&ours, &wanted, "while the module fails");
    assert!(board.failed.load(SeqCst) > 0, "the module was asked and failed");
    board.fails.store(false, SeqCst);
    cpu.fails.store(true, SeqCst);
    let before = counts().0;
    compare(&ours, &wanted, "while the processor's engine fails");
    assert!(cpu.failed.load(SeqCst) > 0 && counts().0 > before, "the module works again");
    board.fails.store(true, SeqCst);
    compare(&ours, &wanted, "while both fail, in the caller's place");
    assert!(client.stats().reruns > 0, "{:?}", client.stats());
    for engine in &engines {
        engine.fails.store(false, SeqCst);
    }
    broker.shutdown();
    thread.join().unwrap().unwrap();
    compare(&ours, &wanted, "without a broker");
    let (broker, thread) = serve(&path, &engines);
    let before = client.stats().queued;
    // A client looks for a broker that was lost now and then.
    while client.stats().queued < before + 40 {
        compare(&ours, &wanted, "with another broker");
    }
    let child = Side { device: ours.device.copy_for_child(), sessions: ours.sessions.clone() };
    let of_child = Side { device: wanted.device.copy_for_child(), sessions: wanted.sessions.clone() };
    // A key stream does not go on in a child without an IV.
    let without = |side: &Side| Side { device: side.device.copy_for_child(), sessions: side.sessions[..4].to_vec() };
    compare(&without(&child), &without(&of_child), "in a child");
    compare(&ours, &wanted, "in the parent");
    broker.shutdown();
    thread.join().unwrap().unwrap();
}
