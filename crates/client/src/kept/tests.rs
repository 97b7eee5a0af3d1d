use super::*;
use bywash_core::{Data, Direction, Error, Operation, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const GCM: Algorithm = Algorithm::Aes256Gcm;

/// Counts how often keys were expanded.
struct Counting {
    key: Vec<u8>,
    expanded: Arc<AtomicUsize>,
}

impl Solo for Counting {
    fn set_key(&mut self, key: &[u8]) -> Result<()> {
        if self.key != key {
            self.key = key.to_vec();
            self.expanded.fetch_add(1, Relaxed);
        }
        Ok(())
    }
    fn key(&self) -> Option<&[u8]> {
        Some(&self.key)
    }
    fn forget_key(&mut self) {
        self.key.clear();
    }
    fn start(&mut self, _: Direction, _: &[u8]) -> Result<()> {
        Err(Error::Authentication)
    }
    fn aad(&mut self, _: &[u8]) -> Result<()> {
        Err(Error::Authentication)
    }
    fn update(&mut self, _: Data<'_>) -> Result<()> {
        Err(Error::Authentication)
    }
    fn finish(&mut self, _: &mut [u8; 16]) -> Result<()> {
        Err(Error::Authentication)
    }
    fn chaining_value(&self) -> [u8; 16] {
        [0; 16]
    }
    fn run(&mut self, _: &mut Operation<'_>) -> Result<()> {
        Err(Error::Authentication)
    }
    fn duplicate(&self, _: Option<Box<dyn Solo>>) -> Box<dyn Solo> {
        unreachable!("nobody copies what is kept")
    }
}

fn key(number: u8) -> [u8; 32] {
    [number; 32]
}

fn tag(number: u8) -> Tag {
    Tag::of(GCM, &key(number))
}

/// A cipher with this key, and the count of expansions that it goes by.
fn keyed(number: u8, expanded: &Arc<AtomicUsize>) -> Box<dyn Solo> {
    Box::new(Counting { key: key(number).to_vec(), expanded: expanded.clone() })
}

#[test]
fn a_tag_is_of_the_whole_key_and_its_algorithm() {
    let all = |len: usize| (0..len).map(move |at| core::array::from_fn::<u8, 64, _>(|i| u8::from(i == at)));
    let mut tags: Vec<u64> = [16, 24, 32, 64].into_iter().flat_map(|len| all(len).map(move |key| Tag::of(GCM, &key[..len]).0)).collect();
    tags.extend([1, 7, 8, 9].map(|len| Tag::of(GCM, &[0; 9][..len]).0));
    tags.push(Tag::of(Algorithm::Aes128Gcm, &[0; 16]).0);
    tags.push(Tag::of(Algorithm::Aes128Ctr, &[0; 16]).0);
    let count = tags.len();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), count);
    assert_eq!(tag(7), tag(7));
}

#[test]
fn what_is_kept_is_found_by_its_key_and_not_twice() {
    let (mut kept, expanded) = (Kept::new(), Arc::default());
    assert!(kept.keep_at(0, GCM, tag(1), keyed(1, &expanded), 4).is_none());
    assert!(kept.take_at(0, GCM, tag(2), &key(2)).is_none());
    assert!(kept.take_at(0, Algorithm::Aes128Gcm, tag(1), &key(1)).is_none(), "another algorithm's");
    let found = kept.take_at(0, GCM, tag(1), &key(1)).unwrap();
    assert_eq!((found.key(), expanded.load(Relaxed)), (Some(&key(1)[..]), 0), "nothing is expanded");
    assert!(kept.take_at(0, GCM, tag(1), &key(1)).is_none() && kept.is_empty());
}

#[test]
fn a_key_of_the_same_tag_is_expanded() {
    let (mut kept, expanded) = (Kept::new(), Arc::default());
    kept.keep_at(0, GCM, tag(1), keyed(1, &expanded), 4);
    let found = kept.take_at(0, GCM, tag(1), &key(2)).unwrap();
    assert_eq!((found.key(), expanded.load(Relaxed)), (Some(&key(2)[..]), 1));
}

