//! ioctl(2).

use crate::real::{self, errno, fail, set_errno};
use crate::{descriptors, gate, loader, memory, open, table};
use core::ffi::{c_int, c_ulong, c_void};
use libc::{FIOASYNC, FIOCLEX, FIONBIO, FIONCLEX};

/// The kind (`_IOC_TYPE`) of all of the device's requests.
const KIND: u32 = b'c' as u32;
/// The numbers (`_IOC_NR`) of the requests with which work is done: `CIOCCRYPT` and `CIOCAUTHCRYPT`. They carry the session that they mean, so a descriptor that
/// was closed behind our back and is another file by now is not confused with ours; looking which file it is would take longer than a short message.
const WORK: [u32; 2] = [104, 109];
/// Those of the asynchronous pair, after which poll(2) may find something else.
const ASYNCHRONOUS: [u32; 2] = [110, 111];

/// The `_IOC_NR` of a request that may be the device's.
fn number_of(request: u32) -> Option<u32> {
    (request >> 8 & 0xff == KIND).then_some(request & 0xff).filter(|number| (101..=112).contains(number))
}

/// ioctl(2).
///
/// # Safety
/// That of the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // The kernel takes 32 bits; programs that keep a request in an `int` extend its sign.
    let number = request as u32;
    let is_ours = table::may_hold(fd) || number_of(number).is_some() && open::adopt(fd);
    // These four are answered by the kernel for whatever file.
    if is_ours
        && ![FIOCLEX, FIONCLEX, FIONBIO, FIOASYNC].contains(&request)
        && let Some(answer) = answered(fd, number, argument)
    {
        return answer;
    }
    // SAFETY: the program's arguments.
    unsafe { real::ioctl(fd, request, argument) }
}

/// The device's answer; `None` if the descriptor is none of ours any more.
fn answered(fd: c_int, request: u32, argument: *mut c_void) -> Option<c_int> {
    let before = errno();
    let number = number_of(request);
    let Some(inside) = gate::enter() else { return Some(fail(libc::EBUSY)) };
    let is_work = number.is_some_and(|number| WORK.contains(&number));
    let held = if is_work { table::take(fd) } else { table::take_verified(fd, Some(&inside)) }?;
    let answer = loader::request(held.device(), request, argument as u64);
    if number.is_some_and(|number| ASYNCHRONOUS.contains(&number)) {
        held.shown.show(fd, || loader::readiness(held.device()));
    }
    let result = match answer.errno {
        0 if answer.new_descriptor != 0 => give_descriptor(fd, held, &inside, argument),
        0 => Ok(answer.value),
        number => Err(number),
    };
    held.release(Some(&inside));
    table::end_abandoned(&inside);
    drop(inside);
    set_errno(before);
    Some(result.unwrap_or_else(fail))
}

/// `CRIOGET`: another descriptor of the same description, its number written to where the program wants it.
fn give_descriptor(fd: c_int, held: table::Held, inside: &gate::Inside, argument: *mut c_void) -> Result<c_int, c_int> {
    let fresh = descriptors::duplicate(fd);
    if fresh < 0 {
        return Err(errno());
    }
    // SAFETY: four bytes of ours; the address is tested.
    let written = unsafe { memory::write(argument as u64, (&raw const fresh).cast(), size_of::<c_int>()) };
    let shared = if written == 0 { table::share(fresh, held, Some(inside)) } else { Err(written) };
    if let Err(number) = shared {
        // SAFETY: the copy, which nobody knows.
        unsafe { real::close(fresh) };
        return Err(number);
    }
    Ok(0)
}
