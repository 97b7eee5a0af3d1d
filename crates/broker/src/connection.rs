//! A connection's control thread: from `Hello` to the end of the client.

use crate::behalf;
use crate::broker::Shared;
use crate::client::{Client, STACK_BYTES};
use crate::keyring::{self, Answer, KeySession, no_vault};
use crate::sessions::{Entry, Sessions};
use crate::stats::Stats;
use crate::tally::Entered;
use crate::throttle::Bucket;
use crate::users::Unwelcome;
use crate::work::Worker;
use bywash_core::secret::constant_time_eq;
use bywash_core::trace::Whose;
use bywash_core::{Algorithm, Error, KeyReference, Result, SessionParams};
use bywash_protocol::message::NAME_BYTES_MAX;
use bywash_protocol::socket::Packet;
use bywash_protocol::{
    BrokerMessage, BrokerRing, ClientMessage, ControlSocket, Intake, KeyCommand, Peer, Quota, Refusal, Region, Role, StatsFormat, VERSION,
    WireParams,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, MemfdFlags};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// How long a connection may take to introduce itself.
const HELLO_BOUND: Duration = Duration::from_secs(5);
/// How long a client may leave its socket full of answers.
const SEND_BOUND: Duration = Duration::from_secs(1);
/// What a message above the rate costs its sender.
const PENALTY: Duration = Duration::from_millis(1);

/// How long after the first time a ring thread that does not end is told again to; twice as long each time, up to [`AGAIN_MAX`].
const AGAIN: Duration = Duration::from_millis(1);
const AGAIN_MAX: Duration = Duration::from_millis(128);
/// What statistics cost of the rate of messages: they go through all clients.
const STATS_COST: f64 = 100.0;

struct Connection {
    shared: Arc<Shared>,
    client: Arc<Client>,
    intake: Option<Intake>,
    worker: Option<std::thread::JoinHandle<()>>,
    _arena: Option<Arena>,
}

/// Why a connection ends before its client ends it.
enum End {
    /// The socket is gone.
    Broken(Error),
    /// The client broke the rules.
    Misdeed(String),
    /// Somebody else spoke: this one, if the kernel says who.
    Another(Option<Peer>),
}

/// An arena booked on its user's account, until it is gone.
struct Arena {
    shared: Arc<Shared>,
    uid: u32,
    bytes: u64,
}

impl Arena {
    fn book(shared: &Arc<Shared>, uid: u32) -> std::result::Result<Self, Unwelcome> {
        let bytes = u64::from(shared.config.geometry.arena_bytes);
        shared.users.lend(uid, bytes, &shared.config.quotas)?;
        Ok(Self { shared: shared.clone(), uid, bytes })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.shared.users.give_back(self.uid, self.bytes);
    }
}

/// Serves one connection to its end.
pub(crate) fn serve(shared: &Arc<Shared>, socket: ControlSocket, peer: Peer, stranger: Option<Entered<'_>>) {
    let mut packet = Packet::new();
    let hello = socket.receive(&mut packet, HELLO_BOUND).and_then(|open| if open { packet.message() } else { Err(ended()) });
    let Ok(ClientMessage::Hello { version, role, comm, run }) = hello else {
        refuse(&socket, 0, Refusal::Unavailable { what: "a connection begins with Hello".into() });
        return;
    };
    let Some(speaker) = peer.introduced_by(&packet) else {
        let what = of_another(shared, peer, packet.sender);
        return refuse(&socket, 0, Refusal::Unavailable { what });
    };
    let outcome = welcome(shared, socket, peer, &packet.files, (version, role, comm, run));
    // Welcome or not, a stranger no more.
    drop(stranger);
    match outcome {
        Ok(mut connection) => {
            tracing::debug!(
                client = connection.client.number,
                by = peer.pid,
                pid = connection.client.whose.pid,
                uid = connection.client.whose.uid,
                comm = connection.client.whose.program,
                "connected"
            );
            match connection.talk(&mut packet, speaker) {
                Ok(()) => {}
                Err(End::Broken(error)) => tracing::debug!(client = connection.client.number, "disconnected: {error}"),
                Err(End::Misdeed(what)) => shared.misdeed(peer, &what),
                Err(End::Another(sender)) => drop(of_another(shared, peer, sender)),
            }
        }
        Err(Some((pid, why))) => shared.telemetry.deny(pid, peer.uid, &why),
        Err(None) => {}
    }
}

