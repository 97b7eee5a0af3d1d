//! Boards that are modelled: accelerator cards that nobody has to hand, described wholly by a [cost sheet](bywash_core::CostSheet).
//!
//! The bytes are real: the CPU engine computes them. The times are the sheet's: an operation takes one of the card's lanes, and
//! its answer is withheld until the sheet says that it is done. Whatever shows the figures of such an engine says that they are
//! [modelled](bywash_core::Engine::is_modelled).
//!
//! ```
//! use bywash_core::Engine;
//! use bywash_engine_board::Board;
//!
//! let card = Board::find("munetoh-meac32")?;
//! assert_eq!((card.name(), card.workers(), card.is_modelled()), ("meac32", 32, true));
//! # Ok::<(), bywash_core::Error>(())
//! ```
//!
//! # What the model says
//!
//! A card has `lanes` that work independently. An operation takes the lane that is free first and holds it for what the sheet says:
//! hand-over, transfer both ways, computation. The time of computing the true bytes is no part of that: it is spent while
//! the answer is withheld anyway, on the host's processor, and [counted](Board::computed) so that whoever reports the host's processor
//! time can subtract it. Where the sheet asks for less than the processor itself needs the model cannot keep up; such
//! operations are counted as [late](bywash_core::Engine::late). Whoever measures them, as a manager does for its policy, sees what they really took: a card faster than
//! the processor that stands in for it gains nothing here, whatever its sheet says. `bywash simulate` goes by the sheet.
//!
//! # A single module
//!
//! A card of one lane is the crypto module of a small machine: one request at a time, whosever it is (ohgama2008: NPE B of an IXP425). With `switch_ns` it
//! holds one session's key and state, and taking in another's costs so much of its time. A session is what [`Engine::open`] has opened; every change
//! is [counted](bywash_core::Engine::switches). The thread that stands in for it goes before others on the processor, if it may (`CAP_SYS_NICE`).
//!
//! # How the host waits
//!
//! The paper's driver sleeps for a fixed time, for the time of an operation is known (munetoh s3). [`Waiting`] has that and its rivals;
//! `bywash reproduce munetoh --part waiting` compares them.
//!
//! # A card of your own
//!
//! Write a sheet like `cards/munetoh-meac32.toml` (`modelled = true`, and no `batch_max`: lanes that must fill up together are another
//! machine) and name it: `bywash serve --engine board:FILE.toml`.
//!
//! # A reconfigurable device
//!
//! An [`Fpga`] is described by a [device sheet](bywash_core::DeviceSheet): it computes what its loaded circuits are for, and nothing else. [`Engine::load`] has
//! others take their place, which takes the sheet's end-to-end time; meanwhile what is replaced is gone. Each core does one operation after
//! the other, cores work side by side. It decides nothing: what to load is said by a policy (`bywash_policy::reconfigure`).

#![forbid(unsafe_code)]

mod card;
mod clock;
mod cores;
mod fpga;
mod interrupt;
mod lanes;
mod waiting;

pub use clock::Computed;
pub use fpga::Fpga;
pub use waiting::Waiting;

use bywash_core::{Algorithm, CostSheet, Engine, Error, Keyed, Operation, Result, SessionParams};
use bywash_engine_cpu::CpuEngine;
use card::Card;
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The cards that come with the engine: name and cost sheet.
pub const CARDS: &[(&str, &str)] = &[
    ("munetoh-meac32", include_str!("../cards/munetoh-meac32.toml")),
    ("munetoh-meac32-today", include_str!("../cards/munetoh-meac32-today.toml")),
    ("ixp425", include_str!("../cards/ohgama-ixp425.toml")),
    ("ixp425-switch", include_str!("../cards/ohgama-ixp425-switch.toml")),
];

/// A modelled card.
pub struct Board {
    costs: CostSheet,
    capabilities: Vec<Algorithm>,
    bytes: CpuEngine,
    card: Arc<Card>,
    /// Sessions opened so far: the last one's number.
    opened: AtomicU64,
}

impl Board {
    /// A card that comes with the engine (see [`CARDS`]), or the one that a file describes.
    ///
    /// # Errors
    /// [`Error::Config`], naming file, line and key.
    pub fn find(name: &str) -> Result<Self> {
        if let Some((name, text)) = CARDS.iter().find(|(card, _)| *card == name) {
            return Self::new(CostSheet::from_toml(text, name)?, Waiting::FixedSleep);
        }
        let cards: Vec<&str> = CARDS.iter().map(|(name, _)| *name).collect();
        let unreadable = |error: std::io::Error| Error::Config {
            place: format!("board:{name}"),
            reason: format!("{error}; it is neither the cost sheet of a card nor one of the cards that come along: {}", cards.join(", ")),
        };
        let text = std::fs::read_to_string(Path::new(name)).map_err(unreadable)?;
        Self::new(CostSheet::from_toml(&text, name)?, Waiting::FixedSleep)
    }

