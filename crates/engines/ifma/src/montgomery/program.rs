//! What a product consists of: steps on tiles, in the order in which [`super::tile::run`] takes them. They depend on the number of digits alone.

use super::TILE;
use std::collections::VecDeque;

/// Where tiles are found. A program for two sides has the first three twice.
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

/// How many bases there are.
pub(super) const BASES: usize = 7;

/// Bytes from a base, a multiple of 64, and bytes into the bases.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Place(u32);

impl Place {
    const fn new(base: Base, at: usize) -> Self {
        Self(at as u32 * 64 + base as u32 * 8)
    }

    /// The upper of the columns there.
    const fn upper(self) -> Self {
        Self(self.0 + TILE as u32 * 64)
    }

    /// The same place of the other side.
    const fn other(self) -> Self {
        Self(if self.0 % 64 < Base::Workspace as u32 * 8 { self.0 + 32 } else { self.0 })
    }
}

/// What is done with the places of a step, called as in [`super::tile`]. A code that begins with `Put` first stores all columns to p and takes
/// those at o instead; one that ends with `AndSum` puts e + f to g as well. Beside multiplications both cost next to nothing.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Code {
    /// Adds a b.
    Product,
    PutProduct,
    PutProductAndSum,
    PutProductAndDigits,
    /// Adds a b - c - d.
    ProductLess,
    /// Adds a b for two sums.
    Sums,
    PutSums,
    PutSumsAndSum,
    /// Adds a b - c - d for two sums.
    SumsLess,
    /// Adds each product of different digits of the sum b once.
    Unlike,
    PutUnlike,
    /// Adds the squares of the digits of the sum b.
    Like,
    /// Doubles the columns, and adds b b.
    Square,
    PutSquare,
    PutSquareAndSum,
    PutSquareAndDigits,
    /// Doubles the columns, and adds b b for a sum.
    SquareOfSum,
    PutSquareOfSum,
    PutSquareOfSumAndSum,
    /// Adds the columns at a.
    More,
    /// Adds d to the lower columns; adds quotients times b that clear them, and stores the quotients to a. At c is -1 / modulus mod 2^52.
    Reduce,
    ReduceAndSum,
    PutReduce,
    PutReduceAndSum,
    PutReduceAndDigits,
    /// The upper columns become the lower, the upper zero.
    Shift,
    /// Adds d to the lower columns, and makes digits of them at a.
    Digits,
    /// Makes digits of the upper columns at a. All columns are zero then.
    UpperDigits,
    /// a + b to c.
    Sum,
    /// A digit of a power.
    Read,
    /// The next reader, which reads to b.
    Next,
    End,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Step {
    /// Twice the code, and one more where a digit is read as well.
    piece: u32,
    /// a to d.
    places: [Place; 4],
    /// e to g.
    sum: [Place; 3],
    /// p and o.
    put: [Place; 2],
}

/// Codes of which there is a piece that reads.
const READING: [Code; 9] = [
    Code::Product,
    Code::PutProduct,
    Code::ProductLess,
    Code::SumsLess,
    Code::Square,
    Code::PutSquare,
    Code::SquareOfSum,
    Code::PutSquareOfSum,
    Code::Reduce,
];

impl Step {
    fn can_read(&self) -> bool {
        READING.iter().any(|&code| self.piece == 2 * code as u32)
    }
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

    pub(super) const fn tiles(self) -> usize {
        self.tiles
    }

    const fn is_sparing(self) -> bool {
        self.tiles > 1
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
        self.owns() + if self.is_sparing() { COLUMNS * (self.tiles + 2) + SUM * 3 * self.pairs() } else { 0 }
    }

