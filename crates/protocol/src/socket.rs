//! The control socket: `SOCK_SEQPACKET`, so that a packet is a message; descriptors by `SCM_RIGHTS`; the peer's identity from the kernel.

use crate::credentials;
use crate::kept::Kept;
use crate::message::{MESSAGE_BYTES_MAX, decode, encode};
use crate::region::failed;
use crate::unread::unread;
use bywash_core::{Error, Result};
use core::mem::MaybeUninit;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use std::io::IoSlice;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;
use zeroize::{Zeroize, Zeroizing};

/// Most descriptors that one message carries.
pub const DESCRIPTORS_MAX: usize = 2;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// A socket's path is at most so long (unix(7)).
const PATH_BYTES_MAX: usize = 107;
/// How long after the first time to look again whether the other end has read, since the kernel tells nobody; twice as long each time, up to the second.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(50)];

/// Who is at the other end, by the kernel's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process; 0 for one in a PID namespace that is not to be seen from here.
    pub pid: u32,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Peer {
    /// Whether there is still a process of that number, as far as this one can tell.
    pub fn is_there(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        pid.is_none_or(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
    }

    /// Who says the first thing on this process's connection, if that is the process itself. By number alone: the user of a connection is the effective one of who made it, that of a
    /// packet the real one of who sent it, and those of a set-user-ID program differ.
    pub fn introduced_by(&self, packet: &Packet) -> Option<Self> {
        packet.sender.filter(|sender| sender.pid == self.pid)
    }

    /// Whether this one, who has [said the first thing](Self::introduced_by), has sent a packet too, in whichever thread and as whichever user by now, and not one that has the socket
    /// from it, by fork mostly, and may have given up rights that this one had. Where the number of neither is known, the user has to be the same.
    pub fn has_sent(&self, packet: &Packet) -> bool {
        packet.sender.is_some_and(|sender| sender.pid == self.pid && (self.pid != 0 || sender.uid == self.uid))
    }
}

/// One end of a connection. The client's is a descriptor in a program that may close it and open a file of its own under its number: it is used and
/// closed only while it is the socket that it was.
pub struct ControlSocket(Kept);

/// A received packet. Wiped on drop, since it may hold a key.
pub struct Packet {
    bytes: Zeroizing<Box<[u8]>>,
    len: usize,
    /// Descriptors that came along, in order.
    pub files: Vec<OwnedFd>,
    /// Who sent it, by the kernel's word: of packets that came over a [`Listener`]'s connections. The user is the real one of the thread.
    pub sender: Option<Peer>,
}

impl Packet {
    /// A buffer to receive into, again and again.
    pub fn new() -> Self {
        Self { bytes: Zeroizing::new(vec![0; MESSAGE_BYTES_MAX].into()), len: 0, files: Vec::new(), sender: None }
    }

    /// The message in it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] for anything that is no message.
    pub fn message<'a, M: Deserialize<'a>>(&'a self) -> Result<M> {
        decode(&self.bytes[..self.len])
    }

    /// Overwrites what was received.
    pub fn wipe(&mut self) {
        self.bytes[..self.len].zeroize();
        self.len = 0;
        self.files.clear();
        self.sender = None;
    }
}

impl Default for Packet {
    fn default() -> Self {
        Self::new()
    }
}

impl ControlSocket {
    /// Connects to a broker.
    ///
    /// # Errors
    /// [`Error::Unavailable`], naming the path, what is wrong with it and the way out.
    pub fn connect(path: &Path) -> Result<Self> {
        let shown = path.display();
        let fail = |what: String| Error::Unavailable { what };
        let address = address(path)?;
        let socket = new_socket(SocketFlags::CLOEXEC)?;
        // A broker that accepts nothing more makes `connect` wait; bound that.
        let bound = rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Send, Some(CONNECT_TIMEOUT));
        bound.map_err(|error| failed("set a time limit on a socket", error))?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => Kept::guarded(socket).map(Self).map_err(|error| failed("look at a socket", error)),
            Err(Errno::CONNREFUSED) if path.metadata().is_ok_and(|found| !found.file_type().is_socket()) => {
                Err(fail(format!("{shown} is no socket, but a file or a folder; give a broker's")))
            }
            Err(Errno::NOENT | Errno::CONNREFUSED) => Err(fail(format!("no broker listens on {shown}; start one with `bywash serve`"))),
            Err(Errno::ACCESS) => {
                Err(fail(format!("no permission on {shown}; ask the broker's owner to add you with `bywash serve --allow-uid`")))
            }
            Err(Errno::AGAIN) => Err(fail(format!("the broker on {shown} does not accept connections; is it stopped?"))),
            Err(Errno::PROTOTYPE) => Err(fail(format!("{shown} is a socket of another kind, not a broker's"))),
            Err(error) => Err(fail(format!("cannot connect to {shown}: {error}"))),
        }
    }

    /// Two connected ends in one process, for tests and for private brokers.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with what the kernel said.
    pub fn pair() -> Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (a, b) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(|error| failed("make a pair of sockets", error))?;
        Ok((Self(Kept::unguarded(a)), Self(Kept::unguarded(b))))
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with what the kernel said.
    pub fn peer(&self) -> Result<Peer> {
        self.0.get().and_then(credentials::of_peer).map_err(|error| failed("read the peer's credentials", error))
    }

    /// The groups of the process at the other end, its effective one first, as they were when it connected.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with what the kernel said.
    pub fn peer_groups(&self) -> Result<Vec<u32>> {
        let fail = |error| Error::Unavailable { what: format!("cannot read the peer's groups: {error}") };
        let mut groups = vec![self.peer()?.gid];
        groups.extend(crate::groups::of_peer(self.0.unchecked()).map_err(fail)?);
        Ok(groups)
    }

    /// Sends a message with descriptors, waiting at most `timeout` for room.
    ///
    /// # Errors
    /// [`Error::Timeout`] from a peer that does not read; [`Error::Unavailable`] when it is gone.
    pub fn send(&self, message: &impl Serialize, files: &[BorrowedFd<'_>], timeout: Duration) -> Result<()> {
        // Not on the stack: an asynchronous job's of OpenSSL has twice as much, and no page behind it that would end the program.
        let mut buffer = Zeroizing::new(vec![0; MESSAGE_BYTES_MAX]);
        let len = encode(message, &mut buffer)?;
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
                return Err(Error::Unavailable { what: format!("a message carries at most {DESCRIPTORS_MAX} descriptors") });
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match self.0.get().and_then(|fd| rustix::net::sendmsg(fd, &[IoSlice::new(&buffer[..len])], &mut control, flags)) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.ready(PollFlags::OUT, timeout)?,
                Err(error) => return Err(failed("send to the other end of the control socket", error)),
            }
        }
    }

    /// The same when the other end has read all that it was sent before. What lies unread with descriptors of files in memory is the sender's memory, and stays when the sender
    /// closes: a peer that asks and does not read is kept to one of them.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_to_reader(&self, message: &impl Serialize, files: &[BorrowedFd<'_>], timeout: Duration) -> Result<()> {
        let begin = std::time::Instant::now();
        let [mut again, longest] = LOOK_AGAIN;
        while unread(self.0.unchecked()).map_err(|error| failed("look at a socket", error))? > 0 {
            if begin.elapsed() >= timeout {
                return Err(late(timeout));
            }
            std::thread::sleep(again.min(timeout));
            again = longest.min(2 * again);
        }
        self.send(message, files, timeout)
    }

    /// Receives into `packet`; false when the other end has closed.
    ///
    /// # Errors
    /// [`Error::Timeout`] when nothing came; [`Error::Unavailable`] for an oversized packet or a broken connection.
    pub fn receive(&self, packet: &mut Packet, timeout: Duration) -> Result<bool> {
        packet.wipe();
        let mut reset = false;
        loop {
            match self.0.get().and_then(|fd| credentials::receive(fd, &mut packet.bytes, &mut packet.files)) {
                Ok(received) => {
                    packet.len = received.bytes;
                    packet.sender = received.sender;
                    if received.is_cut {
                        return Err(Error::Unavailable { what: format!("a control message is longer than {MESSAGE_BYTES_MAX} bytes") });
                    }
                    return Ok(received.bytes > 0);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.ready(PollFlags::IN, timeout)?,
                // Told once, when the other end closed without reading all; what it sent before (a refusal) is still there.
                Err(Errno::CONNRESET) if !reset => reset = true,
                Err(Errno::CONNRESET) => return Ok(false),
                Err(error) => return Err(failed("receive from the other end of the control socket", error)),
            }
        }
    }

    /// Whether the other end has closed or died, or the program has closed this one. Two system calls at most, no waiting.
    pub fn is_hung_up(&self) -> bool {
        let Ok(fd) = self.0.get() else { return true };
        let mut fds = [PollFd::new(&fd, PollFlags::RDHUP)];
        let none = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&none)).is_ok() && fds[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
    }

    /// Ends the connection in both directions, waking whoever receives on it in another thread.
    pub fn shutdown(&self) {
        // It fails only where the connection has ended already.
        let _ = self.0.get().and_then(|fd| rustix::net::shutdown(fd, Shutdown::Both));
    }

    fn ready(&self, what: PollFlags, timeout: Duration) -> Result<()> {
        wait_ready(self.0.unchecked(), what, timeout)
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.unchecked()
    }
}

