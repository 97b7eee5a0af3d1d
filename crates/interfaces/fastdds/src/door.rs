//! The one exported function, and what its first call by Fast DDS sets off.

use crate::hooks::{HOOKS, MAKERS};
use crate::module::{self, Module};
use crate::real::{self, Real};
use crate::{hooks, tally};
use core::ffi::{CStr, c_int, c_uchar, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What libraries are called that we know the calls of.
const NAME: &[u8] = b"libfastrtps.so";

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

/// The mode, read once.
pub(crate) fn mode() -> Mode {
    static MODE: OnceLock<Mode> = OnceLock::new();
    *MODE.get_or_init(|| match std::env::var_os("BYWASH_DDS") {
        Some(value) if value == "off" => Mode::Off,
        Some(value) if value == "plain" => Mode::Plain,
        _ => Mode::On,
    })
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
    let engaged = std::panic::catch_unwind(|| engage(caller)).unwrap_or(false);
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
fn engage(caller: usize) -> bool {
    /// Where the library is with which we have engaged.
    static ENGAGED: OnceLock<bool> = OnceLock::new();
    static BASE: AtomicUsize = AtomicUsize::new(0);
    if mode() == Mode::Off {
        return false;
    }
    let Some(module) = Module::of(caller) else { return false };
    let file = module.name().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    if !file.starts_with(NAME) {
        return false;
    }
    let engaged = *ENGAGED.get_or_init(|| {
        BASE.store(module.base(), Relaxed);
        take_over(&module).inspect_err(|why| eprintln!("bywash: Fast DDS is left as it is: {why}")).is_ok()
    });
    engaged && BASE.load(Relaxed) == module.base()
}

fn take_over(module: &Module) -> Result<(), String> {
    let strange = module.imports().find(|name| is_strange(name.to_bytes()));
    if let Some(name) = strange {
        let (name, of) = (name.to_string_lossy(), String::from_utf8_lossy(module.name()));
        return Err(format!("{of} calls {name}, which the release that is known (2.9.1) does not; see the docs of BYWASH_DDS"));
    }
    let own = own_base();
    let real = Real::find(|name| module.function(name, own)).map_err(|name| format!("its libcrypto has no {name}"))?;
    real::set(real);
    tally::begin();
    module.redirect(HOOKS)?;
    module.redirect(MAKERS)
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
