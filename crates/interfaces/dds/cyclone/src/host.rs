//! What the plug-in needs of the Cyclone DDS that loaded it: memory that Cyclone may free, and the secrets of its authentication.

use crate::abi::Foreign;
use crate::fault::{Fault, Outcome};
use bywash_dds::CHALLENGE;
use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use zeroize::Zeroizing;

/// Functions of Cyclone's library, looked up when the plug-in is made: it is linked to no version of it.
#[derive(Clone, Copy)]
pub struct Host {
    allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    resize: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    challenge1: unsafe extern "C" fn(Foreign) -> *const u8,
    challenge2: unsafe extern "C" fn(Foreign) -> *const u8,
    secret: unsafe extern "C" fn(Foreign) -> *const u8,
    secret_len: unsafe extern "C" fn(Foreign) -> usize,
}

/// The secret that two participants have agreed on, and the challenges that they did it with.
pub struct Secret {
    pub(crate) secret: Zeroizing<Vec<u8>>,
    pub(crate) challenge1: [u8; CHALLENGE],
    pub(crate) challenge2: [u8; CHALLENGE],
}

/// A block of the host's memory; freed when dropped, unless it was given to the host.
pub struct Block {
    free: unsafe extern "C" fn(*mut c_void),
    start: *mut u8,
    len: usize,
}

/// Names of Cyclone's library, should a program have loaded it for itself alone.
const LIBRARIES: [&CStr; 3] = [c"libddsc.so.0debian", c"libddsc.so.0", c"libddsc.so"];

impl Host {
    /// The library that is loaded.
    ///
    /// # Errors
    /// What it lacks.
    pub fn find() -> Result<Self, String> {
        let scopes = || {
            // SAFETY: a name that ends; nothing is loaded, and what is found stays: it is the caller.
            let own = |name: &&CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
            core::iter::once(libc::RTLD_DEFAULT).chain(LIBRARIES.iter().map(own).filter(|handle| !handle.is_null()))
        };
        let find = |name: &CStr| {
            // SAFETY: handles of the loader and a name that ends.
            let found = scopes().map(|scope| unsafe { libc::dlsym(scope, name.as_ptr()) }).find(|symbol| !symbol.is_null());
            found.ok_or_else(|| format!("no Cyclone DDS with security in this process: {name:?} is missing"))
        };
        // SAFETY: the functions of these names have these types in every Cyclone DDS with this plug-in interface (dds/ddsrt/heap.h,
        // dds/security/core/shared_secret.h).
        unsafe {
            Ok(Self {
                allocate: core::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize) -> *mut c_void>(find(c"ddsrt_malloc")?),
                resize: core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>(find(
                    c"ddsrt_realloc",
                )?),
                free: core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(find(c"ddsrt_free")?),
                challenge1: foreign(find(c"get_challenge1_from_secret_handle")?),
                challenge2: foreign(find(c"get_challenge2_from_secret_handle")?),
                secret: foreign(find(c"get_secret_from_secret_handle")?),
                secret_len: core::mem::transmute::<*mut c_void, unsafe extern "C" fn(Foreign) -> usize>(find(
                    c"get_secret_size_from_secret_handle",
                )?),
            })
        }
    }

    /// The secret behind a handle of the authentication plug-in.
    pub(crate) fn shared_secret(&self, handle: Foreign) -> Outcome<Secret> {
        if handle == 0 {
            return Err(Fault::argument("no shared secret: the participants are not authenticated"));
        }
        // SAFETY: a handle that the host got from its authentication and hands to us for this.
        unsafe {
            let (first, second) = ((self.challenge1)(handle), (self.challenge2)(handle));
            let (secret, len) = ((self.secret)(handle), (self.secret_len)(handle));
            if first.is_null() || second.is_null() || secret.is_null() || len > 4096 {
                return Err(Fault::argument("a shared secret without challenges or bytes"));
            }
            let secret = Zeroizing::new(core::slice::from_raw_parts(secret, len).to_vec());
            Ok(Secret { secret, challenge1: *first.cast(), challenge2: *second.cast() })
        }
    }

    /// Memory with whatever lies there: for who writes all of it. To clear it first would cost as much as a fifth of the encryption.
    pub(crate) fn block(&self, len: usize) -> Outcome<Block> {
        // SAFETY: any length; what comes has at least one byte.
        let start = unsafe { (self.allocate)(len.max(1)) }.cast::<u8>();
        if start.is_null() { Err(Fault::allocation()) } else { Ok(Block { free: self.free, start, len }) }
    }

    /// Zeroed memory.
    pub(crate) fn zeroed(&self, len: usize) -> Outcome<Block> {
        let mut block = self.block(len)?;
        block.bytes().fill(0);
        Ok(block)
    }

    /// A text as C has it.
    pub(crate) fn text(&self, text: &str) -> Outcome<*mut c_char> {
        let mut block = self.zeroed(text.len() + 1)?;
        block.bytes()[..text.len()].copy_from_slice(text.as_bytes());
        Ok(block.into_raw().cast())
    }

    /// Frees what the host or we have allocated; null is nothing.
    ///
    /// # Safety
    /// It came from the host's allocator, and nobody uses it any more.
    pub(crate) unsafe fn free<T>(&self, start: *mut T) {
        // SAFETY: as the caller says.
        unsafe { (self.free)(start.cast()) }
    }

    /// Makes a block longer; the old one is gone.
    ///
    /// # Safety
    /// It came from the host's allocator with at least `len` bytes, and nobody uses it any more.
    pub(crate) unsafe fn grown(&self, start: *mut u8, len: usize, more: usize) -> Outcome<*mut u8> {
        // SAFETY: as the caller says.
        let grown = unsafe { (self.resize)(start.cast(), len + more) }.cast::<u8>();
        if grown.is_null() {
            return Err(Fault::allocation());
        }
        // SAFETY: behind the old bytes so many have come.
        unsafe { ptr::write_bytes(grown.add(len), 0, more) };
        Ok(grown)
    }

    /// For tests without Cyclone: the C library's memory, and no secrets but one of 32 bytes, all 5, with challenges of 6 and 7.
    #[doc(hidden)]
    pub fn alone() -> Self {
        static SECRETS: [[u8; CHALLENGE]; 3] = [[5; CHALLENGE], [6; CHALLENGE], [7; CHALLENGE]];
        unsafe extern "C" fn secret(_: Foreign) -> *const u8 {
            SECRETS[0].as_ptr()
        }
        unsafe extern "C" fn first(_: Foreign) -> *const u8 {
            SECRETS[1].as_ptr()
        }
        unsafe extern "C" fn second(_: Foreign) -> *const u8 {
            SECRETS[2].as_ptr()
        }
        unsafe extern "C" fn secret_len(_: Foreign) -> usize {
            32
        }
        Self { allocate: libc::malloc, resize: libc::realloc, free: libc::free, challenge1: first, challenge2: second, secret, secret_len }
    }
}

/// # Safety
/// A function of this type.
unsafe fn foreign(symbol: *mut c_void) -> unsafe extern "C" fn(Foreign) -> *const u8 {
    // SAFETY: as the caller says.
    unsafe { core::mem::transmute(symbol) }
}

impl Block {
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: it is ours and of that length, and its bytes are the host's: some value each, which a function that is not known at compile time has put there.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// Leaves it to the host.
    pub(crate) fn into_raw(self) -> *mut u8 {
        core::mem::ManuallyDrop::new(self).start
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nobody has it any more.
        unsafe { (self.free)(self.start.cast()) };
    }
}
