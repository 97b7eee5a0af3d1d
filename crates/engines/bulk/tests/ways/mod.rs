//! GCM in all widths of registers, behind one face.

use bywash_bulk::narrow::{self, Path};
use bywash_bulk::{Error, Text, gcm};

/// What computes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Wide,
    Narrow(Path),
}

/// What this processor has, each printed when its turn comes; says what it lacks. `BYWASH_TEST_WIDEST` leaves the others to a processor that is not emulated (scripts/avx512).
pub(crate) fn ways() -> impl Iterator<Item = Way> {
    let others = if std::env::var_os("BYWASH_TEST_WIDEST").is_some() { &[][..] } else { &Path::ALL };
    let all = [Way::Wide].into_iter().chain(others.iter().copied().map(Way::Narrow));
    let (has, lacks): (Vec<_>, Vec<_>) = all.partition(|way| match way {
        Way::Wide => bywash_bulk::is_supported(),
        Way::Narrow(path) => path.is_supported(),
    });
    assert!(!has.is_empty() || others.len() > 1, "the one way that was asked for is not here");
    eprintln!("skipped, because this processor lacks them: {lacks:?}");
    has.into_iter().inspect(|way| eprintln!("{way:?}"))
}

pub(crate) enum Key {
    Wide(gcm::Key),
    Narrow(narrow::gcm::Key),
}

impl Key {
    pub(crate) fn new(way: Way, key: &[u8]) -> Result<Self, Error> {
        Ok(match way {
            Way::Wide => Self::Wide(gcm::Key::new(key)?),
            Way::Narrow(path) => Self::Narrow(narrow::gcm::Key::new(path, key)?),
        })
    }

    pub(crate) fn seal(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::Wide(key) => key.seal(iv, aad, text, tag),
            Self::Narrow(key) => key.seal(iv, aad, text, tag),
        }
    }

    pub(crate) fn open(&self, iv: &[u8], aad: &[u8], text: Text<'_>, tag: &[u8]) -> Result<(), Error> {
        match self {
            Self::Wide(key) => key.open(iv, aad, text, tag),
            Self::Narrow(key) => key.open(iv, aad, text, tag),
        }
    }
}

#[derive(Clone)]
pub(crate) enum Message {
    Wide(gcm::Message),
    Narrow(narrow::gcm::Message),
}

/// What a message does in either way, with a key of the same.
macro_rules! both {
    ($message:expr, $key:expr, |$m:ident, $k:ident| $value:expr) => {
        match ($message, $key) {
            (Message::Wide($m), Key::Wide($k)) => $value,
            (Message::Narrow($m), Key::Narrow($k)) => $value,
            _ => panic!("a message has a key of its own way"),
        }
    };
}

impl Message {
    pub(crate) fn new(key: &Key, iv: &[u8]) -> Result<Self, Error> {
        Ok(match key {
            Key::Wide(key) => Self::Wide(gcm::Message::new(key, iv)?),
            Key::Narrow(key) => Self::Narrow(narrow::gcm::Message::new(key, iv)?),
        })
    }

    pub(crate) fn aad(&mut self, key: &Key, aad: &[u8]) -> Result<(), Error> {
        both!(self, key, |message, key| message.aad(key, aad))
    }

    pub(crate) fn encrypt(&mut self, key: &Key, text: Text<'_>) -> Result<(), Error> {
        both!(self, key, |message, key| message.encrypt(key, text))
    }

    pub(crate) fn decrypt(&mut self, key: &Key, text: Text<'_>) -> Result<(), Error> {
        both!(self, key, |message, key| message.decrypt(key, text))
    }

    pub(crate) fn tag(&self, key: &Key) -> [u8; 16] {
        both!(self, key, |message, key| message.tag(key))
    }
}
