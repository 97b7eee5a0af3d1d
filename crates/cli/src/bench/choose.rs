//! Algorithms as they are given on the command line: by name, by what they are for, or by a part of their names.

use crate::engines::family;
use crate::failure::{Exit, Failure};
use bywash_core::Algorithm;

/// The algorithms that one word of the command line means, in the order of the table: the one of that name; else all of that family (`ciphers`,
/// `AEADs`, `RSA`, `legacy`); else all whose names have these words in them one after the other (`gcm`, `aes-256`, `sign`), the last perhaps without its number (`chacha`). Legacy ones
/// are meant only by words that mean no other (`camellia`). None if nothing is meant.
fn algorithms(given: &str) -> Vec<Algorithm> {
    if let Ok(algorithm) = given.parse::<Algorithm>() {
        return vec![algorithm];
    }
    let mut wanted = words(given);
    if wanted == ["legacy"] {
        return Algorithm::ALL.iter().copied().filter(|algorithm| algorithm.is_legacy()).collect();
    }
    if wanted.first().is_some_and(|word| word == "3des") {
        wanted.splice(..1, ["des", "ede3"].map(str::to_owned));
    }
    let all = || Algorithm::ALL.iter().copied();
    let is_of_family = |algorithm: &Algorithm| words(family(algorithm.kind())) == wanted;
    let having = |is_meant: &dyn Fn(&[String]) -> bool| -> Vec<_> {
        all().filter(|algorithm| words(algorithm.name()).windows(wanted.len().max(1)).any(is_meant)).collect()
    };
    let mut found: Vec<_> = all().filter(is_of_family).collect();
    if found.is_empty() {
        found = having(&|part| part == wanted);
    }
    if found.is_empty() {
        found = having(&|part| match (part.split_last(), wanted.split_last()) {
            (Some((last, before)), Some((word, words_before))) => {
                before == words_before && last.trim_end_matches(|c: char| c.is_ascii_digit()) == word
            }
            _ => false,
        });
    }
    if found.is_empty() && !wanted.is_empty() {
        // Without dashes: `rsa2048`.
        let joined = wanted.concat();
        let begins = |words: Vec<String>| (1..=words.len()).any(|count| words[..count].concat() == joined);
        found = all().filter(|algorithm| begins(words(algorithm.name()))).collect();
    }
    if found.iter().any(|algorithm| !algorithm.is_legacy()) {
        found.retain(|algorithm| !algorithm.is_legacy());
    }
    found
}

/// All that the words mean, each once, in the order in which they are first meant.
///
/// # Errors
/// Words that mean none, all of them named.
pub(crate) fn all_of(given: &[String]) -> Result<Vec<Algorithm>, Failure> {
    let (mut chosen, mut unknown) = (Vec::new(), Vec::new());
    for word in given {
        let meant = algorithms(word);
        if meant.is_empty() {
            unknown.push(format!("'{word}'"));
        }
        for algorithm in meant {
            if !chosen.contains(&algorithm) {
                chosen.push(algorithm);
            }
        }
    }
    if unknown.is_empty() {
        return Ok(chosen);
    }
    let plural = if unknown.len() > 1 { "s" } else { "" };
    Err(Failure::new(
        Exit::Usage,
        format!("unknown algorithm{plural} {}; `bywash engines` lists the algorithms there are", unknown.join(", ")),
    ))
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &str) -> Vec<&'static str> {
        algorithms(given).into_iter().map(Algorithm::name).collect()
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
        assert_eq!(names("3des"), ["DES-EDE3-ECB", "DES-EDE3-CBC", "DES-EDE3-CTR"]);
        assert_eq!(names("3des-cbc"), ["DES-EDE3-CBC"]);
        assert_eq!(names("rsa2048"), names("rsa-2048"));
        assert_eq!(names("chacha"), ["ChaCha20-Poly1305"]);
        assert!(names("legacy").contains(&"DES-CBC") && !names("legacy").contains(&"AES-128-CBC"));
        assert!(names("camellia").len() >= 3 && names("ciphers").iter().all(|name| !name.starts_with("Camellia")));
    }

    #[test]
    fn each_once_and_strangers_refused() {
        let words = ["gcm", "aes-128-gcm", "aes-128-ecb"].map(str::to_owned);
        let chosen = all_of(&words).unwrap();
        assert_eq!(chosen.iter().filter(|algorithm| algorithm.name() == "AES-128-GCM").count(), 1);
        assert_eq!(chosen.last().unwrap().name(), "AES-128-ECB");
        for stranger in ["aes-257-gcm", "", "-", "gcm-aes", "ch", "20", "legacy-des"] {
            assert!(all_of(&[stranger.to_owned()]).unwrap_err().to_string().contains("bywash engines"), "{stranger}");
        }
        let error = all_of(&["gcm", "gmc", "cbcb"].map(str::to_owned)).unwrap_err().to_string();
        assert!(error.contains("'gmc', 'cbcb'") && !error.contains("'gcm'"), "{error}");
    }
}
