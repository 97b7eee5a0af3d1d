//! The broker itself: taking its place, accepting, ending.

use crate::client::{Client, STACK_BYTES};
use crate::config::BrokerConfig;
use crate::http::Endpoint;
use crate::keyring::Keyring;
use crate::lock::Place as SocketPlace;
use crate::precedence::Precedence;
use crate::recorder::RecordingEnd;
use crate::routes::Routes;
use crate::stats::Stats;
use crate::tally::Tally;
use crate::telemetry::Telemetry;
use crate::users::{Unwelcome, Users};
use crate::{connection, throttle::Throttle};
use bywash_core::{Error, Result};
use bywash_protocol::{Board, BrokerMessage, ControlSocket, Listener, Peer, Quota, Refusal};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Waiting for connections while there are no clients.
const IDLE: Duration = Duration::from_secs(3600);
/// Connections of one user who is not known to have permission and has not said `Hello` yet: each holds a descriptor and a thread.
const STRANGERS_MAX: u32 = 16;
/// The same of all such users together: one may have thousands of numbers (subuid(5)).
const ALL_STRANGERS_MAX: u32 = 256;
/// How long the clients' threads may take to end.
const END_BOUND: Duration = Duration::from_secs(5);

/// What the broker's threads share.
pub(crate) struct Shared {
    pub(crate) config: BrokerConfig,
    pub(crate) board: Board,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) precedence: Arc<Precedence>,
    pub(crate) next_client: AtomicU32,
    pub(crate) spinners: AtomicUsize,
    pub(crate) spinners_max: usize,
    pub(crate) begun: Instant,
    pub(crate) draining: AtomicBool,
    pub(crate) keyring: Option<Keyring>,
    listener: Listener,
    clients: Mutex<BTreeMap<u32, Arc<Client>>>,
    /// Connections by user, those not yet welcomed included.
    connections: Tally,
    /// Those of them who have yet to show that they may connect.
    strangers: Tally,
    threads_line: Throttle,
    pub(crate) users: Arc<Users>,
}

/// A broker that has its place and does not work yet: see [`run`](Self::run).
pub struct Broker {
    shared: Arc<Shared>,
    endpoint: Option<Endpoint>,
    place: SocketPlace,
}

/// A hold on a broker that runs: for signals, statistics, recordings. Cheap to clone.
#[derive(Clone)]
pub struct BrokerHandle(Arc<Shared>);

