//! What a server may do with a suspended connection, and others with what is left of it.

use crate::support::{ALERTS, Connection, FIRED, SSL_clear, SSL_get_error, SSL_want, Ssl, WANT_READ};
use crate::{outcomes, polled, suspended};
use bywash_async::ssl::{SSL_do_handshake, SSL_free, SSL_read, SSL_shutdown};
use bywash_async::waits::{epoll_ctl, epoll_wait, poll};
use bywash_async_link::Moment;
use libc::{EPOLL_CTL_ADD, EPOLLIN, epoll_event};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;

fn read(ssl: Ssl) -> i32 {
    let mut bytes = [0_u8; 8];
    unsafe { SSL_read(ssl, bytes.as_mut_ptr().cast(), 8) }
}

#[test]
fn a_handshake_goes_on_by_reading() {
    let [one, other] = suspended();
    assert_eq!(polled(&[&one, &other]), [0]);
    one.assert_wants_to_read(read(one.server));
    assert_eq!(outcomes(), [1]);
    one.step_client();
    one.assert_wants_to_read(read(one.server));
    one.finish();
    other.assert_wants_to_read(read(other.server));
    assert!(FIRED.with_borrow(|fired| fired.contains(&Moment::Demanded)));
    assert_eq!(outcomes(), [1, 1]);
    one.free();
    other.free();
}

#[test]
fn a_shutdown_gives_up() {
    let [one, other] = suspended();
    assert_eq!(unsafe { SSL_shutdown(one.server) }, -1);
    assert_eq!(outcomes(), [0]);
    assert_ne!(unsafe { SSL_get_error(one.server, -1) }, WANT_READ);
    one.free();
    other.free();
}

#[test]
fn another_thread_is_told_to_wait() {
    let [one, other] = suspended();
    let server = one.server as usize;
    let foreign = move || unsafe {
        let ssl = server as Ssl;
        assert_eq!((SSL_do_handshake(ssl), read(ssl), SSL_shutdown(ssl), SSL_clear(ssl)), (-1, -1, -1, 0));
        assert_eq!((SSL_get_error(ssl, -1), SSL_want(ssl)), (WANT_READ, 3));
    };
    std::thread::spawn(foreign).join().unwrap();
    assert_eq!(outcomes(), []);
    one.finish();
    other.finish();
    assert_eq!(outcomes(), [1, 1]);
    one.free();
    other.free();
}

#[test]
fn a_freed_handshake_says_nothing_to_its_application() {
    let [one, other] = suspended();
    one.free();
    assert_eq!((outcomes(), ALERTS.get()), (vec![0], 0));
    other.free();
}

/// A thread ends and leaves a suspended handshake behind, which another thread frees; then a new connection gets its memory. Whether one does is the
/// allocator's to say, so it is tried some times.
#[test]
fn an_address_left_behind_can_be_anothers() {
    for _ in 0..20 {
        let pair: &'static [Connection; 2] = Box::leak(Box::new([Connection::new(), Connection::new()]));
        let (address, left) = (ptr::from_ref(pair).expose_provenance(), pair[0].server as usize);
        let suspends = move || {
            let pair = unsafe { &*ptr::with_exposed_provenance::<[Connection; 2]>(address) };
            assert_eq!(polled(&[&pair[0], &pair[1]]), [0, 1]);
            pair.iter().for_each(|connection| connection.assert_wants_to_read(connection.step_server()));
        };
        std::thread::spawn(suspends).join().unwrap();
        assert_eq!(unsafe { SSL_do_handshake(left as Ssl) }, -1, "nobody can go on with it");
        unsafe { SSL_free(left as Ssl) };
        let made: Vec<Connection> = (0..64).map(|_| Connection::new()).collect();
        let heir = made.iter().find(|connection| connection.server as usize == left || connection.client as usize == left);
        let found = heir.map(Connection::finish).is_some();
        made.into_iter().for_each(|connection| drop(connection.free()));
        if found {
            return;
        }
    }
    eprintln!("skipped: the allocator gave the memory to nobody");
}

#[test]
fn those_to_be_told_come_through_where_there_is_room_for_one_event() {
    let set = unsafe { libc::epoll_create1(0) };
    let (one, other) = (Connection::new(), Connection::new());
    let (busy, mut peer) = UnixStream::pair().unwrap();
    peer.write_all(b"x").unwrap();
    let wait = |room| {
        let mut events = [epoll_event { events: 0, u64: 0 }; 8];
        let found = unsafe { epoll_wait(set, events.as_mut_ptr(), room, 1000) };
        events[..found as usize].iter().map(|event| event.u64 as i32).collect::<Vec<_>>()
    };
    let register = |fd: i32| {
        let mut event = epoll_event { events: EPOLLIN as u32, u64: fd as u64 };
        assert_eq!(unsafe { epoll_ctl(set, EPOLL_CTL_ADD, fd, &mut event) }, 0);
    };
    register(one.fd());
    register(other.fd());
    assert_eq!(wait(8), [one.fd(), other.fd()]);
    one.assert_wants_to_read(one.step_server());
    other.assert_wants_to_read(other.step_server());
    // Computed, but this thread is told of it by nobody yet.
    unsafe { poll(ptr::null_mut(), 0, 1) };
    register(busy.as_raw_fd());
    let told: Vec<Vec<i32>> = (0..8).map(|_| wait(1)).collect();
    let times = |fd| told.iter().filter(|told| **told == [fd]).count();
    assert_eq!((times(one.fd()), times(busy.as_raw_fd())), (4, 4), "in turns, for a level is told until it is gone: {told:?}");
    one.finish();
    other.finish();
    one.free();
    other.free();
    unsafe { libc::close(set) };
}

#[test]
fn the_child_of_a_fork_does_not_look_for_what_others_had() {
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let owner = std::thread::spawn(move || {
        let [one, other] = suspended();
        tell.send(one.server as usize).unwrap();
        ended.recv().unwrap();
        one.free();
        other.free();
    });
    let server = told.recv().unwrap();
    let child = unsafe { libc::fork() };
    if child == 0 {
        unsafe {
            libc::alarm(10);
            SSL_free(server as Ssl);
            let mut thread: libc::pthread_t = 0;
            libc::pthread_create(&mut thread, ptr::null(), wait_once, ptr::null_mut());
            libc::pthread_join(thread, ptr::null_mut());
            libc::_exit(0);
        }
    }
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "14: it waited for ever");
    end.send(()).unwrap();
    owner.join().unwrap();
}

extern "C" fn wait_once(_: *mut libc::c_void) -> *mut libc::c_void {
    unsafe { poll(ptr::null_mut(), 0, 1) };
    ptr::null_mut()
}
