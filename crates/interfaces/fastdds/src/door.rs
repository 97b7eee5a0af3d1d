//! The one exported function, and what comes between Fast DDS and libcrypto: at the program's start where it is linked to Fast DDS, otherwise at Fast DDS's first call of that function.

use crate::hooks::{HOOKS, MAKERS};
use crate::module::{self, Module};
use crate::real::{self, Real};
use crate::{counts, hooks, kept, tally};
use bywash_client::variable;
use bywash_dds::say_if_alone;
use core::ffi::{CStr, c_int, c_uchar, c_void};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// What libraries are called that we know the calls of: Fast DDS 2, and 3.
pub(crate) const NAMES: [&[u8]; 2] = [b"libfastrtps.so", b"libfastdds.so"];

/// Imports that begin so work on contexts that we hand out. All that there are must be in [`HOOKS`], or be harmless.
const ON_CONTEXTS: [&[u8]; 6] = [b"EVP_CIPHER_CTX", b"EVP_Cipher", b"EVP_Encrypt", b"EVP_Decrypt", b"EVP_MD_CTX", b"EVP_Digest"];
/// These take no context.
const HARMLESS: [&[u8]; 1] = [b"EVP_Digest"];

/// How the user wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Sessions are reused.
    On,
    /// Calls come to us and pass through, for counting.
    Plain,
    /// Nothing is changed.
    Off,
}

/// The mode. Read at the start, and kept without a lock: the child of a fork would wait for it for ever.
#[inline]
pub(crate) fn mode() -> Mode {
    const MODES: [Mode; 3] = [Mode::On, Mode::Plain, Mode::Off];
    static MODE: AtomicU8 = AtomicU8::new(u8::MAX);
    MODES.get(usize::from(MODE.load(Relaxed))).copied().unwrap_or_else(|| {
        let mode = asked();
        MODE.store(mode as u8, Relaxed);
        mode
    })
}

#[cold]
fn asked() -> Mode {
    match variable("BYWASH_DDS") {
        None => Mode::On,
        Some(value) if value == "on" => Mode::On,
        Some(value) if value == "off" => Mode::Off,
        Some(value) if value == "plain" => Mode::Plain,
        Some(value) => {
            eprintln!("bywash: BYWASH_DDS={}: not one of on, plain, off; on is taken", value.display());
            Mode::On
        }
    }
}

/// Runs before the program, when all libraries that it is linked to are there: to take the door's place needs the loader's lock, which another thread may hold at a first call later. (Each thread's
/// first use of its tables asks for it too, for a moment, as every destructor of a thread does.)
#[cfg_attr(not(test), used, unsafe(link_section = ".init_array"))]
#[cfg_attr(test, allow(dead_code, reason = "a test has no Fast DDS"))]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    // Should it fail, the first call tries again, or is told.
    let _ = catch_unwind(|| {
        // The settings of a program without Fast DDS are nobody's business.
        if let Some(module) = Module::named(|file| NAMES.iter().any(|name| file.starts_with(name)))
            && mode() != Mode::Off
        {
            engage(&module);
        }
    });
}

/// Stands in front of libcrypto's function of this name: passes on who called.
///
/// # Safety
/// That of EVP_PKEY_new_mac_key(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code, non_snake_case, reason = "a test must not stand in front of its own libcrypto"))]
#[unsafe(naked)]
#[cfg(target_arch = "x86_64")]
#[allow(unreachable_pub, reason = "exported by its name")]
pub unsafe extern "C" fn EVP_PKEY_new_mac_key(kind: c_int, engine: *mut c_void, key: *const c_uchar, length: c_int) -> *mut c_void {
    core::arch::naked_asm!("mov r8, [rsp]", "jmp {}", sym called)
}

/// Stands in front of libcrypto's function of this name: passes on who called.
///
/// # Safety
/// That of EVP_PKEY_new_mac_key(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, allow(dead_code, non_snake_case, reason = "a test must not stand in front of its own libcrypto"))]
#[unsafe(naked)]
#[cfg(target_arch = "aarch64")]
#[allow(unreachable_pub, reason = "exported by its name")]
pub unsafe extern "C" fn EVP_PKEY_new_mac_key(kind: c_int, engine: *mut c_void, key: *const c_uchar, length: c_int) -> *mut c_void {
    core::arch::naked_asm!("mov x4, x30", "b {}", sym called)
}

