//! What an executable says of itself: its interpreter, the libraries it needs, traces of a TLS library built in.

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, PT_INTERP};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a dynamic linker would read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Elf {
    /// Whether a dynamic linker is asked for; without one nothing can be loaded into it.
    pub(super) dynamic: bool,
    /// The libraries it names.
    pub(super) needed: Vec<String>,
    /// The functions and objects that it takes from them.
    pub(super) imports: BTreeSet<String>,
    /// Where it wants them looked for, `$ORIGIN` replaced.
    pub(super) search: Vec<PathBuf>,
}

/// Reads a 64-bit ELF file of this machine's byte order; `None` if it is something else.
pub(super) fn read(path: &Path, data: &[u8]) -> Option<Elf> {
    let file = ElfFile64::<object::Endianness>::parse(data).ok()?;
    let endian = file.endian();
    let segments = file.elf_program_headers();
    let mut elf = Elf { dynamic: segments.iter().any(|segment| segment.p_type(endian) == PT_INTERP), ..Elf::default() };
    elf.imports =
        file.dynamic_symbols().filter(|symbol| symbol.is_undefined()).filter_map(|symbol| Some(symbol.name().ok()?.to_owned())).collect();
    let sections = file.elf_header().sections(endian, data).ok()?;
    let Some((entries, link)) = sections.dynamic(endian, data).ok()? else { return Some(elf) };
    let strings = sections.strings(endian, data, link).ok()?;
    let origin = path.parent().unwrap_or(Path::new("/")).to_string_lossy();
    for entry in entries {
        let text = || String::from_utf8_lossy(entry.string(endian, strings).unwrap_or_default()).into_owned();
        match entry.tag(endian) {
            DT_NEEDED => elf.needed.push(text()),
            DT_RPATH | DT_RUNPATH => {
                let folders = text().replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin);
                elf.search.extend(folders.split(':').map(PathBuf::from));
            }
            _ => {}
        }
    }
    Some(elf)
}

/// TLS libraries that are built in rather than linked to, by something their code cannot be without.
pub(super) fn built_in(data: &[u8]) -> Option<&'static str> {
    const MARKS: [(&[u8], &str); 5] = [
        (b"\xff Go buildinf:", "Go's crypto/tls"),
        (b"rustls", "rustls"),
        (b"BoringSSL", "BoringSSL"),
        (b"AWS-LC", "AWS-LC"),
        (b"OPENSSLDIR: ", "an OpenSSL of its own"),
    ];
    MARKS.iter().find(|(mark, _)| contains(data, mark)).map(|(_, name)| *name)
}

/// Whether the path of the device stands in the program.
pub(super) fn names_the_device(data: &[u8]) -> bool {
    contains(data, b"/dev/crypto")
}

fn contains(data: &[u8], mark: &[u8]) -> bool {
    data.windows(mark.len()).any(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_dynamic_and_needs_libc() {
        let path = std::env::current_exe().unwrap();
        let elf = read(&path, &std::fs::read(&path).unwrap()).unwrap();
        assert!(elf.dynamic);
        assert!(elf.imports.contains("poll") || elf.imports.contains("malloc"), "{:?}", elf.imports);
        assert!(elf.needed.iter().any(|name| name.starts_with("libc.so")), "{:?}", elf.needed);
    }

    #[test]
    fn other_files_are_not_taken_for_elf() {
        assert_eq!(read(Path::new("x"), b"#!/bin/sh\n"), None);
        assert_eq!(read(Path::new("x"), b"\x7fELF"), None);
        assert_eq!(built_in(b"... BoringSSL ..."), Some("BoringSSL"));
        assert_eq!(built_in(b"nothing"), None);
    }
}
