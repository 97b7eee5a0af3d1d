//! A published figure beside the band of simulated ones.

use bywash_measure::plot::Line;
use bywash_measure::statistics::quantile;
use serde::Serialize;

/// The 10 % quantile, the median and the 90 % quantile over the seeds.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Band {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

impl Band {
    /// The columns of [`csv`](Self::csv).
    pub(super) const COLUMNS: &str = "modelled_median,modelled_low,modelled_high";

    pub(super) fn of(values: &[f64]) -> Self {
        let [low, median, high] = [0.1, 0.5, 0.9].map(|q| quantile(values, q));
        Self { low, median, high }
    }

    /// Where a published figure lies: inside, or below or above the band.
    pub(super) fn place(&self, published: f64) -> Place {
        if published < self.low {
            Place::Below
        } else if published > self.high {
            Place::Above
        } else {
            Place::Inside
        }
    }

    /// As lines of a plot, over what they were measured at.
    pub(super) fn lines(bands: &[(f64, Self)]) -> Vec<Line> {
        let line = |name: &str, of: fn(&Self) -> f64| (name.to_owned(), bands.iter().map(|(x, band)| (*x, of(band))).collect());
        vec![line("median of seeds", |band| band.median), line("10 % of seeds", |band| band.low), line("90 % of seeds", |band| band.high)]
    }

    /// Both ends and the middle, in another unit.
    pub(super) fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, median: self.median * factor, high: self.high * factor }
    }

    /// For a CSV.
    pub(super) fn csv(&self) -> String {
        let Self { low, median, high } = self;
        format!("{median:.6},{low:.6},{high:.6}")
    }
}

/// See [`Band::place`].
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Place {
    Inside,
    Below,
    Above,
}

impl Place {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Below => "below",
            Self::Above => "above",
        }
    }

    /// Behind a figure: nothing where it is inside.
    pub(super) fn mark(self) -> char {
        match self {
            Self::Inside => ' ',
            Self::Below => '-',
            Self::Above => '+',
        }
    }
}

/// Three digits.
pub(super) fn short(figure: f64) -> String {
    let digits = if figure == 0.0 { 0 } else { (2 - figure.abs().log10().floor() as i32).clamp(0, 6) };
    format!("{figure:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_lies_inside_below_or_above() {
        let band = Band::of(&(0..=10).map(f64::from).collect::<Vec<_>>());
        assert_eq!((band.low, band.median, band.high), (1.0, 5.0, 9.0));
        assert!([(0.9, '-'), (1.0, ' '), (9.0, ' '), (9.1, '+')].iter().all(|&(figure, mark)| band.place(figure).mark() == mark));
    }

    #[test]
    fn three_digits_are_shown() {
        assert_eq!([0.0, 0.000_508, 1.5, 62.1, 313_000.0].map(short), ["0", "0.000508", "1.50", "62.1", "313000"]);
    }
}
