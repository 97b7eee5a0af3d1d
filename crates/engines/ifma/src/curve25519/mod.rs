//! What X25519 and Ed25519 share: the field of 2^255 - 19, the scalars modulo the order of the base point, and multiples of that point.

pub(crate) mod edwards;
pub(crate) mod field;
pub(crate) mod scalar;
