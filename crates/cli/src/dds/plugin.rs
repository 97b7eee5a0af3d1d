//! The plug-ins that a configuration of Cyclone DDS names.

use super::config::Security;
use super::xml;
use crate::doctor::{self, Finding};
use crate::provider;
use object::{Object, ObjectSymbol};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The shared object of ours.
const OURS: &str = "libbywash_dds_cyclone.so";
/// The largest shared object that is read.
const BYTES_MAX: u64 = 1 << 28;

/// A plug-in that Cyclone DDS brings along: what it is where nothing else is said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BuiltIn {
    /// What findings call it.
    about: &'static str,
    /// The element that it is named in.
    pub(super) element: &'static str,
    pub(super) library: &'static str,
    pub(super) initialise: &'static str,
    pub(super) finalise: &'static str,
}

/// All three.
pub(super) static BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        about: "authentication",
        element: "Authentication",
        library: "dds_security_auth",
        initialise: "init_authentication",
        finalise: "finalize_authentication",
    },
    BuiltIn {
        about: "access control",
        element: "AccessControl",
        library: "dds_security_ac",
        initialise: "init_access_control",
        finalise: "finalize_access_control",
    },
    BuiltIn {
        about: "plug-in",
        element: "Cryptographic",
        library: "dds_security_crypto",
        initialise: "init_crypto",
        finalise: "finalize_crypto",
    },
];

/// A plug-in as it is named: a shared object, by its path or by a name that the dynamic linker finds, and two functions in it.
#[derive(Debug)]
pub(super) struct PlugIn {
    pub(super) built_in: &'static BuiltIn,
    pub(super) path: String,
    pub(super) initialise: String,
    pub(super) finalise: String,
}

/// Looks at them.
pub(super) fn look(security: &Security) -> Vec<Finding> {
    security.plug_ins.iter().filter_map(judge).collect()
}

fn judge(plug_in: &PlugIn) -> Option<Finding> {
    let BuiltIn { about, element, library, initialise, finalise } = plug_in.built_in;
    // By that name Cyclone's own is found where Cyclone is, which need not be here.
    let is_built_in = plug_in.path == *library;
    let functions = [&plug_in.initialise, &plug_in.finalise];
    let answer = if is_built_in {
        let strange = functions.into_iter().zip([initialise, finalise]).find(|(named, own)| named != own);
        strange.map_or(Ok(()), |(named, own)| Err(format!("{library}: has no function '{named}': it is called '{own}'")))
    } else {
        found(&plug_in.path).and_then(|path| exports(&path, &functions))
    };
    match answer {
        Err(why) => Some(Finding::broken(
            about,
            format!("<{element}> names {why}; no participant starts"),
            format!(
                "<Library initFunction=\"{initialise}\" finalizeFunction=\"{finalise}\" path=\"{library}\"/>, or the absolute path of another plug-in and its two functions"
            ),
        )),
        Ok(()) if is_built_in && *about == "plug-in" => {
            let ours = provider::library(OURS).map_or_else(|| format!("/usr/local/lib/bywash/{OURS}"), |path| path.display().to_string());
            let mend = format!(
                "<Library initFunction=\"{initialise}\" finalizeFunction=\"{finalise}\" path=\"{ours}\"/> in the place of the <Library> in <{element}>"
            );
            Some(Finding::note(about, "the built-in one, which derives and keys for every piece that it receives", mend))
        }
        Ok(()) => (!is_built_in).then(|| Finding::ok(about, plug_in.path.clone())),
    }
}

/// The file that a name leads to: with a folder itself, else what the dynamic linker finds as `libNAME.so`, or by the name alone.
fn found(name: &str) -> Result<PathBuf, String> {
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let names = [format!("lib{name}.so"), name.to_owned()];
    let found = names.iter().find_map(|name| doctor::library(name));
    found.ok_or_else(|| format!("{name}: the dynamic linker finds no lib{name}.so here"))
}

/// Whether it is a library that exports these functions.
fn exports(path: &Path, functions: &[&String]) -> Result<(), String> {
    let said = |what: &str| format!("{}: {what}", path.display());
    let file = xml::open(path).map_err(|error| said(&error.to_string()))?;
    // Files of the kernel's have no length, and no end.
    let found = file.metadata().map_err(|error| said(&error.to_string()))?;
    if !found.is_file() || found.len() == 0 || found.len() > BYTES_MAX {
        return Err(said("not a shared library"));
    }
    let mut data = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut data).map_err(|error| said(&error.to_string()))?;
    let file = object::File::parse(&*data).map_err(|_| said("not a shared library"))?;
    for name in functions {
        if !file.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok(name)) {
            return Err(said(&format!("has no function '{name}'")));
        }
    }
    Ok(())
}
