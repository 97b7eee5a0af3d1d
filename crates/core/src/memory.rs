//! Memory of the host that engines beyond the processor reach by themselves.
//!
//! A GPU copies texts from and to such memory without the processor's help, once its driver has been told of it, which takes longer than copying a text and is therefore done once. So
//! memory is known by its place: an engine that is given a text asks [`region`] whether it lies in [`HostMemory`], tells its driver when it sees a region for the first time, and
//! leaves there what it needs to see it again ([`Region::import`]). Who has texts to compute again and again, by an engine or in an [`OwnedOperation`](crate::OwnedOperation),
//! keeps them in [`HostMemory`]; no engine need be told. (A manager computes a borrowed operation on a copy, which lies there too.)
//!
//! The memory is there until every engine has let go of it: one whose device hangs, and may write to it still, keeps it for ever.

use crate::secret::wipe;
use core::cell::Cell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};

/// What regions begin and end at in bytes: a page, of which drivers take whole ones, at its largest on any host.
pub const PAGE: usize = 65_536;
/// From this size on an engine gains by reaching a text itself.
pub const WORTH_BYTES: usize = 256 << 10;
/// What is kept for the next who wants memory, of all sizes together.
const KEPT_BYTES: usize = 256 << 20;

/// What an engine knows of a region. When it is dropped the engine lets go.
pub trait Imported: Any + Send + Sync {
    /// Whether the engine's device does not answer and may still reach the memory, which then stays, and nobody else's.
    fn hangs(&self) -> bool;
}

/// By an engine's number, what it knows; nothing if it could not import the region.
type Imports = Vec<(u64, Option<Arc<dyn Imported>>)>;

/// Whether any of these engines' devices hangs.
fn hang(imports: &[(u64, Option<Arc<dyn Imported>>)]) -> bool {
    imports.iter().filter_map(|(_, imported)| imported.as_ref()).any(|imported| imported.hangs())
}

/// A lock that a fork may find held by a thread which the child does not have, and which will never let go of it there. So nobody waits for long: who cannot have it goes on without what it
/// guards.
struct Lock<T>(Mutex<T>);

/// How often it is tried, for some tenths of a millisecond in all. It is held for a moment, unless a driver is asked meanwhile, or it is held for ever.
const TRIES: usize = 10_000;

impl<T> Lock<T> {
    const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    fn enter(&self) -> Option<MutexGuard<'_, T>> {
        for _ in 0..TRIES {
            match self.0.try_lock() {
                Ok(guard) => return Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => core::hint::spin_loop(),
            }
        }
        None
    }
}

/// A piece of memory that does not move and stays until all who imported it have let go.
pub struct Region {
    address: usize,
    bytes: usize,
    /// `None` once the memory is given back.
    imports: Lock<Option<Imports>>,
}

impl Region {
    /// Where it begins: at a page.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Its length in bytes, of whole pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What the engine of that number, which no other has ([`importer`]), knows of it. At first sight it is asked, once. `None` where it cannot import it, or
    /// where the memory is given back already.
    pub fn import(&self, importer: u64, make: impl FnOnce(&Self) -> Option<Arc<dyn Imported>>) -> Option<Arc<dyn Imported>> {
        let mut imports = self.imports.enter()?;
        let imports = imports.as_mut()?;
        if let Some((_, known)) = imports.iter().find(|(number, _)| *number == importer) {
            return known.clone();
        }
        let made = make(self);
        IMPORTS.set(true);
        imports.push((importer, made.clone()));
        made
    }

    /// Whether a device may reach it that does not answer, for all that can be known.
    fn hangs(&self) -> bool {
        self.imports.enter().is_none_or(|imports| imports.as_deref().is_some_and(hang))
    }
}

thread_local! {
    static IMPORTS: Cell<bool> = const { Cell::new(false) };
}

/// An engine has been asked in this thread to [import](Region::import) a region since this was asked last. That takes long and is paid once for a region, so what it took together with is
/// no measure of an operation.
pub fn took_imports() -> bool {
    IMPORTS.take()
}

/// A number for an engine that imports.
pub fn importer() -> u64 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) as u64
}

/// All regions, by address.
static REGIONS: Lock<BTreeMap<usize, Weak<Region>>> = Lock::new(BTreeMap::new());

/// The region in which these bytes lie, all of them.
pub fn region(bytes: &[u8]) -> Option<Arc<Region>> {
    let (begin, len) = (bytes.as_ptr().addr(), bytes.len());
    let regions = REGIONS.enter()?;
    // One that is gone is still there if it could not be removed.
    let region = regions.range(..=begin).rev().find_map(|(_, region)| region.upgrade())?;
    (begin - region.address + len <= region.bytes).then_some(region)
}

