//! Finds the circuits of the S-boxes: straight lines of three-input gates, each of which is one `vpternlogq`.
//!
//! `cargo run --release -p bywash-legacy --example circuits -- des|serpent [SECONDS [SEED]]` searches each S-box for that long and prints
//! the Rust of `src/des/circuits.rs` or `src/serpent/circuits.rs`; same seconds are not the same machine, so what is committed is a
//! result, and the unit tests beside it prove it right on every input. Nothing runs at build time.
//!
//! # How
//! A function of n bits is a truth table of 2^n bits. To make a target that matters only on the inputs in `care`:
//! 1. a function there is already, or its complement, costs nothing: the gate that reads it takes the complement for free;
//! 2. three functions there are already determine the target: one gate;
//! 3. two of them and one new gate do: two gates. Where the two alone settle the target the new gate may give anything, and in the other
//!    quarters it may give the complement;
//! 4. otherwise a function there is already chooses between two parts, each made in the same way and free where it is not chosen.
//!
//! The order of the outputs and what chooses are drawn at random, again and again; the shortest circuit wins.

#[path = "../src/des/sboxes.rs"]
mod des;
#[path = "../src/serpent/sboxes.rs"]
mod serpent;

use std::time::{Duration, Instant};

/// A truth table: bit `x` is the value at input `x`.
type Table = u64;

/// A function of the circuit by its place, and whether its complement is meant.
type Literal = (usize, bool);

/// Bit `4a + 2b + c` of `table` is the gate's output.
#[derive(Clone, Copy)]
struct Gate {
    table: u8,
    inputs: [usize; 3],
}

#[derive(Clone)]
struct Circuit {
    inputs: usize,
    /// Of the inputs, then of the gates.
    functions: Vec<Table>,
    gates: Vec<Gate>,
}

/// xorshift64: any seed but zero.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % bound as u64) as usize
    }

    fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

/// The part of `care` where the gate's inputs have the values in the bits of `cell`.
fn cell(functions: &[Table], inputs: [usize; 3], cell: usize, care: Table) -> Table {
    let side = |input: usize, bit: usize| if cell >> bit & 1 == 1 { functions[input] } else { !functions[input] };
    care & side(inputs[0], 2) & side(inputs[1], 1) & side(inputs[2], 0)
}

impl Circuit {
    fn new(inputs: usize) -> Self {
        let input = |i: usize| (0..1u64 << inputs).filter(|x| x >> i & 1 == 1).fold(0, |table, x| table | 1 << x);
        Self { inputs, functions: (0..inputs).map(input).collect(), gates: Vec::new() }
    }

    fn push(&mut self, gate: Gate) -> usize {
        let ones = (0..8).filter(|cell| gate.table >> cell & 1 == 1);
        self.functions.push(ones.fold(0, |table, at| table | cell(&self.functions, gate.inputs, at, !0)));
        self.gates.push(gate);
        self.functions.len() - 1
    }

    fn existing(&self, target: Table, care: Table) -> Option<Literal> {
        let agrees = |inverted: bool| self.functions.iter().position(|f| (f ^ target ^ if inverted { !0 } else { 0 }) & care == 0);
        agrees(false).map(|at| (at, false)).or_else(|| agrees(true).map(|at| (at, true)))
    }

    /// One gate of functions there are.
    fn one_gate(&self, target: Table, care: Table, order: &[usize]) -> Option<Gate> {
        let (ones, zeros) = (target & care, !target & care);
        let mixed = |part: Table| part & ones != 0 && part & zeros != 0;
        for (n, &a) in order.iter().enumerate() {
            let (fa, na) = (self.functions[a], !self.functions[a]);
            for (m, &b) in order.iter().enumerate().take(n) {
                let fb = self.functions[b];
                let quarters = [na & !fb, na & fb, fa & !fb, fa & fb];
                for &c in order.iter().take(m) {
                    let fc = self.functions[c];
                    if quarters.iter().any(|quarter| mixed(quarter & fc) || mixed(quarter & !fc)) {
                        continue;
                    }
                    let inputs = [a, b, c];
                    let table = (0..8).filter(|&at| cell(&self.functions, inputs, at, ones) != 0).fold(0, |table, at| table | 1 << at);
                    return Some(Gate { table, inputs });
                }
            }
        }
        None
    }

