//! The format against another implementation's messages, and GCM against published vectors.

use bywash_dds::wire::{Sealed, split_message, split_payload, split_submessage};
use bywash_dds::{KeyMaterial, Keyed, Kind, Opener, Refusal, client};
use zeroize::Zeroizing;

/// Kind, payload, submessage, message, as `vectors.py` prints them.
#[rustfmt::skip]
const MADE_BY_PYTHON: [(u32, &str, &str, &str); 4] = [
    (1, "000000012122232401020304111213141516171861207061796c6f61642c2032302062797465732e333aa2259c2351270fca5e64e66cb09a00000000",
     "31011400000000012122232401020304111213141516171815050c007477656c766520627974657332012800f7ef739e1f926f9d9dd4a349ca234f6f00000001313233348fd78ca371762404497d33d2eb602991",
     "5254505302010110000102030405060708090a0b3301140000000001212223240102030411121314151617180c0114000000000002010110000102030405060708090a0b15050c007477656c766520627974657334012800fbc652a350969d505a75c6b8ebc1b8bd00000001313233348f034be59efc88ef0be9d578dbdbb4cc"),
    (2, "0000000221222324010203041112131415161718000000143d2d4c710dda076d71acb46f9fa16646d846e09c211ec82c19af1c6c7ed91b3151ed1a7a00000000",
     "31011400000000022122232401020304111213141516171830011400000000104908301000c10d6063e5b43fd6f5614c32012800b56d683c604c4544a67f972002b5e96d0000000131323334b6f2fbe731a6d86f3e24d9337128e199",
     "5254505302010110000102030405060708090a0b33011400000000022122232401020304111213141516171830012c0000000028500c281074b6680c1781954daf80063ca82695b51b4e242adf295980a3b389e0ee892446a59a0ee334012800981cb93f162cb1e7a63ca16dd5f7051b0000000131323334ca30829e2e857928d888acd69833687b"),
    (3, "000000032122232401020304111213141516171861207061796c6f61642c2032302062797465732edac355479fb8ce9a407aa623210932de00000000",
     "31011400000000032122232401020304111213141516171815050c007477656c766520627974657332012800b7a0a64d63a4c3cf5e89d4b47599e1ce0000000131323334a518d0c0e0f3c203c9f07206b45b03ee",
     "5254505302010110000102030405060708090a0b3301140000000003212223240102030411121314151617180c0114000000000002010110000102030405060708090a0b15050c007477656c76652062797465733401280090ba8e2a638f881ae0d6d99b9d99bc4400000001313233346ceba98ed294cab450bf5b7c41fecdfd"),
    (4, "00000004212223240102030411121314151617180000001429823f6145ab0b034fe1f933fa945e26339dafa65d27e3e27c0b486c01cf7f567bb17d1e00000000",
     "31011400000000042122232401020304111213141516171830011400000000105da7430048b0010e5da8f963b3c0592c320128002f5cfee6de98d17ecd4502ce86bc493500000001313233346a20fd554e7ee8d34632d7a16bf10446",
     "5254505302010110000102030405060708090a0b33011400000000042122232401020304111213141516171830012c000000002844a35b003cc7646229ccd811cab53e5c43fdda8f9669745d93d1a630da20d5bff8daa85736fae10134012800d68e376b48a9db4d200e37f2c144f8520000000131323334c0a59e49bffd1b60752e3118c2403bdb"),
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn counted(from: u8) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(std::array::from_fn(|index| from + index as u8))
}

fn opener(kind: u32) -> Opener {
    let kind = Kind::from_number(kind).unwrap();
    let receiver = Some((0x3132_3334, counted(200)));
    Opener::new(KeyMaterial { kind, salt: counted(100), sender_id: 0x2122_2324, sender_key: counted(0), receiver })
}

fn opened(opener: &Opener, sealed: &Sealed<'_>) -> Result<Vec<u8>, Refusal> {
    let mut text = vec![0; sealed.text.len()];
    opener.open(sealed, &mut text).map(|()| text)
}

#[test]
fn what_python_made_is_opened() {
    let plain = [bytes("15050c00"), b"twelve bytes".to_vec()].concat();
    for (kind, payload, submessage, message) in MADE_BY_PYTHON {
        let opener = opener(kind);
        assert_eq!(opened(&opener, &split_payload(&bytes(payload)).unwrap()).unwrap(), b"a payload, 20 bytes.");
        let (submessage, message) = (bytes(submessage), bytes(message));
        let sealed = split_submessage(&submessage).unwrap();
        assert_eq!(opened(&opener, &sealed).unwrap(), plain);
        opener.specific().unwrap().check(&sealed).unwrap();
        let sealed = split_message(&message).unwrap();
        let text = opened(&opener, &sealed).unwrap();
        opener.specific().unwrap().check(&sealed).unwrap();
        assert_eq!(text[8..24], message[4..20]);
        assert_eq!(text[24..], plain);
    }
}

/// Test cases 1, 2, 13 and 14 of the GCM specification (McGrew and Viega), and one of NIST's gcmEncryptExtIV128 with associated data alone.
#[test]
fn published_vectors() {
    let zeros = [0; 32];
    for (len, empty, text, tag) in [
        (16, "58e2fccefa7e3061367f1d57a4e7455a", "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"),
        (32, "530f8afbc74536b9a963b4f1c4cb738b", "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"),
    ] {
        let keyed = Keyed::new(client(), &zeros[..len]).unwrap();
        assert_eq!(keyed.mac(&[0; 12], &[]).unwrap().to_vec(), bytes(empty));
        let mut output = [0; 16];
        assert_eq!(keyed.seal(&[0; 12], &[], &[0; 16], &mut output).unwrap().to_vec(), bytes(tag));
        assert_eq!(output.to_vec(), bytes(text));
    }
    let keyed = Keyed::new(client(), &bytes("77be63708971c4e240d1cb79e8d77feb")).unwrap();
    let iv = bytes("e0e00f19fed7ba0136a797f3").try_into().unwrap();
    let text = bytes("7a43ec1d9c0a5a78a0b16533a6213cab");
    assert_eq!(keyed.mac(&iv, &text).unwrap().to_vec(), bytes("209fcc8d3675ed938e9c7166709dd946"));
}
