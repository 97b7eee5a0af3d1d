//! Who should decide what an engine holds: the policies by name, what they learn, what is tried, and what a run came to. `bywash simulate` and the Python package
//! ask the same questions with these.

mod figures;
mod lessons;
mod policy;
mod sweep;

pub use figures::{FIGURES, Figure, Figures};
pub use lessons::{Learnt, Pupil};
pub use policy::{Policy, Scene, fits_clock};
pub use sweep::{Key, Point, Sweep, apply, named, points, shown};
