//! A toy engine: every byte XORed with the key's first, so that a test sees at once which engine ran.

use bywash_core::{Algorithm, Data, Direction, Engine, Error, Key, Keyed, Operation, Result, SessionParams, Stream};
use std::any::Any;

/// Knows AES-128-CTR by name alone.
pub(crate) struct Toy;

impl Engine for Toy {
    fn name(&self) -> &str {
        "toy"
    }
    fn describe(&self) -> String {
        "XOR, for tests".into()
    }
    fn capabilities(&self) -> &[Algorithm] {
        &[Algorithm::Aes128Ctr]
    }
    fn workers(&self) -> usize {
        1
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        match params.key() {
            Key::Symmetric(key) if self.supports(params.algorithm()) => Ok(Box::new(Xor(key[0]))),
            _ => Err(Error::Unsupported { engine: "toy".into(), algorithm: params.algorithm() }),
        }
    }
}

/// The key's first byte.
#[derive(Clone)]
pub(crate) struct Xor(pub(crate) u8);

impl Xor {
    fn apply(&self, data: &mut Data<'_>) -> usize {
        match data {
            Data::InPlace(buffer) => buffer.iter_mut().for_each(|byte| *byte ^= self.0),
            Data::Copy { input, output } => output.iter_mut().zip(input.iter()).for_each(|(to, from)| *to = from ^ self.0),
        }
        data.input_len()
    }
}

impl Keyed for Xor {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        Ok(self.apply(&mut operation.data))
    }
    fn stream(&self, _direction: Direction, _iv: &[u8]) -> Result<Box<dyn Stream>> {
        Ok(Box::new(self.clone()))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Stream for Xor {
    fn start(&mut self, _iv: &[u8]) -> Result<()> {
        Ok(())
    }
    fn aad(&mut self, _aad: &[u8]) -> Result<()> {
        Err(Error::WrongOperation { algorithm: Algorithm::Aes128Ctr, what: "take associated data" })
    }
    fn update(&mut self, mut data: Data<'_>) -> Result<()> {
        self.apply(&mut data);
        Ok(())
    }
    fn finish(&mut self) -> Result<[u8; 16]> {
        Err(Error::WrongOperation { algorithm: Algorithm::Aes128Ctr, what: "have a tag" })
    }
    fn chaining_value(&self) -> [u8; 16] {
        [0; 16]
    }
    fn duplicate(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(self.clone()))
    }
}
