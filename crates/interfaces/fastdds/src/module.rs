//! A loaded library: its name, what it imports, and the table by which it calls that.

use core::ffi::{CStr, c_int, c_void};
use core::{mem, ptr, slice};

/// A loaded library. Fast DDS is never unloaded once it is [pinned](Module::pin), and we are not, as what was preloaded is not; others are looked at within a call of theirs.
#[derive(Clone, Copy)]
pub(crate) struct Module {
    base: usize,
    name: *const libc::c_char,
    dynamic: *const Entry,
}

/// `Elf64_Dyn`
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    tag: i64,
    value: u64,
}

/// `Elf64_Rela`
#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// `Elf64_Sym`
#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;
const DT_BIND_NOW: i64 = 24;
const DT_FLAGS: i64 = 30;
const DT_FLAGS_1: i64 = 0x6fff_fffb;
const DF_BIND_NOW: u64 = 8;
const DF_1_NOW: u64 = 1;

/// Relocations that put a function's address into a table: `GLOB_DAT` and `JUMP_SLOT`.
#[cfg(target_arch = "x86_64")]
const OF_FUNCTIONS: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const OF_FUNCTIONS: [u32; 2] = [1025, 1026];

/// What is looked for, and what was found.
struct Search<'a> {
    is_it: &'a dyn Fn(&Module, &[libc::Elf64_Phdr]) -> bool,
    found: Option<Module>,
}

unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader's description of a library, and our own search.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
    // SAFETY: the loader's array.
    let parts = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let base = info.dlpi_addr as usize;
    let dynamic = parts.iter().find(|part| part.p_type == libc::PT_DYNAMIC);
    let place = |part: &libc::Elf64_Phdr| base.wrapping_add(part.p_vaddr as usize);
    let module = dynamic.map(|part| Module { base, name: info.dlpi_name, dynamic: ptr::with_exposed_provenance(place(part)) });
    search.found = module.filter(|module| (search.is_it)(module, parts));
    c_int::from(search.found.is_some())
}

