//! What a back end is to the rest of the engine: streams, each with its own memory, that run prepared launches.

use bywash_core::memory::{Imported, Region};
use core::ops::Range;
use core::time::Duration;
use std::sync::Barrier;
use std::time::Instant;

/// A kernel; its text is the file of `src/kernels` named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kernel {
    /// `ghash_lane.h`
    Ghash,
    /// `poly_lane.h`
    Poly1305,
    /// `ctr.h`
    Ctr,
    /// `xts.h`
    XtsEncrypt,
    /// `xts.h`
    XtsDecrypt,
    /// `chacha_lane.h`
    ChaCha20,
}

impl Kernel {
    /// Each, in the order of its number.
    pub(crate) const ALL: [Self; 6] = [Self::Ghash, Self::Poly1305, Self::Ctr, Self::XtsEncrypt, Self::XtsDecrypt, Self::ChaCha20];

    /// Whether it is no sum.
    pub(crate) fn is_cipher(self) -> bool {
        !matches!(self, Self::Ghash | Self::Poly1305)
    }

    /// Its number.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// One kernel over all its records of a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) kernel: Kernel,
    /// Where its records begin in the control buffer, in words.
    pub(crate) records: u32,
    /// How many there are.
    pub(crate) count: u32,
    /// Lanes of them all.
    pub(crate) lanes: u32,
    /// Whether it must see what the steps before it wrote.
    pub(crate) after: bool,
    /// Where its texts lie.
    pub(crate) windows: Windows,
}

/// The memory of the host in which a step's kernels read and write texts, by its handles; `None`: in the stream's buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Windows {
    pub(crate) from: Option<u64>,
    pub(crate) to: Option<u64>,
}

/// A launch has no more different ones.
pub(crate) const WINDOWS_MAX: usize = 64;

/// Where a text lies on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lies {
    /// In a stream's buffer, to which the processor copies it, or from which it takes it.
    Staged,
    /// In memory that was imported, so many bytes from its beginning; `computes`: see [`Window`].
    Imported { handle: u64, offset: usize, computes: bool },
}

/// Bytes of text that go to the device or come from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// Their offset in the input or the output buffer.
    pub(crate) at: usize,
    pub(crate) bytes: usize,
    pub(crate) host: Lies,
}

/// Memory of the host that a device reaches by itself, as long as this lives: what a region keeps of it.
pub(crate) struct Window {
    /// What the device's streams know it by.
    pub(crate) handle: u64,
    /// Whether kernels can work in it, so that nothing is copied.
    pub(crate) computes: bool,
    /// What the back end holds of it.
    pub(crate) hold: Box<dyn Imported>,
}

impl Imported for Window {
    fn hangs(&self) -> bool {
        self.hold.hangs()
    }
}

/// What a stream is to do with what lies in its buffers.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// Words of the control buffer in use; zeroed, on the device too, when the launch is over, for there are keys among them.
    pub(crate) control: usize,
    /// Bytes of text in the input buffer, and in the output buffer afterwards.
    pub(crate) text: usize,
    /// How they come into the input buffer, but for those that kernels read where they are.
    pub(crate) inputs: Vec<Transfer>,
    /// How they leave the output buffer, likewise.
    pub(crate) outputs: Vec<Transfer>,
    /// Bytes of the output buffer with the sums.
    pub(crate) sums: Range<usize>,
    /// Bytes of the output buffer with the sums of lower levels, which nobody reads afterwards.
    pub(crate) scratch: Range<usize>,
    pub(crate) steps: Vec<Step>,
}

impl Launch {
    /// What a stream is at when it has begun this. A launch that reaches memory of others is waited for until it ends, however long that takes: nobody may have that memory
    /// back before. Others are told that it is [late](Waited::Late).
    pub(crate) fn under_way(&self) -> UnderWay {
        let copies = self.inputs.iter().chain(&self.outputs).any(|transfer| transfer.host != Lies::Staged);
        let imported = copies || self.steps.iter().any(|step| step.windows != Windows::default());
        UnderWay { control: self.control, bound: bound(self.text), must_end: imported }
    }
}

/// How long what goes over so many bytes may take; one that takes longer, it is to be feared, never ends: then the device hangs.
pub(crate) fn bound(bytes: usize) -> Duration {
    Duration::from_secs(10) + Duration::from_micros(bytes as u64)
}

/// What a stream is at.
#[derive(Clone, Copy)]
pub(crate) struct UnderWay {
    /// Words of the control buffer to be wiped when it has ended.
    pub(crate) control: usize,
    /// How long it may take.
    pub(crate) bound: Duration,
    /// Whether it is waited for until it ends, though the device hangs.
    pub(crate) must_end: bool,
}