    /// Registers before the first of [`Self::own`]: quotients, columns, zeros.
    const fn owns(self) -> usize {
        TILE * self.tiles + 2 * COLUMNS
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

    /// The columns of the last diagonal.
    const fn columns(self) -> Place {
        Self::tile(Base::Workspace, self.tiles)
    }

    /// What nothing is ever written to.
    const fn zeros(self) -> Place {
        Self::tile(Base::Workspace, self.tiles + 2)
    }

    /// The upper columns of the diagonal before.
    const fn upper_before(self, diagonal: usize) -> Place {
        if diagonal > 0 { Self::tile(Base::Workspace, self.tiles + 1) } else { self.zeros() }
    }

    /// The product of tiles with the same index: of the factors, and then of quotients and modulus as well. The last one has two places
    /// that are used in turn.
    const fn own(self, i: usize, turn: usize) -> Place {
        let i = if i + 1 < self.tiles { i } else { i + turn };
        Place::new(Base::Workspace, self.owns() + COLUMNS * i)
    }

    /// The last columns of a product whose digits are made beside the next.
    const fn late(self) -> Place {
        Place::new(Base::Workspace, self.owns() + COLUMNS * (self.tiles + 1))
    }

    /// A sum of two tiles of a factor, 0 or 1, or of the quotients, 2.
    const fn sum(self, of: usize, i: usize, j: usize) -> Place {
        let sums = self.owns() + COLUMNS * (self.tiles + 2);
        Place::new(Base::Workspace, sums + SUM * (of * self.pairs() + j * (j - 1) / 2 + i))
    }

    /// `x = x * x / R` where `square`, or else `x = x * y / R`.
    pub(super) fn product(self, square: bool) -> Vec<Step> {
        let mut steps = Steps::new();
        self.add(&mut steps, square, true);
        steps.end()
    }

    /// The same of both sides.
    pub(super) fn products(self, square: bool) -> Vec<Step> {
        let mut steps = Steps::new();
        self.add_both(&mut steps, square, true);
        steps.end()
    }

    /// Reads `y` of both sides, beside so many squarings of `x`; multiplies `x` by `y` where there are squarings.
    pub(super) fn window(self, squarings: usize) -> Vec<Step> {
        let mut squares = Steps::new();
        for _ in 0..squarings {
            self.add_both(&mut squares, true, false);
        }
        let mut steps = Steps { all: Vec::new(), ..squares };
        let mut reader = ReaderOf { layout: self, read: 0 };
        reader.count(&mut steps, 0);
        for mut step in squares.all {
            let reads = u32::from(step.can_read() && !reader.is_done());
            step.piece += reads;
            steps.all.push(step);
            reader.count(&mut steps, reads as usize);
        }
        while !reader.is_done() {
            steps.push::<0>(Code::Read, []);
            reader.count(&mut steps, 1);
        }
        if squarings > 0 {
            self.add_both(&mut steps, false, true);
        }
        steps.end()
    }

    /// A product of each side.
    fn add_both(self, steps: &mut Steps, square: bool, is_last: bool) {
        for side in [0, 1] {
            steps.side = side;
            self.add(steps, square, is_last && side == 1);
        }
        steps.side = 0;
    }

    /// A product. Unless it is the last of its program, its last digits may be left to the next.
    fn add(self, steps: &mut Steps, square: bool, is_last: bool) {
        if self.is_sparing() {
            self.owns_of_factors(steps, square);
        }
        for diagonal in 0..2 * self.tiles - 1 {
            if self.is_sparing() && !is_last && diagonal == 2 * self.tiles - 2 {
                self.leave(steps);
                return;
            }
            match (self.is_sparing(), square) {
                (true, _) => self.sparing(steps, diagonal, square),
                (false, true) => steps.push(Code::Square, [Self::tile(Base::X, 0); 2]),
                (false, false) => steps.push(Code::Product, [Base::X, Base::Y].map(|base| Self::tile(base, 0))),
            }
            if is_last || diagonal < self.tiles || diagonal + 3 != 2 * self.tiles {
                self.finish(steps, diagonal);
            }
        }
        steps.push(Code::UpperDigits, [Self::tile(Base::X, self.tiles - 1)]);
    }

    /// Leaves three tiles of digits to the next product: nothing multiplies beside them here. The columns of the last diagonal but one are
    /// stored when it begins; those of the last are a product that is stored already. Of two tiles it leaves both, which are those of the last
    /// diagonal: their columns are stored when it begins.
    fn leave(self, steps: &mut Steps) {
        let own = self.own(self.tiles - 1, steps.side);
        let first = (self.late(), self.upper_before(1));
        let left: &[_] = if self.tiles == 2 {
            self.own_of_quotients(steps, 1);
            &[first, (self.late().upper(), self.zeros())]
        } else {
            &[first, (self.late().upper(), own), (own.upper(), self.zeros())]
        };
        for (i, &(columns, more)) in left.iter().enumerate() {
            let x = Self::tile(Base::X, self.tiles - left.len() + i);
            let places = [columns, more, x].map(|place| steps.place(place));
            steps.late.push_back(places);
        }
    }

    /// Products of tiles with the same index. The columns of the first are those of the first diagonal.
    fn owns_of_factors(self, steps: &mut Steps, square: bool) {
        for (i, j) in (1..self.tiles).flat_map(|j| (0..j).map(move |i| (i, j))) {
            for (of, base) in [Base::X, Base::Y].into_iter().enumerate().take(if square { 1 } else { 2 }) {
                steps.wanted.push(Sum {
                    diagonal: i + j,
                    quotient: 0,
                    places: [Self::tile(base, i), Self::tile(base, j), self.sum(of, i, j)],
                });
            }
        }
        if !steps.late.is_empty() {
            steps.put = [self.late(), self.zeros()];
        }
        for j in 0..self.tiles {
            let [x, y] = [Base::X, Base::Y].map(|base| Self::tile(base, j));
            let is_put = j > 0 || !steps.late.is_empty();
            match (square, j > 0) {
                (true, false) if is_put => steps.push_with_sum([Code::PutSquare, Code::PutSquareAndSum], [x, x]),
                (true, false) => steps.push(Code::Square, [x, x]),
                (true, true) => steps.push_with_more([Code::PutSquare, Code::PutSquareAndSum, Code::PutSquareAndDigits], [x, x]),
                (false, false) if is_put => steps.push_with_sum([Code::PutProduct, Code::PutProductAndSum], [x, y]),
                (false, false) => steps.push(Code::Product, [x, y]),
                (false, true) => steps.push_with_more([Code::PutProduct, Code::PutProductAndSum, Code::PutProductAndDigits], [x, y]),
            }
            steps.put = [self.own(j, steps.side), if j + 1 < self.tiles { self.zeros() } else { self.own(0, 0) }];
        }
    }

    /// What the quotients of tile `j` are needed for later.
    fn own_of_quotients(self, steps: &mut Steps, j: usize) {
        for i in 1..j {
            let places = [Self::quotients(i), Self::quotients(j), self.sum(2, i, j)];
            steps.wanted.push(Sum { diagonal: i + j, quotient: j, places });
        }
        steps.put = [self.columns(), self.own(j, steps.side)];
        steps.push_with_sum([Code::PutProduct, Code::PutProductAndSum], [Self::quotients(j), Self::tile(Base::Modulus, j)]);
        steps.put = [self.own(j, steps.side), self.zeros()];
    }

    /// A diagonal of both products, but for the quotients of this diagonal.
    fn sparing(self, steps: &mut Steps, diagonal: usize, square: bool) {
        let last = 2 * self.tiles - 2;
        if diagonal > 1 && diagonal <= self.tiles {
            self.own_of_quotients(steps, diagonal - 1);
            if diagonal == last {
                return; // Of two tiles: what is stored as the second ones' own otherwise is the whole diagonal.
            }
        } else if diagonal == last {
            steps.push::<0>(Code::Shift, []);
        } else if diagonal > 0 {
            steps.put = [self.columns(), self.zeros()];
        }
        let sum = |of, i| self.sum(of, i, diagonal - i);
        let factors = pairs(diagonal, self.tiles, 0);
        let quotients = pairs(diagonal, self.tiles, 1);
        steps.ensure(diagonal, false);
        for i in factors.clone().rev() {
            let is_first = i + 1 == factors.end;
            match (square, i == factors.start) {
                (true, true) if is_first => steps.push_with_sum([Code::PutSquareOfSum, Code::PutSquareOfSumAndSum], [sum(0, i); 2]),
                (true, true) => steps.push(Code::SquareOfSum, [sum(0, i); 2]),
                (true, false) => steps.push(if is_first { Code::PutUnlike } else { Code::Unlike }, [sum(0, i); 2]),
                (false, _) if is_first => steps.push_with_sum([Code::PutSums, Code::PutSumsAndSum], [sum(0, i), sum(1, i)]),
                (false, _) => steps.push(Code::Sums, [sum(0, i), sum(1, i)]),
            }
        }
        if square {
            for i in factors.skip(1) {
                steps.push(Code::Like, [sum(0, i); 2]);
            }
        }
        if diagonal > 0 && diagonal.is_multiple_of(2) {
            steps.push(Code::More, [self.own(diagonal / 2, steps.side)]);
        }
        if diagonal > 0 && diagonal < self.tiles {
            let [quotients, modulus] = [Self::quotients(0), Self::tile(Base::Modulus, diagonal)];
            steps.push(Code::ProductLess, [quotients, modulus, self.own(0, steps.side), self.own(diagonal, steps.side)]);
        }
        steps.ensure(diagonal, true);
        for i in quotients {
            let j = diagonal - i;
            steps
                .push(Code::SumsLess, [sum(2, i), self.modulus_sum(Base::Modulus, i, j), self.own(i, steps.side), self.own(j, steps.side)]);
        }
    }

    /// Quotients that clear the lower columns or, in the upper half, their digits, as no diagonal to come needs this tile of `x` as a factor.
    fn finish(self, steps: &mut Steps, diagonal: usize) {
        let upper = self.upper_before(diagonal);
        if diagonal < self.tiles {
            let places = [Self::quotients(diagonal), Self::tile(Base::Modulus, 0), self.inverse(), upper];
            match self.is_sparing() && diagonal == 0 {
                true => steps.push_with_more([Code::PutReduce, Code::PutReduceAndSum, Code::PutReduceAndDigits], places),
                false => steps.push_with_sum([Code::Reduce, Code::ReduceAndSum], places),
            }
        } else {
            let x = Self::tile(Base::X, diagonal - self.tiles);
            let has_shifted = self.tiles > 2 && diagonal == 2 * self.tiles - 2;
            steps.push(Code::Digits, [x, x, x, if has_shifted { self.zeros() } else { upper }]);
        }
    }

    /// The sums of tiles of the modulus `y`, to where they belong in `x`: but for those with the first tile, which no product of quotients asks for.
    pub(super) fn sums_of_modulus(self) -> Vec<Step> {
        let mut steps = Steps::new();
        for j in 0..self.tiles {
            for i in 1..j {
                steps.push(Code::Sum, [Self::tile(Base::Y, i), Self::tile(Base::Y, j), self.modulus_sum(Base::X, i, j)]);
            }
        }
        steps.end()
    }

    /// `x = y * modulus`, twice as long.
    pub(super) fn wide(self) -> Vec<Step> {
        let mut steps = Steps::new();
        steps.put = [self.columns(), self.zeros()];
        for diagonal in 0..2 * self.tiles - 1 {
            for (nth, i) in on(diagonal, self.tiles).enumerate() {
                let code = if diagonal > 0 && nth == 0 { Code::PutProduct } else { Code::Product };
                steps.push(code, [Self::tile(Base::Y, i), Self::tile(Base::Modulus, diagonal - i)]);
            }
            let x = Self::tile(Base::X, diagonal);
            steps.push(Code::Digits, [x, x, x, self.upper_before(diagonal)]);
        }
        steps.push(Code::UpperDigits, [Self::tile(Base::X, 2 * self.tiles - 1)]);
        steps.end()
    }
}

/// Counts the digits that a program reads: those of one side, then those of the other.
struct ReaderOf {
    layout: Layout,
    read: usize,
}

impl ReaderOf {
    fn is_done(&self) -> bool {
        self.read == 2 * TILE * self.layout.tiles
    }

