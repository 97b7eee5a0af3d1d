//! The smallest broker that keeps the protocol: no quotas, no policy, one thread a client. Small enough to be made to die, stop and lie.

use bywash_core::route::ROUTES;
use bywash_core::{Keyed, OwnedOperation, Place, SecretBytes, SessionParams};
use bywash_protocol::socket::Packet;
use bywash_protocol::{
    Board, BrokerMessage, BrokerRing, ClientMessage, ControlSocket, Geometry, Intake, Listener, Outcome, Refusal, Region, VERSION,
};
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const FOREVER: Duration = Duration::from_secs(3600);

type Sessions = Arc<Mutex<HashMap<u32, Arc<(SessionParams, Box<dyn Keyed>)>>>>;

/// A broker in this process.
pub(crate) struct ToyBroker {
    pub(crate) board: Board,
    pub(crate) clients: Mutex<Vec<Arc<BrokerRing>>>,
    pub(crate) runs: Mutex<Vec<Option<String>>>,
    geometry: Geometry,
}

impl ToyBroker {
    /// Serves on this path in threads of its own until the process ends.
    pub(crate) fn start(path: &Path, geometry: Geometry) -> Arc<Self> {
        let _ = std::fs::remove_file(path);
        let listener = Listener::bind(path).unwrap();
        let board = Board::create().unwrap();
        board.set_routes(&[Place::Queue; ROUTES]);
        let broker = Arc::new(Self { board, clients: Mutex::default(), runs: Mutex::default(), geometry });
        let serving = broker.clone();
        thread::spawn(move || {
            while let Ok(socket) = listener.accept(FOREVER) {
                let broker = serving.clone();
                thread::spawn(move || broker.serve(&socket));
            }
        });
        broker
    }

    fn serve(&self, socket: &ControlSocket) -> Option<()> {
        let mut packet = Packet::new();
        socket.receive(&mut packet, FOREVER).ok().filter(|&more| more)?;
        let ClientMessage::Hello { run, .. } = packet.message().ok()? else { return None };
        self.runs.lock().unwrap().push(run.map(str::to_owned));
        let (region, file) = Region::create(self.geometry).unwrap();
        let (intake, ring) = BrokerRing::new(region);
        let welcome = BrokerMessage::Welcome { version: VERSION, client: 1, broker_pid: std::process::id() };
        self.clients.lock().unwrap().push(ring.clone());
        socket.send(&welcome, &[file.as_fd(), self.board.file().as_fd()], FOREVER).ok()?;
        let sessions = Sessions::default();
        let of_ring = sessions.clone();
        thread::spawn(move || work(intake, &of_ring));
        let mut next = 0;
        while socket.receive(&mut packet, FOREVER) == Ok(true) {
            match packet.message().ok()? {
                ClientMessage::Open { request, params } => {
                    next += 1;
                    let answer = open(&params.check().unwrap(), next, request, &sessions);
                    socket.send(&answer, &[], FOREVER).ok()?;
                }
                ClientMessage::Close { session } => drop(sessions.lock().unwrap().remove(&session)),
                _ => return None,
            }
        }
        ring.interrupt();
        Some(())
    }
}

fn open(params: &SessionParams, session: u32, request: u32, sessions: &Sessions) -> BrokerMessage {
    match bywash_manager::here().open(params) {
        Ok(keyed) => {
            sessions.lock().unwrap().insert(session, Arc::new((params.clone(), keyed)));
            BrokerMessage::Opened { request, session }
        }
        Err(error) => BrokerMessage::Refused { request, refusal: Refusal::of(&error) },
    }
}

fn work(mut intake: Intake, sessions: &Sessions) {
    let ring = intake.ring().clone();
    while !ring.is_interrupted() {
        match intake.take().unwrap() {
            None => drop(intake.wait(Duration::ZERO, FOREVER).unwrap()),
            Some(taken) => {
                let (job, session) = (taken.job, sessions.lock().unwrap().get(&taken.job.session).cloned());
                let bytes = |span: bywash_protocol::Span| {
                    let mut bytes = vec![0; span.len()];
                    ring.read(span, &mut bytes);
                    bytes
                };
                let mut operation = OwnedOperation {
                    direction: job.direction,
                    iv: bytes(job.iv),
                    aad: bytes(job.aad),
                    input: bytes(job.input).into(),
                    output: SecretBytes::zeroed(job.output.len()),
                    tag: bytes(job.tag),
                };
                let result = match session {
                    None => Err(bywash_core::Error::NoSession { id: job.session }),
                    Some(session) => session.1.run(&mut operation.borrow()),
                };
                if let Ok(written) = result {
                    ring.write(job.output, &operation.output[..written]);
                    ring.write(job.tag, &operation.tag);
                }
                ring.complete(taken, Outcome::of(&result));
            }
        }
    }
}

/// The variable that turns a test program into a broker.
const SERVE: &str = "BYWASH_TEST_SERVE";

/// To be called by a test named `broker_process`: serves, if this process was started by [`spawn`].
pub(crate) fn serve_if_asked() {
    if let Some(path) = std::env::var_os(SERVE) {
        let _broker = ToyBroker::start(path.as_ref(), Geometry::default());
        loop {
            thread::park();
        }
    }
}

/// A broker in a process of its own.
pub(crate) fn spawn(path: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "broker_process", "--quiet"]).env(SERVE, path);
    command.stdout(std::process::Stdio::null()).spawn().unwrap()
}