    /// The card of a cost sheet. With another way of waiting than the fixed sleep a lane is free, and its answer there, without
    /// the sheet's hand-over.
    ///
    /// # Errors
    /// [`Error::Config`] for a sheet that is of no card.
    pub fn new(mut costs: CostSheet, waiting: Waiting) -> Result<Self> {
        let bad = |key: &str, reason: &str| {
            Err(Error::Config { place: format!("cost sheet of '{}', key {key}", costs.engine), reason: reason.to_owned() })
        };
        if !costs.modelled {
            return bad("modelled", "a board is a model: write modelled = true");
        }
        if costs.batch_max != 1 {
            return bad("batch_max", "a board's lanes work independently: leave it out");
        }
        if costs.switch_ns > 0.0 && costs.lanes != 1 {
            return bad(
                "switch_ns",
                "which of several lanes holds whose session is no part of the model: write lanes = 1, or leave it out",
            );
        }
        if costs.algorithms.values().any(|curve| !curve.batch.is_empty()) {
            return bad("batch", "a board's lanes work independently: leave it out");
        }
        if costs.algorithms.is_empty() {
            return bad("algorithms", "it can do nothing: give at least one algorithm its points");
        }
        if waiting != Waiting::FixedSleep {
            costs.handover_ns = 0.0;
        }
        let capabilities: Vec<_> = Algorithm::ALL.iter().copied().filter(|&algorithm| costs.curve(algorithm).is_some()).collect();
        let bytes = CpuEngine::new();
        if let Some(lacking) = capabilities.iter().find(|&&algorithm| !bytes.supports(algorithm)) {
            return bad(
                "algorithms",
                &format!("{lacking} cannot be computed on this machine, so its bytes could not be had: leave it out"),
            );
        }
        let card = Arc::new(Card::new(costs.lanes, costs.switch_ns as u64, waiting));
        Ok(Self { costs, capabilities, bytes, card, opened: AtomicU64::new(0) })
    }

    /// What the true bytes have cost the host's processor.
    pub fn computed(&self) -> Computed {
        self.card.clock.computed()
    }
}

impl Engine for Board {
    fn name(&self) -> &str {
        &self.costs.engine
    }

    fn describe(&self) -> String {
        let [handover, switch] = [self.costs.handover_ns, self.costs.switch_ns].map(|ns| Duration::from_nanos(ns as u64));
        match self.costs.lanes {
            1 => format!(
                "a modelled module, one request at a time, hand-over {handover:?}, session switch {switch:?}; its bytes are computed by the CPU"
            ),
            lanes => format!("a modelled card of {lanes} lanes, hand-over {handover:?}; its bytes are computed by the CPU"),
        }
    }

    fn is_modelled(&self) -> bool {
        true
    }

    fn late(&self) -> Option<u64> {
        Some(self.computed().late)
    }

    fn switches(&self) -> Option<u64> {
        (self.costs.lanes == 1).then(|| self.card.switches())
    }

    fn capabilities(&self) -> &[Algorithm] {
        &self.capabilities
    }

    fn workers(&self) -> usize {
        self.costs.lanes
    }

    fn cost_sheet(&self) -> Option<CostSheet> {
        Some(self.costs.clone())
    }

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        let algorithm = params.algorithm();
        let curve = self.costs.curve(algorithm);
        let curve = curve.ok_or_else(|| Error::Unsupported { engine: self.name().to_owned(), algorithm })?;
        let bytes = self.bytes.open(params)?;
        std::thread::sleep(Duration::from_nanos(curve.setup_ns as u64));
        let number = 1 + self.opened.fetch_add(1, Relaxed);
        Ok(Box::new(Session { number, algorithm, bytes, costs: self.costs.clone(), card: self.card.clone() }))
    }
}

/// A session on a card.
struct Session {
    number: u64,
    algorithm: Algorithm,
    bytes: Box<dyn Keyed>,
    costs: CostSheet,
    card: Arc<Card>,
}

impl Keyed for Session {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let bytes = operation.work_len() as u64;
        let service_ns = self.costs.estimate_ns(self.algorithm, bytes).unwrap_or_default() as u64;
        self.card.serve(self.number, service_ns, || self.bytes.run(operation))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
