//! TLS groups. libssl takes a group from the provider whose key manager it would use for it, and from no other: whoever offers `EC` and
//! `X25519` must offer their groups, or handshakes find none. Ours are the default provider's, as it describes them.

use super::twin::Twin;
use crate::ffi::libcrypto::OSSL_PROVIDER_get_capabilities;
use crate::ffi::{Callback, Param, Params, guard};
use core::ffi::{CStr, c_char, c_int, c_void};

/// Who wants to hear of our groups.
struct Listener {
    callback: Callback,
    arg: *mut c_void,
}

/// Hands a group on, if its keys are ours.
unsafe extern "C" fn hand_on(params: *const Param, listener: *mut c_void) -> c_int {
    guard(0, || {
        // SAFETY: a description that the default provider hands out for the time of the call.
        let algorithm = unsafe { Params::new(params) }.get(c"tls-group-alg").and_then(Param::utf8);
        if !algorithm.is_some_and(|algorithm| matches!(algorithm, "EC" | "X25519")) {
            return 1;
        }
        // SAFETY: the listener of `offer`, which waits for us.
        let Listener { callback, arg } = unsafe { listener.cast::<Listener>().read() };
        // SAFETY: libcrypto's callback, with the argument that belongs to it.
        unsafe { callback(params, arg) }
    })
}

/// `OSSL_FUNC_provider_get_capabilities`.
///
/// # Safety
/// Called by libcrypto, with the arguments that provider-base(7) describes.
pub(crate) unsafe fn offer(capability: *const c_char, callback: Callback, arg: *mut c_void) -> c_int {
    // SAFETY: libcrypto's string.
    if capability.is_null() || unsafe { CStr::from_ptr(capability) } != c"TLS-GROUP" {
        return 0;
    }
    let Some(twin) = Twin::get() else { return 0 };
    let mut listener = Listener { callback, arg };
    // SAFETY: a loaded provider; the listener outlives the call.
    unsafe { OSSL_PROVIDER_get_capabilities(twin.provider(), capability, hand_on, (&raw mut listener).cast()) }
}
