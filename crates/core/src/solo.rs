//! Ciphers that one caller has to itself.

use crate::error::Result;
use crate::operation::{Data, Direction, Operation};
use core::any::Any;

/// A cipher or AEAD that one caller has to itself, in its own place: key after key, message after message.
///
/// It is what [`Keyed`](crate::Keyed) and [`Stream`](crate::Stream) are together, without what sharing costs: nothing is counted, and no
/// [`SessionParams`](crate::SessionParams) stand before it, so it checks lengths itself. For callers that make one for a single short message, as a TLS handshake
/// does: making it, keying it and ending it must cost no more than the message.
///
/// What is true of streams is true here: block modes take whole blocks, and decryption in pieces gives text away before its tag is known. XTS, of which there
/// are no streams, takes a data unit with each [`update`](Solo::update), all under the tweak that [`start`](Solo::start) was given.
pub trait Solo: Any + Send {
    /// Expands a key; it ends the message begun.
    ///
    /// # Errors
    /// [`Error::KeyLength`](crate::Error::KeyLength), [`Error::BadKey`](crate::Error::BadKey) for an XTS key of two equal halves,
    /// [`Error::EngineFailed`](crate::Error::EngineFailed). It then has no key.
    fn set_key(&mut self, key: &[u8]) -> Result<()>;

    /// The key, if there is one.
    fn key(&self) -> Option<&[u8]>;

    /// Wipes the key, and ends the message begun.
    fn forget_key(&mut self);

    /// Begins a message in pieces.
    ///
    /// # Errors
    /// [`Error::IvLength`](crate::Error::IvLength), [`Error::WrongOperation`](crate::Error::WrongOperation) without a key.
    fn start(&mut self, direction: Direction, iv: &[u8]) -> Result<()>;

    /// Takes associated data (AEAD only, before any text).
    ///
    /// # Errors
    /// [`Error::WrongOperation`](crate::Error::WrongOperation).
    fn aad(&mut self, aad: &[u8]) -> Result<()>;

    /// Takes text; writes exactly as many bytes as it takes.
    ///
    /// # Errors
    /// [`Error::OutputTooSmall`](crate::Error::OutputTooSmall), [`Error::WrongOperation`](crate::Error::WrongOperation),
    /// [`Error::EngineFailed`](crate::Error::EngineFailed) for lengths that the mode does not take.
    fn update(&mut self, data: Data<'_>) -> Result<()>;

    /// Ends an AEAD's message and puts down its full tag, in either direction; the caller compares in constant time.
    ///
    /// # Errors
    /// [`Error::WrongOperation`](crate::Error::WrongOperation).
    fn finish(&mut self, tag: &mut [u8; 16]) -> Result<()>;

    /// The chaining value as it stands. Zero for modes without one, and without a message.
    fn chaining_value(&self) -> [u8; 16];

    /// Runs a whole operation, apart from the message begun.
    ///
    /// # Errors
    /// [`Error::Authentication`](crate::Error::Authentication), with zeros in the output; those of [`start`](Solo::start) and
    /// [`update`](Solo::update).
    fn run(&mut self, operation: &mut Operation<'_>) -> Result<()>;

    /// A copy in the same state, its key copied as it was expanded. It is made of a spare of the same kind, if that is what is given, whose key and message go.
    fn duplicate(&self, spare: Option<Box<dyn Solo>>) -> Box<dyn Solo>;
}
