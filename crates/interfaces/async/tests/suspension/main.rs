//! Suspended handshakes from the server's side: how waits tell of them, and what a server may do to them meanwhile.
#![allow(clippy::undocumented_unsafe_blocks, reason = "foreign functions on objects of the test's own")]

mod afterwards;
mod heard;
mod support;
mod waiting;

use bywash_async::select::select;
use bywash_async::waits::{close, epoll_ctl, epoll_wait, poll};
use bywash_async_link::Moment;
use libc::{EPOLL_CTL_ADD, EPOLLET, EPOLLIN, POLLIN, epoll_event, pollfd};
use std::io::Read;
use std::os::fd::IntoRawFd;
use support::{Connection, FIRED, IN_PLACE, OUTCOMES, SSL_clear, SSL_do_handshake, SSL_free};

/// Waits with `poll` for these, a second at most; those that are readable.
fn polled(connections: &[&Connection]) -> Vec<usize> {
    let mut fds: Vec<pollfd> = connections.iter().map(|one| pollfd { fd: one.fd(), events: POLLIN, revents: 0 }).collect();
    let found = unsafe { poll(fds.as_mut_ptr(), fds.len() as u64, 1000) };
    let readable: Vec<usize> = (0..fds.len()).filter(|&index| fds[index].revents & POLLIN != 0).collect();
    assert_eq!(found, readable.len() as i32);
    readable
}

/// Two connections of a server that polls, both suspended.
fn suspended() -> [Connection; 2] {
    suspended_pair(Connection::new())
}

fn suspended_pair(first: Connection) -> [Connection; 2] {
    let pair = [first, Connection::new()];
    assert_eq!(polled(&[&pair[0], &pair[1]]), [0, 1], "both clients have said hello");
    for connection in &pair {
        connection.assert_wants_to_read(connection.step_server());
    }
    assert_eq!(IN_PLACE.get(), 0);
    pair
}

fn outcomes() -> Vec<i32> {
    OUTCOMES.with_borrow(Clone::clone)
}

#[test]
fn poll_computes_before_it_blocks_and_tells() {
    let [one, other] = suspended();
    let first = polled(&[&one, &other]);
    assert_eq!(first, [0], "the oldest operation is done, and nothing else");
    assert!(FIRED.with_borrow(|fired| fired.contains(&Moment::Blocking)));
    assert_eq!(polled(&[&one, &other]), [0], "a level is told until it is gone");
    one.finish();
    assert_eq!(polled(&[&other]), [0]);
    other.finish();
    assert_eq!(outcomes(), [1, 1]);
    one.free();
    other.free();
}

