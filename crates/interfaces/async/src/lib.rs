//! Preload library: lets the handshakes of an unmodified event-driven server wait for each other, so that their private-key operations are
//! computed side by side, eight in the time of one or two.
//!
//! A server such as nginx calls `SSL_do_handshake` for one connection, and libssl computes an RSA signature in that call before anybody else is
//! looked at. With this library in front of libssl (`LD_PRELOAD`; `bywash run` sets it), the call runs on a stack of its own. When the provider
//! meets an operation that is better computed in company, it suspends that stack, and the server is told what it is told all day long: the handshake
//! wants to read. The server turns to its other connections. Their operations gather until eight of a kind are there, or until the server is
//! **about to block** in `epoll_wait`, `poll` or `select`, or on an `io_uring`. Then they are computed, the wait reports their connections as readable, the server calls
//! `SSL_do_handshake` again, and each goes on from where it was. No timer, no thread, no lock: when there is nothing else to do, nothing is waited for.
//!
//! | module | what it holds |
//! |---|---|
//! | `ssl` | the functions of libssl that servers call |
//! | `waits`, `select` | `epoll_wait` and its relatives; when to compute |
//! | `ring` | `io_uring`, whose completions cannot be made up: handshakes go on before the wait |
//! | `thread` | what a thread has suspended; the table for the provider ([`bywash_async_v1`](thread::bywash_async_v1)) |
//! | `fiber` | a handshake on a stack of its own |
//! | `registry` | which descriptors a thread waits for |
//! | `descriptors` | which descriptors are new, or registered, in the whole process |
//! | `owners` | suspended handshakes, for other threads that come upon them |
//! | `private` | connections of another libssl of the process, which are left alone |
//! | `runtimes` | runtimes that watch the stacks of their threads |
//! | `real` | the functions that this library stands in front of |
//!
//! # What is suspended
//!
//! Handshakes of servers, on non-blocking descriptors, in a thread that is certain to be told: it waits by the functions above for descriptors that it has
//! registered itself, or it was seen to register such as these, newly accepted and registered by nobody or taken out of its set by itself, once their call has
//! ended (haproxy, whose channel is shown an empty read, for until then it asks again instead of waiting). Not where
//! `SSL_MODE_ASYNC` is set (such a server has its own way, see the provider); and only when other connections
//! are busy too: a lone client's handshake runs in place. An operation is put off only where libssl itself asks for it, never in an application's callback.
//! Everything else is as if the library were not there: clients, blocking servers, servers whose threads share one epoll set (`EPOLLONESHOT`) or whose sets
//! are within others, `select` on more than 1024 descriptors, channels of the server's own (but haproxy's), DTLS, QUIC, connections of another libssl of the
//! process, programs of Ruby (whose callbacks must not run on another stack than their thread's), and servers that enter an `io_uring` without liburing.
//!
//! # What a server may do meanwhile
//!
//! - Ask again, also by reading or writing: the operation is computed at once, and the handshake goes on.
//! - `SSL_free`, `SSL_clear`, `SSL_shutdown`: the operation is withdrawn, the handshake brought to its end with the connection's channels taken away, so that not a byte goes to a
//!   descriptor that may be another connection's by now. If another thread
//!   frees it, the thread that suspended it does this at its next wait; `SSL_clear` and `SSL_shutdown` fail there.
//! - `close` the descriptor, `fork`, exit, end the thread: nothing is written, nothing is freed twice. The child of a fork has its own copy of what waits.
//! - A thread other than the one that suspended a handshake sees it as one that wants to read.

mod descriptors;
mod fiber;
mod owners;
mod private;
mod real;
mod registry;
pub mod ring;
mod runtimes;
pub mod select;
pub mod ssl;
pub mod thread;
pub mod waits;