/// Where a broker takes connections.
pub struct Listener(OwnedFd);

impl Listener {
    /// Binds to a path at which nothing is. The caller has made sure of that, and sets the mode.
    ///
    /// # Errors
    /// [`Error::Unavailable`], naming the path.
    pub fn bind(path: &Path) -> Result<Self> {
        let at = |what: &str, error: Errno| failed(&format!("{what} {}", path.display()), error);
        let address = address(path)?;
        let socket = new_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        // Those that are accepted have it from here.
        rustix::net::sockopt::set_socket_passcred(&socket, true).map_err(|error| failed("have senders named on a socket", error))?;
        rustix::net::bind(&socket, &address).map_err(|error| at("bind to", error))?;
        rustix::net::listen(&socket, 128).map_err(|error| at("listen on", error))?;
        Ok(Self(socket))
    }

    /// The next connection.
    ///
    /// # Errors
    /// [`Error::Timeout`] when none came; [`Error::Unavailable`] with what the kernel said, such as too many open files.
    pub fn accept(&self, timeout: Duration) -> Result<ControlSocket> {
        wait_ready(&self.0, PollFlags::IN, timeout)?;
        let accepted = rustix::net::accept_with(&self.0, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        accepted.map(|socket| ControlSocket(Kept::unguarded(socket))).map_err(|error| failed("accept a connection", error))
    }

    /// Wakes whoever accepts in another thread, for good.
    pub fn shutdown(&self) {
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }
}

fn address(path: &Path) -> Result<SocketAddrUnix> {
    SocketAddrUnix::new(path).map_err(|error| {
        let why = if error == Errno::NAMETOOLONG {
            format!("it is longer than {PATH_BYTES_MAX} bytes; choose a shorter one")
        } else {
            error.to_string()
        };
        Error::Unavailable { what: format!("{} cannot be a socket's path: {why}", path.display()) }
    })
}

fn new_socket(flags: SocketFlags) -> Result<OwnedFd> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(|error| failed("make a socket", error))
}

