//! Keys taken out of a PKCS#11 token.
//!
//! The token wraps the key under a key made for this once (CKM_AES_KEY_WRAP_PAD), which works for keys that are sensitive but extractable. One that is not
//! sensitive and that the token does not wrap is read as it stands. One that is not extractable stays where it is, by what tokens are for; the error says
//! so. The token's library runs in this command, never in the broker.

mod uri;

use super::source::first_line;
use crate::failure::Failure;
use bywash_core::SecretBytes;
use bywash_vault::{source, wrap};
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::{Slot, TokenInfo};
use cryptoki::types::RawAuthPin;
use std::path::PathBuf;
use uri::{Token, Uri, shown};
use zeroize::Zeroize;

/// The variable that names the token's library, as OpenSSL's `pkcs11` engine and provider know it.
const MODULE_VARIABLE: &str = "PKCS11_MODULE_PATH";
/// So many names are listed in an error.
const LISTED: usize = 8;

/// What to do about a key that does not come out.
const WAY_OUT: &str = "Make a new key with `bywash key generate` and get a certificate for it, or leave this key to the token and to OpenSSL's pkcs11 \
                       provider";

/// How a token is reached.
#[derive(Debug, clap::Args)]
pub(super) struct TokenArgs {
    /// The token's library, where --from is a pkcs11: URI [default: the URI's module-path, else
    /// $PKCS11_MODULE_PATH]
    #[arg(long, value_name = "LIB")]
    module: Option<PathBuf>,
    /// A file whose first line is the token's user PIN [default: the URI's pin-source or pin-value]
    #[arg(long, value_name = "FILE")]
    pin_file: Option<PathBuf>,
}

/// Whether this names a key in a token.
pub(super) fn is_uri(from: &str) -> bool {
    from.starts_with("pkcs11:")
}

/// Takes a private key out of a token, as PKCS#8.
pub(super) fn read(from: &str, args: &TokenArgs) -> Result<SecretBytes, Failure> {
    take(from, args).map_err(|why| Failure::failed(format!("the key {}: {why}", shown(from))))
}

fn take(from: &str, args: &TokenArgs) -> Result<SecretBytes, String> {
    let mut uri = Uri::parse(from)?;
    let library = load(args.module.clone().or(uri.module.take()))?;
    let slot = find_token(&library, &uri.token)?;
    let info = library.get_token_info(slot).map_err(in_words)?;
    let session = library.open_ro_session(slot).map_err(in_words)?;
    log_in(&session, &info, pin(&uri, args)?)?;
    let key = find_key(&session, &uri)?;
    let extractable = session.get_attributes(key, &[AttributeType::Extractable]);
    if matches!(extractable.as_deref(), Ok([Attribute::Extractable(false)])) {
        return Err(format!("the token does not give it out: it is not extractable, and never will be. {WAY_OUT}"));
    }
    // A key that may be read as it stands need not be wrapped, but most tokens that allow the one allow the other, and the way for all is the better tried.
    wrapped(&session, key).or_else(|why| {
        plain(&session, key).ok_or_else(|| {
            format!("the token does not wrap it, and does not let it be read as it stands either. {WAY_OUT} (the token: {why})")
        })
    })
}

fn in_words(error: Error) -> String {
    error.to_string()
}

fn load(named: Option<PathBuf>) -> Result<Pkcs11, String> {
    let path = named.or_else(|| std::env::var_os(MODULE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)).ok_or_else(|| {
        format!("no token library is named; give --module LIB (SoftHSM's is /usr/lib/softhsm/libsofthsm2.so), module-path= in the URI, or ${MODULE_VARIABLE}")
    })?;
    let failed = |why: String| format!("the token library {} cannot be used: {why}", path.display());
    // The loader searches its own folders for a bare name; for a path its message is longer and says less.
    if path.components().count() > 1 && !path.exists() {
        return Err(failed("there is no such file; install the token's package, or check the path".into()));
    }
    let library = Pkcs11::new(&path).map_err(|error| failed(error.to_string()))?;
    library.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)).map_err(|error| failed(error.to_string()))?;
    Ok(library)
}

