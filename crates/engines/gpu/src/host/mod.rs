//! The little that is computed beside the device, in constant time and without instructions that a processor may lack: key schedules, one block here and there, the ends of tags.
//!
//! It is the kernels' arithmetic (`src/kernels`) once more, so that a session costs no launch.

pub(crate) mod aes;
pub(crate) mod chacha;
pub(crate) mod ghash;
pub(crate) mod poly1305;
pub(crate) mod xts;
