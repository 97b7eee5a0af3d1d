//! Implicit rejection: what decryption with RSAES-PKCS1-v1_5 gives where the padding is bad (draft-irtf-cfrg-rsa-guidance, "Implicit rejection"; OpenSSL since 3.2).
//!
//! Whoever sends ciphertexts of his own making must not learn which of them decrypt to something padded well (Bleichenbacher 1998). So there is always a text: where the
//! padding is bad one is made up, of a length that is made up as well, and the same for the same ciphertext each time.

use crate::kdf::hmac::{Hash, Hmac, Value, zeros};
use bywash_core::SecretBytes;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq, ConstantTimeLess};

/// Bytes of a block before its padding: 0 and the block type, 2.
const TYPE: usize = 2;
/// Fewest bytes of padding.
const PADDING_MIN: usize = 8;
/// Lengths that are drawn, the last of which that fits is taken; none does once in more than 2^128 times.
const LENGTHS: usize = 128;

/// A text that is made up for one ciphertext: the end of some bytes as many as a block has.
pub(super) struct MadeUp {
    bytes: SecretBytes,
    len: u32,
}

impl MadeUp {
    /// For a ciphertext of as many bytes as the modulus. None if HMAC fails, which nothing that is secret decides.
    pub(super) fn new(private_exponent: &[u8], ciphertext: &[u8]) -> Option<Self> {
        let mut key = zeros();
        derivation_key(private_exponent, ciphertext, &mut key)?;
        let (mut bytes, mut lengths) = (SecretBytes::zeroed(ciphertext.len()), SecretBytes::zeroed(2 * LENGTHS));
        Hmac::with(Hash::Sha256, &key[..Hash::Sha256.len()], |prf| {
            draw(prf, b"message", &mut bytes)?;
            draw(prf, b"length", &mut lengths)
        })?;
        let longest = u16::try_from(bytes.len().checked_sub(TYPE + PADDING_MIN)?).ok()?;
        let mask = u16::MAX >> longest.leading_zeros();
        let len = lengths.chunks_exact(2).fold(0, |len, drawn| {
            let drawn = u16::from_be_bytes([drawn[0], drawn[1]]) & mask;
            u16::conditional_select(&len, &drawn, drawn.ct_lt(&longest))
        });
        Some(Self { bytes, len: len.into() })
    }

    /// Writes what a decrypted block, of as many bytes as the modulus, has after its padding, or the made up text if the padding is bad; the text's length. That one
    /// may be seen: it does not say which it was. `out` has room for a block.
    pub(super) fn unless_padded(&self, block: &[u8], out: &mut [u8]) -> usize {
        let size = block.len() as u32;
        let (mut separator, mut is_found) = (0_u32, Choice::from(0));
        for (at, byte) in (0_u32..).zip(block).skip(TYPE) {
            let is_zero = byte.ct_eq(&0);
            separator.conditional_assign(&at, is_zero & !is_found);
            is_found |= is_zero;
        }
        let is_good = block[0].ct_eq(&0) & block[1].ct_eq(&2) & !separator.ct_lt(&((TYPE + PADDING_MIN) as u32));
        let begin = u32::conditional_select(&(size - self.len), &(separator + 1), is_good) as usize;
        let texts = block[begin..].iter().zip(&self.bytes[begin..]);
        for (to, (text, made_up)) in out.iter_mut().zip(texts) {
            *to = u8::conditional_select(made_up, text, is_good);
        }
        block.len() - begin
    }
}

/// The key by which everything is drawn: of the private exponent, so that nobody else can, and of the ciphertext.
fn derivation_key(private_exponent: &[u8], ciphertext: &[u8], key: &mut Value) -> Option<()> {
    let mut exponent = SecretBytes::zeroed(ciphertext.len());
    let begin = exponent.len().checked_sub(private_exponent.len())?;
    exponent[begin..].copy_from_slice(private_exponent);
    let mut hashed = zeros();
    Hash::Sha256.of(&exponent, &mut hashed);
    Hmac::with(Hash::Sha256, &hashed[..Hash::Sha256.len()], |hmac| hmac.of(&[ciphertext], key))
}