fn find_token(library: &Pkcs11, wanted: &Token) -> Result<Slot, String> {
    let slots = library.get_slots_with_token().map_err(in_words)?;
    let tokens: Vec<(Slot, TokenInfo)> = slots
        .into_iter()
        .filter_map(|slot| library.get_token_info(slot).ok().map(|info| (slot, info)))
        .filter(|(_, info)| info.token_initialized())
        .collect();
    let fits = |slot: Slot, info: &TokenInfo| {
        let same = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        same(&wanted.label, info.label())
            && same(&wanted.serial, info.serial_number())
            && same(&wanted.model, info.model())
            && same(&wanted.manufacturer, info.manufacturer_id())
            && wanted.slot.is_none_or(|wanted| wanted == slot.id())
    };
    let fitting: Vec<Slot> = tokens.iter().filter(|(slot, info)| fits(*slot, info)).map(|(slot, _)| *slot).collect();
    let there = || list(tokens.iter().map(|(_, info)| info.label().to_owned()));
    match fitting[..] {
        [slot] => Ok(slot),
        [] => Err(format!("there is no such token; the library has {}", there())),
        _ => Err(format!(
            "{} tokens fit; name one with token=, or serial= where labels are the same: the library has {}",
            fitting.len(),
            there()
        )),
    }
}

fn pin(uri: &Uri, args: &TokenArgs) -> Result<Option<SecretBytes>, String> {
    let file = args.pin_file.as_deref().or(uri.pin_source.as_deref());
    match file {
        Some(file) => first_line("a PIN", file).map(Some).map_err(|failure| failure.to_string()),
        None => Ok(uri.pin.clone()),
    }
}

fn log_in(session: &Session, info: &TokenInfo, pin: Option<SecretBytes>) -> Result<(), String> {
    let Some(pin) = pin else {
        let needless = !info.login_required() || info.protected_authentication_path();
        return if needless { Ok(()) } else { Err("the token wants its user PIN: give --pin-file FILE".into()) };
    };
    let outcome = session.login_with_raw(UserType::User, &RawAuthPin::new(Box::new(pin.to_vec())));
    outcome.map_err(|error| match error {
        Error::Pkcs11(RvError::PinIncorrect | RvError::PinLenRange | RvError::PinInvalid, _) => {
            "the PIN is wrong; a token that is given too many wrong ones locks itself".into()
        }
        Error::Pkcs11(RvError::PinLocked, _) => {
            "the token is locked after too many wrong PINs; its security officer can set a new one".into()
        }
        other => format!("the token does not take the PIN: {other}"),
    })
}

fn find_key(session: &Session, uri: &Uri) -> Result<ObjectHandle, String> {
    let mut template = vec![Attribute::Class(ObjectClass::PRIVATE_KEY)];
    template.extend(uri.object.as_ref().map(|label| Attribute::Label(label.clone().into_bytes())));
    template.extend(uri.id.as_ref().map(|id| Attribute::Id(id.clone())));
    let found = session.find_objects(&template).map_err(in_words)?;
    match found[..] {
        [key] => Ok(key),
        [] => {
            let all = session.find_objects(&template[..1]).map_err(in_words)?;
            Err(format!("the token has no such private key; it has {}", list(all.into_iter().map(|key| label(session, key)))))
        }
        _ => Err(format!("{} private keys fit; name one with both object= and id=", found.len())),
    }
}

fn label(session: &Session, key: ObjectHandle) -> String {
    match session.get_attributes(key, &[AttributeType::Label]).as_deref() {
        Ok([Attribute::Label(label)]) => String::from_utf8_lossy(label).into_owned(),
        _ => String::new(),
    }
}

