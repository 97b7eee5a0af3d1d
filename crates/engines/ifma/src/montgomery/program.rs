//! What a product consists of: steps on tiles, in the order in which [`super::tile::run`] takes them. They depend on the number of digits alone.

use super::{SPARE, TILE};

/// Where tiles are found.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum Base {
    /// The first factor, which the result replaces.
    X,
    /// The second factor.
    Y,
    Modulus,
    Workspace,
}

/// A base, and registers of 64 bytes from there.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Place {
    /// Bytes into the bases.
    base: u32,
    /// Bytes from the base.
    at: u32,
}

impl Place {
    const fn new(base: Base, at: usize) -> Self {
        Self { base: base as u32 * 8, at: at as u32 * 64 }
    }
}

/// What is done with up to four places, called a to d in [`super::tile`].
#[derive(Clone, Copy)]
#[repr(u64)]
pub(super) enum Code {
    /// All columns are zero.
    Clear,
    /// The columns at a.
    Load,
    /// Columns to a.
    Store,
    /// Adds a b.
    Product,
    /// Adds a b - c - d.
    ProductLess,
    /// Adds a b for two sums.
    Sums,
    /// Adds a b - c - d for two sums.
    SumsLess,
    /// Adds each product of different digits of the sum b once.
    Unlike,
    /// Adds the squares of the digits of the sum b.
    Like,
    /// Doubles the columns, and adds b b.
    Square,
    /// Doubles the columns, and adds b b for a sum.
    SquareOfSum,
    /// Doubles the columns.
    Twice,
    /// Adds the columns at a.
    More,
    /// Adds d to the lower columns; adds quotients times b that clear them, and stores the quotients to a. At c is -1 / modulus mod 2^52.
    Reduce,
    /// Upper columns to a; then all columns are zero.
    StoreUpper,
    /// Adds d to the lower columns, and makes digits of them at a.
    Digits,
    /// Makes digits of the upper columns at a: the end.
    UpperDigits,
    /// a + b to c.
    Sum,
    End,
    /// A digit of a power.
    Read,
    /// Doubles the columns, and adds b b; b + d to c.
    SquareAndSum,
    /// Adds a b; a + d to c.
    ProductAndSum,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Step {
    code: Code,
    places: [Place; 4],
}

/// Registers of a sum: digits and the lanes that have an eleventh, 1.
const SUM: usize = TILE + 1;
/// Registers of columns.
const COLUMNS: usize = 2 * TILE;

/// The tiles `i` that have a partner `diagonal - i` among `tiles`.
fn on(diagonal: usize, tiles: usize) -> core::ops::Range<usize> {
    (diagonal + 1).saturating_sub(tiles)..tiles.min(diagonal + 1)
}

/// Those that are below their partner and not below `first`.
fn pairs(diagonal: usize, tiles: usize, first: usize) -> core::ops::Range<usize> {
    on(diagonal, tiles).start.max(first)..diagonal.div_ceil(2)
}

/// Where things lie, for a number of tiles.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    tiles: usize,
}

impl Layout {
    pub(super) const fn new(digits: usize) -> Self {
        Self { tiles: digits / TILE }
    }

    const fn is_sparing(self) -> bool {
        self.tiles >= SPARE
    }

    /// Pairs of different tiles, where their sums are wanted.
    const fn pairs(self) -> usize {
        if self.is_sparing() { self.tiles * (self.tiles - 1) / 2 } else { 0 }
    }

    /// Registers of a modulus: its digits, the inverse and the sums of tiles.
    pub(super) const fn modulus(self) -> usize {
        TILE * self.tiles + 1 + SUM * self.pairs()
    }

    /// Registers of a workspace.
    pub(super) const fn workspace(self) -> usize {
        let own = if self.is_sparing() { self.tiles } else { 0 };
        TILE * (self.tiles + 2) + COLUMNS * own + SUM * 3 * self.pairs()
    }

    const fn tile(base: Base, i: usize) -> Place {
        Place::new(base, TILE * i)
    }

    const fn inverse(self) -> Place {
        Place::new(Base::Modulus, TILE * self.tiles)
    }

    /// The sum of tiles `i < j` of the modulus: of 0 and 1, 0 and 2, 1 and 2, 0 and 3...
    const fn modulus_sum(self, base: Base, i: usize, j: usize) -> Place {
        Place::new(base, TILE * self.tiles + 1 + SUM * (j * (j - 1) / 2 + i))
    }

