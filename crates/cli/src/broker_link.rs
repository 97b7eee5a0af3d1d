//! Reaching a broker that runs elsewhere, to look on: statistics and recordings.

use crate::failure::{Exit, Failure};
use bywash_core::Error;
use bywash_protocol::socket::{ControlSocket, Packet};
use bywash_protocol::{BoardView, BrokerMessage, ClientMessage, KeyCommand, KeyInfo, Role, StatsFormat, VERSION};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a broker may take to answer; a busy one takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take to make a key.
const PATIENCE_FOR_KEYS: Duration = Duration::from_secs(120);
/// Longer statistics are not believed.
const STATS_BYTES_MAX: u64 = 64 << 20;

/// The socket that a command line names, or the default one.
pub(crate) fn socket_path(named: Option<&Path>) -> PathBuf {
    named.map_or_else(bywash_protocol::socket_path, Path::to_owned)
}

/// How long a broker that is stopped, with all places before its door taken, may hold a probe up.
const PROBE: Duration = Duration::from_secs(1);

/// Whether something answers on this socket, and why not.
pub(crate) fn probe(path: &Path) -> std::io::Result<()> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(PROBE))?;
    let address = SocketAddrUnix::new(path)?;
    Ok(rustix::io::retry_on_intr(|| connect(&socket, &address))?)
}

/// What a vault answers.
pub(crate) enum KeyAnswer {
    /// A key's public half; empty if it was removed.
    Key(Vec<u8>),
    /// All keys.
    Keys(Vec<KeyInfo>),
}

/// A connection to a broker, to look on.
pub(crate) struct Link {
    socket: ControlSocket,
    packet: Packet,
    requests: u32,
    path: PathBuf,
    board: Option<BoardView>,
    /// The broker's process, by its own word.
    pub(crate) broker: u32,
}

