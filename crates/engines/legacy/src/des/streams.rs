//! CBC encryption of many streams side by side, each with a key of its own.
//!
//! A stream's blocks wait for each other; those of different streams do not. Each stream has a lane, one bit of every slice, and a lane
//! whose stream ends takes the next. Keys are slices too: they are transposed anew when a lane changes its stream.

use super::kernel::{Keys, Stage, group, transpose};
use super::{BLOCK, Direction, StreamKey};
use crate::cipher::assert_whole;
use crate::modes::Cbc;
use crate::word::{Word, Ymm, Zmm};
use zeroize::Zeroizing;

/// A message to be encrypted in CBC mode.
pub struct Stream<'s, K> {
    /// Its key.
    pub key: &'s K,
    /// Before: the initialisation vector. After: the last block of ciphertext, which the rest of the message goes on from.
    pub chained: [u8; 8],
    /// Whole blocks, encrypted in place.
    pub data: &'s mut [u8],
}

/// Lanes of the widest form.
const LANES_MAX: usize = 64 * Zmm::LANES;

/// Streams that take less time one after the other than side by side.
const ALONE_MAX: usize = 13;

/// Encrypts all streams. It takes as long for 14 as for 256 of the same length, twice as long for 512; more are taken up as others end, the longest best first.
///
/// Panics unless each stream has a whole number of blocks.
pub fn encrypt_cbc_streams<K: StreamKey>(streams: &mut [Stream<'_, K>]) {
    for stream in streams.iter() {
        assert_whole(stream.data, BLOCK);
    }
    let Some(any) = streams.first() else { return };
    let width = match any.key.form().is_vector() {
        false => Width::Plain,
        true if streams.len() <= 64 * Ymm::LANES => Width::Half,
        true => Width::Whole,
    };
    let mut batch = Batch::new(width, any.key.passes().map(|(_, direction)| direction));
    let mut waiting = (0..streams.len()).filter(|stream| !streams[*stream].data.is_empty()).collect::<Vec<_>>().into_iter();
    loop {
        batch.fill(streams, &mut waiting);
        if batch.busy.len() <= ALONE_MAX {
            return batch.busy.iter().for_each(|lane| lane.go_on_alone(&mut streams[lane.stream], &batch.chained));
        }
        let Some(blocks) = batch.busy.iter().map(|lane| (streams[lane.stream].data.len() - lane.done) / BLOCK).min() else { return };
        for first in (0..blocks).step_by(STEPS) {
            batch.advance(streams, STEPS.min(blocks - first));
        }
        batch.release(streams);
    }
}

/// Key bits of all lanes: slice `i` at `i` times the lanes of 64 bits.
type Slices = [u64; 64 * Zmm::LANES];

/// The keys of all lanes for one pass: as numbers, one a lane, and as slices.
struct LaneKeys {
    numbers: Zeroizing<[u64; LANES_MAX]>,
    slices: Zeroizing<Slices>,
    direction: Direction,
}

impl LaneKeys {
    #[inline(always)]
    fn slice_up<W: Word>(&mut self) {
        let mut rows = [W::splat(0); 64];
        for (row, lanes) in rows.iter_mut().zip(self.numbers.chunks_exact(W::LANES)) {
            *row = W::load_lanes(lanes);
        }
        transpose(&mut rows);
        for (row, lanes) in rows.iter().zip(self.slices.chunks_exact_mut(W::LANES)) {
            row.store_lanes(lanes);
        }
    }
}

impl<W: Word> Keys<W> for Slices {
    #[inline(always)]
    fn slice(&self, bit: u8) -> W {
        W::load_lanes(&self[usize::from(bit & 63) * W::LANES..])
    }
}

/// A lane at work.
struct Lane {
    /// Place among the lanes.
    lane: usize,
    stream: usize,
    /// Bytes done.
    done: usize,
}

impl Lane {
    fn go_on_alone<K: StreamKey>(&self, stream: &mut Stream<'_, K>, chained: &Row) {
        let mut message = Cbc::new(&chained[self.lane]);
        message.encrypt(stream.key, &mut stream.data[self.done..]);
        stream.chained = *message.chained().first_chunk().expect("a block is shorter");
    }
}

/// A block of each lane.
type Row = [[u8; BLOCK]; LANES_MAX];

/// Blocks of each stream that are gathered at a time: a line of the cache.
const STEPS: usize = 8;

/// The lanes and what they work on.
struct Batch {
    width: Width,
    lanes: usize,
    keys: Vec<LaneKeys>,
    free: Vec<usize>,
    busy: Vec<Lane>,
    chained: Row,
    rows: Vec<Row>,
}

impl Batch {
    fn new(width: Width, directions: impl Iterator<Item = Direction>) -> Self {
        let lanes = 64 * width.lanes();
        let new = |direction| LaneKeys { numbers: [0; LANES_MAX].into(), slices: [0; 64 * Zmm::LANES].into(), direction };
        Self {
            width,
            lanes,
            keys: directions.map(new).collect(),
            free: (0..lanes).rev().collect(),
            busy: Vec::with_capacity(lanes),
            chained: [[0; BLOCK]; LANES_MAX],
            rows: vec![[[0; BLOCK]; LANES_MAX]; STEPS],
        }
    }

    /// Gives free lanes to streams that wait.
    fn fill<K: StreamKey>(&mut self, streams: &[Stream<'_, K>], waiting: &mut impl Iterator<Item = usize>) {
        let before = self.busy.len();
        while !self.free.is_empty()
            && let Some(stream) = waiting.next()
        {
            let lane = self.free.pop().expect("not empty");
            for (keys, (key, _)) in self.keys.iter_mut().zip(streams[stream].key.passes()) {
                keys.numbers[lane] = u64::from_le_bytes(*key);
            }
            self.chained[lane] = streams[stream].chained;
            self.busy.push(Lane { lane, stream, done: 0 });
        }
        if self.busy.len() != before {
            self.keys.iter_mut().for_each(|keys| self.width.slice_up(keys));
        }
    }

    /// So many blocks of each stream at work, at most [`STEPS`].
    fn advance<K: StreamKey>(&mut self, streams: &mut [Stream<'_, K>], steps: usize) {
        let rows = &mut self.rows[..steps];
        for Lane { lane, stream, done } in &self.busy {
            let (blocks, _) = streams[*stream].data[*done..][..BLOCK * steps].as_chunks();
            for (row, block) in rows.iter_mut().zip(blocks) {
                row[*lane] = *block;
            }
        }
        let stages: Vec<Stage<'_, Slices>> = self.keys.iter().map(|keys| (&*keys.slices, keys.direction)).collect();
        for row in rows.iter_mut() {
            for (byte, chained) in row.as_flattened_mut().iter_mut().zip(self.chained.as_flattened()) {
                *byte ^= chained;
            }
            self.width.encrypt(&stages, &mut row.as_flattened_mut()[..BLOCK * self.lanes]);
            self.chained = *row;
        }
        for Lane { lane, stream, done } in &mut self.busy {
            let (blocks, _) = streams[*stream].data[*done..][..BLOCK * steps].as_chunks_mut();
            for (row, block) in rows.iter().zip(blocks) {
                *block = row[*lane];
            }
            *done += BLOCK * steps;
        }
    }

    /// Takes back the lanes of streams that are done.
    fn release<K: StreamKey>(&mut self, streams: &mut [Stream<'_, K>]) {
        self.busy.retain(|Lane { lane, stream, done }| {
            let stream = &mut streams[*stream];
            let goes_on = *done < stream.data.len();
            if !goes_on {
                stream.chained = self.chained[*lane];
                self.free.push(*lane);
            }
            goes_on
        });
    }
}

/// The registers that are used. Those of vectors are chosen only where the processor has been asked.
#[derive(Clone, Copy)]
enum Width {
    Plain,
    Half,
    Whole,
}

impl Width {
    fn lanes(self) -> usize {
        match self {
            Width::Plain => u64::LANES,
            Width::Half => Ymm::LANES,
            Width::Whole => Zmm::LANES,
        }
    }

    fn slice_up(self, keys: &mut LaneKeys) {
        match self {
            Width::Plain => keys.slice_up::<u64>(),
            // SAFETY: as the type says.
            Width::Half => unsafe { slice_up_avx512::<Ymm>(keys) },
            // SAFETY: as the type says.
            Width::Whole => unsafe { slice_up_avx512::<Zmm>(keys) },
        }
    }

    fn encrypt(self, stages: &[Stage<'_, Slices>], blocks: &mut [u8]) {
        match self {
            Width::Plain => group::<u64, Slices>(stages, blocks),
            // SAFETY: as the type says.
            Width::Half => unsafe { encrypt_avx512::<Ymm>(stages, blocks) },
            // SAFETY: as the type says.
            Width::Whole => unsafe { encrypt_avx512::<Zmm>(stages, blocks) },
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn slice_up_avx512<W: Word>(keys: &mut LaneKeys) {
    keys.slice_up::<W>();
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn encrypt_avx512<W: Word>(stages: &[Stage<'_, Slices>], blocks: &mut [u8]) {
    group::<W, Slices>(stages, blocks);
}