    /// A gate of two functions there are and one new gate.
    fn two_gates(&self, target: Table, care: Table, order: &[usize]) -> Option<[Gate; 2]> {
        let next = self.functions.len();
        for (n, &a) in order.iter().enumerate() {
            for &b in &order[..n] {
                let (fa, fb) = (self.functions[a], self.functions[b]);
                let quarters = [!fa & !fb, !fa & fb, fa & !fb, fa & fb].map(|quarter| quarter & care);
                let open: Vec<Table> = quarters.into_iter().filter(|q| q & target != 0 && q & !target != 0).collect();
                let rest = open.iter().fold(0, |rest, quarter| rest | quarter);
                for polarity in 0..1usize << open.len().saturating_sub(1) {
                    let flipped =
                        open.iter().enumerate().filter(|(i, _)| polarity >> i & 1 == 1).fold(0, |flip, (_, quarter)| flip | quarter);
                    let Some(first) = self.one_gate(target ^ flipped, rest, order) else { continue };
                    let mut trial = self.clone();
                    trial.push(first);
                    let inputs = [a, b, next];
                    let ones = (0..8).filter(|&at| cell(&trial.functions, inputs, at, target & care) != 0);
                    return Some([first, Gate { table: ones.fold(0, |table, at| table | 1 << at), inputs }]);
                }
            }
        }
        None
    }

    /// Adds at most `limit` gates so that the target is among the functions.
    fn realise(&mut self, target: Table, care: Table, limit: usize, random: &mut Random) -> Option<Literal> {
        if let Some(literal) = self.existing(target, care) {
            return Some(literal);
        }
        let order = random.shuffled(self.functions.len());
        if limit >= 1
            && let Some(gate) = self.one_gate(target, care, &order)
        {
            return Some((self.push(gate), false));
        }
        if limit >= 2
            && let Some([first, second]) = self.two_gates(target, care, &order)
        {
            self.push(first);
            return Some((self.push(second), false));
        }
        if limit < 3 {
            return None;
        }
        let mut best: Option<(Circuit, Literal)> = None;
        let tries = if care.count_ones() > 32 { 3 } else { 2 };
        for _ in 0..tries {
            // Inputs split best; a gate now and then does better.
            let choosers = if random.below(4) == 0 { self.functions.len() } else { self.inputs };
            let chooser = random.below(choosers);
            let sides = [care & !self.functions[chooser], care & self.functions[chooser]];
            if sides.contains(&0) {
                continue;
            }
            let most = best.as_ref().map_or(limit, |(circuit, _)| circuit.gates.len() - self.gates.len() - 1);
            if let Some(found) = self.split(target, chooser, sides, most, random) {
                best = Some(found);
            }
        }
        let (circuit, literal) = best?;
        *self = circuit;
        Some(literal)
    }

    fn split(&self, target: Table, chooser: usize, sides: [Table; 2], limit: usize, random: &mut Random) -> Option<(Circuit, Literal)> {
        let mut trial = self.clone();
        let mut parts = [(0, false); 2];
        let first = random.below(2);
        for side in [first, 1 - first] {
            let used = trial.gates.len() - self.gates.len();
            parts[side] = trial.realise(target, sides[side], limit.checked_sub(used + 1)?, random)?;
        }
        let [low, high] = parts;
        let chosen = |at: usize| if at & 4 == 0 { (at >> 1 & 1 == 1) ^ low.1 } else { (at & 1 == 1) ^ high.1 };
        let table = (0..8).filter(|&at| chosen(at)).fold(0, |table, at| table | 1 << at);
        let place = trial.push(Gate { table, inputs: [chooser, low.0, high.0] });
        Some((trial, (place, false)))
    }
}