/// Zeroed memory with its region.
struct Block {
    memory: Vec<u8>,
    /// Where in `memory` the region begins.
    at: usize,
    region: Arc<Region>,
}

impl Block {
    fn new(bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(PAGE);
        let memory = vec![0; bytes + PAGE - 1];
        // Devices get the address, of which the compiler knows nothing.
        let begin = memory.as_ptr().expose_provenance();
        let address = begin.next_multiple_of(PAGE);
        let at = address - begin;
        let region = Arc::new(Region { address, bytes, imports: Lock::new(Some(Imports::new())) });
        // What is not listed is copied.
        if let Some(mut regions) = REGIONS.enter() {
            regions.insert(region.address, Arc::downgrade(&region));
        }
        Self { memory, at, region }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(mut regions) = REGIONS.enter() {
            regions.remove(&self.region.address);
        }
        let imports = self.region.imports.enter().map(|mut imports| imports.take().unwrap_or_default());
        // Nor does memory go of which it cannot be known.
        if imports.as_deref().is_none_or(hang) {
            core::mem::forget((imports, core::mem::take(&mut self.memory)));
        }
    }
}

/// Blocks that are kept, all zeros, while somebody imports.
static POOL: Lock<Vec<Block>> = Lock::new(Vec::new());
/// How many do. It changes under the lock of `POOL`, if that can be had.
static IMPORTERS: AtomicUsize = AtomicUsize::new(0);

/// An engine that imports is there: as long as this lives, large [`SecretBytes`](crate::SecretBytes) lie in [`HostMemory`], which is kept for the next ones.
#[derive(Debug)]
pub struct Importing(());

impl Importing {
    /// From now on.
    pub fn begin() -> Self {
        let _pool = POOL.enter();
        IMPORTERS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Whether any engine does.
    pub(crate) fn is_there() -> bool {
        IMPORTERS.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Importing {
    fn drop(&mut self) {
        let mut pool = POOL.enter();
        let is_last = IMPORTERS.fetch_sub(1, Ordering::Relaxed) == 1;
        let unused = pool.as_deref_mut().filter(|_| is_last).map(core::mem::take);
        // Letting go takes a driver's time: not under the lock.
        drop(pool);
        drop(unused);
    }
}

/// Bytes that engines may reach by themselves, zeroed when made and when dropped.
pub struct HostMemory {
    /// There until it is dropped.
    block: Option<Block>,
    len: usize,
}

impl HostMemory {
    /// `len` zero bytes, from the beginning of a page on. While an engine imports, memory that others had is used again, up to twice as large as is needed.
    pub fn zeroed(len: usize) -> Self {
        let kept = POOL.enter().and_then(|mut pool| {
            let fits = |block: &Block| (len..=2 * len.max(PAGE)).contains(&block.region.bytes) && !block.region.hangs();
            pool.iter().position(fits).map(|found| pool.swap_remove(found))
        });
        Self { block: Some(kept.unwrap_or_else(|| Block::new(len))), len }
    }
}

impl Deref for HostMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| &block.memory[block.at..][..self.len])
    }
}

impl DerefMut for HostMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        let len = self.len;
        self.block.as_mut().map_or(&mut [], |block| &mut block.memory[block.at..][..len])
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        wipe(self);
        let Some(block) = self.block.take() else { return };
        let is_kept = block.region.bytes >= WORTH_BYTES && !block.region.hangs();
        let Some(mut pool) = POOL.enter() else { return };
        let kept: usize = pool.iter().map(|block| block.region.bytes).sum();
        if is_kept && Importing::is_there() && kept + block.region.bytes <= KEPT_BYTES {
            pool.push(block);
        } else {
            drop(pool);
            drop(block);
        }
    }
}