/// Fills with the draft's pseudo-random function.
fn draw(prf: &mut Hmac, label: &[u8], out: &mut [u8]) -> Option<()> {
    let bits = u16::try_from(8 * out.len()).ok()?.to_be_bytes();
    let mut value = zeros();
    for (number, piece) in (0_u16..).zip(out.chunks_mut(Hash::Sha256.len())) {
        prf.of(&[&number.to_be_bytes(), label, &bits], &mut value)?;
        piece.copy_from_slice(&value[..piece.len()]);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::hex;
    use super::*;

    /// OpenSSL's test key RSA-2048 (test/recipes/30-test_evp_data/evppkey_rsa_common.txt): its private exponent, a damaged ciphertext, and what that decrypts to.
    const PRIVATE_EXPONENT: &str = concat!(
        "60297ac7991b167a06d6b24758b8cbe208beb9b2d9ec9738bd80f90a2e35005dd7ce292d9e29ba885bd316fef1f20913bc0ac90d6b0808b2414d82104441d862",
        "4a33ce0233c8f780a48b375aff02d76712228a702484db3f9ebecccfbbee1709dba182800d949e9e4216e0bff3558388f8bd90da373a1d82743ec3fbdd1427fd",
        "16825a657a316912e8695365117ca2f845c909405fcac55f895fc15d20386c26ee78c9e99075029a178a6c1e4cf0c200e8a9cfb27e9d156f86e6c2adc22b1a84",
        "a1cd5ca5b2790875d79407c84b352395cb81cc3fed5bb043b69ede0c07204550025cee8c5f440170b6120bb48e0f747bcd8f522110850df043c428dfd1870531",
    );
    const CIPHERTEXT: &str = concat!(
        "550af55a2904e7b9762352f8fb7fa235a9cb053aacb2d5fcb8ca48453cb2ee3619746c701abf2d4cc67003471a187900b05aa812bd25ed05c675dfc8c97a24a7",
        "bf49bd6214992cad766d05a9a2b57b74f26a737e0237b8b76c45f1f226a836d7cfbc75ba999bdbe48dbc09227aa46c88f21dccba7840141ad5a5d71fd122e6bd",
        "6ac3e564780dfe623fc1ca9b995a6037bf0bbd43b205a84ac5444f34202c05ce9113087176432476576de6ffff9a52ea57c08be3ec2f49676cb8e12f762ac71f",
        "a3c321e00ac988910c85ff52f93825666ce0d40ffaa0592078919d4493f46d95ccf76364c6d57760dd0b64805f9afc76a2365a5575ca301d5103f0ea76cb9a79",
    );
    const MADE_UP: &str = concat!(
        "4cbb988d6a46228379132b0b5f8c249b3860043848c93632fb982c807c7c82fffc7a9ef83f4908f890373ac181ffea6381e103bcaa27e65638b6ecebef38b59e",
        "d4226a9d12af675cfcb634d8c40e7a7aff",
    );

    fn made_up() -> MadeUp {
        MadeUp::new(&hex(PRIVATE_EXPONENT), &hex(CIPHERTEXT)).unwrap()
    }

    fn text(block: &[u8]) -> Vec<u8> {
        let mut out = vec![0; block.len()];
        let len = made_up().unless_padded(block, &mut out);
        out.truncate(len);
        out
    }

    /// A block with a text of so many bytes.
    fn block(len: usize) -> Vec<u8> {
        let mut block = vec![1; 256 - len];
        (block[0], block[1], block[255 - len]) = (0, 2, 0);
        block.resize(256, 7);
        block
    }

    #[test]
    fn bad_paddings_all_give_the_published_text() {
        let mut bad = vec![vec![0; 256], vec![0xFF; 256], block(246), block(254)];
        bad.extend([0, 1, 2, 9].map(|at| {
            let mut bad = block(20);
            bad[at] = if at < TYPE { 1 } else { 0 };
            bad
        }));
        let mut unending = block(20);
        unending[235] = 1;
        bad.push(unending);
        for block in bad {
            assert_eq!(text(&block), hex(MADE_UP), "{block:02x?}");
        }
    }

    #[test]
    fn what_is_padded_well_is_given() {
        for len in [0, 1, 20, 200, 245] {
            assert_eq!(text(&block(len)), vec![7; len]);
        }
        let mut earliest = block(200);
        earliest[10] = 0;
        assert_eq!(text(&earliest).len(), 245);
    }

    #[test]
    fn leading_zeros_of_the_exponent_change_nothing() {
        let (exponent, ciphertext) = ([5; 250], [9; 256]);
        let padded = [&[0; 6], &exponent[..]].concat();
        let texts = [&exponent[..], &padded].map(|exponent| MadeUp::new(exponent, &ciphertext).unwrap());
        assert_eq!((&*texts[0].bytes, texts[0].len), (&*texts[1].bytes, texts[1].len));
    }
}
