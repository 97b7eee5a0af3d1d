//! Algorithms as they are given on the command line: by name, by what they are for, or by a part of their names.

use crate::engines::family;
use bywash_core::{Algorithm, Error};

/// The algorithms that one word of the command line means, in the order of the table: the one of that name; else all of that family (`ciphers`,
/// `AEADs`, `RSA`); else all whose names have these words in them one after the other (`gcm`, `aes-256`, `sign`). Legacy ones are meant only by words
/// that mean no other (`camellia`).
///
/// # Errors
/// [`Error::UnknownAlgorithm`].
pub(crate) fn algorithms(given: &str) -> Result<Vec<Algorithm>, Error> {
    if let Ok(algorithm) = given.parse::<Algorithm>() {
        return Ok(vec![algorithm]);
    }
    let wanted = words(given);
    let all = || Algorithm::ALL.iter().copied();
    let is_of_family = |algorithm: &Algorithm| words(family(algorithm.kind())) == wanted;
    let has_words = |algorithm: &Algorithm| words(algorithm.name()).windows(wanted.len().max(1)).any(|part| part == wanted);
    let mut found: Vec<_> = all().filter(is_of_family).collect();
    if found.is_empty() {
        found = all().filter(has_words).collect();
    }
    if found.iter().any(|algorithm| !algorithm.is_legacy()) {
        found.retain(|algorithm| !algorithm.is_legacy());
    }
    if found.is_empty() { Err(Error::UnknownAlgorithm { name: given.to_owned() }) } else { Ok(found) }
}

/// All that the words mean, each once, in the order in which they are first meant.
pub(crate) fn all_of(given: &[String]) -> Result<Vec<Algorithm>, Error> {
    let mut chosen = Vec::new();
    for word in given {
        for algorithm in algorithms(word)? {
            if !chosen.contains(&algorithm) {
                chosen.push(algorithm);
            }
        }
    }
    Ok(chosen)
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &str) -> Vec<&'static str> {
        algorithms(given).unwrap().into_iter().map(Algorithm::name).collect()
    }

    #[test]
    fn names_families_and_parts() {
        assert_eq!(names("aes256gcm"), ["AES-256-GCM"]);
        assert_eq!(names("x25519"), ["X25519"], "a whole name is that alone");
        assert_eq!(names("aes-256-xts"), ["AES-256-XTS"]);
        let gcm = names("gcm");
        assert!(gcm.len() >= 3 && gcm.iter().all(|name| name.contains("GCM")), "{gcm:?}");
        assert!(names("AES 256").iter().all(|name| name.contains("256")));
        assert!(names("digests").contains(&"SHA-256") && !names("digests").contains(&"HMAC-SHA-256"));
        assert!(names("rsa").iter().all(|name| name.starts_with("RSA")));
        assert!(names("private").len() >= 3);
        assert!(names("ecb").iter().all(|name| name.starts_with("AES")), "legacy ones only where nothing else is meant");
        assert!(names("camellia").len() >= 3 && names("ciphers").iter().all(|name| !name.starts_with("Camellia")));
    }

    #[test]
    fn each_once_and_strangers_refused() {
        let words = ["gcm", "aes-128-gcm", "aes-128-ecb"].map(str::to_owned);
        let chosen = all_of(&words).unwrap();
        assert_eq!(chosen.iter().filter(|algorithm| algorithm.name() == "AES-128-GCM").count(), 1);
        assert_eq!(chosen.last().unwrap().name(), "AES-128-ECB");
        for stranger in ["aes-257-gcm", "", "-", "gcm-aes"] {
            assert!(algorithms(stranger).unwrap_err().to_string().contains("bywash engines"), "{stranger}");
        }
    }
}