    /// So many more have been read. At the beginning of a side the next reader is called.
    fn count(&mut self, steps: &mut Steps, more: usize) {
        let was = self.read;
        self.read += more;
        let y = Layout::tile(Base::Y, 0);
        if self.read == 0 {
            steps.push(Code::Next, [y, y]);
        } else if was < self.read && self.read == TILE * self.layout.tiles {
            steps.push(Code::Next, [y.other(), y.other()]);
        }
    }
}

/// A sum of two tiles that is yet to be made.
struct Sum {
    /// Which needs it.
    diagonal: usize,
    /// Which quotients it waits for, if any.
    quotient: usize,
    /// Both, and where it goes.
    places: [Place; 3],
}

/// A program being written.
struct Steps {
    all: Vec<Step>,
    /// Not made yet.
    wanted: Vec<Sum>,
    /// Columns of another product, twice, and where their digits go, in this order.
    late: VecDeque<[Place; 3]>,
    /// Where a `Put` puts the columns, and whence it takes others.
    put: [Place; 2],
    /// 0 or 1: that of [`Base`], or the other.
    side: usize,
}

impl Steps {
    fn new() -> Self {
        Self { all: Vec::new(), wanted: Vec::new(), late: VecDeque::new(), put: [Place::new(Base::Workspace, 0); 2], side: 0 }
    }

