//! Fills a stream's buffers: records, keys once each, and the stages in which kernels run.

use crate::device::{Kernel, Launch, Layout, Lies, Step, Stream, Transfer, WINDOWS_MAX, Windows};
use crate::host::ghash::{ITEMS, LEVEL_WORDS, LEVELS};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Words of a record; its places are named in `kernels/record.h` and `kernels/tree.h`.
const RECORD: usize = 16;
const SOURCE: usize = 2;
const TARGET: usize = 3;
const BLOCKS: usize = 4;
const KEYS: usize = 5;
/// A hash's record has the bytes of its text where a cipher's has the rounds.
const ROUNDS_OR_BYTES: usize = 6;
const FLAGS: usize = 7;
const COUNTER: usize = 8;
const TWEAKS: usize = 12;
/// Of GHASH's record of a text.
const TABLE: usize = 8;
const FROM_OUTPUT: u32 = 1;
const OF_TEXT: u32 = 2;
/// Of a cipher's record: GCM's counter.
pub(crate) const COUNTER_OF_32_BITS: u32 = 1;

/// When kernels run. What is deciphered is summed before, for it may be replaced; what is enciphered afterwards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Before,
    Cipher,
    Level(usize),
}

/// How a cipher's part is computed.
pub(crate) struct CipherRecord {
    pub(crate) kernel: Kernel,
    /// Where its keys are ([`Filling::keys`]).
    pub(crate) keys: u32,
    pub(crate) rounds: u32,
    pub(crate) flags: u32,
    /// Counter, most significant word first; ChaCha20's in the first.
    pub(crate) counter: [u32; 4],
    /// Where its tweaks are.
    pub(crate) tweaks: u32,
}

/// A stream being filled.
pub(crate) struct Filling {
    layout: Layout,
    /// Most bytes of text.
    share: usize,
    stages: BTreeMap<(Stage, Kernel, Windows), Vec<[u32; RECORD]>>,
    windows: BTreeSet<Windows>,
    records: usize,
    /// Words of the control buffer that keys and tweaks take, from its front.
    used: usize,
    known: HashMap<u64, u32>,
    text: usize,
    inputs: Vec<Transfer>,
    outputs: Vec<Transfer>,
    parts: usize,
    scratch: usize,
}

/// Adds bytes to those that are to be copied; what is staged side by side goes together.
fn transfer(to: &mut Vec<Transfer>, at: usize, bytes: usize, host: Lies) {
    match to.last_mut() {
        Some(last) if host == Lies::Staged && last.host == host && last.at + last.bytes.next_multiple_of(16) == at => {
            last.bytes = at + bytes - last.at;
        }
        _ => to.push(Transfer { at, bytes, host }),
    }
}

/// Where a part lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Its text's offset in the stream's input and output, in bytes.
    pub(crate) text: usize,
    /// Where kernels read and write it, and its offsets there: the same, but for memory in which they work.
    windows: Windows,
    source: usize,
    target: usize,
    /// Its sum's offset in the output, in bytes.
    pub(crate) sum: usize,
}

impl Filling {
    /// No more than `share` bytes of text, a multiple of 4096, go into it.
    pub(crate) fn new(layout: Layout, share: usize) -> Self {
        let share = share.min(layout.text);
        let scratch = layout.scratch() / 16;
        Self {
            layout,
            share,
            stages: BTreeMap::new(),
            windows: BTreeSet::new(),
            records: 0,
            used: 0,
            known: HashMap::new(),
            text: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            parts: 0,
            scratch,
        }
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts == 0
    }

    /// How many bytes of a text of `wanted` it still takes, with `words` more in the control buffer; 0 if it is full. All but the last part of
    /// a text are multiples of 4096 bytes.
    pub(crate) fn room(&self, wanted: usize, words: usize) -> usize {
        // Of every part: a cipher's record and one of each level's sums, and the tweaks of its text.
        let control = self.used + RECORD * (self.records + LEVELS + 1) + words + 16 + wanted.min(self.layout.text) / 1024 + 4;
        let scratch = self.scratch + self.layout.text.min(wanted) / 16 / 7 + 4 * LEVELS;
        if self.parts == self.layout.parts || control > self.layout.control || scratch > self.layout.output() / 16 {
            return 0;
        }
        let left = self.share - self.text;
        if wanted <= left { wanted } else { left & !4095 }
    }