#[test]
fn select_computes_before_it_blocks_and_tells() {
    let [one, other] = suspended();
    let wait = || unsafe {
        let mut set: libc::fd_set = std::mem::zeroed();
        libc::FD_SET(one.fd(), &mut set);
        libc::FD_SET(other.fd(), &mut set);
        let found = select(one.fd().max(other.fd()) + 1, &mut set, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        (found, libc::FD_ISSET(one.fd(), &set), libc::FD_ISSET(other.fd(), &set))
    };
    assert_eq!(wait(), (1, true, false));
    one.finish();
    assert_eq!(wait(), (1, false, true));
    other.finish();
    one.free();
    other.free();
}

/// Waits on a set without blocking for long; the data of what is readable.
fn epolled(set: i32, timeout: i32) -> Vec<u64> {
    let mut events = [epoll_event { events: 0, u64: 0 }; 8];
    let found = unsafe { epoll_wait(set, events.as_mut_ptr(), 8, timeout) };
    events[..usize::try_from(found).unwrap()].iter().filter(|event| event.events & EPOLLIN as u32 != 0).map(|event| event.u64).collect()
}

fn with_epoll(flags: i32, check: impl FnOnce(i32, &Connection, &Connection)) {
    let set = unsafe { libc::epoll_create1(0) };
    let (one, other) = (Connection::new(), Connection::new());
    assert_eq!(epolled(set, 0), [], "the provider is there, the set is known");
    for (connection, data) in [(&one, 71), (&other, 72)] {
        let mut event = epoll_event { events: (EPOLLIN | flags) as u32, u64: data };
        assert_eq!(unsafe { epoll_ctl(set, EPOLL_CTL_ADD, connection.fd(), &mut event) }, 0);
    }
    assert_eq!(epolled(set, 1000), [71, 72]);
    for connection in [&one, &other] {
        connection.assert_wants_to_read(connection.step_server());
    }
    check(set, &one, &other);
    one.free();
    other.free();
    unsafe { close(set) };
}

#[test]
fn a_level_is_reported_until_it_is_gone() {
    with_epoll(0, |set, one, other| {
        assert_eq!(epolled(set, 0), [], "a server that does not block has other things to do");
        assert_eq!(epolled(set, 1000), [71]);
        assert_eq!(epolled(set, 1000), [71]);
        one.finish();
        assert_eq!(epolled(set, 1000), [72]);
        other.finish();
    });
}

#[test]
fn an_edge_is_reported_once() {
    with_epoll(EPOLLET, |set, one, other| {
        assert_eq!(epolled(set, 1000), [71]);
        assert_eq!(epolled(set, 1000), [72], "the first is not told again");
        assert_eq!(epolled(set, 50), []);
        one.finish();
        other.finish();
    });
}

#[test]
fn who_asks_again_is_not_kept_waiting() {
    let [one, other] = suspended();
    assert_eq!(one.step_server(), -1, "on to the client's part");
    assert_eq!(outcomes(), [1]);
    assert!(FIRED.with_borrow(|fired| fired.contains(&Moment::Demanded)));
    other.finish();
    one.finish();
    one.free();
    other.free();
}

#[test]
fn a_freed_handshake_fails_and_says_nothing_to_anybody() {
    let [one, other] = suspended();
    let mut peer = one.free();
    assert_eq!(outcomes(), [0]);
    let mut heard = Vec::new();
    assert_eq!(peer.read_to_end(&mut heard).unwrap(), 0, "libssl keeps its flight back until it is whole; no alert follows");
    assert_eq!(polled(&[&other]), [0], "the other's operation is done all the same");
    other.finish();
    other.free();
}

#[test]
fn a_cleared_handshake_can_begin_again() {
    let [one, other] = suspended();
    assert_eq!(unsafe { SSL_clear(one.server) }, 1);
    assert_eq!(outcomes(), [0]);
    let result = one.step_server();
    one.assert_wants_to_read(result);
    one.free();
    other.free();
}

/// A descriptor that no other test uses.
const FAR: i32 = 900;

#[test]
fn a_closed_descriptor_is_nobodys() {
    let [one, other] = suspended_pair(Connection::from_number(FAR));
    let Connection { server, server_end, client_end, .. } = one;
    let number = server_end.into_raw_fd();
    unsafe { close(number) };
    let stranger = Connection::from_number(FAR);
    assert_eq!(stranger.fd(), number, "the number is given out again");
    // Only what the kernel says of it counts: its client has said hello.
    assert_eq!(polled(&[&stranger, &other]), [0]);
    unsafe { SSL_free(server) };
    drop(client_end);
    stranger.free();
    other.free();
}

#[test]
fn another_thread_neither_resumes_nor_frees_it() {
    let [one, other] = suspended();
    let server = one.server as usize;
    std::thread::spawn(move || unsafe { assert_eq!(SSL_do_handshake(server as _), -1) }).join().unwrap();
    assert_eq!(outcomes(), [], "it is still suspended here");
    std::thread::spawn(move || unsafe { SSL_free(server as _) }).join().unwrap();
    assert_eq!(outcomes(), []);
    assert_eq!(polled(&[&other]), [0]);
    assert_eq!(outcomes(), [0], "this thread has freed it before it waited");
    other.finish();
    other.free();
}

#[test]
fn a_lone_client_does_not_wait() {
    let one = Connection::new();
    assert_eq!(polled(&[&one]), [0]);
    assert_eq!(one.step_server(), -1);
    assert_eq!(outcomes(), []);
    one.finish();
    one.free();
}

#[test]
fn blocking_descriptors_are_left_alone() {
    let (one, other) = (Connection::new(), Connection::new());
    one.server_end.set_nonblocking(false).unwrap();
    assert_eq!(polled(&[&one, &other]), [0, 1]);
    one.server_end.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
    one.step_server();
    assert_eq!(IN_PLACE.get(), 1);
    one.free();
    other.free();
}

#[test]
fn connections_that_nobody_waits_for_are_left_alone() {
    let (one, other, third) = (Connection::new(), Connection::new(), Connection::new());
    assert_eq!(polled(&[&one, &other]), [0, 1]);
    assert_eq!(third.step_server(), -1);
    assert_eq!((IN_PLACE.get(), outcomes()), (1, vec![]));
    one.free();
    other.free();
    third.free();
}