    /// Where a place is on the side.
    fn place(&self, place: Place) -> Place {
        if self.side == 0 { place } else { place.other() }
    }

    fn push<const N: usize>(&mut self, code: Code, places: [Place; N]) {
        let nowhere = Place::new(Base::Workspace, 0);
        let mut all = [nowhere; 4];
        for (all, place) in all.iter_mut().zip(places) {
            *all = self.place(place);
        }
        self.all.push(Step { piece: 2 * code as u32, places: all, sum: [nowhere; 3], put: self.put });
    }

    /// A step that can make a sum beside what else it does, and does so if one is wanted: the code for each case.
    fn push_with_sum<const N: usize>(&mut self, codes: [Code; 2], places: [Place; N]) {
        let most_urgent = self.wanted.iter().enumerate().min_by_key(|(_, sum)| sum.diagonal).map(|(i, _)| i);
        self.push(codes[usize::from(most_urgent.is_some())], places);
        if let Some(i) = most_urgent {
            let sum = self.wanted.remove(i).places.map(|place| self.place(place));
            self.beside(sum);
        }
    }

    /// The same for a step that can make late digits instead, which come first.
    fn push_with_more<const N: usize>(&mut self, [plain, with_sum, with_digits]: [Code; 3], places: [Place; N]) {
        match self.late.pop_front() {
            Some(late) => {
                self.push(with_digits, places);
                self.beside(late);
            }
            None => self.push_with_sum([plain, with_sum], places),
        }
    }

    /// What is done beside the last step.
    fn beside(&mut self, places: [Place; 3]) {
        if let Some(step) = self.all.last_mut() {
            step.sum = places;
        }
    }

    /// Makes the sums that a diagonal needs now.
    fn ensure(&mut self, diagonal: usize, quotients: bool) {
        let is_due = |sum: &mut Sum| sum.diagonal == diagonal && (quotients || sum.quotient == 0);
        for sum in self.wanted.extract_if(.., is_due).collect::<Vec<_>>() {
            self.push(Code::Sum, sum.places);
        }
    }

    fn end(mut self) -> Vec<Step> {
        self.push::<0>(Code::End, []);
        self.all
    }
}
