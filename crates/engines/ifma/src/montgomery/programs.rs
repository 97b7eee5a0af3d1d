//! Programs that are kept: to write those of a batch of RSA-2048 each time took a fiftieth of it.

use super::program::{Layout, Step};
use super::table::WINDOW;
use once_cell::race::OnceBox;

/// What there is a program for.
#[derive(Clone, Copy)]
pub(super) enum Program {
    Square,
    Multiply,
    Wide,
    SumsOfModulus,
    /// Of both sides, as those that follow.
    Squares,
    Multiplies,
    Read,
    Window,
}

const PROGRAMS: usize = Program::Window as usize + 1;

/// Tiles of the longest numbers, the moduli of RSA-4096.
pub(super) const TILES_MAX: usize = 8;

/// For each number of tiles, from one on. No lock, for a process may fork while another thread writes one.
static WRITTEN: [[OnceBox<Vec<Step>>; PROGRAMS]; TILES_MAX] = [const { [const { OnceBox::new() }; PROGRAMS] }; TILES_MAX];

impl Layout {
    /// The program for this number of tiles, written when it is first asked for.
    pub(super) fn program(self, what: Program) -> &'static [Step] {
        WRITTEN[self.tiles() - 1][what as usize].get_or_init(|| Box::new(self.write(what)))
    }

    fn write(self, what: Program) -> Vec<Step> {
        match what {
            Program::Square => self.product(true),
            Program::Multiply => self.product(false),
            Program::Wide => self.wide(),
            Program::SumsOfModulus => self.sums_of_modulus(),
            Program::Squares => self.products(true),
            Program::Multiplies => self.products(false),
            Program::Read => self.window(0),
            Program::Window => self.window(WINDOW),
        }
    }
}