/// Tells of a connection that ends because not the process that has made it speaks there, and says why in words. It costs its user nothing, who may not be the other's.
fn of_another(shared: &Shared, peer: Peer, sender: Option<Peer>) -> String {
    let Peer { pid, uid, .. } = sender.unwrap_or(peer);
    let why = format!("it spoke on the connection of process {} (uid {}), and has to make one of its own", peer.pid, peer.uid);
    shared.telemetry.deny(pid, uid, &why);
    why
}

fn ended() -> Error {
    Error::Unavailable { what: "the connection has ended".into() }
}

fn refuse(socket: &ControlSocket, request: u32, refusal: Refusal) {
    // A client that does not take its refusal is told by the end of the connection.
    let _ = socket.send(&BrokerMessage::Refused { request, refusal }, &[], SEND_BOUND);
}

/// Checks version and permission, makes what the client needs, and sends it. It may have `sent` a descriptor of the process for which it computes, if that is another.
#[allow(clippy::type_complexity, reason = "the refusal's log line, where there is one")]
fn welcome(
    shared: &Arc<Shared>,
    socket: ControlSocket,
    peer: Peer,
    sent: &[OwnedFd],
    (version, role, comm, run): (u16, Role, &str, Option<&str>),
) -> std::result::Result<Connection, Option<(u32, String)>> {
    if version != VERSION {
        refuse(&socket, 0, Refusal::Version { spoken: VERSION });
        return Err(Some((peer.pid, format!("it speaks protocol {version}, this broker {VERSION}"))));
    }
    if !may_connect(shared, &socket, peer.uid, run) {
        let what =
            format!("uid {} may not use this broker; its owner can allow it with `bywash serve --allow-uid {0}` or --allow-gid", peer.uid);
        refuse(&socket, 0, Refusal::Unavailable { what: what.clone() });
        return Err(Some((peer.pid, what)));
    }
    // Of a peer whose groups the kernel does not tell no rule for a group speaks.
    let own = Whose { pid: peer.pid, uid: peer.uid, gids: socket.peer_groups().unwrap_or_default(), program: short(comm) };
    let whose = behalf::whose(sent, peer, own).map_err(|behalf::NoProcess| {
        let what = "what came with its first message is no descriptor of a process".to_owned();
        refuse(&socket, 0, Refusal::Unavailable { what: what.clone() });
        shared.misdeed(peer, &what);
        None
    })?;
    let arena = (role == Role::Compute).then(|| Arena::book(shared, peer.uid)).transpose();
    let arena = arena.map_err(|unwelcome| {
        refuse(&socket, 0, shared.turn_away(peer, &unwelcome));
        None
    })?;
    let made = match role {
        Role::Observe => Ok(None),
        Role::Compute => Region::create(shared.config.geometry).map(Some),
    };
    let made = made.map_err(|error| {
        refuse(&socket, 0, Refusal::of(&error));
        Some((peer.pid, error.to_string()))
    })?;
    let (half, file) = made.map(|(region, file)| (BrokerRing::new(region), file)).unzip();
    let (intake, ring) = half.unzip();
    let client = Arc::new(Client {
        number: shared.next_client.fetch_add(1, Relaxed),
        peer,
        whose: Arc::new(whose),
        run: run.map(short),
        socket,
        sessions: Sessions::new(shared.config.quotas, peer.uid, shared.users.clone()),
        account: Default::default(),
        ring,
        trace: Default::default(),
    });
    if role == Role::Compute {
        let tenant = shared.telemetry.ledger.join(client.number, client.whose.clone());
        shared.config.manager.join(client.number, tenant);
    }
    shared.clients().insert(client.number, client.clone());
    // From here on the connection's drop undoes all.
    let connection = Connection { shared: shared.clone(), client, intake, worker: None, _arena: arena };
    if shared.draining.load(SeqCst) {
        // The drain may have gone through the clients before this one was among them.
        refuse(&connection.client.socket, 0, Refusal::Unavailable { what: "this broker is shutting down".into() });
        return Err(None);
    }
    let message = BrokerMessage::Welcome { version: VERSION, client: connection.client.number, broker_pid: std::process::id() };
    let files: Vec<BorrowedFd<'_>> = file.iter().chain([shared.board.file()]).map(OwnedFd::as_fd).collect();
    connection.client.socket.send(&message, &files, SEND_BOUND).map_err(|_| None)?;
    drop(files);
    Ok(connection)
}

