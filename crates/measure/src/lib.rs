//! How Bywash measures: `bywash bench`, `bywash calibrate` and `bywash reproduce` share this crate.
//!
//! | module | what |
//! |---|---|
//! | [`turns`] | contenders run in turn, round after round, so that a noisy moment hits all alike; also one by one for percentiles |
//! | [`statistics`] | medians, quantiles, and intervals of ratios that assume no distribution |
//! | [`frequency`] | the core's frequency, which turns nanoseconds into cycles |
//! | [`noise`] | what else the machine did meanwhile, in figures and in words |
//! | [`plot`] | lines over a common abscissa, as SVG |
//! | [`timeline`] | what went on when, as SVG |
//!
//! It knows no algorithm and no engine: what is measured is a closure.
#![forbid(unsafe_code)]

pub mod frequency;
pub mod noise;
pub mod plot;
pub mod statistics;
pub mod timeline;
pub mod turns;