    /// Takes place for so many bytes of text, which [`room`](Self::room) allowed, and which lie there on the host before and afterwards.
    pub(crate) fn place(&mut self, bytes: usize, from: Lies, to: Lies) -> Place {
        let mut place = Place {
            text: self.text,
            windows: Windows::default(),
            source: self.text,
            target: self.text,
            sum: self.layout.sums() + 32 * self.parts,
        };
        // Kernels read and write whole blocks. What they read beyond a text is of the same region, which has whole pages, and goes nowhere: ciphers are copied as far as the text goes, and sums
        // leave it out.
        if let Lies::Imported { handle, offset, computes: true } = from
            && offset.is_multiple_of(16)
        {
            (place.windows.from, place.source) = (Some(handle), offset);
        }
        if let Lies::Imported { handle, offset, computes: true } = to
            && offset.is_multiple_of(16)
            && bytes.is_multiple_of(16)
        {
            (place.windows.to, place.target) = (Some(handle), offset);
        }
        if self.windows.len() < WINDOWS_MAX {
            self.windows.insert(place.windows);
        }
        if !self.windows.contains(&place.windows) {
            place = Place { windows: Windows::default(), source: place.text, target: place.text, ..place };
        }
        if place.windows.from.is_none() {
            transfer(&mut self.inputs, self.text, bytes, from);
        }
        if place.windows.to.is_none() {
            transfer(&mut self.outputs, self.text, bytes, to);
        }
        self.text += bytes.next_multiple_of(16);
        self.parts += 1;
        place
    }

    /// Puts words into the control buffer and says where.
    pub(crate) fn words(&mut self, stream: &mut dyn Stream, words: &[u32]) -> u32 {
        let at = self.used;
        stream.control()[at..at + words.len()].copy_from_slice(words);
        // Whatever is put here may be read four words at a time.
        self.used += words.len().next_multiple_of(4);
        at as u32
    }

    /// The same for what a session has for all its operations, once.
    pub(crate) fn keys(&mut self, stream: &mut dyn Stream, session: u64, words: &[u32]) -> u32 {
        if let Some(&at) = self.known.get(&session) {
            return at;
        }
        let at = self.words(stream, words);
        self.known.insert(session, at);
        at
    }

    /// Enciphers or deciphers a part.
    pub(crate) fn cipher(&mut self, place: Place, bytes: usize, cipher: &CipherRecord) {
        let blocks = bytes.div_ceil(16);
        let blocks_of_a_lane = if cipher.kernel == Kernel::ChaCha20 { 4 } else { 8 };
        let mut record = [0; RECORD];
        record[SOURCE] = (place.source / 16) as u32;
        record[TARGET] = (place.target / 16) as u32;
        record[BLOCKS] = blocks as u32;
        record[KEYS] = cipher.keys;
        record[ROUNDS_OR_BYTES] = cipher.rounds;
        record[FLAGS] = cipher.flags;
        record[COUNTER..COUNTER + 4].copy_from_slice(&cipher.counter);
        record[TWEAKS] = cipher.tweaks;
        self.push((Stage::Cipher, cipher.kernel, place.windows), record, blocks.div_ceil(blocks_of_a_lane));
    }

