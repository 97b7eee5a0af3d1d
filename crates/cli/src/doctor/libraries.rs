//! Follows the libraries that a program needs, as the dynamic linker would (`ld.so(8)`), without running anything.

use super::elf::{self, Elf};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where the linker looks when nothing else is said; Debian's multiarch folders included.
const USUAL: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The names of every library that the program loads at its start, those of libraries included.
pub(super) fn closure(path: &Path, elf: &Elf) -> BTreeSet<String> {
    let base = search_path();
    let mut seen = BTreeSet::new();
    let mut open: Vec<(String, Vec<PathBuf>)> = Vec::new();
    let push = |open: &mut Vec<_>, elf: &Elf| open.extend(elf.needed.iter().map(|name| (name.clone(), elf.search.clone())));
    push(&mut open, elf);
    while let Some((name, search)) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let found = search.iter().chain(&base).map(|folder| folder.join(&name)).find(|file| file.is_file() && file != path);
        if let Some(file) = found
            && let Ok(data) = std::fs::read(&file)
            && let Some(library) = elf::read(&file, &data)
        {
            push(&mut open, &library);
        }
    }
    seen
}

/// The file that the linker finds by this name for who says nothing of where to look.
pub(crate) fn library(name: &str) -> Option<PathBuf> {
    search_path().into_iter().map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn search_path() -> Vec<PathBuf> {
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&own).filter(|folder| !folder.as_os_str().is_empty()).collect();
    folders.extend(configured());
    folders.extend(USUAL.map(PathBuf::from));
    folders
}

/// The folders of `/etc/ld.so.conf.d/*.conf`, where distributions and administrators put theirs.
fn configured() -> Vec<PathBuf> {
    let files = std::fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
    let lines = texts.flat_map(|text| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>());
    lines.filter(|line| line.starts_with('/')).map(PathBuf::from).collect()
}
