//! What a plain program does with the device: a session of a cipher, and messages one after the other.

use crate::port::{Handle, Port, at, errno_name, out};
use bywash_cryptodev_abi::linux::{COP_ENCRYPT, CryptOp};

/// An open device with one session of a cipher (`CIOCGSESSION`), which is closed (`CIOCFSESSION`) when it is dropped.
pub struct Cipher<'a> {
    device: Handle<'a>,
    session: u32,
}

impl<'a> Cipher<'a> {
    /// Opens the device, and a session of this cipher there.
    ///
    /// # Errors
    /// What was refused, and why.
    pub fn open(port: &'a dyn Port, cipher: u32, key: &[u8]) -> Result<Self, String> {
        let descriptor = port.open()?;
        let device = Handle::of(port, descriptor);
        let session = device.cipher(cipher, key).map_err(|errno| format!("CIOCGSESSION of cipher {cipher}: {}", errno_name(errno)))?;
        Ok(Self { device, session })
    }

    /// Enciphers a message (`CIOCCRYPT`). The vector is as long as the cipher's is.
    ///
    /// # Errors
    /// What was refused, and why.
    pub fn encrypt(&self, iv: &[u8], text: &[u8]) -> Result<Vec<u8>, String> {
        let mut output = vec![0; text.len()];
        let len = u32::try_from(text.len()).map_err(|_| "a message of 4 GiB or more".to_owned())?;
        let asked =
            CryptOp { ses: self.session, op: COP_ENCRYPT, len, src: at(text), dst: out(&mut output), iv: at(iv), ..CryptOp::default() };
        self.device.crypt(asked).map_err(|errno| format!("CIOCCRYPT of {len} bytes: {}", errno_name(errno)))?;
        // Whoever answers has written there behind the compiler's back.
        core::hint::black_box(&mut output);
        Ok(output)
    }
}

impl Drop for Cipher<'_> {
    fn drop(&mut self) {
        // A session that cannot be closed ends with the device.
        let _ = self.device.finish(self.session);
    }
}
