//! A broker in this process or another, and a client that speaks the protocol with nothing in between, so that it can also misbehave.
#![allow(dead_code, reason = "each test file uses a part")]

use bywash_broker::{Broker, BrokerConfig, BrokerHandle};
use bywash_core::{Algorithm, Data, Direction, Error, Key, Operation, Result, SessionParams};
use bywash_manager::{Costs, Manager, ManagerConfig};
use bywash_protocol::socket::Packet;
use bywash_protocol::{
    BoardView, BrokerMessage, ClientMessage, ClientRing, ControlSocket, Region, Role, StatsFormat, Ticket, VERSION, WireParams,
};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const LONG: Duration = Duration::from_secs(20);
pub(crate) const SPIN: Duration = Duration::from_micros(50);

/// A manager over the CPU, without measuring it.
pub(crate) fn manager() -> Arc<Manager> {
    let mut config = ManagerConfig::new(bywash_manager::probe().present);
    config.costs = Costs::Given(Vec::new());
    Manager::new(config).unwrap()
}

/// A broker that serves until it is dropped.
pub(crate) struct Served {
    pub(crate) path: PathBuf,
    pub(crate) handle: BrokerHandle,
    thread: Option<std::thread::JoinHandle<Result<()>>>,
    _directory: tempfile::TempDir,
}

pub(crate) fn serve(change: impl FnOnce(&mut BrokerConfig)) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("broker.sock");
    let mut config = BrokerConfig::new(path.clone(), manager());
    change(&mut config);
    let broker = Broker::bind(config).unwrap();
    let handle = broker.handle();
    Served { path, handle, thread: Some(broker.spawn().unwrap()), _directory: directory }
}

impl Served {
    /// Shuts down and says how it ended.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.handle.shutdown();
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// A client.
pub(crate) struct Raw {
    pub(crate) socket: ControlSocket,
    pub(crate) number: u32,
    pub(crate) board: BoardView,
    pub(crate) ring: Option<Arc<ClientRing>>,
    /// The region's own descriptor, for writing whatever one likes.
    pub(crate) region: Option<OwnedFd>,
    pub(crate) packet: Packet,
}

impl Raw {
    pub(crate) fn connect(path: &Path) -> Result<Self> {
        Self::connect_as(path, VERSION, Role::Compute, None)
    }

    pub(crate) fn connect_as(path: &Path, version: u16, role: Role, run: Option<&str>) -> Result<Self> {
        let socket = ControlSocket::connect(path)?;
        // A broker that refuses at once has closed by now; its reason is still there to be read.
        let sent = socket.send(&ClientMessage::Hello { version, role, comm: "test", run }, &[], LONG);
        let mut packet = Packet::new();
        if !socket.receive(&mut packet, LONG)? {
            sent?;
            return Err(Error::Unavailable { what: "closed".into() });
        }
        match packet.message()? {
            BrokerMessage::Welcome { client, .. } => {
                let board = BoardView::open(packet.files.pop().unwrap())?;
                let region = packet.files.pop();
                let ring = region.as_ref().map(|file| Region::open(file).map(ClientRing::new)).transpose()?;
                Ok(Self { socket, number: client, board, ring, region, packet })
            }
            BrokerMessage::Refused { refusal, .. } => Err(refusal.into_error()),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn ask(&mut self, message: &ClientMessage<'_>) -> Result<BrokerMessage> {
        self.ask_with(message, None)
    }

    pub(crate) fn ask_with(&mut self, message: &ClientMessage<'_>, file: Option<&OwnedFd>) -> Result<BrokerMessage> {
        let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
        self.socket.send(message, &files, LONG)?;
        if !self.socket.receive(&mut self.packet, LONG)? {
            return Err(Error::Unavailable { what: "closed".into() });
        }
        match self.packet.message()? {
            BrokerMessage::Refused { refusal, .. } => Err(refusal.into_error()),
            other => Ok(other),
        }
    }

    pub(crate) fn open(&mut self, params: &SessionParams) -> Result<u32> {
        match self.ask(&ClientMessage::Open { request: 9, params: WireParams::new(params)? })? {
            BrokerMessage::Opened { request: 9, session } => Ok(session),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn stats(&mut self, format: StatsFormat) -> String {
        match self.ask(&ClientMessage::Stats { request: 2, format }).unwrap() {
            BrokerMessage::Stats { bytes, .. } => {
                use std::os::unix::fs::FileExt;
                let file = std::fs::File::from(self.packet.files.pop().unwrap());
                let mut text = vec![0; bytes as usize];
                file.read_exact_at(&mut text, 0).unwrap();
                String::from_utf8(text).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn begin(&self, session: u32, operation: &Operation<'_>) -> Ticket {
        self.ring.as_ref().unwrap().begin(session, operation).expect("a slot and room")
    }

    pub(crate) fn run(&self, session: u32, algorithm: Algorithm, operation: &mut Operation<'_>) -> Result<usize> {
        let ticket = self.begin(session, operation);
        let outcome = ticket.wait(SPIN, LONG).expect("an answer within the bound");
        ticket.finish(outcome, operation).unwrap();
        outcome.into_result(algorithm, session)
    }
}

/// AES-256-CTR under a fixed key.
pub(crate) fn ctr() -> SessionParams {
    SessionParams::new(Algorithm::Aes256Ctr, Key::Symmetric((&[7; 32]).into())).unwrap()
}

/// A request of that session.
pub(crate) fn ctr_operation(text: &mut [u8]) -> Operation<'_> {
    Operation { direction: Direction::Encrypt, iv: &[1; 16], aad: &[], data: Data::InPlace(text), tag: &mut [] }
}

/// Whether this process can become another user; says so where it cannot.
pub(crate) fn can_be_another() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: only root can become another user");
    }
    root
}

/// What the test `child_of_the_test_of_users` of this file prints as another user, in a process of its own: see [`as_child`].
pub(crate) fn as_user(uid: u32, served: &Served, run: Option<&str>) -> String {
    let directory = served.path.parent().unwrap();
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o711)).unwrap();
    // The build's folder may be closed to others, so they get a copy of this program.
    let program = directory.join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let child = std::process::Command::new(program)
        .args(["--exact", "child_of_the_test_of_users", "--nocapture"])
        .env("BYWASH_TEST_SOCKET", &served.path)
        .envs(run.map(|run| ("BYWASH_TEST_RUN", run)))
        .current_dir("/")
        .uid(uid)
        .gid(uid)
        .output()
        .unwrap();
    String::from_utf8_lossy(&child.stdout).into_owned()
}

/// The connection of such a process; none in any other, where there is nothing for its test to do.
pub(crate) fn as_child() -> Option<Result<Raw>> {
    let path = PathBuf::from(std::env::var_os("BYWASH_TEST_SOCKET")?);
    Some(Raw::connect_as(&path, VERSION, Role::Compute, std::env::var("BYWASH_TEST_RUN").ok().as_deref()))
}

/// Waits until something is so; fails loudly if it never is.
pub(crate) fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "it never came that {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