/// The first of the loaded libraries that is the one.
fn find(is_it: &dyn Fn(&Module, &[libc::Elf64_Phdr]) -> bool) -> Option<Module> {
    let mut search = Search { is_it, found: None };
    // SAFETY: the callback and what it is given fit together.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

impl Module {
    /// The library in which an address lies.
    pub(crate) fn of(address: usize) -> Option<Self> {
        let has_it = |base: usize, part: &libc::Elf64_Phdr| {
            part.p_type == libc::PT_LOAD && address.wrapping_sub(base.wrapping_add(part.p_vaddr as usize)) < part.p_memsz as usize
        };
        find(&|module, parts| parts.iter().any(|part| has_it(module.base, part)))
    }

    /// The library whose file name is the one.
    pub(crate) fn named(is_it: impl Fn(&[u8]) -> bool) -> Option<Self> {
        find(&|module, _| is_it(module.file()))
    }

    /// Its file's path; empty of the program itself.
    pub(crate) fn name(&self) -> &[u8] {
        // SAFETY: the loader's string, which lives as long as the library.
        if self.name.is_null() { &[] } else { unsafe { CStr::from_ptr(self.name) }.to_bytes() }
    }

    /// Its file's name.
    pub(crate) fn file(&self) -> &[u8] {
        self.name().rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }

    /// Whether all that it calls was found when it was loaded.
    pub(crate) fn is_bound(&self) -> bool {
        let has = |tag: i64, flag: u64| self.entry(tag).is_some_and(|flags| flags & flag != 0);
        has(DT_FLAGS, DF_BIND_NOW)
            || has(DT_FLAGS_1, DF_1_NOW)
            || self.entry(DT_BIND_NOW).is_some()
            // ld.so(8)
            || std::env::var_os("LD_BIND_NOW").is_some_and(|value| !value.is_empty())
    }

    /// Has it stay as long as the process. Once more at another place, or at the same, it would be another library.
    pub(crate) fn pin(&self) -> Result<(), String> {
        // SAFETY: the loader's string; nothing is loaded that is not there.
        let handle = unsafe { libc::dlopen(self.name, libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_LAZY) };
        if handle.is_null() {
            return Err("the loader does not find it again".into());
        }
        // SAFETY: the handle of just now; the library stays.
        unsafe { libc::dlclose(handle) };
        Ok(())
    }

    /// Where it was loaded.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// The function of this name as the library would find it if ours were not there: in the libraries that it names, in their order.
    pub(crate) fn function(&self, name: &CStr, own_base: usize) -> Option<*mut c_void> {
        let path = if self.name().is_empty() { ptr::null() } else { self.name };
        // SAFETY: the loader's string, or null for the program; nothing is loaded that is not there.
        unsafe {
            let handle = libc::dlopen(path, libc::RTLD_NOLOAD | libc::RTLD_LAZY);
            if handle.is_null() {
                return None;
            }
            let found = libc::dlsym(handle, name.as_ptr());
            libc::dlclose(handle);
            // The program's own scope begins with us.
            if Module::of(found.addr()).is_some_and(|module| module.base == own_base) {
                return next(name);
            }
            (!found.is_null()).then_some(found)
        }
    }

    fn entry(&self, tag: i64) -> Option<u64> {
        let mut at = self.dynamic;
        loop {
            // SAFETY: the dynamic section ends in an entry of tag 0.
            let entry = unsafe { at.read() };
            match entry.tag {
                0 => return None,
                found if found == tag => return Some(entry.value),
                // SAFETY: not the last.
                _ => at = unsafe { at.add(1) },
            }
        }
    }

    /// A place that the dynamic section names: glibc has made it an address, unless it is below where the library lies.
    fn place<T>(&self, tag: i64) -> Option<*const T> {
        let value = self.entry(tag)? as usize;
        Some(ptr::with_exposed_provenance(if value < self.base { self.base + value } else { value }))
    }

    fn relocations(&self) -> impl Iterator<Item = Relocation> + use<> {
        let table = |place: i64, size: i64| -> &'static [Relocation] {
            match (self.place::<Relocation>(place), self.entry(size)) {
                // SAFETY: the loader's table of a library that stays.
                (Some(start), Some(bytes)) => unsafe { slice::from_raw_parts(start, bytes as usize / size_of::<Relocation>()) },
                _ => &[],
            }
        };
        let tables = [table(DT_JMPREL, DT_PLTRELSZ), table(DT_RELA, DT_RELASZ)];
        tables.into_iter().flatten().copied().filter(|relocation| OF_FUNCTIONS.contains(&(relocation.info as u32)))
    }

    fn name_of(&self, relocation: Relocation) -> Option<&'static CStr> {
        let (symbols, strings) = (self.place::<Symbol>(DT_SYMTAB)?, self.place::<libc::c_char>(DT_STRTAB)?);
        // SAFETY: a relocation's symbol is in the table, its name in the strings.
        unsafe {
            let symbol = symbols.add((relocation.info >> 32) as usize).read();
            Some(CStr::from_ptr(strings.add(symbol.name as usize)))
        }
    }

    /// The names of the functions that it calls in others.
    pub(crate) fn imports(&self) -> impl Iterator<Item = &'static CStr> {
        self.relocations().filter_map(|relocation| self.name_of(relocation))
    }

    /// Has its calls of these functions go to ours. An entry is one aligned word: other threads find the old or the new one.
    pub(crate) fn redirect(&self, hooks: &[crate::door::Hook]) -> Result<(), String> {
        for relocation in self.relocations() {
            let hook = self.name_of(relocation).and_then(|name| hooks.iter().find(|(hooked, _)| *hooked == name));
            if let Some((_, ours)) = hook {
                let place = ptr::with_exposed_provenance_mut(self.base + relocation.offset as usize);
                write_protected(place, ours().addr()).map_err(|error| format!("its table of imports cannot be changed: {error}"))?;
            }
        }
        Ok(())
    }
}

/// Writes into a page that was made read-only when relocation had ended (RELRO), and leaves it so.
fn write_protected(place: *mut usize, value: usize) -> Result<(), std::io::Error> {
    // SAFETY: asks a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = place.map_addr(|address| address & !(page - 1)).cast::<c_void>();
    let protect = |how| {
        // SAFETY: a page of the library's data, which stays readable throughout.
        if unsafe { libc::mprotect(start, page, how) } == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    let was_writable = is_writable(place.addr());
    protect(libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: a word of the library's table of imports, aligned as the loader left it, and just made writable.
    unsafe { core::sync::atomic::AtomicUsize::from_ptr(place) }.store(value, core::sync::atomic::Ordering::Release);
    if was_writable { Ok(()) } else { protect(libc::PROT_READ) }
}

/// Whether a page may be written; the library may have other data in it.
fn is_writable(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let line = maps.lines().find(|line| {
        let ends = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |text: &str| usize::from_str_radix(text, 16).unwrap_or(0);
        ends.is_some_and(|(start, end)| (number(start)..number(end)).contains(&address))
    });
    // Unknown: left writable, which breaks nothing.
    line.is_none_or(|line| line.split(' ').nth(1).is_some_and(|rights| rights.as_bytes().get(1) == Some(&b'w')))
}

const _: () = assert!(mem::size_of::<Relocation>() == 24 && mem::size_of::<Symbol>() == 24);

/// The function of this name in what was loaded after us.
pub(crate) fn next(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a string, and the loader's own handle.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