    const fn quotients(i: usize) -> Place {
        Self::tile(Base::Workspace, i)
    }

    /// The upper columns of a diagonal.
    const fn upper(self) -> Place {
        Self::tile(Base::Workspace, self.tiles)
    }

    /// Those of the diagonal before; zeros, which nothing is ever written to, before the first.
    const fn upper_before(self, diagonal: usize) -> Place {
        Self::tile(Base::Workspace, if diagonal > 0 { self.tiles } else { self.tiles + 1 })
    }

    /// The product of tiles with the same index: of the factors, and then of quotients and modulus as well.
    const fn own(self, i: usize) -> Place {
        Place::new(Base::Workspace, TILE * (self.tiles + 2) + COLUMNS * i)
    }

    /// A sum of two tiles of a factor, 0 or 1, or of the quotients, 2.
    const fn sum(self, of: usize, i: usize, j: usize) -> Place {
        Place::new(Base::Workspace, TILE * (self.tiles + 2) + COLUMNS * self.tiles + SUM * (of * self.pairs() + j * (j - 1) / 2 + i))
    }

    /// `x = x * x / R` where `square`, or else `x = x * y / R`.
    pub(super) fn product(self, square: bool) -> Vec<Step> {
        let mut steps = Steps(Vec::new());
        let factor = if square { Base::X } else { Base::Y };
        if self.is_sparing() {
            self.sums(&mut steps, square);
        }
        for diagonal in 0..2 * self.tiles - 1 {
            if diagonal > 0 {
                steps.push(Code::StoreUpper, [self.upper()]);
            }
            if self.is_sparing() && diagonal > 1 && diagonal <= self.tiles {
                self.own_quotients(&mut steps, diagonal - 1);
                steps.push::<0>(Code::Clear, []);
            }
            match self.is_sparing() {
                true => self.sparing(&mut steps, diagonal, square),
                false => self.plain(&mut steps, diagonal, factor),
            }
            self.finish(&mut steps, diagonal);
        }
        steps.push(Code::UpperDigits, [Self::tile(Base::X, self.tiles - 1)]);
        steps.0
    }

    /// Sums of tiles of the factors, and products of tiles with the same index.
    fn sums(self, steps: &mut Steps, square: bool) {
        for j in 0..self.tiles {
            let [x, y] = [Base::X, Base::Y].map(|base| Self::tile(base, j));
            // The first of the sums beside the product.
            match (square, j > 0) {
                (true, false) => steps.push(Code::Square, [x, x]),
                (true, true) => steps.push(Code::SquareAndSum, [x, x, self.sum(0, 0, j), Self::tile(Base::X, 0)]),
                (false, false) => steps.push(Code::Product, [x, y]),
                (false, true) => steps.push(Code::ProductAndSum, [x, y, self.sum(0, 0, j), Self::tile(Base::X, 0)]),
            }
            steps.push(Code::Store, [self.own(j)]);
            steps.push::<0>(Code::Clear, []);
            for i in 0..j {
                if i > 0 {
                    steps.push(Code::Sum, [Self::tile(Base::X, i), x, self.sum(0, i, j)]);
                }
                if !square {
                    steps.push(Code::Sum, [Self::tile(Base::Y, i), y, self.sum(1, i, j)]);
                }
            }
        }
    }

    /// What the quotients of tile `j` are needed for later.
    fn own_quotients(self, steps: &mut Steps, j: usize) {
        steps.push(Code::Load, [self.own(j)]);
        let [quotients, modulus] = [Self::quotients(j), Self::tile(Base::Modulus, j)];
        match j > 1 {
            true => steps.push(Code::ProductAndSum, [quotients, modulus, self.sum(2, 1, j), Self::quotients(1)]),
            false => steps.push(Code::Product, [quotients, modulus]),
        }
        steps.push(Code::Store, [self.own(j)]);
        for i in 2..j {
            steps.push(Code::Sum, [Self::quotients(i), quotients, self.sum(2, i, j)]);
        }
    }

    /// A diagonal of both products, but for the quotients of this diagonal.
    fn plain(self, steps: &mut Steps, diagonal: usize, factor: Base) {
        let half = Self::tile(Base::X, diagonal / 2);
        match factor {
            Base::X => {
                for i in pairs(diagonal, self.tiles, 0) {
                    steps.push(Code::Product, [Self::tile(Base::X, i), Self::tile(Base::X, diagonal - i)]);
                }
                match diagonal.is_multiple_of(2) {
                    true => steps.push(Code::Square, [half, half]),
                    false => steps.push::<0>(Code::Twice, []),
                }
            }
            _ => {
                for i in on(diagonal, self.tiles) {
                    steps.push(Code::Product, [Self::tile(Base::X, i), Self::tile(factor, diagonal - i)]);
                }
            }
        }
        for i in on(diagonal, self.tiles).start..self.tiles.min(diagonal) {
            steps.push(Code::Product, [Self::quotients(i), Self::tile(Base::Modulus, diagonal - i)]);
        }
    }