    /// Sums a part's text, which is the input if it is `deciphered`. `factors` says where the key's powers are, `width` how many words one has; behind GHASH's are those of its text.
    pub(crate) fn sum(&mut self, place: Place, bytes: usize, kernel: Kernel, deciphered: bool, factors: u32, width: u32) {
        let blocks_of_a_sum = if kernel == Kernel::Poly1305 { 2 } else { 1 };
        let (mut items, mut source) = (bytes.div_ceil(16), if deciphered { place.source } else { place.target } / 16);
        let mut windows = place.windows;
        for level in 0..LEVELS {
            let lanes = items.div_ceil(ITEMS);
            let target = if lanes == 1 { place.sum / 16 } else { self.scratch };
            if lanes > 1 {
                self.scratch += blocks_of_a_sum * lanes;
            }
            let mut record = [0; RECORD];
            record[SOURCE] = source as u32;
            record[TARGET] = target as u32;
            record[BLOCKS] = items as u32;
            record[KEYS] = factors + width * level as u32;
            let stage = if level == 0 && deciphered { Stage::Before } else { Stage::Level(level) };
            if level == 0 {
                record[ROUNDS_OR_BYTES] = bytes as u32;
                record[FLAGS] = OF_TEXT | if deciphered { 0 } else { FROM_OUTPUT };
                record[TABLE] = factors + LEVEL_WORDS as u32;
            }
            self.push((stage, kernel, windows), record, lanes);
            if lanes == 1 {
                break;
            }
            (items, source, windows) = (lanes, target, Windows::default());
        }
    }

    fn push(&mut self, step: (Stage, Kernel, Windows), mut record: [u32; RECORD], lanes: usize) {
        let records = self.stages.entry(step).or_default();
        record[0] = records.last().map_or(0, |last| last[0] + last[1]);
        record[1] = lanes as u32;
        records.push(record);
        self.records += 1;
    }

    /// Writes the records and says what is to be run.
    pub(crate) fn launch(&mut self, stream: &mut dyn Stream) -> Launch {
        let mut steps: Vec<Step> = Vec::with_capacity(self.stages.len());
        let (mut at, mut last) = (self.used, None);
        for (&(stage, kernel, windows), records) in &self.stages {
            let words = records.as_flattened();
            stream.control()[at..at + words.len()].copy_from_slice(words);
            let lanes = records.last().map_or(0, |last| last[0] + last[1]);
            let after = last.is_some_and(|last| last != stage);
            steps.push(Step { kernel, records: at as u32, count: records.len() as u32, lanes, after, windows });
            (at, last) = (at + words.len(), Some(stage));
        }
        let sums = self.layout.sums()..self.layout.sums() + 32 * self.parts;
        let (inputs, outputs) = (core::mem::take(&mut self.inputs), core::mem::take(&mut self.outputs));
        Launch { control: at, text: self.text, inputs, outputs, sums, scratch: self.layout.scratch()..16 * self.scratch, steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_work_where_texts_lie_if_they_can() {
        let lies = |handle: u64, offset: usize, computes: bool| Lies::Imported { handle, offset, computes };
        for (from, to, bytes, copies) in [
            (lies(1, 32, true), lies(2, 48, true), 64, [0, 0]),
            (lies(1, 32, true), lies(1, 32, true), 64, [0, 0]),
            (lies(1, 33, true), lies(2, 40, true), 64, [1, 1]),
            // The last block of the output may be another's in part.
            (lies(1, 32, true), lies(2, 48, true), 65, [0, 1]),
            (lies(1, 32, false), lies(2, 48, false), 64, [1, 1]),
            (Lies::Staged, lies(2, 48, true), 64, [1, 0]),
        ] {
            let mut filling = Filling::new(Layout::new(1 << 20), 1 << 20);
            let place = filling.place(bytes, from, to);
            assert_eq!([filling.inputs.len(), filling.outputs.len()], copies, "{from:?} {to:?} {bytes}");
            let at = |lies: Lies, copies: usize| match lies {
                Lies::Imported { offset, .. } if copies == 0 => offset,
                _ => place.text,
            };
            assert_eq!([place.source, place.target], [at(from, copies[0]), at(to, copies[1])]);
        }
    }

    #[test]
    fn what_has_no_window_is_copied() {
        let mut filling = Filling::new(Layout::new(1 << 20), 1 << 20);
        for handle in 0..WINDOWS_MAX as u64 + 6 {
            let lies = Lies::Imported { handle, offset: 0, computes: true };
            filling.place(64, lies, lies);
        }
        assert_eq!([filling.inputs.len(), filling.outputs.len()], [6, 6]);
        let known = Lies::Imported { handle: 0, offset: 64, computes: true };
        assert_eq!(filling.place(64, known, known).source, 64, "a window that is open serves others");
    }
}
