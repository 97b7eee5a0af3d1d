//! Plots: lines over a common abscissa, panels side by side, as SVG.

use crate::{Error, Result};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::path::Path;

const PANEL: (u32, u32) = (560, 420);
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(150, 150, 150),
];

/// A line: its name and its points.
pub(crate) type Line = (String, Vec<(f64, f64)>);

/// One plot.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    /// Both axes logarithmic, or the ordinate alone, or none.
    pub(crate) scale: Scale,
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    LogY,
    LogBoth,
}

/// Draws panels side by side.
pub(crate) fn draw(path: &Path, panels: &[Panel]) -> Result<()> {
    let size = (PANEL.0 * panels.len() as u32, PANEL.1);
    let root = SVGBackend::new(path, size).into_drawing_area();
    let failed = |error: &dyn std::fmt::Display| Error(format!("cannot draw {}: {error}", path.display()));
    root.fill(&WHITE).map_err(|error| failed(&error))?;
    for (area, panel) in root.split_evenly((1, panels.len())).iter().zip(panels) {
        panel.draw(area).map_err(|error| failed(&error))?;
    }
    root.present().map_err(|error| failed(&error))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = core::result::Result<(), Box<dyn std::error::Error>>;

impl Panel {
    fn draw(&self, area: &Area<'_>) -> Drawn {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let greatest = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MIN_POSITIVE, f64::max);
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min).clamp(1e-3, 1e9);
        let (right, top) = (greatest(&mut points().map(|point| point.0)) * 1.05, greatest(&mut points().map(|point| point.1)) * 1.2);
        let (left, bottom) = (least(&mut points().map(|point| point.0)) / 1.2, least(&mut points().map(|point| point.1)) / 1.5);
        match self.scale {
            Scale::Linear => self.chart(area, 0.0..right, 0.0..top),
            Scale::LogY => self.chart(area, 0.0..right, (bottom..top).log_scale()),
            Scale::LogBoth => self.chart(area, (left..right).log_scale(), (bottom..top).log_scale()),
        }
    }

    fn chart<X, Y>(&self, area: &Area<'_>, x: X, y: Y) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(x, y)?;
        chart.configure_mesh().x_desc(self.x).y_desc(self.y).light_line_style(TRANSPARENT).draw()?;
        for ((name, points), &colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(3);
            chart.draw_series(line)?.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(TRANSPARENT)
            .draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_named_in_the_picture() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plot.svg");
        for scale in [Scale::Linear, Scale::LogY, Scale::LogBoth] {
            let lines = vec![("alpha".to_owned(), vec![(1.0, 10.0), (2.0, 20.0)]), ("beta".to_owned(), vec![(1.0, 1.0), (2.0, 400.0)])];
            draw(&path, &[Panel { title: "both".into(), x: "load", y: "rate", scale, lines }]).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(["alpha", "beta", "both", "load", "rate"].iter().all(|word| text.contains(word)));
        }
    }
}