#[test]
fn the_least_recently_used_goes() {
    let (mut kept, expanded) = (Kept::new(), Arc::default());
    for number in 0..4 {
        assert!(kept.keep_at(0, GCM, tag(number), keyed(number, &expanded), 4).is_none());
    }
    let first = kept.take_at(0, GCM, tag(0), &key(0)).unwrap();
    assert!(kept.keep_at(0, GCM, tag(0), first, 4).is_none());
    let (_, gone) = kept.keep_at(0, GCM, tag(9), keyed(9, &expanded), 4).unwrap();
    assert_eq!((gone.key(), kept.len()), (Some(&key(1)[..]), 4));
    // A lower bound holds at once; with none nothing is kept.
    assert_eq!(kept.keep_at(0, GCM, tag(8), keyed(8, &expanded), 2).unwrap().1.key(), Some(&key(0)[..]));
    assert_eq!(kept.len(), 2);
    assert_eq!(kept.keep_at(0, GCM, tag(7), keyed(7, &expanded), 0).unwrap().1.key(), Some(&key(7)[..]));
    // Each that is held has the count of expansions.
    drop((gone, kept));
    assert_eq!(Arc::strong_count(&expanded), 1, "the table has wiped what it had");
}

#[test]
fn what_nobody_used_for_a_second_goes_when_the_table_is_asked() {
    let (mut kept, expanded) = (Kept::new(), Arc::default());
    kept.keep_at(10_000, GCM, tag(1), keyed(1, &expanded), 4);
    kept.keep_at(10_600, GCM, tag(2), keyed(2, &expanded), 4);
    assert!(kept.take_at(11_000, GCM, tag(3), &key(3)).is_none());
    assert_eq!((kept.len(), Arc::strong_count(&expanded)), (1, 2));
    assert!(kept.take_at(11_599, GCM, tag(2), &key(2)).is_some());
    kept.keep_at(11_700, GCM, tag(2), keyed(2, &expanded), 4);
    assert!(kept.take_at(12_700, GCM, tag(2), &key(2)).is_none(), "it was there, and too old");
}

#[test]
fn a_key_that_comes_again_soon_is_told_from_one_that_does_not() {
    let noted = |seen: &mut Seen, at: u64, number: u64| seen.note_at(|| at, Tag(number << 48), 8);
    let mut seen = Seen::new();
    assert!(!noted(&mut seen, 0, 1) && noted(&mut seen, 1, 1), "at its second time");
    assert!((2..10).all(|number| !noted(&mut seen, 2, number)) && noted(&mut seen, 3, 1), "eight others were there since");
    assert!((10..26).all(|number| !noted(&mut seen, 4, number)) && !noted(&mut seen, 5, 1), "and sixteen");
    let mut seen = Seen::new();
    assert!(!noted(&mut seen, 0, 1) && noted(&mut seen, 999, 1) && !noted(&mut seen, 1000, 1), "a second has gone by");
    assert!((0..9).any(|_| noted(&mut seen, 1000, 1)), "it does come again");
    // What is overwritten takes no younger time than its own.
    let mut seen = Seen::new();
    assert!((1..=16).all(|number| !noted(&mut seen, 0, number)) && !noted(&mut seen, 5000, 17) && !noted(&mut seen, 5000, 2));
    assert!(!Seen::new().note_at(|| 0, Tag(0), 8), "nothing is not a key");
    assert!(!Seen::new().note_at(|| 0, tag(1), 0));
    // A turn of more keys than are remembered is never taken for a return.
    let mut seen = Seen::new();
    assert!((0..170).all(|turn| !noted(&mut seen, 0, turn % 17 + 1)));
}

#[test]
fn what_goes_says_of_what_algorithm_it_is() {
    let (mut kept, expanded) = (Kept::new(), Arc::default());
    kept.keep_at(0, Algorithm::Aes128Gcm, tag(1), keyed(1, &expanded), 1);
    let (algorithm, _) = kept.keep_at(0, GCM, tag(2), keyed(2, &expanded), 1).unwrap();
    assert_eq!(algorithm, Algorithm::Aes128Gcm);
}
