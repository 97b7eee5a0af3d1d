//! Finds the OpenSSL provider's shared object.

use crate::failure::{Exit, Failure};
use object::read::ReadCache;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The shared object's file name.
const FILE: &str = "libbywash_openssl.so";
/// The preload library by which handshakes of event-driven servers wait for each other.
pub(crate) const ASYNC: &str = "libbywash_async.so";
/// The preload library that has `/dev/crypto`.
pub(crate) const CRYPTODEV: &str = "libbywash_cryptodev_preload.so";

/// The preload library for Fast DDS.
pub(crate) const FASTDDS: &str = "libbywash_fastdds.so";

/// The provider named by `--provider` or `BYWASH_PROVIDER`, else the one that lies near this executable.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let named =
        named.map(Path::to_owned).or_else(|| std::env::var_os("BYWASH_PROVIDER").filter(|name| !name.is_empty()).map(PathBuf::from));
    if let Some(path) = named {
        let whole = std::path::absolute(&path).unwrap_or(path);
        return match whole.metadata().and_then(|found| Ok(found.is_file() && is_provider(File::open(&whole)?))) {
            Err(error) => Err(missing(&format!("{} cannot be read: {error}", whole.display()))),
            Ok(false) => Err(missing(&format!("{} is no provider of OpenSSL 3", whole.display()))),
            Ok(true) => Ok(whole),
        };
    }
    let executable = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let places = near(&executable);
    let found = places.iter().find(|path| path.is_file());
    found.cloned().ok_or_else(|| {
        let tried: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
        missing(&format!("not found; looked for {}", tried.join(", ")))
    })
}

/// Whether it has what OpenSSL calls in a provider: without it OpenSSL goes on with its own, and says so to nobody. Of its many megabytes only what tells that is read.
fn is_provider(file: File) -> bool {
    let cache = ReadCache::new(file);
    ElfFile64::<Endianness, _>::parse(&cache)
        .is_ok_and(|file| file.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok("OSSL_provider_init")))
}

/// Beside the executable and in its `deps` (a build's target folder), in `lib/bywash` and `lib` of the same prefix (an installation).
fn near(executable: &Path) -> Vec<PathBuf> {
    let folder = executable.parent().unwrap_or(Path::new("/"));
    let prefix = folder.parent().unwrap_or(folder);
    [folder.to_owned(), folder.join("deps"), prefix.join("lib/bywash"), prefix.join("lib")].map(|place| place.join(FILE)).into()
}

/// A preload library, beside the provider or near this executable.
pub(crate) fn preload(provider: &Path, file: &str) -> Option<PathBuf> {
    Some(provider.with_file_name(file)).filter(|path| path.is_file()).or_else(|| library(file))
}

/// One of our libraries near this executable.
pub(crate) fn library(file: &str) -> Option<PathBuf> {
    let executable = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    near(&executable).into_iter().map(|path| path.with_file_name(file)).find(|path| path.is_file())
}

fn missing(what: &str) -> Failure {
    let way_out = "build it (cargo build --release -p bywash-openssl), or name it with --provider or BYWASH_PROVIDER";
    Failure::new(Exit::Failed, format!("the OpenSSL provider: {what}\n{way_out}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_and_a_build_are_both_found() {
        let installed = near(Path::new("/usr/local/bin/bywash"));
        assert!(installed.contains(&PathBuf::from("/usr/local/lib/bywash/libbywash_openssl.so")), "{installed:?}");
        let built = near(Path::new("/src/target/release/bywash"));
        assert_eq!(built[0], Path::new("/src/target/release/libbywash_openssl.so"));
    }

    #[test]
    fn a_named_file_that_is_not_there_is_refused_with_the_way_out() {
        let error = find(Some(Path::new("/nowhere/x.so"))).unwrap_err().to_string();
        assert!(error.contains("/nowhere/x.so") && error.contains("--provider"), "{error}");
        let text = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(find(Some(Path::new(text))).unwrap_err().to_string().contains("is no provider"));
        let program = std::env::current_exe().unwrap();
        assert!(find(Some(&program)).unwrap_err().to_string().contains("is no provider"), "an executable, and not one");
    }
}
