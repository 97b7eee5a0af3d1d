//! Reaching a broker that runs elsewhere.

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::path::Path;

/// Whether something answers on this socket, and why not.
pub(crate) fn probe(path: &Path) -> std::io::Result<()> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok(connect(&socket, &SocketAddrUnix::new(path)?)?)
}
