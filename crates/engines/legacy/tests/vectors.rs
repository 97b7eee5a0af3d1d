//! Published vectors, in both directions and all forms.

mod forms;
mod records;

use bywash_legacy::des::{Des, TripleDes};
use bywash_legacy::modes::Cbc;
use bywash_legacy::{BlockCipher, Camellia, Rc6, Serpent, Twofish};
use forms::forms;
use records::{Record, records};

/// ECB, or CBC where the record has an initialisation vector.
fn check<C: BlockCipher>(file: &str, record: &Record) {
    let [key, plaintext, ciphertext] = ["KEY", "PLAINTEXT", "CIPHERTEXT"].map(|name| record.get(name));
    for form in forms() {
        let cipher = C::with_form(key, form).expect("a key of the cipher");
        let (mut encrypted, mut decrypted) = (plaintext.to_vec(), ciphertext.to_vec());
        match record.find("IV") {
            Some(iv) => {
                Cbc::new(iv).encrypt(&cipher, &mut encrypted);
                Cbc::new(iv).decrypt(&cipher, &mut decrypted);
            }
            None => {
                cipher.encrypt_blocks(&mut encrypted);
                cipher.decrypt_blocks(&mut decrypted);
            }
        }
        assert_eq!(encrypted, ciphertext, "{file}, line {}, {form:?}", record.line);
        assert_eq!(decrypted, plaintext, "{file}, line {}, {form:?}", record.line);
    }
}

#[test]
fn des_and_3des_are_nists() {
    for (file, text) in
        [("3des-ecb.rsp", include_str!("../vectors/3des-ecb.rsp")), ("3des-cbc.rsp", include_str!("../vectors/3des-cbc.rsp"))]
    {
        for record in records(text) {
            match record.get("KEY").len() {
                8 => check::<Des>(file, &record),
                _ => check::<TripleDes>(file, &record),
            }
        }
    }
}

/// Every record of a file.
fn check_all<C: BlockCipher>(file: &str, text: &'static str) {
    for record in records(text) {
        check::<C>(file, &record);
    }
}

#[test]
fn serpent_is_nessies() {
    check_all::<Serpent>("serpent.rsp", include_str!("../vectors/serpent.rsp"));
}

#[test]
fn rc6_is_the_submissions() {
    check_all::<Rc6>("rc6.rsp", include_str!("../vectors/rc6.rsp"));
}

#[test]
fn twofish_is_the_submissions() {
    check_all::<Twofish>("twofish.rsp", include_str!("../vectors/twofish.rsp"));
}

#[test]
fn camellia_is_its_authors() {
    check_all::<Camellia>("camellia.rsp", include_str!("../vectors/camellia.rsp"));
}
