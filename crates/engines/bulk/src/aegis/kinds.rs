//! The ciphers.

use super::lanes::Lanes;
use super::state::{State, State128, State256};

/// A cipher of the family.
pub trait Kind: Copy + Send + Sync + 'static {
    /// A key, and a nonce.
    type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]> + Copy + Default + Send + Sync + 'static;
    /// What a message goes through.
    #[doc(hidden)]
    type State<L: Lanes>: State<L>;
    /// States side by side, one or four.
    #[doc(hidden)]
    const LANES: usize;
}

/// AEGIS-128L.
#[derive(Clone, Copy, Debug)]
pub enum Aegis128L {}

impl Kind for Aegis128L {
    type Bytes = [u8; 16];
    type State<L: Lanes> = State128<L>;
    const LANES: usize = 1;
}

/// AEGIS-128X4.
#[derive(Clone, Copy, Debug)]
pub enum Aegis128X4 {}

impl Kind for Aegis128X4 {
    type Bytes = [u8; 16];
    type State<L: Lanes> = State128<L>;
    const LANES: usize = 4;
}

/// AEGIS-256.
#[derive(Clone, Copy, Debug)]
pub enum Aegis256 {}

impl Kind for Aegis256 {
    type Bytes = [u8; 32];
    type State<L: Lanes> = State256<L>;
    const LANES: usize = 1;
}
