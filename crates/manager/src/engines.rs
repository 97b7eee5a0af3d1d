//! Which engines this machine has, and which of them are to be used.

use bywash_core::{Absent, Engine, Error, Probe, Result, sheets};
use bywash_engine_board::{Board, CARDS, Fpga};
use bywash_engine_cpu::CpuEngine;
use bywash_engine_gpu::Backend;
use core::str::FromStr;
use once_cell::race::OnceBox;
use std::sync::Arc;

/// What a look around found.
#[derive(Clone)]
pub struct Engines {
    /// The engines that are here, the CPU first.
    pub present: Vec<Arc<dyn Engine>>,
    /// Those that are not, and what would mend it.
    pub absent: Vec<Absent>,
}

/// Looks for engines that are used unasked: the CPU. Cheap: nothing is measured, no thread started, no device opened.
pub fn probe() -> Engines {
    Engines { present: vec![here()], absent: Vec::new() }
}

/// Looks for all engines that are real, those too that are used by name alone: GPUs, whose drivers take some tenths of a second to open.
pub fn look_around() -> Engines {
    let mut engines = probe();
    for probe in bywash_engine_gpu::find() {
        match probe {
            Probe::Present(engine) => engines.present.push(engine),
            Probe::Absent(absent) => engines.absent.push(absent),
        }
    }
    engines
}

/// The CPU engine of this process, for work in the caller's own place.
pub fn here() -> Arc<dyn Engine> {
    // Nobody waits for the thread that makes it: it may be missing, in a child of fork.
    static HERE: OnceBox<Arc<CpuEngine>> = OnceBox::new();
    HERE.get_or_init(|| Box::new(Arc::new(CpuEngine::new()))).clone()
}

/// The same by AWS-LC alone, without the kernels: to compare with.
pub fn library() -> Arc<dyn Engine> {
    Arc::new(CpuEngine::without_lanes())
}

/// An engine as users name it: `cpu`; `gpu`, or `gpu:` and a back end; `board:` and a card that comes along or the file of its cost sheet; `fpga`, or `fpga:` and a device that comes along or the
/// file of its sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineName {
    /// `cpu`
    Cpu,
    /// `gpu`: the best there is; `gpu:vulkan`: the best of that back end. Software devices count here.
    Gpu(Option<Backend>),
    /// `board:CARD`; modelled.
    Board(String),
    /// `fpga:DEVICE`; modelled.
    Fpga(String),
}

/// The device that `fpga` alone means.
const FPGA: &str = "niwa2005";

impl FromStr for EngineName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name.split_once(':') {
            None if name == "cpu" => Ok(Self::Cpu),
            None if name == "gpu" => Ok(Self::Gpu(None)),
            Some(("gpu", backend)) if backend.parse::<Backend>().is_ok() => Ok(Self::Gpu(backend.parse().ok())),
            // As the engine itself is called.
            None if let Some(Ok(backend)) = name.strip_prefix("gpu-").map(str::parse) => Ok(Self::Gpu(Some(backend))),
            None if name == "fpga" => Ok(Self::Fpga(FPGA.to_owned())),
            Some(("fpga", device)) if !device.is_empty() => Ok(Self::Fpga(device.to_owned())),
            Some(("board", card)) if !card.is_empty() => Ok(Self::Board(card.to_owned())),
            _ => {
                let cards = CARDS.iter().map(|(card, _)| format!("board:{card}"));
                let devices = sheets::fpgas().map(|device| format!("fpga:{device}"));
                let backends = Backend::ALL.iter().map(|backend| format!("gpu:{backend}"));
                let names: Vec<String> = backends.chain(cards).chain(devices).collect();
                let reason = format!(
                    "no engine '{name}'; there are cpu, gpu, {}, board:FILE with a card's cost sheet and fpga:FILE with a device's sheet",
                    names.join(", ")
                );
                Err(Error::Config { place: "engine".into(), reason })
            }
        }
    }
}

/// Exactly these engines, in this order; with no name, all that [`probe`] finds. Modelled ones are there by name alone.
///
/// # Errors
/// [`Error::Config`] for a card whose cost sheet cannot be read or used; [`Error::Unavailable`] for a GPU that is not here.
pub fn find(names: &[EngineName]) -> Result<Engines> {
    if names.is_empty() {
        return Ok(probe());
    }
    let engine = |name: &EngineName| -> Result<Arc<dyn Engine>> {
        match name {
            EngineName::Cpu => Ok(here()),
            EngineName::Gpu(backend) => {
                let found = backend.map_or_else(bywash_engine_gpu::best, Backend::open);
                Ok(Arc::new(found.map_err(missing)?))
            }
            EngineName::Board(card) => Ok(Arc::new(Board::find(card)?)),
            EngineName::Fpga(device) => Ok(Arc::new(Fpga::find(device)?)),
        }
    };
    Ok(Engines { present: names.iter().map(engine).collect::<Result<_>>()?, absent: Vec::new() })
}

fn missing(absent: Absent) -> Error {
    let Absent { name, reason, remedy } = absent;
    let remedy = remedy.map_or_else(String::new, |remedy| format!("; {remedy}"));
    Error::Unavailable { what: format!("engine '{name}' is missing: {reason}{remedy}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Result<EngineName> {
        text.parse()
    }

    #[test]
    fn engines_are_those_named_in_that_order() {
        let names = ["board:munetoh-meac32", "fpga", "cpu"].map(|text| name(text).unwrap());
        let found: Vec<String> = find(&names).unwrap().present.iter().map(|engine| engine.name().to_owned()).collect();
        assert_eq!(found, ["meac32", "niwa2005", "cpu"]);
        assert_eq!(find(&[]).unwrap().present.len(), probe().present.len());
    }

    #[test]
    fn a_gpu_is_there_or_its_reason_is() {
        let around = look_around();
        let named = around.present.len() + around.absent.len();
        assert_eq!(named, 1 + Backend::ALL.len(), "each back end is found or missing");
        match find(&[name("gpu").unwrap()]) {
            Ok(found) => assert!(found.present[0].name().starts_with("gpu-")),
            Err(error) => assert!(error.to_string().contains("missing"), "{error}"),
        }
    }

    #[test]
    fn an_unknown_engine_is_refused_with_those_there_are() {
        for text in ["gpu:", "gpu:opencl", "board", "board:", "fpga:", "cpu:0", ""] {
            let error = name(text).unwrap_err().to_string();
            assert!(
                error.contains("gpu:vulkan")
                    && error.contains("board:munetoh-meac32")
                    && error.contains("fpga:niwa2005-area")
                    && error.contains("board:FILE"),
                "{text}: {error}"
            );
        }
        let error = find(&[name("board:/nowhere.toml").unwrap()]).err().unwrap().to_string();
        assert!(error.contains("/nowhere.toml"), "{error}");
    }
}
