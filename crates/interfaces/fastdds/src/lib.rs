//! Preload library: session reuse under the OpenSSL calls of an unmodified Fast DDS.
//!
//! Fast DDS has its cryptographic plug-in compiled in. For every piece of a message that it sends or receives it makes and keys a cipher context and asks for random bytes, and
//! for every piece that it receives it derives the session key anew. What is the same each time is kept here: the values of the derivations, and contexts with their
//! keys expanded. The bytes on the wire are those of Fast DDS.
//!
//! # How it comes between
//! Before the program begins, a library of the name `libfastrtps.so` or `libfastdds.so` is looked for among those that it is linked to. One that is loaded later (`rmw_fastrtps_cpp`) is met at its
//! first call of the one function that our library exports, `EVP_PKEY_new_mac_key`, by which Fast DDS begins its first derivation. That library's table of imported functions is then
//! changed so that its calls, and nobody else's, come to us; libcrypto's own and those of other users in the process go where they always went. If that library imports any function on cipher
//! or digest contexts that is not in our list, it is another release than we know, and it is left alone. So it is if it looks for its functions when it first calls them (lazy binding, linked without `-z now`)
//! and there are other threads already: one of them might just then write an address over ours.
//!
//! Met at a first call, the loader's lock is waited for. Who holds it for ever, as a library's constructor that is run by `dlopen`, makes a secured participant and waits for a match in it, waits in vain.
//!
//! | module | what |
//! |---|---|
//! | `door` | the exported function; whether and when to engage |
//! | `module` | a loaded library's table of imports |
//! | `hooks` | the functions that Fast DDS calls instead |
//! | `real` | libcrypto's own, as that library would have found them |
//! | `slab` | handles that are ours, told by their address |
//! | `cipher` | what becomes of an `EVP_CIPHER_CTX` |
//! | `mac` | what becomes of an `EVP_PKEY` of HMAC and an `EVP_MD_CTX` |
//! | `kept` | what a thread keeps ready |
//! | `table` | the bounded table in which it is kept |
//! | `tally` | counts and times by kind of work, for measurements |
//! | `counts` | how much was ready, for `bywash run` |
//!
//! # What is not ours
//! Every call that is not recognised is made on an object of libcrypto's, which is made for the purpose and brought to where ours stands. That can be done until the first byte
//! of a message has been enciphered, and afterwards no call of Fast DDS needs it; one that did would fail and say so in OpenSSL's error queue.
//!
//! No lock is held while anything is computed or looked up: what is kept is each thread's own, so that a fork cannot find it locked.
//!
//! # Settings
//! `BYWASH_DDS=off` leaves Fast DDS alone; `plain` lets all calls pass through to libcrypto, counted. `BYWASH_DDS_TALLY=FILE` writes counts and times to `FILE.PID` at exit. `BYWASH_KEEP=N` bounds the ciphers
//! that a thread keeps, beside twice as many values of derivations and two that have yet to prove themselves; 0 keeps none. `BYWASH_DDS_COUNTS=FILE` is `bywash run`'s.

use bywash_unwinder as _;

#[cfg(test)]
mod borrowed;
mod cipher;
mod counts;
mod door;
mod hooks;
mod kept;
mod mac;
mod module;
mod real;
mod slab;
mod table;
mod tally;
