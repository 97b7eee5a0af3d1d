//! Every refusal says which field was wrong, and nothing of data or keys.

use crate::testing::{Ranges, device};
use bywash_cryptodev_abi::{Layout, freebsd, linux::*};

/// The sentence for a request with this argument.
fn refusal<T: Layout>(number: u32, argument: &T) -> String {
    let (device, memory) = (device(), Ranges::default());
    let argument = memory.put_struct(argument);
    device.explained(number, argument, &memory).unwrap_err().to_string()
}

#[test]
fn opening() {
    let session = SessionOp { cipher: CRYPTO_AES_CBC, keylen: 17, key: 1, ..SessionOp::default() };
    assert_eq!(
        refusal(CIOCGSESSION, &session),
        "CIOCGSESSION: key: the 17 bytes at 0x1 cannot be read; give the address of memory that can (EFAULT)"
    );
    assert_eq!(
        refusal(CIOCGSESSION, &SessionOp::default()),
        "CIOCGSESSION: cipher and mac are both 0; ask for at least one of them (EINVAL)"
    );
    let said = refusal(CIOCGSESSION, &SessionOp { mac: CRYPTO_ARC4, ..SessionOp::default() });
    assert_eq!(said, "CIOCGSESSION: mac is 12 (CRYPTO_ARC4), which is not computed here; choose another (EINVAL)");
    let said = refusal(CIOCGSESSION, &SessionOp { mac: CRYPTO_SHA1_HMAC, mackeylen: 600, ..SessionOp::default() });
    assert_eq!(said, "CIOCGSESSION: mackeylen is 600; a hash's key has at most 512 bytes (EINVAL)");
}

#[test]
fn sessions() {
    let said = refusal(CIOCCRYPT, &CryptOp { ses: 0x77, ..CryptOp::default() });
    assert_eq!(
        said,
        "CIOCCRYPT: ses 0x77 is no session of this descriptor; open one with CIOCGSESSION at the same open of /dev/crypto (EINVAL)"
    );
    let said = refusal(CIOCCPHASH, &CphashOp { dst_ses: 1, src_ses: 2 });
    assert!(said.starts_with("CIOCCPHASH: src_ses: ses 0x2 is no session") && said.ends_with("(ENOENT)"), "{said}");
    let said = refusal(freebsd::CIOCGSESSION2, &freebsd::Session2Op { cipher: 11, crid: 5, ..Default::default() });
    assert!(said.starts_with("CIOCGSESSION2: crid names driver 5"), "{said}");
}

#[test]
fn hashes_are_not_called_ciphers() {
    let (device, memory) = (device(), Ranges::default());
    let open = memory.put_struct(&SessionOp { mac: CRYPTO_SHA1, ..SessionOp::default() });
    device.request(CIOCGSESSION, open, &memory).unwrap();
    let ses = memory.get_struct::<SessionOp>(open).ses;
    let asked = memory.put_struct(&CryptOp { ses, len: 5, src: memory.put(b"12345"), ..CryptOp::default() });
    let said = device.explained(CIOCCRYPT, asked, &memory).unwrap_err().to_string();
    assert_eq!(said, "CIOCCRYPT: mac is a null pointer; give the address of 20 bytes (EFAULT)");
    let asked = memory.put_struct(&CryptAuthOp { ses, ..CryptAuthOp::default() });
    let said = device.explained(CIOCAUTHCRYPT, asked, &memory).unwrap_err().to_string();
    assert_eq!(said, "CIOCAUTHCRYPT: the session has no cipher; a hash alone takes CIOCCRYPT (EINVAL)");
}
