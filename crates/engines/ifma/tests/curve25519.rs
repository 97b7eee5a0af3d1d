//! X25519 and Ed25519 against the vectors of RFC 7748 and RFC 8032 and against curve25519-dalek.

use bywash_ifma::{ed25519, is_supported, x25519};
use ed25519_dalek::Signer;
use sha2::{Digest, Sha512};

/// Numbers without a pattern, the same at every run.
struct Source(u64);

impl Source {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        self.0 += 1;
        core::array::from_fn(|i| if i < 64 { Sha512::digest(self.0.to_le_bytes())[i] } else { 0 })
    }

    fn below(&mut self, end: usize) -> usize {
        (u64::from_le_bytes(self.bytes()) % end as u64) as usize
    }
}

/// Whether to go on; says so if not.
fn supported() -> bool {
    if !is_supported() {
        eprintln!("skipped: this processor has no AVX-512 IFMA");
    }
    is_supported()
}

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    assert_eq!(hex.len(), 2 * N, "{hex}");
    core::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal"))
}

/// The shared secrets and whether each is not zero, of up to eight pairs in one batch.
fn agree(pairs: &[([u8; 32], [u8; 32])]) -> Vec<([u8; 32], bool)> {
    let mut shared = vec![[0xAA; 32]; pairs.len()];
    let mut tasks: Vec<_> = pairs
        .iter()
        .zip(&mut shared)
        .map(|((private, peer), shared)| x25519::AgreeTask { private, peer, shared, nonzero: false })
        .collect();
    x25519::agree(&mut tasks);
    let nonzero: Vec<_> = tasks.iter().map(|task| task.nonzero).collect();
    shared.into_iter().zip(nonzero).collect()
}

fn public_values(private: &[[u8; 32]]) -> Vec<[u8; 32]> {
    let mut public = vec![[0xAA; 32]; private.len()];
    let mut tasks: Vec<_> = private.iter().zip(&mut public).map(|(private, public)| x25519::PublicValueTask { private, public }).collect();
    x25519::public_value(&mut tasks);
    public
}

fn sign(signers: &[(&ed25519::Key, &[u8])]) -> Vec<[u8; 64]> {
    let mut signatures = vec![[0xAA; 64]; signers.len()];
    let mut tasks: Vec<_> =
        signers.iter().zip(&mut signatures).map(|(&(key, message), signature)| ed25519::SignTask { key, message, signature }).collect();
    ed25519::sign(&mut tasks);
    signatures
}

/// Checks one batch of agreements and public values against curve25519-dalek.
fn compare_x25519(pairs: &[([u8; 32], [u8; 32])]) {
    for (&(private, peer), (shared, nonzero)) in pairs.iter().zip(agree(pairs)) {
        let expected = x25519_dalek::x25519(private, peer);
        assert_eq!(shared, expected, "private {private:02x?} peer {peer:02x?}");
        assert_eq!(nonzero, expected != [0; 32]);
    }
    let private: Vec<_> = pairs.iter().map(|pair| pair.0).collect();
    for (&private, public) in private.iter().zip(public_values(&private)) {
        assert_eq!(public, x25519_dalek::x25519(private, x25519_dalek::X25519_BASEPOINT_BYTES), "private {private:02x?}");
    }
}

/// Checks one batch of signatures, one key and message each, against ed25519-dalek.
fn compare_ed25519(signers: &[([u8; 32], Vec<u8>)]) {
    let keys: Vec<_> = signers.iter().map(|(seed, _)| ed25519::Key::new(seed)).collect();
    let batch: Vec<_> = keys.iter().zip(signers).map(|(key, (_, message))| (key, message.as_slice())).collect();
    for (((seed, message), key), signature) in signers.iter().zip(&keys).zip(sign(&batch)) {
        let other = ed25519_dalek::SigningKey::from_bytes(seed);
        assert_eq!(key.public(), other.verifying_key().as_bytes());
        assert_eq!(signature, other.sign(message).to_bytes(), "seed {seed:02x?}, message of {} bytes", message.len());
    }
}

/// RFC 7748 section 5.2: one agreement twice, and the iteration.
#[test]
fn x25519_rfc_7748() {
    if !supported() {
        return;
    }
    let vectors = [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ];
    let pairs: Vec<_> = vectors.iter().map(|(private, peer, _)| (bytes(private), bytes(peer))).collect();
    for ((_, _, shared), result) in vectors.iter().zip(agree(&pairs)) {
        assert_eq!(result, (bytes(shared), true));
    }
    assert_eq!(iterated(1), bytes("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"));
    assert_eq!(iterated(1_000), bytes("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"));
}

#[test]
#[ignore = "half a minute"]
fn x25519_rfc_7748_a_million_times() {
    if supported() {
        assert_eq!(iterated(1_000_000), bytes("7c3911e0ab2586fd864497297e575e6f3bc601c0883c30df5f4dd2d24f665424"));
    }
}

/// RFC 7748 section 5.2, the iteration.
fn iterated(times: usize) -> [u8; 32] {
    let mut nine = [0; 32];
    nine[0] = 9;
    let (mut k, mut u) = (nine, nine);
    for _ in 0..times {
        let (next, _) = agree(&[(k, u)])[0];
        (k, u) = (next, k);
    }
    k
}