impl UnderWay {
    /// What leaves so many words of the control buffer to be wiped and goes over so many bytes.
    pub(crate) fn over(control: usize, bytes: usize) -> Self {
        Self { control, bound: bound(bytes), must_end: false }
    }
}

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Nothing is under way any more.
    Ended,
    /// What [must end](UnderWay::must_end) took longer than it may. It is to be waited for again.
    Late,
}

/// How a stream's buffers are laid out; the same for all streams of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Bytes of text.
    pub(crate) text: usize,
    /// Operations, or parts of them, in one launch.
    pub(crate) parts: usize,
    /// Words of the control buffer.
    pub(crate) control: usize,
}

impl Layout {
    /// For so many bytes of text, a multiple of 4096.
    pub(crate) const fn new(text: usize) -> Self {
        Self { text, parts: 4096, control: text / 16 + (1 << 17) }
    }

    /// Bytes of the output buffer: text, two blocks of sum for each part, and the sums between: a fifteenth of the text's blocks,
    /// twice that for Poly1305, and two blocks a level where texts are short.
    pub(crate) const fn output(&self) -> usize {
        self.text + self.parts * 32 + self.text / 7 + self.parts * 64
    }

    /// Where sums begin in the output buffer, in bytes.
    pub(crate) const fn sums(&self) -> usize {
        self.text
    }

    /// Where the sums of lower levels begin.
    pub(crate) const fn scratch(&self) -> usize {
        self.text + self.parts * 32
    }
}

/// A GPU, or what stands in for one.
pub(crate) trait Device: Send + Sync {
    /// One line: what it is, by which interface.
    fn describe(&self) -> String;

    /// Its streams' buffers.
    fn layout(&self) -> Layout;

    /// Bitwise instructions and bytes of memory that it can do in a second, where it is known.
    fn limits(&self) -> Option<(f64, f64)> {
        None
    }

    /// How many streams it gains from.
    fn streams(&self) -> usize;

    /// Whether it imports memory of the host.
    fn imports(&self) -> bool {
        false
    }

    /// Opens a window on a region, which stays where it is as long as the window lives or the device [hangs](Imported::hangs). `None` where that cannot be.
    fn import(&self, region: &Region) -> Option<Window> {
        let _ = region;
        None
    }

    /// A new stream.
    ///
    /// # Errors
    /// In words, if memory or the device is gone.
    fn stream(&self) -> Result<Box<dyn Stream>, String>;
}

/// One launch at a time, with memory of its own.
pub(crate) trait Stream: Send {
    /// Records, keys, tweaks.
    fn control(&mut self) -> &mut [u32];

    /// Text.
    fn input(&mut self) -> &mut [u8];

    /// Text and sums, once [`wait`](Self::wait) has returned. Whoever takes the sums wipes them: with the texts, which others may know, they reveal the key of a hash.
    fn output(&mut self) -> &mut [u8];

    /// Starts.
    fn start(&mut self, launch: &Launch) -> Result<(), String>;

    /// Waits for the end of what was started, no longer than its [bound](UnderWay::bound). After an error the stream is not used again.
    fn wait(&mut self) -> Result<Waited, String>;

    /// Runs the kernels of a launch so many times over what lies in the device's memory, without copies, and says from when to when that was: what a benchmark
    /// wants to know. It begins once all streams that run `together` have their text on the device. Keys are wiped afterwards.
    fn resident(&mut self, launch: &Launch, times: u32, together: &Barrier) -> Result<Range<Instant>, String>;

    /// Starts copying all of the input buffer's text to the device, or of the output buffer's from it, so many times: what a benchmark measures the rest by.
    fn start_copies(&mut self, inward: bool, times: u32) -> Result<(), String>;

    /// What the device's own copies of the control and the output buffer hold.
    #[cfg(test)]
    fn device_memory(&mut self) -> (Vec<u32>, Vec<u8>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_memory_of_others_is_waited_for_until_it_ends() {
        let transfer = |host: Lies| Transfer { at: 0, bytes: 16, host };
        let launch = |from: Lies, to: Lies| {
            let (inputs, outputs) = (vec![transfer(Lies::Staged), transfer(from)], vec![transfer(to)]);
            Launch { control: 7, text: 32, inputs, outputs, sums: 0..0, scratch: 0..0, steps: Vec::new() }
        };
        let imported = Lies::Imported { handle: 1, offset: 0, computes: false };
        let staged = || launch(Lies::Staged, Lies::Staged);
        assert!(staged().under_way().bound == bound(32) && !staged().under_way().must_end);
        for (from, to) in [(imported, Lies::Staged), (Lies::Staged, imported)] {
            assert!(launch(from, to).under_way().must_end);
        }
        let windows = Windows { from: Some(1), to: None };
        let steps = vec![Step { kernel: Kernel::Ctr, records: 0, count: 1, lanes: 1, after: false, windows }];
        assert!(Launch { steps, ..staged() }.under_way().must_end);
    }
}
