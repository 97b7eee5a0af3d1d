//! Only handshakes of which this thread is told are suspended.

use crate::support::{BEFORE, Before, Connection, IN_PLACE, REFUSED, own_channel, was_called_in_place};
use crate::{epolled, outcomes};
use bywash_async::waits::{close, epoll_ctl};
use libc::{EPOLL_CTL_ADD, EPOLLIN, EPOLLONESHOT, epoll_event};
use std::ffi::{CStr, c_int, c_void};
use std::io::{Read, Write};
use std::ptr;

fn register(set: i32, fd: i32, flags: i32) {
    let mut event = epoll_event { events: (EPOLLIN | flags) as u32, u64: fd as u64 };
    assert_eq!(unsafe { epoll_ctl(set, EPOLL_CTL_ADD, fd, &mut event) }, 0);
}

/// A set on which this thread waits, and two connections that it has registered there itself: company, and proof that it is one that suspends.
fn heard() -> (i32, [Connection; 2]) {
    let set = unsafe { libc::epoll_create1(0) };
    let pair = [Connection::new(), Connection::new()];
    assert_eq!(epolled(set, 0), []);
    pair.iter().for_each(|connection| register(set, connection.fd(), 0));
    assert_eq!(epolled(set, 1000).len(), 2);
    pair[0].assert_wants_to_read(pair[0].step_server());
    assert_eq!((IN_PLACE.get(), outcomes()), (0, vec![]), "it is suspended");
    (set, pair)
}

/// The handshake of one more connection, about which this was arranged, is not suspended.
fn assert_in_place(arrange: impl FnOnce(i32, i32)) {
    let (set, pair) = heard();
    let third = Connection::new();
    arrange(set, third.fd());
    assert_eq!(third.step_server(), -1);
    assert_eq!(IN_PLACE.get(), 1, "nobody would tell this thread");
    third.free();
    pair.into_iter().for_each(|connection| drop(connection.free()));
    unsafe { close(set) };
}

#[test]
fn what_another_thread_has_registered() {
    assert_in_place(|set, fd| std::thread::spawn(move || register(set, fd, 0)).join().unwrap());
}

#[test]
fn what_is_told_once() {
    assert_in_place(|set, fd| register(set, fd, EPOLLONESHOT));
}

#[test]
fn what_nobody_has_registered() {
    assert_in_place(|_, _| {});
}

#[test]
fn a_set_within_a_set() {
    set_within_a_set(|_| {});
}

#[test]
fn a_set_within_a_set_of_which_a_child_of_vfork_has_closed_its_own() {
    extern "C" fn closes(set: *mut c_void) -> c_int {
        unsafe { close(set.addr() as c_int) }
    }
    set_within_a_set(|inner| unsafe {
        let mut stack = vec![0_u128; 4096];
        let (top, shares_memory) = (stack.as_mut_ptr_range().end, libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD);
        let child = libc::clone(closes, top.cast(), shares_memory, ptr::without_provenance_mut(inner as usize));
        let mut status = 0;
        assert_eq!((libc::waitpid(child, &mut status, 0), status), (child, 0));
    });
}

/// Two connections in a set within another, which something is done to then: they are not suspended.
fn set_within_a_set(arrange: impl FnOnce(c_int)) {
    let (inner, outer) = unsafe { (libc::epoll_create1(0), libc::epoll_create1(0)) };
    let (one, other) = (Connection::new(), Connection::new());
    assert_eq!((epolled(inner, 0), epolled(outer, 0)), (vec![], vec![]));
    for connection in [&one, &other] {
        register(inner, connection.fd(), 0);
    }
    register(outer, inner, 0);
    arrange(inner);
    assert_eq!((epolled(outer, 1000).len(), epolled(inner, 0).len()), (1, 2));
    assert_eq!(one.step_server(), -1);
    assert_eq!(IN_PLACE.get(), 1, "the outer set would never say that the inner is readable");
    one.free();
    other.free();
    for set in [inner, outer] {
        unsafe { close(set) };
    }
}

/// A handshake whose channel has this name, and whose client has sent more than its hello meanwhile, wants to read.
fn by_channel(name: &CStr, more: &[u8], check: impl FnOnce(&Connection)) {
    let (set, pair) = heard();
    let third = Connection::new();
    own_channel(&third, name);
    register(set, third.fd(), 0);
    (&third.client_end).write_all(more).unwrap();
    third.assert_wants_to_read(third.step_server());
    check(&third);
    third.free();
    pair.into_iter().for_each(|connection| drop(connection.free()));
    unsafe { close(set) };
}

#[test]
fn a_channel_whose_server_waits_only_when_it_is_refused_input() {
    by_channel(c"rust", b"", |_| {
        assert_eq!(IN_PLACE.get(), 1);
        assert!(was_called_in_place(), "its application would find itself on another stack, for nothing");
    });
}

#[test]
fn a_channel_that_is_known() {
    by_channel(c"ha methods", b"", |_| assert!(IN_PLACE.get() == 0 && !was_called_in_place()));
}

#[test]
fn a_channel_is_refused_input_when_its_handshake_is_suspended() {
    by_channel(c"ha methods", b"", |third| {
        assert_eq!((IN_PLACE.get(), REFUSED.get()), (0, 1), "else its server would go on asking");
        third.finish();
        assert_eq!((IN_PLACE.get(), outcomes()), (0, vec![1]));
    });
}

#[test]
fn a_byte_that_is_there_is_refused_and_not_lost() {
    by_channel(c"ha methods", b"early", |third| {
        assert_eq!((IN_PLACE.get(), REFUSED.get()), (0, 1));
        let mut early = [0; 8];
        assert_eq!((&third.server_end).read(&mut early).unwrap(), 5);
        assert_eq!(&early[..5], b"early");
    });
}

#[test]
fn an_application_on_a_stack_of_its_own() {
    let (set, pair) = heard();
    BEFORE.set(Before::SwitchStacks);
    pair[1].step_server();
    assert_eq!(IN_PLACE.get(), 1, "what was suspended would not be the stack that asked");
    pair.into_iter().for_each(|connection| drop(connection.free()));
    unsafe { close(set) };
}

#[test]
fn an_application_that_needs_much_stack() {
    BEFORE.set(Before::Descend);
    let (set, pair) = heard();
    pair.into_iter().for_each(|connection| drop(connection.free()));
    unsafe { close(set) };
}