/// The export's body: a caller that is Fast DDS is engaged with, any other is sent on to the libcrypto that it would have found without us.
unsafe extern "C" fn called(kind: c_int, engine: *mut c_void, key: *const c_uchar, length: c_int, caller: usize) -> *mut c_void {
    let engaged = catch_unwind(|| has_engaged(caller)).unwrap_or(false);
    if engaged {
        // SAFETY: the caller's arguments.
        return unsafe { hooks::EVP_PKEY_new_mac_key(kind, engine, key, length) };
    }
    let name = c"EVP_PKEY_new_mac_key";
    // A caller that names no libcrypto lives off the program's.
    match Module::of(caller).and_then(|module| module.function(name, own_base())).or_else(|| module::next(name)) {
        // SAFETY: the function of that name, with the caller's arguments.
        Some(found) => unsafe { core::mem::transmute::<*mut c_void, real::NewMacKey>(found)(kind, engine, key, length) },
        None => core::ptr::null_mut(),
    }
}

/// Whether the library in which this address lies is Fast DDS, and its calls come to us from now on.
fn has_engaged(caller: usize) -> bool {
    mode() != Mode::Off
        && Module::of(caller).is_some_and(|module| NAMES.iter().any(|name| module.file().starts_with(name)) && engage(&module))
}

/// How far we are with the one library that we engage with.
const NOT_YET: u8 = 0;
const UNDER_WAY: u8 = 1;
const ENGAGED: u8 = 2;
const REFUSED: u8 = 3;

/// Whether this library's calls come to us, from now on or already. Nobody waits: who comes while another thread is at it goes to libcrypto, and so does the child of a fork in that moment.
fn engage(module: &Module) -> bool {
    static STATE: AtomicU8 = AtomicU8::new(NOT_YET);
    static BASE: AtomicUsize = AtomicUsize::new(0);
    match STATE.compare_exchange(NOT_YET, UNDER_WAY, AcqRel, Acquire) {
        Ok(_) => {
            BASE.store(module.base(), Relaxed);
            let done = take_over(module).inspect_err(|why| eprintln!("bywash: Fast DDS is left as it is: {why}"));
            STATE.store(if done.is_ok() { ENGAGED } else { REFUSED }, Release);
            if done.is_ok() {
                say_if_alone();
            }
            done.is_ok()
        }
        Err(state) => state == ENGAGED && BASE.load(Relaxed) == module.base(),
    }
}

fn take_over(module: &Module) -> Result<(), String> {
    let of = String::from_utf8_lossy(module.name());
    let strange = module.imports().find(|name| is_strange(name.to_bytes()));
    if let Some(name) = strange {
        let name = name.to_string_lossy();
        return Err(format!("{of} calls {name}, which the releases that are known (2.9.1, 3.6.2) do not; see the docs of BYWASH_DDS"));
    }
    // Another thread that finds a function right now would write its address over ours.
    if !module.is_bound() && !is_alone() {
        return Err(format!(
            "{of} looks for its functions when it first calls them (linked without -z now); start the program with LD_BIND_NOW=1"
        ));
    }
    module.pin()?;
    let own = own_base();
    let real = Real::find(|name| module.function(name, own)).map_err(|name| format!("its libcrypto has no {name}"))?;
    real::set(real);
    // All that is made once is made now, where no fork can come in between that would leave it half made.
    kept::prepare();
    tally::begin();
    counts::begin();
    module.redirect(HOOKS)?;
    module.redirect(MAKERS)
}

/// Whether this thread is the only one, as before the program has begun.
fn is_alone() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
}

/// Whether a function would meet contexts of ours and not know them.
fn is_strange(name: &[u8]) -> bool {
    ON_CONTEXTS.iter().any(|start| name.starts_with(start))
        && !HARMLESS.contains(&name)
        && !HOOKS.iter().chain(MAKERS).any(|(known, _)| known.to_bytes() == name)
}

/// Where this library lies.
fn own_base() -> usize {
    Module::of(called as *const () as usize).map_or(0, |module| module.base())
}

/// A hook: a function's name, and what is called in its place.
pub(crate) type Hook = (&'static CStr, fn() -> *const c_void);

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each purpose some, by the source of the releases that are called known.
    #[test]
    fn what_known_releases_call_is_known() {
        let of_messages = [&b"EVP_EncryptInit"[..], b"EVP_DecryptFinal_ex", b"EVP_CIPHER_CTX_ctrl", b"EVP_DigestSignFinal", b"EVP_Digest"];
        let of_handshakes = [&b"EVP_DigestVerifyInit"[..], b"EVP_DigestVerifyUpdate", b"EVP_DigestVerifyFinal"];
        let of_licences: [&[u8]; 1] = [b"EVP_DigestVerify"];
        for name in of_messages.into_iter().chain(of_handshakes).chain(of_licences) {
            assert!(!is_strange(name), "{}", String::from_utf8_lossy(name));
        }
        assert!(is_strange(b"EVP_EncryptInit_ex") && is_strange(b"EVP_DigestSign"));
    }
}
