//! The foreign side: the provider ABI, typed access to its parameters, and the public functions of libcrypto.
//!
//! Written by hand from `core.h`, `core_dispatch.h` and `core_names.h` of OpenSSL 3.0, whose numbers and layouts are a promise that later
//! releases keep. Nothing private of OpenSSL is used, and no object of the program's libcrypto is ever handed to ours or back: only
//! plain bytes and numbers cross, so a program with a libcrypto of its own is served as well.

pub mod abi;
pub mod guard;
pub mod ids;
pub mod libcrypto;
mod names;
pub mod outgoing;
pub mod params;

pub use abi::{AlgorithmEntry, Callback, CoreHandle, DispatchEntry, Function, Param, Table};
pub use guard::guard;
pub use outgoing::OwnedParams;
pub use params::{Params, ParamsMut};