/// This user and root, those allowed, and whoever knows the run's token.
fn may_connect(shared: &Shared, socket: &ControlSocket, uid: u32, run: Option<&str>) -> bool {
    let token = shared.config.run_token.as_deref();
    let knows_token = token.zip(run).is_some_and(|(token, run)| constant_time_eq(token.as_bytes(), run.as_bytes()));
    is_known(shared, socket, uid) || knows_token
}

/// Whether a user may connect whatever is said in `Hello`.
pub(crate) fn is_known(shared: &Shared, socket: &ControlSocket, uid: u32) -> bool {
    is_owner(uid) || shared.config.allowed_uids.contains(&uid) || group_among(socket, &shared.config.allowed_gids).is_some()
}

/// The first of the peer's groups that is among these. Groups that cannot be read give no leave.
pub(crate) fn group_among(socket: &ControlSocket, gids: &[u32]) -> Option<u32> {
    if gids.is_empty() {
        return None;
    }
    socket.peer_groups().ok()?.into_iter().find(|gid| gids.contains(gid))
}

/// Whether this is the user whose broker it is, or root.
pub(crate) fn is_owner(uid: u32) -> bool {
    uid == 0 || uid == own_uid()
}

/// Whether who has connected, and sent this now, may command: as the owner, who has not become somebody else since.
pub(crate) fn commands(peer: Peer, sender: Option<Peer>) -> bool {
    is_owner(peer.uid) && sender.is_some_and(|sender| is_owner(sender.uid))
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Names are for people and for accounts: printable, and short.
pub(crate) fn short(name: &str) -> String {
    name.chars().filter(|char| !char.is_control()).take(NAME_BYTES_MAX).collect()
}

impl Connection {
    /// With the one who has introduced itself, and nobody else.
    fn talk(&mut self, packet: &mut Packet, speaker: Peer) -> std::result::Result<(), End> {
        let mut bucket = Bucket::new(self.shared.config.quotas.control_rate_max);
        while self.receive(packet).map_err(End::Broken)? {
            if !speaker.has_sent(packet) {
                return Err(End::Another(packet.sender));
            }
            let message = packet.message().map_err(|error: Error| End::Misdeed(error.to_string()))?;
            let cost = if matches!(message, ClientMessage::Stats { .. }) { STATS_COST } else { 1.0 };
            let answered = if bucket.take(cost) { self.answer(packet) } else { self.over_rate(packet) };
            // It may have held a key.
            packet.wipe();
            answered.map_err(|error| match error {
                Error::Timeout { .. } => End::Misdeed(format!("it has not read its answers for {} s", SEND_BOUND.as_secs())),
                other => End::Broken(other),
            })?;
        }
        Ok(())
    }

    /// The next message, however long it takes: who computes says nothing here, and who records says when that is over. False when the client has ended.
    fn receive(&self, packet: &mut Packet) -> Result<bool> {
        loop {
            match self.client.socket.receive(packet, self.shared.config.silence) {
                Err(Error::Timeout { .. }) if self.client.peer.is_there() => {}
                Err(Error::Timeout { .. }) => return Ok(false),
                received => return received,
            }
        }
    }

    /// Refused, and slowed down: the next message waits in the sender's own socket.
    fn over_rate(&self, packet: &Packet) -> Result<()> {
        let limit = self.shared.config.quotas.control_rate_max;
        std::thread::sleep(PENALTY);
        match packet.message()? {
            // A close is never refused: it makes things better.
            ClientMessage::Close { session } => self.close(session),
            ClientMessage::Open { request, .. }
            | ClientMessage::Stats { request, .. }
            | ClientMessage::StartRecording { request }
            | ClientMessage::StopRecording { request }
            | ClientMessage::Describe { request, .. }
            | ClientMessage::Keys { request, .. } => self.refused(request, &Quota::ControlRate.error(u64::from(limit)))?,
            ClientMessage::Hello { .. } => {}
        }
        Ok(())
    }

    fn answer(&mut self, packet: &mut Packet) -> Result<()> {
        let (file, sender) = (packet.files.pop(), packet.sender);
        match packet.message()? {
            ClientMessage::Open { request, params } => match self.open(&params) {
                Ok(session) => self.send(&BrokerMessage::Opened { request, session }),
                Err(error) => self.refused(request, &error).and_then(|()| self.check_worker(error)),
            },
            ClientMessage::Close { session } => {
                self.close(session);
                Ok(())
            }
            ClientMessage::Stats { request, format } => self.stats(request, format),
            ClientMessage::StartRecording { request } => match self.start_recording(file, sender) {
                Ok(()) => self.send(&BrokerMessage::Recording { request }),
                Err(error) => self.refused(request, &error),
            },
            ClientMessage::StopRecording { request } => match self.shared.stop_recording(self.client.number) {
                Ok(end) => self.send(&BrokerMessage::Recorded { request, written: end.written, dropped: end.dropped }),
                Err(error) => self.refused(request, &error),
            },
            ClientMessage::Describe { request, name, public } => {
                let keyring = self.shared.keyring.as_ref().ok_or_else(|| no_vault(name));
                match keyring.and_then(|keyring| keyring.describe(name, public, &self.client)) {
                    Ok(public) => self.send(&BrokerMessage::Key { request, public }),
                    Err(error) => self.refused(request, &error),
                }
            }
            ClientMessage::Keys { request, command } => self.command(request, &command, sender),
            ClientMessage::Hello { .. } => Err(Error::Unavailable { what: "a second Hello".into() }),
        }
    }

    fn send(&self, message: &BrokerMessage) -> Result<()> {
        self.client.socket.send(message, &[], SEND_BOUND)
    }

    /// Tells why not; a quota is counted and logged as well.
    fn refused(&self, request: u32, error: &Error) -> Result<()> {
        let refusal = Refusal::of(error);
        if let Refusal::Quota { quota, limit } = refusal {
            self.shared.telemetry.refuse(quota, u32::try_from(limit).unwrap_or(u32::MAX), self.client.peer.pid, self.client.peer.uid);
        }
        self.send(&BrokerMessage::Refused { request, refusal })
    }

    fn open(&mut self, params: &WireParams<'_>) -> Result<u32> {
        if self.client.ring.is_none() {
            return Err(Error::Unavailable { what: "an observer opens no sessions; connect to compute".into() });
        }
        let params = params.check()?;
        let (reference, algorithm) = (keyring::reference(&params).cloned(), params.algorithm());
        let session = self.client.sessions.insert(|| {
            let (params, key) = match &reference {
                Some(reference) => self.by_reference(reference, algorithm)?,
                None => (params, None),
            };
            let (algorithm, tag_len) = (params.algorithm(), params.tag_len());
            let id = self.shared.config.manager.open(self.client.number, params)?;
            Ok(Entry { id, algorithm, tag_len, key })
        })?;
        if let (Some(reference), Some(keyring)) = (&reference, &self.shared.keyring) {
            keyring.still_permits(reference, algorithm, &self.client).inspect_err(|_| self.close(session))?;
        }
        self.start_worker().inspect_err(|_| self.close(session))?;
        Ok(session)
    }

    fn by_reference(&self, reference: &KeyReference, algorithm: Algorithm) -> Result<(SessionParams, Option<Arc<KeySession>>)> {
        let keyring = self.shared.keyring.as_ref().ok_or_else(|| no_vault(&reference.name))?;
        let (params, key) = keyring.open(reference, algorithm, &self.client)?;
        Ok((params, Some(key)))
    }

    /// A command of the vault's owner.
    fn command(&self, request: u32, command: &KeyCommand<'_>, sender: Option<Peer>) -> Result<()> {
        let keyring = self.shared.keyring.as_ref().ok_or_else(|| no_vault(command.name().unwrap_or("?")));
        match keyring.and_then(|keyring| keyring.command(&self.shared, &self.client, sender, command)) {
            Ok(Answer::Key(public)) => self.send(&BrokerMessage::Key { request, public }),
            Ok(Answer::Keys(keys)) => match serde_json::to_string(&keys).map(|text| (in_memory(&text), text.len())) {
                Ok((Ok(file), len)) => {
                    self.client.socket.send_to_reader(&BrokerMessage::Keys { request, bytes: len as u64 }, &[file.as_fd()], SEND_BOUND)
                }
                Ok((Err(error), _)) => self.refused(request, &error),
                Err(error) => self.refused(request, &Error::Unavailable { what: error.to_string() }),
            },
            Err(error) => self.refused(request, &error),
        }
    }

    fn close(&self, session: u32) {
        if let Some(entry) = self.client.sessions.remove(session) {
            // It fails only for a session that is closed already, which `remove` rules out.
            let _ = self.shared.config.manager.close(entry.id);
        }
    }

    /// A client whose ring thread could not be started would submit requests that nobody takes: it has been told, and is let go.
    fn check_worker(&self, error: Error) -> Result<()> {
        let lacks_worker = self.client.ring.is_some() && self.intake.is_none() && self.worker.is_none();
        if lacks_worker { Err(error) } else { Ok(()) }
    }

    /// The ring thread begins with the first session: before that, there is nothing that it could compute.
    fn start_worker(&mut self) -> Result<()> {
        let Some(intake) = self.intake.take() else { return Ok(()) };
        let worker = Worker::new(self.shared.clone(), self.client.clone(), intake);
        let thread = std::thread::Builder::new().name(format!("ring-{}", self.client.number)).stack_size(STACK_BYTES);
        let thread = thread.spawn(move || worker.work());
        self.worker = Some(thread.map_err(|error| Error::Unavailable { what: format!("the broker cannot start a thread: {error}") })?);
        Ok(())
    }

    /// The text goes in a file of its own, so that a slow reader never holds the broker up.
    fn stats(&self, request: u32, format: StatsFormat) -> Result<()> {
        let mut stats = Stats::of(&self.shared);
        if !is_owner(self.client.peer.uid) {
            stats.keep_to(self.client.peer.uid);
        }
        let text = match format {
            StatsFormat::Prometheus => stats.to_prometheus(),
            StatsFormat::Json => stats.to_json(),
            StatsFormat::Recent => self.recent(),
        };
        let file = text.and_then(|text| Ok((in_memory(&text)?, text.len())));
        match file {
            Ok((file, len)) => {
                self.client.socket.send_to_reader(&BrokerMessage::Stats { request, bytes: len as u64 }, &[file.as_fd()], SEND_BOUND)
            }
            Err(error) => self.refused(request, &error),
        }
    }

    /// The latest requests: all of them for those whose broker it is, else the user's own.
    fn recent(&self) -> Result<String> {
        let uid = self.client.peer.uid;
        let mut recent = self.shared.telemetry.recent();
        recent.retain(|request| is_owner(uid) || request.uid == uid);
        serde_json::to_string(&recent)
            .map_err(|error| Error::Unavailable { what: format!("the latest requests have no JSON form: {error}") })
    }

    /// Only for those whose broker it is: a recording shows what all clients do. Only regular files: a pipe that nobody reads would
    /// hold the recorder up.
    fn start_recording(&self, file: Option<OwnedFd>, sender: Option<Peer>) -> Result<()> {
        if !commands(self.client.peer, sender) {
            let what = format!("a recording shows all users' requests, so only root and uid {} may make one", own_uid());
            return Err(Error::Unavailable { what });
        }
        let missing = || Error::Unavailable { what: "a recording needs a regular file, sent with the message".into() };
        let file = file.ok_or_else(missing)?;
        let stat = rustix::fs::fstat(&file).map_err(|_| missing())?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(missing());
        }
        self.shared.start_recording(self.client.number, Box::new(std::fs::File::from(file)))
    }
}

