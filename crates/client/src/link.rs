//! A connection to a broker: its socket, its ring, its board, and the operations under way on it.

use crate::behalf::program_of;
use crate::config::Config;
use crate::life::Life;
use crate::reaper::Reaper;
use bywash_core::{Data, Error, Operation, Result, SessionParams};
use bywash_protocol::descriptor::Verdict;
use bywash_protocol::socket::Packet;
use bywash_protocol::{
    BoardView, BrokerMessage, ClientMessage, ClientRing, ControlSocket, Outcome, Region, Role, Spin, Ticket, VERSION, WireParams,
    monotonic_ns,
};
use core::cell::RefCell;
use rustix::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longest wait for the broker's answer on the control socket. A broker answers in well under a millisecond; a machine under load takes longer.
const CONTROL_BOUND: Duration = Duration::from_millis(500);
/// Longest wait for one operation: then it is run here. If the broker has not completed anything for as long, the connection is given up.
pub(crate) const OPERATION_BOUND: Duration = Duration::from_secs(3);
/// How often a waiter looks whether the broker lives.
pub(crate) const SLICE: Duration = Duration::from_millis(50);
/// Longest spin for an answer, where answers have lately come that fast.
const SPIN: Duration = Duration::from_micros(20);

/// A connection to a broker.
pub(crate) struct Link {
    pub(crate) life: Arc<Life>,
    pub(crate) ring: Arc<ClientRing>,
    pub(crate) board: BoardView,
    /// Whose turn it is to ask and be answered on the socket. A forked child never takes it.
    turn: Mutex<Turn>,
    reaper: Arc<Reaper>,
}

struct Turn {
    request: u32,
    packet: Packet,
}

impl Link {
    /// Connects and introduces this process, or the one on whose behalf it computes.
    pub(crate) fn connect(path: &Path, config: &Config) -> Result<Arc<Self>> {
        let socket = ControlSocket::connect(path)?;
        let (run, behalf) = (config.run.as_deref(), config.behalf.as_deref());
        let comm = behalf.map_or_else(|| program_of("self"), |behalf| behalf.program().to_owned());
        let process: Vec<_> = behalf.map(AsFd::as_fd).into_iter().collect();
        socket.send(&ClientMessage::Hello { version: VERSION, role: Role::Compute, comm: &comm, run }, &process, CONTROL_BOUND)?;
        let mut packet = Packet::new();
        if !socket.receive(&mut packet, CONTROL_BOUND)? {
            return Err(Error::Unavailable { what: format!("the broker on {} hung up without a word", path.display()) });
        }
        match packet.message()? {
            BrokerMessage::Welcome { version: VERSION, .. } => {}
            BrokerMessage::Welcome { version, .. } => return Err(bywash_protocol::Refusal::Version { spoken: version }.into_error()),
            BrokerMessage::Refused { refusal, .. } => return Err(refusal.into_error()),
            _ => return Err(unexpected()),
        }
        let [region, board] = &packet.files[..] else { return Err(unexpected()) };
        let (ring, board) = (ClientRing::new(Region::open(region)?), BoardView::open(board)?);
        packet.wipe();
        let life = Life::new(socket, monotonic_ns());
        let reaper = Reaper::new(ring.clone(), life.clone());
        Ok(Arc::new(Self { life, ring, board, turn: Mutex::new(Turn { request: 0, packet }), reaper }))
    }

    /// Whether operations may be sent.
    pub(crate) fn is_usable(&self) -> bool {
        self.life.is_usable() && !self.board.is_draining()
    }