    /// The same with fewer products.
    fn sparing(self, steps: &mut Steps, diagonal: usize, square: bool) {
        let sum = |of, i| self.sum(of, i, diagonal - i);
        let factors = pairs(diagonal, self.tiles, 0);
        for i in factors.clone().rev() {
            match (square, i == factors.start) {
                (true, true) => steps.push(Code::SquareOfSum, [sum(0, i); 2]),
                (true, false) => steps.push(Code::Unlike, [sum(0, i); 2]),
                (false, _) => steps.push(Code::Sums, [sum(0, i), sum(1, i)]),
            }
        }
        if square {
            for i in factors.skip(1) {
                steps.push(Code::Like, [sum(0, i); 2]);
            }
        }
        if diagonal.is_multiple_of(2) {
            steps.push(Code::More, [self.own(diagonal / 2)]);
        }
        if diagonal > 0 && diagonal < self.tiles {
            let [quotients, modulus] = [Self::quotients(0), Self::tile(Base::Modulus, diagonal)];
            steps.push(Code::ProductLess, [quotients, modulus, self.own(0), self.own(diagonal)]);
        }
        for i in pairs(diagonal, self.tiles, 1) {
            let j = diagonal - i;
            steps.push(Code::SumsLess, [sum(2, i), self.modulus_sum(Base::Modulus, i, j), self.own(i), self.own(j)]);
        }
    }

    /// Quotients that clear the lower columns or, in the upper half, their digits, as no diagonal to come needs this tile of `x` as a factor.
    fn finish(self, steps: &mut Steps, diagonal: usize) {
        match diagonal < self.tiles {
            true => {
                let quotients = Self::quotients(diagonal);
                steps.push(Code::Reduce, [quotients, Self::tile(Base::Modulus, 0), self.inverse(), self.upper_before(diagonal)]);
            }
            false => {
                let x = Self::tile(Base::X, diagonal - self.tiles);
                steps.push(Code::Digits, [x, x, x, self.upper_before(diagonal)]);
            }
        }
    }

    /// The sums of tiles of the modulus `y`, to where they belong in `x`.
    pub(super) fn sums_of_modulus(self) -> Vec<Step> {
        let mut steps = Steps(Vec::new());
        for j in 0..if self.is_sparing() { self.tiles } else { 0 } {
            for i in 0..j {
                steps.push(Code::Sum, [Self::tile(Base::Y, i), Self::tile(Base::Y, j), self.modulus_sum(Base::X, i, j)]);
            }
        }
        steps.end()
    }

    /// `x = y * modulus`, twice as long.
    pub(super) fn wide(self) -> Vec<Step> {
        let mut steps = Steps(Vec::new());
        for diagonal in 0..2 * self.tiles - 1 {
            if diagonal > 0 {
                steps.push(Code::StoreUpper, [self.upper()]);
            }
            for i in on(diagonal, self.tiles) {
                steps.push(Code::Product, [Self::tile(Base::Y, i), Self::tile(Base::Modulus, diagonal - i)]);
            }
            let x = Self::tile(Base::X, diagonal);
            steps.push(Code::Digits, [x, x, x, self.upper_before(diagonal)]);
        }
        steps.push(Code::UpperDigits, [Self::tile(Base::X, 2 * self.tiles - 1)]);
        steps.0
    }
}

/// Reads so many digits of a power.
pub(super) fn read(digits: usize) -> Vec<Step> {
    let mut steps = Steps(Vec::new());
    for _ in 0..digits {
        steps.push::<0>(Code::Read, []);
    }
    steps.end()
}

/// A program being written.
struct Steps(Vec<Step>);

impl Steps {
    fn push<const N: usize>(&mut self, code: Code, places: [Place; N]) {
        let mut all = [Place::new(Base::Workspace, 0); 4];
        all[..N].copy_from_slice(&places);
        self.0.push(Step { code, places: all });
    }

    fn end(mut self) -> Vec<Step> {
        self.push::<0>(Code::End, []);
        self.0
    }
}
