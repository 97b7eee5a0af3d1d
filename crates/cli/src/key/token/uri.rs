//! Keys in a token by their URI (RFC 7512): `pkcs11:token=T;object=O?module-path=LIB&pin-source=FILE`, as `p11tool` lists them and OpenSSL's
//! `pkcs11` provider takes them.

use bywash_core::SecretBytes;
use std::path::PathBuf;

/// What a URI says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Uri {
    pub(super) token: Token,
    /// CKA_LABEL
    pub(super) object: Option<String>,
    /// CKA_ID
    pub(super) id: Option<Vec<u8>>,
    pub(super) module: Option<PathBuf>,
    pub(super) pin: Option<SecretBytes>,
    pub(super) pin_source: Option<PathBuf>,
}

/// What a URI says of the token; nothing means any.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) label: Option<String>,
    pub(super) serial: Option<String>,
    pub(super) model: Option<String>,
    pub(super) manufacturer: Option<String>,
    pub(super) slot: Option<u64>,
}

/// The part of a URI that holds no PIN.
pub(super) fn shown(uri: &str) -> &str {
    uri.split('?').next().unwrap_or(uri)
}

impl Uri {
    /// Reads a URI. The error is a text for people, without the PIN.
    pub(super) fn parse(uri: &str) -> Result<Self, String> {
        let rest = uri.strip_prefix("pkcs11:").ok_or("it begins with pkcs11:")?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut read = Self::default();
        let mut seen = Vec::new();
        for pair in path.split(';').chain(query.split('&')).filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or("each of its parts is NAME=VALUE, with ; between them and ? before the query")?;
            if seen.contains(&name) {
                return Err(format!("it says {name} twice"));
            }
            seen.push(name);
            read.set(name, unescape(value).ok_or_else(|| format!("the value of {name} is escaped wrongly"))?)?;
        }
        if read.object.is_none() && read.id.is_none() {
            return Err("it names no key; add object= (the label) or id=".into());
        }
        Ok(read)
    }

    fn set(&mut self, name: &str, value: SecretBytes) -> Result<(), String> {
        let text = || String::from_utf8(value.to_vec()).map_err(|_| format!("the value of {name} is no text"));
        match name {
            "token" => self.token.label = Some(text()?),
            "serial" => self.token.serial = Some(text()?),
            "model" => self.token.model = Some(text()?),
            "manufacturer" => self.token.manufacturer = Some(text()?),
            "slot-id" => self.token.slot = Some(text()?.parse().map_err(|_| "the value of slot-id is no number")?),
            "object" => self.object = Some(text()?),
            "id" => self.id = Some(value.to_vec()),
            "type" if *value == *b"private" => {}
            "type" => return Err("its type is not private: a private key is wanted".into()),
            "module-path" => self.module = Some(text()?.into()),
            "pin-value" => self.pin = Some(value),
            "pin-source" => self.pin_source = Some(pin_source(&text()?)?),
            other => {
                return Err(format!(
                    "{other} is not understood; token, serial, model, manufacturer, slot-id, object, id, type, module-path, pin-value and pin-source are"
                ));
            }
        }
        Ok(())
    }
}

/// A file; RFC 7512 also knows programs, which we do not start.
fn pin_source(source: &str) -> Result<PathBuf, String> {
    match source.strip_prefix("file:") {
        Some(path) => Ok(path.strip_prefix("//").unwrap_or(path).into()),
        None if source.starts_with('/') => Ok(source.into()),
        None => Err("its pin-source is no file; file:/PATH and /PATH are understood".into()),
    }
}

/// Takes percent-encoding off.
fn unescape(value: &str) -> Option<SecretBytes> {
    // Of the final length from the start: what grows leaves copies behind.
    let mut out = SecretBytes::zeroed(value.len() - 2 * value.matches('%').count().min(value.len() / 3));
    let mut rest = value.bytes();
    for byte in out.iter_mut() {
        *byte = match rest.next()? {
            b'%' => digit(rest.next()?)? << 4 | digit(rest.next()?)?,
            other => other,
        };
    }
    rest.next().is_none().then_some(out)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_p11tool_lists_is_read() {
        let listed =
            "pkcs11:model=SoftHSM%20v2;manufacturer=SoftHSM%20project;serial=0a1b;token=The%20Token;id=%01%fF;object=web;type=private";
        let uri = Uri::parse(&format!("{listed}?module-path=/lib/x.so&pin-value=12%334")).unwrap();
        assert_eq!((uri.token.label.as_deref(), uri.token.model.as_deref()), (Some("The Token"), Some("SoftHSM v2")));
        assert_eq!((uri.object.as_deref(), uri.id), (Some("web"), Some(vec![1, 255])));
        assert_eq!((uri.module, uri.pin), (Some("/lib/x.so".into()), Some(SecretBytes::from(b"1234"))));
        assert_eq!(shown("pkcs11:object=web?pin-value=1234"), "pkcs11:object=web");
    }

    #[test]
    fn pins_come_from_files() {
        for source in ["file:/etc/pin", "file:///etc/pin", "/etc/pin", "%2Fetc%2Fpin"] {
            let uri = Uri::parse(&format!("pkcs11:object=web?pin-source={source}")).unwrap();
            assert_eq!(uri.pin_source, Some("/etc/pin".into()), "{source}");
        }
        assert!(Uri::parse("pkcs11:object=web?pin-source=|cat%20/etc/pin").is_err());
    }

    #[test]
    fn what_names_no_private_key_is_refused_without_showing_the_pin() {
        let bad = [
            "pkcs11:",
            "pkcs11:token=x",
            "pkcs11:object",
            "pkcs11:object=%zz",
            "pkcs11:object=a%2",
            "pkcs11:object=%",
            "pkcs11:object=a;object=b",
            "pkcs11:object=x;colour=red",
            "pkcs11:object=x;type=cert",
            "pkcs11:slot-id=one;object=x",
            "pkcs11:object=%ff",
            "file:x",
        ];
        for bad in bad {
            let why = Uri::parse(&format!("{bad}?pin-value=7788%39")).unwrap_err();
            assert!(!why.contains("7788"), "{bad}: {why}");
        }
    }
}