fn late(timeout: Duration) -> Error {
    Error::Timeout { from: "the control socket".into(), waited_ms: timeout.as_millis() as u64 }
}

fn wait_ready(fd: impl AsFd, what: PollFlags, timeout: Duration) -> Result<()> {
    let deadline = std::time::Instant::now() + timeout.min(Duration::from_secs(1 << 30));
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let spec = rustix::time::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut fds = [PollFd::new(&fd, what)];
        match poll(&mut fds, Some(&spec)) {
            Ok(0) => return Err(late(timeout)),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed("wait on a socket", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{BrokerMessage, ClientMessage, Role, StatsFormat, VERSION};

    const SOON: Duration = Duration::from_secs(5);

    #[test]
    fn messages_and_descriptors_arrive() {
        let (a, b) = ControlSocket::pair().unwrap();
        let hello = ClientMessage::Hello { version: VERSION, role: Role::Compute, comm: "test", run: Some("r") };
        a.send(&hello, &[], SOON).unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let mut packet = Packet::new();
        assert!(b.receive(&mut packet, SOON).unwrap());
        assert!(matches!(packet.message().unwrap(), ClientMessage::Hello { comm: "test", run: Some("r"), .. }));
        let welcome = BrokerMessage::Welcome { version: VERSION, client: 4, broker_pid: 5 };
        b.send(&welcome, &[null.as_fd(), null.as_fd()], SOON).unwrap();
        assert!(a.receive(&mut packet, SOON).unwrap());
        assert_eq!(packet.message::<BrokerMessage>().unwrap(), welcome);
        assert_eq!(packet.files.len(), 2);
        assert!(!a.is_hung_up());
        drop(b);
        assert!(a.is_hung_up());
        assert!(!a.receive(&mut packet, SOON).unwrap());
    }

    #[test]
    fn too_much_of_anything_is_an_error_and_not_a_hang() {
        let (a, b) = ControlSocket::pair().unwrap();
        let mut packet = Packet::new();
        let nothing = a.receive(&mut packet, Duration::ZERO).unwrap_err();
        assert!(matches!(nothing, Error::Timeout { .. }), "{nothing}");
        let stats = ClientMessage::Stats { request: 1, format: StatsFormat::Json };
        let full = (0..100_000).find_map(|_| a.send(&stats, &[], Duration::ZERO).err()).unwrap();
        assert!(matches!(full, Error::Timeout { .. }), "{full}");
        while b.receive(&mut packet, Duration::ZERO).is_ok() {}
        rustix::net::send(&a, &vec![0; MESSAGE_BYTES_MAX + 1], SendFlags::empty()).unwrap();
        assert!(b.receive(&mut packet, SOON).unwrap_err().to_string().contains("longer"));
    }

    #[test]
    fn who_does_not_read_has_one_packet_with_a_descriptor() {
        let (a, b) = ControlSocket::pair().unwrap();
        let (file, mut packet) = (std::fs::File::open("/dev/null").unwrap(), Packet::new());
        let answer = BrokerMessage::Stats { request: 1, bytes: 0 };
        let send = |timeout| a.send_to_reader(&answer, &[file.as_fd()], timeout);
        send(SOON).unwrap();
        assert!(matches!(send(Duration::from_millis(5)), Err(Error::Timeout { .. })));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| send(SOON));
            assert!(b.receive(&mut packet, SOON).unwrap() && packet.files.len() == 1);
            second.join().unwrap().unwrap();
        });
        assert!(b.receive(&mut packet, SOON).unwrap());
        assert!(matches!(b.receive(&mut packet, Duration::ZERO), Err(Error::Timeout { .. })));
    }

    #[test]
    fn a_process_that_has_ended_is_not_there() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let peer = Peer { pid: child.id(), uid: 0, gid: 0 };
        assert!(peer.is_there(), "at least a zombie");
        child.wait().unwrap();
        assert!(!peer.is_there());
    }

    #[test]
    fn a_missing_broker_is_named_with_the_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let error = ControlSocket::connect(&directory.path().join("none.sock")).err().unwrap().to_string();
        assert!(error.contains("none.sock") && error.contains("bywash serve"), "{error}");
    }

    #[test]
    fn the_kernel_names_the_peer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = Listener::bind(&path).unwrap();
        assert!(matches!(listener.accept(Duration::ZERO), Err(Error::Timeout { .. })));
        let _client = ControlSocket::connect(&path).unwrap();
        let peer = listener.accept(SOON).unwrap().peer().unwrap();
        assert_eq!(peer.pid, std::process::id());
        assert_eq!(peer.uid, rustix::process::getuid().as_raw());
    }

    #[test]
    fn the_kernel_names_the_sender_of_each_packet() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = Listener::bind(&path).unwrap();
        let client = ControlSocket::connect(&path).unwrap();
        let (message, mut packet) = (ClientMessage::Close { session: 1 }, Packet::new());
        let null = std::fs::File::open("/dev/null").unwrap();
        // Also of what was sent before the connection was accepted.
        client.send(&message, &[null.as_fd(), null.as_fd()], SOON).unwrap();
        let accepted = listener.accept(SOON).unwrap();
        let peer = accepted.peer().unwrap();
        assert!(!peer.has_sent(&packet), "nobody has sent anything");
        for files in [2, 0] {
            assert!(accepted.receive(&mut packet, SOON).unwrap());
            assert!(peer.has_sent(&packet) && packet.sender == Some(peer) && packet.files.len() == files);
            assert!(!Peer { pid: 1, ..peer }.has_sent(&packet));
            client.send(&message, &[], SOON).unwrap();
        }
        let unseen = |uid| Peer { pid: 0, uid, gid: 0 };
        packet.sender = Some(unseen(7));
        assert!(unseen(7).has_sent(&packet) && !unseen(8).has_sent(&packet) && !peer.has_sent(&packet));
        // A set-user-ID program of user 8, called by user 7.
        let speaker = unseen(8).introduced_by(&packet).unwrap();
        assert!(speaker.has_sent(&packet) && peer.introduced_by(&packet).is_none());
    }

    #[test]
    fn the_kernel_names_the_peers_groups() {
        let (ours, _theirs) = ControlSocket::pair().unwrap();
        let mut groups: Vec<u32> = rustix::process::getgroups().unwrap().into_iter().map(rustix::process::Gid::as_raw).collect();
        groups.insert(0, rustix::process::getegid().as_raw());
        assert_eq!(ours.peer_groups().unwrap(), groups);
    }
}