    /// Opens a session at the broker, unless `already` says that another thread did so while this one waited for its turn.
    pub(crate) fn open<T>(
        self: &Arc<Self>,
        params: &SessionParams,
        already: impl Fn() -> Option<T>,
        opened: impl Fn(LinkSession) -> T,
    ) -> Result<T> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(done) = already() {
            return Ok(done);
        }
        let open = |request| Ok(ClientMessage::Open { request, params: WireParams::new(params)? });
        let session = match self.ask(&mut turn, open)? {
            BrokerMessage::Opened { session, .. } => session,
            _ => return self.nonsense(),
        };
        Ok(opened(LinkSession { link: self.clone(), session, lost: false.into() }))
    }

    /// The public half of a key in the broker's vault, if this process may use it.
    pub(crate) fn describe(&self, name: &str, public: Option<&[u8]>) -> Result<Vec<u8>> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        match self.ask(&mut turn, |request| Ok(ClientMessage::Describe { request, name, public }))? {
            BrokerMessage::Key { public, .. } => Ok(public),
            _ => self.nonsense(),
        }
    }

    /// Asks and is answered; a refusal is an error.
    fn ask<'m>(&self, turn: &mut Turn, message: impl FnOnce(u32) -> Result<ClientMessage<'m>>) -> Result<BrokerMessage> {
        let answer = self.exchange(turn, message);
        // A late answer would meet the next question. A socket that fails is looked at: the program may have closed it.
        if matches!(answer, Err(Error::Timeout { .. })) || answer.is_err() && !self.life.check() {
            self.life.end();
        }
        answer
    }

    fn exchange<'m>(&self, turn: &mut Turn, message: impl FnOnce(u32) -> Result<ClientMessage<'m>>) -> Result<BrokerMessage> {
        let gone = || Error::Unavailable { what: "the broker is gone".into() };
        let socket = self.life.socket().ok_or_else(gone)?;
        turn.request = turn.request.wrapping_add(1);
        socket.send(&message(turn.request)?, &[], CONTROL_BOUND)?;
        if !socket.receive(&mut turn.packet, CONTROL_BOUND)? {
            self.life.end();
            return Err(gone());
        }
        let answer: BrokerMessage = turn.packet.message()?;
        match answer {
            BrokerMessage::Refused { request, refusal } if request == turn.request => Err(refusal.into_error()),
            BrokerMessage::Opened { request, .. } | BrokerMessage::Key { request, .. } if request == turn.request => Ok(answer),
            _ => self.nonsense(),
        }
    }

    fn nonsense<T>(&self) -> Result<T> {
        self.life.end();
        Err(unexpected())
    }

    pub(crate) fn reaper(&self) -> &Arc<Reaper> {
        &self.reaper
    }

    /// Waits for the answer: `None` if there will be none, or not in time.
    fn wait(&self, ticket: &Ticket) -> Option<Outcome> {
        let began = monotonic_ns();
        let spin = SPINS.with_borrow_mut(Spin::budget);
        let mut answer = ticket.wait(spin, SLICE);
        while answer.is_none() {
            if !self.life.check() || self.is_overdue(began) {
                return None;
            }
            answer = ticket.wait(Duration::ZERO, SLICE);
        }
        let now = monotonic_ns();
        SPINS.with_borrow_mut(|spin| spin.learn(Duration::from_nanos(now - began)));
        self.life.progress(now);
        answer
    }

    /// Whether an operation has waited too long; if the broker has done nothing meanwhile it is taken for hung and given up.
    fn is_overdue(&self, began_ns: u64) -> bool {
        is_overdue(&self.life, began_ns)
    }
}

pub(crate) fn is_overdue(life: &Life, began_ns: u64) -> bool {
    let (now, bound) = (monotonic_ns(), OPERATION_BOUND.as_nanos() as u64);
    let overdue = now.saturating_sub(began_ns) > bound;
    if overdue && now.saturating_sub(life.last_progress_ns()) > bound {
        life.end();
    }
    overdue
}

thread_local! {
    static SPINS: RefCell<Spin> = const { RefCell::new(Spin::new(SPIN)) };
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.life.is_mine() {
            self.reaper.close();
        }
    }
}

fn unexpected() -> Error {
    Error::Unavailable { what: "the broker's answer makes no sense; use client and broker of one release".into() }
}

/// A session that is open at a broker; closed there on drop.
pub(crate) struct LinkSession {
    link: Arc<Link>,
    session: u32,
    /// The broker does not know it any more.
    lost: core::sync::atomic::AtomicBool,
}

impl LinkSession {
    pub(crate) fn is_usable(&self) -> bool {
        self.link.life.is_usable() && !self.lost.load(core::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Submits; `None` if there is no room, or the broker wants no more.
    pub(crate) fn begin(&self, operation: &Operation<'_>) -> Option<Ticket> {
        if !self.link.is_usable() { None } else { self.link.ring.begin(self.session, operation) }
    }

    /// Waits for a submitted operation and takes its result over; `None` if it has to be run here. The operation's
    /// buffers are untouched unless it succeeded.
    pub(crate) fn finish(&self, params: &SessionParams, ticket: Ticket, operation: &mut Operation<'_>) -> Option<Result<usize>> {
        let outcome = self.link.wait(&ticket)?;
        self.settle(params, ticket, outcome, operation)
    }

    /// Takes an answer over; `None` if the operation has to be run here.
    pub(crate) fn settle(
        &self,
        params: &SessionParams,
        ticket: Ticket,
        outcome: Outcome,
        operation: &mut Operation<'_>,
    ) -> Option<Result<usize>> {
        let algorithm = params.algorithm();
        let written = algorithm.output_len(operation.data.input_len());
        match outcome.verdict {
            // A broker that tells another length than the algorithm's is not to be believed.
            Verdict::Done if outcome.written as usize != written => None,
            Verdict::Done => ticket.finish(outcome, operation).map(|()| Ok(written)),
            Verdict::KeyRate | Verdict::KeyUse => Some(outcome.into_result(algorithm, self.session)),
            Verdict::Authentication | Verdict::InputRange => {
                wipe_output(operation);
                Some(outcome.into_result(algorithm, self.session))
            }
            Verdict::NoSession => {
                self.lost.store(true, core::sync::atomic::Ordering::Relaxed);
                None
            }
            _ => None,
        }
    }
}

/// What an engine does after a failed decryption: leaves nothing in an output that is not the input.
fn wipe_output(operation: &mut Operation<'_>) {
    if let Data::Copy { output, .. } = &mut operation.data {
        output.fill(0);
    }
}

impl Drop for LinkSession {
    fn drop(&mut self) {
        if !self.is_usable() || !self.link.life.is_mine() {
            return;
        }
        if let Some(socket) = self.link.life.socket() {
            // Not answered. If there is no room for the message the session stays open until the connection ends.
            let _ = socket.send(&ClientMessage::Close { session: self.session }, &[], Duration::ZERO);
        }
    }
}
