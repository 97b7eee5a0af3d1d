//! Files of published vectors, and the one strict parser for them.
//!
//! The form is NIST's `.rsp`, tightened: `#` begins a comment line, `[...]` opens a section, a blank line ends a record, every other line is
//! `name = value`. Anything else is an error that names file and line.

/// A file of vectors, embedded so that a test binary needs nothing beside it.
pub(crate) struct File {
    pub(crate) name: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($constant:ident = $name:literal;)*) => {
        $(pub(crate) const $constant: File =
            File { name: concat!("vectors/", $name), text: include_str!(concat!("../vectors/", $name)) };)*
        #[cfg(test)]
        const ALL: &[File] = &[$($constant,)*];
    };
}

files! {
    AES_ECB = "aes-ecb.rsp";
    AES_CBC = "aes-cbc.rsp";
    AES_CTR = "aes-ctr.rsp";
    AES_CFB = "aes-cfb.rsp";
    AES_OFB = "aes-ofb.rsp";
    AES_XTS = "aes-xts.rsp";
    AES_GCM = "aes-gcm.rsp";
    AEGIS = "aegis.rsp";
    BLOWFISH = "blowfish.rsp";
    CAMELLIA_CTR = "camellia-ctr.rsp";
    SHA2 = "sha2.rsp";
    HMAC = "hmac.rsp";
    OTHER_DIGESTS = "other-digests.rsp";
    OTHER_HMAC = "other-hmac.rsp";
    ECDSA_P256 = "ecdsa-p256.rsp";
    P256_KEYS = "p256-keys.rsp";
    ECDSA_P384 = "ecdsa-p384.rsp";
    P384_KEYS = "p384-keys.rsp";
    X25519 = "x25519.rsp";
    ED25519 = "ed25519.rsp";
    DSA = "dsa.rsp";
    DH = "dh.rsp";
    RSA_SIGNATURES = "rsa-signatures.rsp";
    RSA_KEYS = "rsa-keys.rsp";
}

macro_rules! legacy_files {
    ($($name:literal of $family:literal;)*) => {
        /// The files of `bywash-legacy`, which lie with its own tests, and the cipher of each.
        pub(crate) const LEGACY: [(File, &str); [$($name),*].len()] = [$((
            File { name: concat!("engines/legacy/vectors/", $name), text: include_str!(concat!("../../engines/legacy/vectors/", $name)) },
            $family,
        )),*];
    };
}

legacy_files! {
    "3des-ecb.rsp" of "DES";
    "3des-cbc.rsp" of "DES";
    "camellia.rsp" of "Camellia";
    "rc6.rsp" of "RC6";
    "serpent.rsp" of "Serpent";
    "twofish.rsp" of "Twofish";
}

/// One case of a file.
#[derive(Debug)]
pub(crate) struct Record {
    file: &'static str,
    line: usize,
    /// The section it stands in.
    pub(crate) section: &'static str,
    fields: Vec<(&'static str, &'static str)>,
}

impl File {
    /// All records, in order.
    pub(crate) fn records(&self) -> Result<Vec<Record>, String> {
        let mut records = Vec::new();
        let mut section = "";
        let mut open: Option<Record> = None;
        for (index, line) in self.text.lines().enumerate() {
            let at = |what: &str| format!("{}, line {}: {what}", self.name, index + 1);
            match line.trim() {
                "" => records.extend(open.take()),
                comment if comment.starts_with('#') => {}
                head if head.starts_with('[') => {
                    if open.is_some() {
                        return Err(at("a section begins inside a record; a blank line is missing"));
                    }
                    section = head[1..].strip_suffix(']').ok_or_else(|| at("']' is missing"))?;
                }
                field => {
                    let (name, value) = field.split_once('=').ok_or_else(|| at("'name = value' expected"))?;
                    let record = open.get_or_insert_with(|| Record { file: self.name, line: index + 1, section, fields: Vec::new() });
                    if record.fields.iter().any(|(known, _)| *known == name.trim()) {
                        return Err(at("the field is there twice; a blank line is missing"));
                    }
                    record.fields.push((name.trim(), value.trim()));
                }
            }
        }
        records.extend(open);
        Ok(records)
    }
}

impl Record {
    /// Where it stands, for messages.
    pub(crate) fn place(&self) -> String {
        format!("{}, line {}", self.file, self.line)
    }

    /// A field's text.
    pub(crate) fn text(&self, name: &str) -> Result<&'static str, String> {
        let found = self.fields.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| *value).ok_or_else(|| format!("{}: no field '{name}'", self.place()))
    }

    /// Whether there is such a field.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| *known == name)
    }

    /// A field's bytes, from hexadecimal.
    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<u8>, String> {
        let text = self.text(name)?;
        let bad = || format!("{}: field '{name}' is not an even number of hexadecimal digits", self.place());
        if !text.len().is_multiple_of(2) || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(bad());
        }
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| bad())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &'static str) -> Result<Vec<Record>, String> {
        File { name: "x.rsp", text }.records()
    }

    #[test]
    fn every_file_parses() {
        for file in ALL.iter().chain(LEGACY.iter().map(|(file, _)| file)) {
            assert!(!file.records().unwrap().is_empty(), "{}", file.name);
        }
    }

    #[test]
    fn records_sections_and_bytes() {
        let records = parse("# source\n[one]\n\nA = 00ff\nB =\n\nA = 01\n").unwrap();
        assert_eq!(records.len(), 2);
        assert_eq!((records[0].section, records[0].bytes("A").unwrap(), records[0].bytes("B").unwrap()), ("one", vec![0, 255], vec![]));
        assert_eq!(records[1].place(), "x.rsp, line 7");
    }

    #[test]
    fn errors_name_file_and_line() {
        assert_eq!(parse("A = 1\nnonsense\n").unwrap_err(), "x.rsp, line 2: 'name = value' expected");
        assert!(parse("A = 1\nA = 2\n").unwrap_err().contains("line 2"));
        assert!(parse("[one\n").unwrap_err().contains("']' is missing"));
        assert!(parse("A = 1\n[one]\n").unwrap_err().contains("line 2"));
        let record = &parse("A = 0g\n").unwrap()[0];
        assert!(record.bytes("A").unwrap_err().contains("x.rsp, line 1: field 'A'"));
        assert!(record.bytes("B").unwrap_err().contains("no field 'B'"));
    }
}