impl Link {
    /// Connects. It is no part of any run, and so in no run's account.
    pub(crate) fn connect(path: &Path) -> Result<Self, Failure> {
        let socket = ControlSocket::connect(path).map_err(|error| refused(path, &error))?;
        let mut link = Self { socket, packet: Packet::new(), requests: 0, path: path.to_owned(), board: None, broker: 0 };
        let hello = ClientMessage::Hello { version: VERSION, role: Role::Observe, comm: "bywash", run: None };
        match link.ask(&hello, &[])? {
            BrokerMessage::Welcome { broker_pid, .. } => {
                let board = link.packet.files.pop().and_then(|file| BoardView::open(file).ok());
                Ok(Self { broker: broker_pid, board, ..link })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// The broker's process by the kernel's word; 0 if it cannot be seen from here. Its own is a number of its own namespace.
    pub(crate) fn process(&self) -> u32 {
        self.socket.peer().map_or(0, |peer| peer.pid)
    }

    /// The broker's statistics.
    pub(crate) fn stats(&mut self, format: StatsFormat) -> Result<String, Failure> {
        let request = self.number();
        let answer = self.ask(&ClientMessage::Stats { request, format }, &[])?;
        let BrokerMessage::Stats { bytes, .. } = answer else { return Err(unexpected(&answer)) };
        self.text(bytes, &answer)
    }

    /// The text that came along with an answer.
    fn text(&mut self, bytes: u64, answer: &BrokerMessage) -> Result<String, Failure> {
        let file = self.packet.files.pop().map(File::from).ok_or_else(|| unexpected(answer))?;
        let length = usize::try_from(bytes.min(STATS_BYTES_MAX)).unwrap_or(0);
        let mut text = vec![0; length];
        file.read_exact_at(&mut text, 0).map_err(|error| Failure::failed(format!("cannot read what the broker says: {error}")))?;
        String::from_utf8(text).map_err(|_| Failure::failed("what the broker says is not text; use broker and command of one release"))
    }

    /// Has the broker record into a file until [`stop_recording`](Self::stop_recording), or until this connection ends.
    pub(crate) fn start_recording(&mut self, file: &File) -> Result<(), Failure> {
        let request = self.number();
        match self.ask(&ClientMessage::StartRecording { request }, &[file.as_fd()])? {
            BrokerMessage::Recording { .. } => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Whether a recording goes on: not one that could not be written any more. [`stop_recording`](Self::stop_recording) then says why. A broker
    /// that ends writes it to its end, and closes the connection.
    pub(crate) fn is_recorded(&self) -> bool {
        self.board.as_ref().is_none_or(|board| board.is_recording() || board.is_draining())
    }

    /// Ends the recording; gives the records written and those lost.
    pub(crate) fn stop_recording(&mut self) -> Result<(u64, u64), Failure> {
        let request = self.number();
        match self.ask(&ClientMessage::StopRecording { request }, &[])? {
            BrokerMessage::Recorded { written, dropped, .. } => Ok((written, dropped)),
            other => Err(unexpected(&other)),
        }
    }

    /// Gives the vault of the broker a command.
    pub(crate) fn keys(&mut self, command: &KeyCommand<'_>) -> Result<KeyAnswer, Failure> {
        let request = self.number();
        // Making a long RSA key takes seconds.
        match self.ask_patiently(&ClientMessage::Keys { request, command: command.clone() }, &[], PATIENCE_FOR_KEYS)? {
            BrokerMessage::Key { public, .. } => Ok(KeyAnswer::Key(public)),
            BrokerMessage::Keys { bytes, request } => {
                let text = self.text(bytes, &BrokerMessage::Keys { bytes, request })?;
                serde_json::from_str(&text)
                    .map(KeyAnswer::Keys)
                    .map_err(|error| Failure::failed(format!("the broker's list of keys: {error}")))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// The public half of a key in the broker's vault.
    pub(crate) fn describe_key(&mut self, name: &str) -> Result<Vec<u8>, Failure> {
        let request = self.number();
        match self.ask(&ClientMessage::Describe { request, name, public: None }, &[])? {
            BrokerMessage::Key { public, .. } => Ok(public),
            other => Err(unexpected(&other)),
        }
    }

    fn number(&mut self) -> u32 {
        self.requests += 1;
        self.requests
    }

    fn ask(&mut self, message: &ClientMessage<'_>, files: &[BorrowedFd<'_>]) -> Result<BrokerMessage, Failure> {
        self.ask_patiently(message, files, PATIENCE)
    }

    fn ask_patiently(
        &mut self,
        message: &ClientMessage<'_>,
        files: &[BorrowedFd<'_>],
        patience: Duration,
    ) -> Result<BrokerMessage, Failure> {
        // A broker that lets nobody in says why and closes: that is there to be read when nothing can be sent any more.
        let sent = self.socket.send(message, files, PATIENCE);
        if matches!(sent, Err(Error::Timeout { .. })) {
            return Err(self.silent(PATIENCE));
        }
        let patience = if sent.is_ok() { patience } else { Duration::ZERO };
        match self.socket.receive(&mut self.packet, patience) {
            Ok(true) => Ok(self.packet.message()?),
            Ok(false) => Err(self.ended()),
            Err(error) => Err(match sent.err().unwrap_or(error) {
                Error::Timeout { .. } => self.silent(patience),
                error => error.into(),
            }),
        }
    }

    /// Whether the broker has closed the connection, or is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.socket.is_hung_up()
    }

    /// That it has.
    pub(crate) fn ended(&self) -> Failure {
        Failure::new(Exit::NoBroker, format!("the broker at {} has ended, or closed the connection; see its log", self.path.display()))
    }

    fn silent(&self, patience: Duration) -> Failure {
        let (path, process) = (self.path.display(), self.socket.peer().map_or(self.broker, |peer| peer.pid));
        let why =
            format!("the broker at {path} has not answered for {} s; it is stopped, or stuck: see process {process}", patience.as_secs());
        Failure::new(Exit::NoBroker, why)
    }
}

/// Tells a missing permission from a missing broker; the message is the protocol's own.
fn refused(path: &Path, error: &Error) -> Failure {
    let denied = probe(path).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    Failure::new(if denied { Exit::Permission } else { Exit::NoBroker }, error.to_string())
}

fn unexpected(answer: &BrokerMessage) -> Failure {
    match answer {
        BrokerMessage::Refused { refusal, .. } => Failure::from(refusal.clone().into_error()),
        _ => Failure::failed("the broker's answer does not fit the question; use broker and command of one release"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brokers_process_is_the_kernels_word() {
        let (socket, _other) = ControlSocket::pair().unwrap();
        let link = Link { socket, packet: Packet::new(), requests: 0, path: PathBuf::new(), board: None, broker: 1 };
        assert_eq!(link.process(), std::process::id());
    }

    #[test]
    fn a_broker_that_accepts_nobody_does_not_hold_a_probe_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("full");
        let address = SocketAddrUnix::new(&path).unwrap();
        let stopped = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&stopped, &address).unwrap();
        rustix::net::listen(&stopped, 0).unwrap();
        let caller = || {
            let caller =
                socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None).unwrap();
            connect(&caller, &address).is_ok().then_some(caller)
        };
        let _waiting: Vec<_> = std::iter::from_fn(caller).take(100).collect();
        assert_eq!(probe(&path).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}