impl fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[host memory, {} bytes]", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::PoisonError;

    /// What a device was told; how often it was let go is counted.
    struct Told {
        hangs: bool,
        let_go: Arc<AtomicUsize>,
    }

    impl Imported for Told {
        fn hangs(&self) -> bool {
            self.hangs
        }
    }

    impl Drop for Told {
        fn drop(&mut self) {
            self.let_go.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Imports it and returns how often it was let go.
    fn tell(memory: &HostMemory, hangs: bool) -> Arc<AtomicUsize> {
        let let_go = Arc::new(AtomicUsize::new(0));
        region(memory).unwrap().import(importer(), |_| Some(Arc::new(Told { hangs, let_go: let_go.clone() })));
        let_go
    }

    /// One test at a time says whether anybody imports.
    static TURN: Mutex<()> = Mutex::new(());

    #[test]
    fn bytes_are_found_by_their_place_and_by_no_other() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        for len in [1, PAGE - 1, PAGE, PAGE + 1, 100_000] {
            let memory = HostMemory::zeroed(len);
            let found = region(&memory).expect("its own bytes");
            assert!(
                found.address() == memory.as_ptr().addr() && found.address().is_multiple_of(PAGE) && found.bytes().is_multiple_of(PAGE)
            );
            assert!(found.bytes() >= len && memory.iter().all(|byte| *byte == 0));
            assert!(region(&memory[len / 2..]).is_some_and(|other| Arc::ptr_eq(&other, &found)));
            drop(found);
            let address = memory.as_ptr().addr();
            drop(memory);
            assert!(!REGIONS.enter().unwrap().contains_key(&address));
        }
        assert!(region(&[0; 100]).is_none() && region(&vec![0; 1 << 20]).is_none());
    }

    #[test]
    fn whoever_imports_is_asked_once_and_lets_go_at_the_end() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = HostMemory::zeroed(5 * PAGE);
        let let_go = tell(&memory, false);
        let (mine, region) = (importer(), region(&memory).unwrap());
        assert!(region.import(mine, |region| (region.bytes() < 5 * PAGE).then(|| unreachable!())).is_none());
        assert!(region.import(mine, |_| unreachable!("it is known that there is nothing")).is_none());
        let mut asked = 0;
        let (other, told) = (importer(), Arc::new(Told { hangs: false, let_go: let_go.clone() }));
        for _ in 0..2 {
            let make = |_: &Region| {
                asked += 1;
                Some(told.clone() as Arc<dyn Imported>)
            };
            assert!(region.import(other, make).is_some());
        }
        drop((region, told));
        assert_eq!((asked, let_go.load(Ordering::Relaxed)), (1, 0));
        let kept = super::region(&memory).unwrap();
        drop(memory);
        assert_eq!(let_go.load(Ordering::Relaxed), 2);
        assert!(kept.import(importer(), |_| unreachable!("the memory is gone")).is_none());
    }

    #[test]
    fn what_a_device_that_hangs_may_reach_stays_and_nobody_gets_it() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        for importing in [None, Some(Importing::begin())] {
            let memory = HostMemory::zeroed(20 * PAGE);
            let (address, let_go) = (memory.as_ptr().addr(), tell(&memory, true));
            drop(memory);
            let others: Vec<_> = (0..50).map(|_| HostMemory::zeroed(20 * PAGE)).collect();
            assert!(others.iter().all(|other| other.as_ptr().addr() != address));
            drop((others, importing));
            assert_eq!(let_go.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn memory_is_kept_while_somebody_imports_and_comes_back_as_zeros() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let importing = Importing::begin();
        let mut memory = HostMemory::zeroed(7_000_000);
        memory.fill(1);
        let (address, let_go) = (memory.as_ptr().addr(), tell(&memory, false));
        drop(memory);
        assert_eq!(let_go.load(Ordering::Relaxed), 0, "it is kept as it is");
        let again = HostMemory::zeroed(6_999_000);
        assert!(again.as_ptr().addr() == address && again.iter().all(|byte| *byte == 0));
        let secret = crate::SecretBytes::from(&vec![3; 2 * WORTH_BYTES][..]);
        assert!(region(&secret).is_some() && secret.iter().all(|byte| *byte == 3) && secret == secret.clone());
        drop((again, secret, importing));
        assert_eq!(let_go.load(Ordering::Relaxed), 1);
        assert!(region(&crate::SecretBytes::zeroed(2 * WORTH_BYTES)).is_none(), "nobody imports any more");
    }

    /// As a fork finds them that comes while another thread holds them.
    #[test]
    fn locks_that_are_held_for_ever_keep_nobody_waiting() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let importing = Importing::begin();
        let before = crate::SecretBytes::zeroed(2 * WORTH_BYTES);
        assert!(region(&before).is_some());
        let held = (REGIONS.enter().unwrap(), POOL.enter().unwrap());
        let (mine, mut memory) = (Importing::begin(), HostMemory::zeroed(2 * WORTH_BYTES));
        memory.fill(1);
        assert!(region(&memory).is_none() && region(&before).is_none(), "they are copied");
        drop((before, memory, mine));
        drop(held);
        let memory = HostMemory::zeroed(2 * WORTH_BYTES);
        assert!(region(&memory).is_some(), "what was not removed is in nobody's way");
        drop((memory, importing));
    }

    /// As when another thread imported it just then: nobody can know what it was told, and what a device may reach stays.
    #[test]
    fn a_region_that_is_locked_for_ever_is_neither_imported_nor_freed() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = HostMemory::zeroed(3 * PAGE);
        let region = region(&memory).unwrap();
        let held = region.imports.enter().unwrap();
        assert!(region.import(importer(), |_| unreachable!("it is locked")).is_none() && region.hangs());
        drop(memory);
        drop(held);
    }
}