/// RFC 7748 section 6.1: Alice's and Bob's keys.
#[test]
fn x25519_diffie_hellman() {
    if !supported() {
        return;
    }
    let alice = bytes("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
    let bob = bytes("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
    let public = public_values(&[alice, bob]);
    assert_eq!(public[0], bytes("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"));
    assert_eq!(public[1], bytes("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
    let shared = (bytes("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"), true);
    assert_eq!(agree(&[(alice, public[1]), (bob, public[0])]), [shared, shared]);
}

/// RFC 8032 section 7.1: tests 1, 2, 3 and SHA(abc), in one batch.
#[test]
fn ed25519_rfc_8032() {
    if !supported() {
        return;
    }
    let vectors = [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
        (
            "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
            "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
        ),
    ];
    let keys: Vec<_> = vectors.iter().map(|(seed, ..)| ed25519::Key::new(&bytes(seed))).collect();
    let messages: Vec<Vec<u8>> = vectors
        .iter()
        .map(|(_, _, message, _)| (0..message.len() / 2).map(|i| u8::from_str_radix(&message[2 * i..2 * i + 2], 16).unwrap()).collect())
        .collect();
    let batch: Vec<_> = keys.iter().zip(&messages).map(|(key, message)| (key, message.as_slice())).collect();
    for ((key, (_, public, _, expected)), signature) in keys.iter().zip(vectors).zip(sign(&batch)) {
        assert_eq!(key.public(), &bytes::<32>(public));
        assert_eq!(signature, bytes::<64>(expected));
    }
}

/// u-coordinates where the field's arithmetic is at its edges, and the points of small order (RFC 7748 section 6.1 and their
/// representatives above p), each with scalars at theirs.
#[test]
fn x25519_edges() {
    if !supported() {
        return;
    }
    let p = |offset: i8| {
        let mut bytes = [0xFF; 32];
        bytes[0] = (0xEDu8).wrapping_add_signed(offset);
        bytes[31] = 0x7F;
        bytes
    };
    let small = |x: u8| {
        let mut bytes = [0; 32];
        bytes[0] = x;
        bytes
    };
    let top = |x: u8| {
        let mut bytes = [0; 32];
        bytes[31] = x;
        bytes
    };
    let mut peers = vec![small(0), small(1), small(2), small(9), small(19), p(-2), p(-1), p(0), p(1), p(2), p(18), [0xFF; 32], [0x55; 32]];
    peers.push(bytes("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"));
    peers.push(bytes("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"));
    peers.extend([top(0x80), top(0x40), top(0x7F)]);
    let order: [u8; 32] = bytes("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let eightfold = {
        let mut carry = 0;
        order.map(|byte| {
            let product = u32::from(byte) * 8 + carry;
            carry = product >> 8;
            product as u8
        })
    };
    let scalars =
        [[0; 32], [0xFF; 32], small(1), small(7), small(8), top(0x80), top(0x40), top(0x3F), order, eightfold, [0x55; 32], [0xAA; 32]];
    let pairs: Vec<_> = scalars.iter().flat_map(|&scalar| peers.iter().map(move |&peer| (scalar, peer))).collect();
    for batch in pairs.chunks(8) {
        compare_x25519(batch);
    }
    assert!(agree(&[(scalars[1], small(0)), (scalars[1], p(-1)), (scalars[1], peers[13])]).iter().all(|&(_, nonzero)| !nonzero));
}

#[test]
fn x25519_batches_of_any_size() {
    if !supported() {
        return;
    }
    let mut source = Source(0);
    for size in 1..=8 {
        for _ in 0..100 {
            compare_x25519(&(0..size).map(|_| (source.bytes(), source.bytes())).collect::<Vec<_>>());
        }
    }
}

#[test]
fn ed25519_messages_of_any_length() {
    if !supported() {
        return;
    }
    let mut source = Source(1 << 32);
    let message = |source: &mut Source, len: usize| (0..len.div_ceil(64)).flat_map(|_| source.bytes::<64>()).take(len).collect::<Vec<_>>();
    for len in (0..=300).chain([1_000, 4_096, 100_000]) {
        let lens = [len, source.below(200)];
        compare_ed25519(&lens.map(|len| (source.bytes(), message(&mut source, len))));
    }
    for size in 1..=8 {
        for _ in 0..30 {
            let signers: Vec<_> = (0..size).map(|_| (source.bytes(), source.below(130))).collect();
            compare_ed25519(&signers.into_iter().map(|(seed, len)| (seed, message(&mut source, len))).collect::<Vec<_>>());
        }
    }
    compare_ed25519(&[([0; 32], vec![]), ([0xFF; 32], vec![0xFF; 64])]);
}

#[test]
#[ignore = "a minute"]
fn x25519_a_million_random_cases() {
    if !supported() {
        return;
    }
    let mut source = Source(2 << 32);
    for _ in 0..125_000 {
        compare_x25519(&core::array::from_fn::<_, 8, _>(|_| (source.bytes(), source.bytes())));
    }
}

#[test]
#[ignore = "a minute"]
fn ed25519_a_million_random_cases() {
    if !supported() {
        return;
    }
    let mut source = Source(3 << 32);
    for _ in 0..125_000 {
        compare_ed25519(&core::array::from_fn::<_, 8, _>(|_| (source.bytes(), source.bytes::<64>()[..source.below(65)].to_vec())));
    }
}
