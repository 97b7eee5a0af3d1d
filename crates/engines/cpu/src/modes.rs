//! Modes without a tag, and AES in CTR, CBC and ECB by the library.

use crate::aead::{check_iv, check_room};
use crate::ffi::Refused;
use crate::ffi::aes::{AesKey, Counter};
use crate::ffi::cipher::CipherContext;
use crate::pool::Pool;
use crate::{failed, wrong};
use bywash_core::{Algorithm, Data, Direction, Error, Keyed, Operation, Result, Stream};
use std::any::Any;
use std::sync::Arc;

/// A cipher without a tag: what its three modes have to bring, so that sessions and streams are written once.
pub(crate) trait Mode: Send + Sync + 'static {
    /// What one message carries along.
    type Message: Clone + Send;

    fn begin(&self, iv: &[u8]) -> Self::Message;
    fn apply(&self, direction: Direction, message: &mut Self::Message, data: Data<'_>) -> core::result::Result<(), Refused>;
    fn chaining_value(message: &Self::Message) -> [u8; 16];

    /// A message in one piece.
    fn whole(&self, direction: Direction, iv: &[u8], data: Data<'_>) -> core::result::Result<(), Refused> {
        self.apply(direction, &mut self.begin(iv), data)
    }
}

/// The first 16 bytes; the length has been checked.
pub(crate) fn block_of(iv: &[u8]) -> [u8; 16] {
    let mut block = [0; 16];
    block.copy_from_slice(iv);
    block
}

struct Ctr(AesKey);

impl Mode for Ctr {
    type Message = Counter;

    fn begin(&self, iv: &[u8]) -> Counter {
        Counter::at(block_of(iv))
    }

    fn apply(&self, _: Direction, counter: &mut Counter, data: Data<'_>) -> core::result::Result<(), Refused> {
        self.0.ctr(counter, data)
    }

    fn chaining_value(counter: &Counter) -> [u8; 16] {
        counter.block
    }
}

pub(crate) struct Cbc {
    encrypt: AesKey,
    decrypt: AesKey,
}

impl Cbc {
    pub(crate) fn new(key: &[u8]) -> Result<Self> {
        let expand = |direction| AesKey::new(key, direction).map_err(|_| failed("the key"));
        Ok(Self { encrypt: expand(Direction::Encrypt)?, decrypt: expand(Direction::Decrypt)? })
    }
}

impl Mode for Cbc {
    type Message = [u8; 16];

    fn begin(&self, iv: &[u8]) -> [u8; 16] {
        block_of(iv)
    }

    fn apply(&self, direction: Direction, chain: &mut [u8; 16], data: Data<'_>) -> core::result::Result<(), Refused> {
        let key = if direction == Direction::Encrypt { &self.encrypt } else { &self.decrypt };
        key.cbc(chain, data)
    }

    fn chaining_value(chain: &[u8; 16]) -> [u8; 16] {
        *chain
    }
}

struct Ecb {
    encrypt: Pool,
    decrypt: Pool,
}

impl Mode for Ecb {
    type Message = ();

    fn begin(&self, _: &[u8]) {}

    fn apply(&self, direction: Direction, (): &mut (), data: Data<'_>) -> core::result::Result<(), Refused> {
        let pool = if direction == Direction::Encrypt { &self.encrypt } else { &self.decrypt };
        pool.with(|context| context.update(data))
    }

    fn chaining_value((): &()) -> [u8; 16] {
        [0; 16]
    }
}

pub(crate) struct KeyedMode<M> {
    algorithm: Algorithm,
    block: usize,
    mode: Arc<M>,
}

impl<M: Mode> KeyedMode<M> {
    pub(crate) fn boxed(algorithm: Algorithm, block: usize, mode: M) -> Box<dyn Keyed> {
        Box::new(Self { algorithm, block, mode: Arc::new(mode) })
    }

    /// Bytes of a block.
    pub(crate) fn block(&self) -> usize {
        self.block
    }

    /// The key.
    pub(crate) fn mode(&self) -> &M {
        &self.mode
    }
}

pub(crate) fn open_ctr(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let key = AesKey::new(key, Direction::Encrypt).map_err(|_| failed("the key"))?;
    Ok(KeyedMode::boxed(algorithm, 1, Ctr(key)))
}

pub(crate) fn open_cbc(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    Ok(KeyedMode::boxed(algorithm, 16, Cbc::new(key)?))
}

pub(crate) fn open_ecb(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Keyed>> {
    let pool = |direction| CipherContext::new(algorithm, direction, key).map(Pool::new).map_err(|_| failed("the key"));
    let mode = Ecb { encrypt: pool(Direction::Encrypt)?, decrypt: pool(Direction::Decrypt)? };
    Ok(KeyedMode::boxed(algorithm, 16, mode))
}

impl<M: Mode> Keyed for KeyedMode<M> {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        if operation.direction == Direction::Compute {
            return Err(wrong(self.algorithm, "compute: say Encrypt or Decrypt"));
        }
        let len = operation.data.input_len();
        self.mode.whole(operation.direction, operation.iv, operation.data.reborrow()).map_err(|_| failed("the text"))?;
        Ok(len)
    }

    fn stream(&self, direction: Direction, iv: &[u8]) -> Result<Box<dyn Stream>> {
        if direction == Direction::Compute {
            return Err(wrong(self.algorithm, "compute: say Encrypt or Decrypt"));
        }
        check_iv(self.algorithm, iv)?;
        let Self { algorithm, block, mode } = self;
        Ok(Box::new(ModeStream { algorithm: *algorithm, block: *block, direction, message: mode.begin(iv), mode: Arc::clone(mode) }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A message in pieces; it shares the session's key state.
struct ModeStream<M: Mode> {
    algorithm: Algorithm,
    block: usize,
    direction: Direction,
    mode: Arc<M>,
    message: M::Message,
}

impl<M: Mode> Stream for ModeStream<M> {
    fn start(&mut self, iv: &[u8]) -> Result<()> {
        check_iv(self.algorithm, iv)?;
        self.message = self.mode.begin(iv);
        Ok(())
    }

    fn aad(&mut self, _: &[u8]) -> Result<()> {
        Err(wrong(self.algorithm, "take associated data"))
    }

    fn update(&mut self, data: Data<'_>) -> Result<()> {
        check_room(self.algorithm, &data)?;
        let given = data.input_len();
        if !given.is_multiple_of(self.block) {
            return Err(Error::InputLength { algorithm: self.algorithm, expected: format!("a multiple of {} bytes", self.block), given });
        }
        self.mode.apply(self.direction, &mut self.message, data).map_err(|_| failed("more text"))
    }

    fn finish(&mut self) -> Result<[u8; 16]> {
        Err(wrong(self.algorithm, "have a tag"))
    }

    fn chaining_value(&self) -> [u8; 16] {
        M::chaining_value(&self.message)
    }

    fn duplicate(&self) -> Result<Box<dyn Stream>> {
        let Self { algorithm, block, direction, mode, message } = self;
        Ok(Box::new(Self { algorithm: *algorithm, block: *block, direction: *direction, mode: Arc::clone(mode), message: message.clone() }))
    }
}