fn in_memory(text: &str) -> Result<OwnedFd> {
    let fail = |error: std::io::Error| Error::Unavailable { what: format!("cannot hand out a text: {error}") };
    let file = rustix::fs::memfd_create("bywash-stats", MemfdFlags::CLOEXEC).map_err(|error| fail(error.into()))?;
    let mut file = std::fs::File::from(file);
    file.write_all(text.as_bytes()).map_err(fail)?;
    Ok(file.into())
}

impl Drop for Connection {
    /// Reclaims everything, whatever the reason for the end.
    fn drop(&mut self) {
        let client = &self.client;
        client.socket.shutdown();
        if let Some(ring) = &client.ring {
            ring.interrupt();
        }
        if let Some(worker) = self.worker.take() {
            // Again and again, for a hostile client can say "asleep" after the interrupt has said "awake".
            let mut again = AGAIN;
            while !worker.is_finished() {
                // It may wait for its turn in a queue, for long if somebody else holds the engine.
                self.shared.config.manager.abandon(client.number);
                std::thread::sleep(again);
                again = AGAIN_MAX.min(2 * again);
                client.ring.iter().for_each(|ring| ring.interrupt());
            }
            // A ring thread that has panicked has nothing more to give.
            let _ = worker.join();
        }
        self.shared.config.manager.close_client(client.number);
        self.shared.telemetry.ledger.leave(client.number);
        if self.shared.telemetry.recorder.is_active() {
            client.end_trace(&self.shared.telemetry.recorder);
        }
        // It fails unless this client was recording, which is fine.
        let _ = self.shared.stop_recording(client.number);
        let (served, claimed) = client.work();
        let mut clients = self.shared.clients();
        if client.ring.is_some() {
            self.shared.telemetry.runs().end(client.run().unwrap_or(crate::accounts::NO_RUN), client.whose.uid, &served, &claimed);
        }
        clients.remove(&client.number);
    }
}
