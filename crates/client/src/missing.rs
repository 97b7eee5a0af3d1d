//! Stands in for the CPU engine until the manager has one: every session is refused by name.

use bywash_core::{Algorithm, Engine, Error, Keyed, Result, SessionParams};

pub(crate) struct Missing;

impl Engine for Missing {
    fn name(&self) -> &str {
        "missing"
    }
    fn describe(&self) -> String {
        "no engine is built in".into()
    }
    fn capabilities(&self) -> &[Algorithm] {
        &[]
    }
    fn workers(&self) -> usize {
        0
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        Err(Error::Unsupported { engine: self.name().into(), algorithm: params.algorithm() })
    }
}