/// Names for an error, not too many.
fn list(names: impl Iterator<Item = String>) -> String {
    let clean = |name: String| format!("'{}'", name.chars().filter(|char| !char.is_control()).collect::<String>());
    let mut names: Vec<String> = names.map(clean).collect();
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    match (names.is_empty(), more) {
        (true, _) => "none".into(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    }
}

fn wrapped(session: &Session, key: ObjectHandle) -> Result<SecretBytes, String> {
    let wrapping = wrap::new_key().ok_or("there are no random numbers")?;
    let mut template = [
        Attribute::Value(wrapping.to_vec()),
        Attribute::Class(ObjectClass::SECRET_KEY),
        Attribute::KeyType(KeyType::AES),
        Attribute::Token(false),
        Attribute::Wrap(true),
        Attribute::Sensitive(true),
    ];
    let handle = session.create_object(&template);
    if let Attribute::Value(copy) = &mut template[0] {
        copy.zeroize();
    }
    let handle = handle.map_err(in_words)?;
    let wrapped = session.wrap_key(&Mechanism::AesKeyWrapPad, handle, key);
    // A session's object goes with the session anyway.
    let _ = session.destroy_object(handle);
    wrap::unwrap(&wrapping, &wrapped.map_err(in_words)?).ok_or_else(|| "what it gave is damaged".into())
}

/// A key that is not sensitive, from its attributes.
fn plain(session: &Session, key: ObjectHandle) -> Option<SecretBytes> {
    let value = |kind| match session.get_attributes(key, &[kind]).ok()?.pop()? {
        Attribute::Modulus(bytes) | Attribute::PublicExponent(bytes) | Attribute::EcParams(bytes) | Attribute::PrivateExponent(bytes) => {
            Some(SecretBytes::from(bytes))
        }
        Attribute::Prime1(bytes) | Attribute::Prime2(bytes) | Attribute::Coefficient(bytes) | Attribute::Value(bytes) => Some(bytes.into()),
        Attribute::Exponent1(bytes) | Attribute::Exponent2(bytes) => Some(bytes.into()),
        _ => None,
    };
    match session.get_attributes(key, &[AttributeType::KeyType]).ok()?.pop()? {
        Attribute::KeyType(KeyType::RSA) => source::from_rsa(&[
            &value(AttributeType::Modulus)?,
            &value(AttributeType::PublicExponent)?,
            &value(AttributeType::PrivateExponent)?,
            &value(AttributeType::Prime1)?,
            &value(AttributeType::Prime2)?,
            &value(AttributeType::Exponent1)?,
            &value(AttributeType::Exponent2)?,
            &value(AttributeType::Coefficient)?,
        ]),
        Attribute::KeyType(KeyType::EC_EDWARDS) => source::from_edwards(&value(AttributeType::EcParams)?, &value(AttributeType::Value)?),
        Attribute::KeyType(KeyType::EC) => source::from_ec(&value(AttributeType::EcParams)?, &value(AttributeType::Value)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_short_and_printable() {
        assert_eq!(list(std::iter::empty()), "none");
        assert_eq!(list(["a\n".to_owned(), "b".to_owned()].into_iter()), "'a', 'b'");
        assert!(list((0..20).map(|number| number.to_string())).ends_with("'7' and 12 more"));
    }

    #[test]
    fn a_missing_library_is_named_with_the_way_out() {
        let args = TokenArgs { module: Some("/nowhere/lib.so".into()), pin_file: None };
        let why = read("pkcs11:object=web?pin-value=7788", &args).unwrap_err().to_string();
        assert!(why.contains("/nowhere/lib.so") && why.contains("check the path") && !why.contains("7788"), "{why}");
        let args = TokenArgs { module: Some("/etc/hostname".into()), pin_file: None };
        assert!(read("pkcs11:object=web", &args).unwrap_err().to_string().contains("cannot be used"));
    }
}
