//! A handshake on a stack of its own.

use crate::owners::Listing;
use crate::real::{self, Ssl};
use crate::thread::SUSPENDED_MAX;
use core::ffi::{CStr, c_int};
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::ptr;
use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Bytes of stack for one handshake, and a guard page below it: as many as threads commonly have, for an application's callbacks may need any number of
/// them (an `sni_callback` of Python's). It is address space; only what is touched takes memory.
const STACK_BYTES: usize = 8 << 20;
/// Stacks kept for the next handshakes of a thread: all that it may need at the same time, for a new one costs four system calls and its first pages.
const KEPT_STACKS: usize = SUSPENDED_MAX;

/// How a suspended handshake goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Onward {
    /// The operation is done.
    Done,
    /// Nobody wants the handshake any more: the operation is to fail.
    GivenUp,
}

/// The handshake function's answer, and `errno` as it has left it.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) result: c_int,
    pub(crate) errno: c_int,
}

type Inner = Coroutine<Onward, (), Answer>;
pub(crate) type Pause = Yielder<Onward, ()>;
pub(crate) type Handshake = unsafe fn(Ssl) -> c_int;

/// A handshake that was begun and has not ended.
pub(crate) struct Fiber {
    pub(crate) ssl: Ssl,
    /// Never reused within a thread; never 0.
    pub(crate) number: u64,
    /// The connection's descriptor; -1 if it is not known (any more).
    pub(crate) fd: c_int,
    /// Its channel is the server's own, which reads by `recv`, and of which is known how its server waits.
    pub(crate) reads_by_recv: bool,
    /// Nobody will be told when its operation is done.
    pub(crate) goes_on_untold: bool,
    /// Its descriptor was seen not to block.
    pub(crate) is_nonblocking: bool,
    pub(crate) state: State,
    pub(crate) listing: Option<Listing>,
    /// How to suspend it, from its own stack.
    pub(crate) pause: *const Pause,
    pub(crate) stack: Extent,
    /// Not dropped while it is suspended: there are frames of C on its stack, which nothing can unwind.
    coroutine: ManuallyDrop<Inner>,
}

/// The addresses of a stack.
pub(crate) type Extent = Range<usize>;

/// Whether the caller runs on this stack: not on another that a callback has switched to (a job of `ASYNC_start_job(3)`, an application's own fibers).
#[inline(never)]
pub(crate) fn is_on(stack: &Extent) -> bool {
    let here = 0_u8;
    stack.contains(&ptr::from_ref(core::hint::black_box(&here)).addr())
}

/// How a suspended handshake stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its operation waits.
    Waiting,
    /// Its operation is done; `told` says whether the server has been told by an event.
    Woken { told: bool },
}

impl Fiber {
    /// Prepares a handshake; it begins when it is first resumed.
    pub(crate) fn new(number: u64, ssl: Ssl, handshake: Handshake, stack: DefaultStack) -> Self {
        let body = move |pause: &Pause, _: Onward| {
            crate::thread::entered(pause);
            // SAFETY: the server's own call with the server's own argument; it is only made on another stack.
            let result = unsafe { handshake(ssl) };
            Answer { result, errno: errno() }
        };
        let extent = stack.limit().get()..stack.base().get();
        let coroutine = ManuallyDrop::new(Coroutine::with_stack(stack, body));
        // SAFETY: the server's `SSL`.
        let fd = unsafe { real::SSL_get_rfd(ssl) };
        let reads_by_recv = fd < 0 && is_channel_known(ssl);
        Self {
            ssl,
            number,
            fd,
            reads_by_recv,
            goes_on_untold: false,
            is_nonblocking: false,
            state: State::Waiting,
            listing: None,
            pause: ptr::null(),
            stack: extent,
            coroutine,
        }
    }

    /// Runs it until it ends or is suspended again.
    pub(crate) fn resume(&mut self, onward: Onward) -> Option<Answer> {
        match self.coroutine.resume(onward) {
            CoroutineResult::Return(answer) => Some(answer),
            CoroutineResult::Yield(()) => None,
        }
    }

    /// The stack of a handshake that has ended.
    pub(crate) fn into_stack(self) -> DefaultStack {
        ManuallyDrop::into_inner(self.coroutine).into_stack()
    }
}

/// Whether a handshake can be suspended by what its channel is. One that cannot has no business on a stack of its own: there an application's callbacks would run beside the stack on which their
/// runtime takes them to be (a virtual machine's that looks for an overflow, or for pointers), and for nothing.
pub(crate) fn can_be_suspended(ssl: Ssl) -> bool {
    // SAFETY: the server's `SSL`.
    (unsafe { real::SSL_get_rfd(ssl) }) >= 0 || is_channel_known(ssl)
}

/// Names of channels that servers have written for themselves, of which is known that they read by `recv` and how they wait (haproxy's). Behind others a server may wait
/// only after its channel has answered that there is no input yet (Rust's `tokio-openssl`).
const KNOWN_CHANNELS: [&CStr; 1] = [c"ha methods"];

fn is_channel_known(ssl: Ssl) -> bool {
    // SAFETY: the server's `SSL`; the name is null or a string that lives as long as the channel's kind.
    unsafe {
        let channel = real::SSL_get_rbio(ssl);
        let name = if channel.is_null() { ptr::null() } else { real::BIO_method_name(channel) };
        !name.is_null() && KNOWN_CHANNELS.contains(&CStr::from_ptr(name))
    }
}

/// Stacks for the next handshakes.
#[derive(Default)]
pub(crate) struct Stacks(Vec<DefaultStack>);

impl Stacks {
    pub(crate) fn take(&mut self) -> Option<DefaultStack> {
        self.0.pop().or_else(|| DefaultStack::new(STACK_BYTES).ok().inspect(without_huge_pages))
    }

    pub(crate) fn give(&mut self, stack: DefaultStack) {
        if self.0.len() < KEPT_STACKS {
            self.0.push(stack);
        }
    }
}

/// Where the kernel gives huge pages unasked, the first touch of a stack would clear one.
fn without_huge_pages(stack: &DefaultStack) {
    let (limit, base) = (stack.limit().get(), stack.base().get());
    // SAFETY: the stack's own memory, which keeps its contents. That advice is not taken changes nothing.
    unsafe { libc::madvise(ptr::with_exposed_provenance_mut(limit), base - limit, libc::MADV_NOHUGEPAGE) };
}

/// This thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: always a valid place.
    unsafe { *libc::__errno_location() }
}

/// Sets this thread's `errno`.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: always a valid place.
    unsafe { *libc::__errno_location() = errno };
}
