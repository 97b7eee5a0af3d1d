//! What `/dev/crypto` does with a request, whoever carries it.
//!
//! A transport (a preload library, a supervisor, a character device in user space) catches the program's `open` and `ioctl`, makes a [`Device`] for each open
//! file, and hands it every request together with the [`Memory`] of the program, which may be its own or another process's.
//! The device knows sessions and what each request means; where an operation is computed is for the client to say, piece by piece.
//!
//! # Sessions
//!
//! The cipher and the hash of a session are two sessions at the client; each request runs each where the routing table says at that moment, so they may be
//! on different engines, and move. What goes from one request to the next is kept here: the IV, the message under way. It outlives an
//! engine, and is copied for a child of fork whose memory is its own ([`Device::copy_for_child`], [`Device::became_child`]).
//!
//! Data pass through a buffer of 8 KiB, which is wiped; where the routing table sends a request to a queue, a mebibyte at a time. What is held whole (messages with a tag, data units
//! of XTS) is read piece by piece, so that memory is touched only as far as the program has it; and it is read once, for it may change meanwhile. Neither the sessions' table nor the
//! ring is locked during work; a session is, as requests of one session follow one another. A power of 8192 bits, the dearest request of a fixed size, locks nothing.
//!
//! # Error numbers
//!
//! They are the module's, and so is their order where several things are wrong: the argument (`EFAULT`), the session (`EINVAL`), the IV (`EFAULT`), the
//! operation, the length (`EINVAL`), the data (`EFAULT`; for `CIOCAUTHCRYPT`, which maps pages, `EINVAL`), the tag (`EBADMSG`). [`Device::explained`] says
//! in a sentence what was wrong, in which field, and what would mend it.
//!
//! # Where it deviates from the module of Linux on purpose
//!
//! | what | the module | here | why |
//! |---|---|---|---|
//! | `src` null with a length; `dst` null for a cipher | crashes the kernel | `EFAULT` | null is an address like others that nobody has |
//! | a hash told to decipher, `dst` null | crashes the kernel | `EFAULT` | as above; with a `dst` that is what is hashed, as in the module |
//! | `CIOCCRYPT` on a session of an AEAD | crashes the kernel | `EINVAL` | such sessions take `CIOCAUTHCRYPT` |
//! | a tag length that GCM or CCM does not have | crashes the kernel | `EINVAL` | SP 800-38D s5.2.1.2, SP 800-38C appendix A.1 |
//! | `CIOCAUTHCRYPT`: tag longer than the hash, payload behind the packet | reads or writes what is not the program's | `EINVAL` | |
//! | `CIOCAUTHCRYPT`: `dst` null | crashes, or `EINVAL` (TLS) | `EINVAL` | |
//! | associated data null with a length | takes the data for it, or crashes | `EFAULT` | |
//! | HMAC's key null with a length | takes what is on the stack | `EFAULT` | |
//! | GCM, CCM: enciphering with `iv` null | goes on with the last nonce | `EINVAL` | a nonce used twice gives the key away |
//! | counter mode: `iv` null in a child of fork | (parent and child share the session) | `EINVAL` until one is given | parent and child would use one key stream |
//! | a tag length once shortened | stays the longest that is taken | any length at any time; 0 is 16 | |
//! | wrong tag or padding | leaves text in `dst` | leaves `dst` alone | what is not authentic is not given away |
//! | GCM, CCM, TLS: `dst` that can be read and not written, and another mistake after it (associated data, tag, padding) | `EINVAL`, for pages are mapped first | that of the other mistake | nothing is written before all is known to be right |
//! | TLS: record too short for its tag behind its padding | `EINVAL` | `EBADMSG` | the difference tells about the padding |
//! | TLS: wrong padding and no hash | success | `EBADMSG` | |
//! | TLS: after opening, `dst` | text, tag and padding | the text | |
//! | records of TLS and packets of SRTP of more than 65536 bytes; messages of AEADs of more than 64 MiB | taken | `EINVAL`; `ENOMEM` | they are held whole |
//! | XTS: data of more than 16 MiB | taken | `EINVAL` | IEEE 1619-2018 s5.1 |
//! | XTS: copied data (`NO_ZC`) | every page begins the data unit anew | one data unit | |
//! | XTS: two equal halves of a key; keys of 48 bytes | taken | `EINVAL` | IEEE 1619-2018 s5.1; there is no AES-192-XTS |
//! | `CIOCCPHASH` between different hashes | copies the one's state over the other's | `EINVAL` | |
//! | `CIOCCPHASH` between HMACs of different keys | inner state of the one, key of the other | the message goes on under the source's key, and then the session's own is back | |
//! | a hash after its value was taken | undefined | begins anew | |
//! | `CIOCGSESSINFO` to memory that cannot be written | a positive number | `EFAULT` | |
//! | `CIOCGSESSINFO`: the flag | set for drivers of hardware | always set | clients use the device only then; any engine may compute |
//! | `CIOCKEY`, `CIOCASYMFEAT` | `EINVAL`, and 0 | powers, powers by remainders, signatures of DSA and the secret of Diffie-Hellman, and the bits that say so | declared there, and never had |
//! | `CIOCKEY`: an even modulus; DSA with a q of other than 160, 224 or 256 bits, or with numbers by which what is signed is no signature | (as above) | `EINVAL` | no way in constant time; a private key used in numbers of a stranger's choice shows itself |
//! | `CIOCASYNCCRYPT` | computes in a thread of the kernel | computes at once, and keeps the outcome to be fetched | no thread in the program's process |
//! | sessions of one open file | as many as there is memory | 65536, then `ENOMEM`; where one process serves all users, so many of one of them together | a supervisor pays for its programs |
//! | a request of another letter than `c`, under the supervisor alone | `EINVAL` | `ENOTTY`, which the kernel answers | only requests of this letter stop, so that those to all other devices cost what they did |
//!
//! # FreeBSD's dialect
//!
//! Its requests have other numbers, so that no program need say which dialect it speaks. There each request gives its IV, or has it in front of the data, a cipher with a MAC is
//! authenticated after it is enciphered, and closing an unknown session is an error. `CIOCCRYPT` on a session of an AEAD is `EINVAL` (FreeBSD takes
//! it without associated data); `CIOCKEY` takes numbers of at most 8192 bits (there 65536); keys are read before their length is compared with the algorithm's; there is one driver, `bywash0`, number 1.
#![forbid(unsafe_code)]

mod aead;
mod auth;
mod bounce;
mod cipher;
mod copy;
mod crypt;
mod device;
mod errno;
mod freebsd;
mod freebsd_crypt;
mod hash;
mod info;
mod key;
mod kinds;
mod memory;
mod open;
mod refusal;
mod ring;
mod session;
mod srtp;
mod table;
mod tls;

pub use device::{Answer, Device, Readiness, is_request};
pub use errno::Errno;
pub use memory::Memory;
pub use refusal::Refusal;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