/// A circuit of at most `limit` gates for all outputs, which are places in it.
fn attempt(inputs: usize, outputs: &[Table], limit: usize, random: &mut Random) -> Option<(Circuit, Vec<usize>)> {
    let mut circuit = Circuit::new(inputs);
    let care = if inputs == 6 { !0 } else { (1 << (1 << inputs)) - 1 };
    let mut places = vec![0; outputs.len()];
    for output in random.shuffled(outputs.len()) {
        let left = limit.checked_sub(circuit.gates.len())?;
        let (place, inverted) = circuit.realise(outputs[output], care, left, random)?;
        // No gate follows that could take the complement.
        places[output] = if inverted { circuit.push(Gate { table: 0x0f, inputs: [place; 3] }) } else { place };
    }
    (circuit.gates.len() <= limit).then_some((circuit, places))
}

fn shortest(inputs: usize, outputs: &[Table], time: Duration, random: &mut Random) -> (Circuit, Vec<usize>) {
    let start = Instant::now();
    let mut best: Option<(Circuit, Vec<usize>)> = None;
    while best.is_none() || start.elapsed() < time {
        let limit = best.as_ref().map_or(100, |(circuit, _)| circuit.gates.len() - 1);
        if let Some(found) = attempt(inputs, outputs, limit, random) {
            best = Some(found);
        }
    }
    best.expect("the loop ends with one")
}

fn print(name: &str, circuit: &Circuit, outputs: &[usize]) {
    let input = |i: usize| (b'a' + i as u8) as char;
    let names: Vec<String> = (0..circuit.functions.len())
        .map(|at| if at < circuit.inputs { input(at).to_string() } else { format!("t{}", at - circuit.inputs) })
        .collect();
    let inputs: Vec<&str> = names[..circuit.inputs].iter().map(String::as_str).collect();
    println!("\n/// {} gates.\n#[inline(always)]", circuit.gates.len());
    println!("pub(crate) fn {name}<W: Gates>([{}]: [W; {}]) -> [W; {}] {{", inputs.join(", "), circuit.inputs, outputs.len());
    for (at, Gate { table, inputs }) in circuit.gates.iter().enumerate() {
        let [a, b, c] = inputs.map(|input| &names[input]);
        println!("    let t{at} = W::gate::<0x{table:02x}>({a}, {b}, {c});");
    }
    let outputs: Vec<&str> = outputs.iter().map(|&at| names[at].as_str()).collect();
    println!("    [{}]\n}}", outputs.join(", "));
}

/// Output bit `bit` of an S-box as a truth table; input bit `i` of the table is input `i` of the circuit.
fn table(inputs: usize, bit: usize, value: impl Fn(usize) -> u8) -> Table {
    (0..1usize << inputs).filter(|&x| value(x) >> bit & 1 == 1).fold(0, |table, x| table | 1 << x)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let (time, mut random) = (Duration::from_secs(number(1, 10)), Random(number(2, 1)));
    let mut search = |name: String, inputs: usize, value: &dyn Fn(usize) -> u8| {
        let outputs: Vec<Table> = (0..4).map(|bit| table(inputs, bit, value)).collect();
        let (circuit, places) = shortest(inputs, &outputs, time, &mut random);
        eprintln!("{name}: {} gates", circuit.gates.len());
        print(&name, &circuit, &places);
    };
    println!("// Printed by `cargo run --release -p bywash-legacy --example circuits -- {}`.", arguments.join(" "));
    match arguments.first().map(String::as_str) {
        Some("des") => {
            for (n, sbox) in des::SBOXES.iter().enumerate() {
                search(format!("s{}", n + 1), 6, &|x| des::sbox(sbox, x as u8));
            }
        }
        Some("serpent") => {
            for (n, sbox) in serpent::SBOXES.iter().enumerate() {
                search(format!("s{n}"), 4, &|x| sbox[x]);
                search(format!("s{n}_inverse"), 4, &|y| sbox.iter().position(|&z| usize::from(z) == y).expect("a permutation") as u8);
            }
        }
        _ => panic!("say which S-boxes: des or serpent"),
    }
}