impl Broker {
    /// Takes the socket's place and listens. Connections wait until [`run`](Self::run).
    ///
    /// # Errors
    /// [`Error::Unavailable`], naming the path: another broker is there (with its pid), no permission, not a socket; or the metrics'
    /// address is taken. [`Error::Config`] for impossible sizes.
    pub fn bind(config: BrokerConfig) -> Result<Self> {
        config.geometry.check().map_err(|error| Error::Config { place: "broker, geometry".into(), reason: error.to_string() })?;
        let keyring = config.vault.clone().map(|vault| Keyring::new(vault, config.audit.as_deref())).transpose()?;
        let board = Board::create()?;
        let (place, listener) = SocketPlace::take(&config.socket, config.socket_mode())?;
        let names: Vec<String> = config.manager.engines().iter().map(|engine| engine.name().to_owned()).collect();
        let telemetry = Arc::new(Telemetry::new(names.clone(), config.tenants.clone()));
        let precedence = Arc::new(Precedence::new(names, config.module_first));
        let of_threads = precedence.clone();
        config.manager.on_begin(Arc::new(move |engine| of_threads.begin(engine)));
        let observer = telemetry.clone();
        config.manager.observe(Arc::new(move |seen| observer.observe(seen)));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared {
            board,
            telemetry,
            precedence,
            next_client: AtomicU32::new(1),
            spinners: AtomicUsize::new(0),
            spinners_max: (cores / 2).max(1),
            begun: Instant::now(),
            draining: AtomicBool::new(false),
            keyring,
            listener,
            clients: Mutex::default(),
            connections: Tally::default(),
            strangers: Tally::default(),
            threads_line: Throttle::default(),
            users: Arc::default(),
            config,
        });
        let endpoint = shared.config.metrics.map(|address| Endpoint::start(address, &shared)).transpose()?;
        Ok(Self { shared, endpoint, place })
    }

    /// A hold on it, to be taken before [`run`](Self::run).
    pub fn handle(&self) -> BrokerHandle {
        BrokerHandle(self.shared.clone())
    }

    /// Where metrics are served over HTTP, if they are.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.endpoint.as_ref().map(Endpoint::address)
    }

    /// Serves until [`BrokerHandle::shutdown`], then drains: refuses what is new, ends what is in flight within the configured bound,
    /// closes all connections and removes the socket.
    ///
    /// # Errors
    /// [`Error::Timeout`] if something was still running at the bound.
    pub fn run(self) -> Result<()> {
        tracing::info!(socket = %self.shared.config.socket.display(), pid = std::process::id(), "broker listens");
        self.accept();
        let drained = self.shared.drain();
        drop((self.endpoint, self.place));
        tracing::info!(drained, "broker ended");
        let bound = self.shared.config.drain_bound;
        if drained { Ok(()) } else { Err(Error::Timeout { from: "requests in flight".into(), waited_ms: bound.as_millis() as u64 }) }
    }

    /// Serves in a thread of its own.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if there can be no thread.
    pub fn spawn(self) -> Result<std::thread::JoinHandle<Result<()>>> {
        let thread = std::thread::Builder::new().name("bywash-accept".into()).stack_size(STACK_BYTES);
        thread.spawn(|| self.run()).map_err(|error| Error::Unavailable { what: format!("cannot start the broker's thread: {error}") })
    }

    fn accept(&self) {
        // All of the broker's threads come from this one: clients, and their goals, wait for each of them.
        bywash_protocol::turns::take_short_turns();
        let shared = &self.shared;
        let mut routes = Routes::new(shared);
        let failing = Throttle::default();
        while !shared.draining.load(SeqCst) {
            if shared.precedence.until_next().is_zero() {
                shared.precedence.look();
            }
            // Not at every connection: a flood of them would keep it computing routes.
            if routes.until_next().is_zero() {
                if let Some(keyring) = &shared.keyring {
                    keyring.tick(shared);
                }
                routes.look(shared);
            }
            let idle = shared.clients().is_empty() && shared.keyring.as_ref().is_none_or(|keyring| !keyring.is_waiting());
            let until_next = if idle { IDLE } else { routes.until_next() };
            match shared.listener.accept(until_next.min(shared.precedence.until_next())) {
                Ok(socket) => shared.admit(socket),
                Err(Error::Timeout { .. }) => {}
                Err(_) if shared.draining.load(SeqCst) => {}
                Err(error) => {
                    if failing.pass().is_some() {
                        tracing::error!("{error}");
                    }
                    // Mostly out of descriptors: some client's end will give some back.
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }
}

impl Shared {
    pub(crate) fn clients(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a connection its thread, if its user may have one more. Nothing here waits for the peer.
    fn admit(self: &Arc<Self>, socket: ControlSocket) {
        let Ok(peer) = socket.peer() else { return };
        let known = connection::is_known(self, &socket, peer.uid);
        if !known && !self.strangers.enter(peer.uid, STRANGERS_MAX, Some(ALL_STRANGERS_MAX)) {
            return self.telemetry.deny(peer.pid, peer.uid, "too many connections of a user without permission who have not said Hello");
        }
        let stranger = (!known).then(|| self.strangers.entered(peer.uid));
        if let Err(unwelcome) = self.count_in(peer) {
            let refusal = self.turn_away(peer, &unwelcome);
            let _ = socket.send(&BrokerMessage::Refused { request: 0, refusal }, &[], Duration::ZERO);
            return;
        }
        let shared = self.clone();
        let thread = std::thread::Builder::new().name("bywash-control".into()).stack_size(STACK_BYTES);
        let body = move || {
            let _counted = shared.connections.entered(peer.uid);
            let stranger = (!known).then(|| shared.strangers.entered(peer.uid));
            connection::serve(&shared, socket, peer, stranger);
        };
        match thread.spawn(body) {
            // The thread counts it out.
            Ok(_) => std::mem::forget(stranger),
            Err(error) => {
                if let Some(unsaid) = self.threads_line.pass() {
                    tracing::error!(pid = peer.pid, unsaid, "cannot start a client's thread: {error}");
                }
                drop(self.connections.entered(peer.uid));
            }
        }
    }

    /// Counts a connection of this user in, if it may have one more now.
    fn count_in(&self, peer: Peer) -> std::result::Result<(), Unwelcome> {
        let limit = self.config.quotas.clients_per_uid_max;
        if !self.connections.enter(peer.uid, limit, None) {
            return Err(Unwelcome::Quota(Quota::Clients, limit));
        }
        let admitted = self.users.admit(peer.uid, &self.config.quotas, Instant::now());
        admitted.inspect_err(|_| drop(self.connections.entered(peer.uid)))
    }

    /// Counts and logs why a connection is turned away; gives what its client is told.
    pub(crate) fn turn_away(&self, peer: Peer, unwelcome: &Unwelcome) -> Refusal {
        match *unwelcome {
            Unwelcome::Quota(quota, limit) => {
                self.telemetry.refuse(quota, limit, peer.pid, peer.uid);
                Refusal::Quota { quota, limit: u64::from(limit) }
            }
            Unwelcome::BackOff(left) => {
                let what = format!(
                    "a process of uid {} broke the protocol's rules (the broker's log says which); it may connect again in {} ms",
                    peer.uid,
                    left.as_millis() + 1
                );
                self.telemetry.deny(peer.pid, peer.uid, &what);
                Refusal::Unavailable { what }
            }
        }
    }

    /// A client broke the rules: counted, logged, and its user stays out for a while. The caller disconnects it.
    pub(crate) fn misdeed(&self, peer: Peer, what: &dyn std::fmt::Display) {
        self.telemetry.misdeed(peer.pid, peer.uid, what);
        self.users.misdeed(peer.uid, Instant::now());
    }

    /// Ends all sessions with a key of the vault; who may still use it opens another.
    pub(crate) fn end_sessions_of(&self, name: &str) {
        let clients: Vec<_> = self.clients().values().cloned().collect();
        for entry in clients.iter().flat_map(|client| client.sessions.remove_with_key(name)) {
            // It fails only for a session that its client's end has closed.
            let _ = self.config.manager.close(entry.id);
        }
    }

    /// Starts a recording for a client, or for this process (0).
    pub(crate) fn start_recording(self: &Arc<Self>, owner: u32, into: Box<dyn Write + Send>) -> Result<()> {
        let weak = Arc::downgrade(self);
        let drain = move |each: &mut dyn FnMut()| {
            if let Some(shared) = weak.upgrade() {
                shared.each_client(|client| {
                    client.drain_trace(&shared.telemetry.recorder);
                    each();
                });
            }
        };
        let weak = Arc::downgrade(self);
        let failed = move || {
            if let Some(shared) = weak.upgrade() {
                shared.board.set_recording(false);
            }
        };
        self.telemetry.recorder.start(owner, self.config.manager.now(), into, Box::new(drain), Box::new(failed))?;
        self.each_client(Client::skip_trace);
        self.board.set_recording(true);
        // It may have failed before that was announced.
        if !self.telemetry.recorder.is_active() {
            self.board.set_recording(false);
        }
        tracing::info!(owner, "recording");
        Ok(())
    }

    pub(crate) fn stop_recording(&self, owner: u32) -> Result<RecordingEnd> {
        if self.telemetry.recorder.owner() != Some(owner) {
            return Err(Error::Unavailable { what: "no recording of yours is running".into() });
        }
        self.board.set_recording(false);
        self.each_client(|client| client.end_trace(&self.telemetry.recorder));
        let end = self.telemetry.recorder.stop(owner)?;
        tracing::info!(owner, written = end.written, dropped = end.dropped, "recording ended");
        Ok(end)
    }

    /// Without holding the list of the clients meanwhile.
    fn each_client(&self, mut then: impl FnMut(&Client)) {
        let clients: Vec<_> = self.clients().values().cloned().collect();
        clients.iter().for_each(|client| then(client));
    }

    /// Ends what is in flight, then all connections; false if something was still running at the bound.
    fn drain(&self) -> bool {
        self.board.set_draining(true);
        let drained = self.config.manager.drain(self.config.drain_bound);
        // While its client is there: it has the whole of it when it sees that the broker ends.
        if let Some(owner) = self.telemetry.recorder.owner().filter(|&owner| owner != 0) {
            let _ = self.stop_recording(owner);
        }
        self.clients().values().for_each(|client| client.socket.shutdown());
        let ended = self.connections.await_none(END_BOUND);
        if let Some(keyring) = &self.keyring {
            keyring.end();
        }
        // A recording for this process ends with the broker.
        let _ = self.stop_recording(0);
        drained && ended
    }
}

impl BrokerHandle {
    /// Asks [`Broker::run`] to drain and return. Returns at once; safe to call again.
    pub fn shutdown(&self) {
        self.0.draining.store(true, SeqCst);
        self.0.listener.shutdown();
    }

    /// A picture of the broker.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.0)
    }

    /// Records every request into `into`, until [`stop_recording`](Self::stop_recording).
    ///
    /// # Errors
    /// [`Error::Unavailable`] if a recording is running already.
    pub fn start_recording(&self, into: Box<dyn Write + Send>) -> Result<()> {
        self.0.start_recording(0, into)
    }

    /// Ends the recording that [`start_recording`](Self::start_recording) began.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if none is running or it could not be written; [`Error::Timeout`] if writing hangs.
    pub fn stop_recording(&self) -> Result<RecordingEnd> {
        self.0.stop_recording(0)
    }

    /// Processes connected.
    pub fn clients(&self) -> usize {
        self.0.clients().len()
    }
}
