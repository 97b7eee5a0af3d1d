//! The cryptographic plug-in that a configuration of Cyclone DDS names.

use super::config::{PlugIn, Security};
use crate::doctor::Finding;
use crate::provider;
use object::{Object, ObjectSymbol};
use std::path::Path;

/// The shared object of ours.
const OURS: &str = "libbywash_dds_cyclone.so";
/// The built-in one's name.
const BUILT_IN: &str = "dds_security_crypto";
/// The largest shared object that is read.
const BYTES_MAX: u64 = 1 << 30;

/// Looks at it. Fast DDS has its own compiled in.
pub(super) fn look(security: &Security) -> Option<Finding> {
    let plug_in = security.plug_in.as_ref()?;
    if !plug_in.path.contains('/') {
        if plug_in.path.trim_start_matches("lib").trim_end_matches(".so") != BUILT_IN {
            let found = format!("{}: a name without a folder, which the dynamic linker must find where a program starts", plug_in.path);
            return Some(Finding::note("plug-in", found, "name it by its absolute path"));
        }
        let ours = provider::library(OURS).map_or_else(|| format!("/usr/local/lib/bywash/{OURS}"), |path| path.display().to_string());
        let mend = format!(
            "<Library initFunction=\"init_crypto\" finalizeFunction=\"finalize_crypto\" path=\"{ours}\"/> in the place of the <Library> in <Cryptographic>"
        );
        return Some(Finding::note("plug-in", "the built-in one, which derives and keys for every piece that it receives", mend));
    }
    Some(match read(plug_in) {
        Ok(()) => Finding::ok("plug-in", plug_in.path.clone()),
        Err(why) => {
            Finding::broken("plug-in", why, "name the absolute path of a plug-in and its two functions; no participant starts without")
        }
    })
}

/// Whether it is a library that exports both functions.
fn read(plug_in: &PlugIn) -> Result<(), String> {
    let path = Path::new(&plug_in.path);
    let said = |what: &str| format!("{}: {what}", path.display());
    let found = std::fs::metadata(path).map_err(|error| said(&error.to_string()))?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return Err(said("not a shared library"));
    }
    let data = std::fs::read(path).map_err(|error| said(&error.to_string()))?;
    let file = object::File::parse(&*data).map_err(|_| said("not a shared library"))?;
    for name in [&plug_in.initialise, &plug_in.finalise] {
        let exports = file.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok(name));
        if !exports {
            return Err(said(&format!("has no function '{name}'")));
        }
    }
    Ok(())
}
