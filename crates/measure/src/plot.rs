//! Plots: lines over a common abscissa, panels in rows, as SVG.

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::fmt;
use std::path::Path;

const PANEL: (u32, u32) = (560, 420);
/// The most points of a line that are marked: beyond, marks would hide it.
const MARKED: usize = 40;
/// The least value on a logarithmic axis, as a fraction of the greatest; values at 0 are below it.
const RANGE: f64 = 1e-9;
/// Panels side by side before a new row begins.
const COLUMNS: usize = 3;
/// Told apart by people with any colour vision (Okabe and Ito), black first.
pub(crate) const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(150, 150, 150),
];

/// A line: its name and its points.
pub type Line = (String, Vec<(f64, f64)>);

/// One plot.
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What the abscissa is, with its unit.
    pub x: &'static str,
    /// What the ordinate is, with its unit.
    pub y: &'static str,
    /// Which axes are logarithmic.
    pub scale: Scale,
    /// Drawn as lines with a mark at each point, named in the legend.
    pub lines: Vec<Line>,
    /// Drawn as marks alone, named in the legend.
    pub marks: Vec<Line>,
}

/// Which axes are logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// None.
    Linear,
    /// The ordinate.
    LogY,
    /// The abscissa.
    LogX,
    /// Both.
    LogBoth,
    /// Both, and the abscissa is labelled as sizes in bytes: 16, 1K, 1M.
    Sizes,
}

/// A plot that could not be drawn or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Of this file.
    pub(crate) fn new(path: &Path, error: &dyn fmt::Display) -> Self {
        Self(format!("cannot draw {}: {error}", path.display()))
    }
}

/// Draws panels side by side, in rows of three.
///
/// # Errors
/// Naming the file.
pub fn draw(path: &Path, panels: &[Panel]) -> Result<(), Error> {
    let failed = |error: &dyn fmt::Display| Error::new(path, error);
    let columns = panels.len().clamp(1, COLUMNS);
    let rows = panels.len().div_ceil(columns).max(1);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (PANEL.0 * columns as u32, PANEL.1 * rows as u32)).into_drawing_area();
        root.fill(&WHITE).map_err(|error| failed(&error))?;
        for (area, panel) in root.split_evenly((rows, columns)).iter().zip(panels) {
            panel.draw(area).map_err(|error| failed(&error))?;
        }
        root.present().map_err(|error| failed(&error))?;
    }
    save(path, text)
}

/// Puts a picture in its file: the library that draws can do so itself, and does not say so when it cannot.
pub(crate) fn save(path: &Path, picture: String) -> Result<(), Error> {
    std::fs::write(path, picture).map_err(|error| Error::new(path, &error))
}

/// A size in bytes as people write it, powers of 1024: `64`, `16K`, `1M`.
pub fn size(bytes: f64) -> String {
    [(30, "G"), (20, "M"), (10, "K")]
        .into_iter()
        .map(|(shift, unit)| (bytes / f64::from(1 << shift), unit))
        .find(|(value, _)| *value >= 1.0)
        .map_or_else(|| format!("{bytes:.0}"), |(value, unit)| format!("{}{unit}", (value * 10.0).round() / 10.0))
}

/// Where a legend may be, in the order in which corners are preferred.
const CORNERS: [SeriesLabelPosition; 4] =
    [SeriesLabelPosition::UpperLeft, SeriesLabelPosition::UpperRight, SeriesLabelPosition::LowerLeft, SeriesLabelPosition::LowerRight];

/// The corner in whose quarter of the plot the fewest points are.
fn legend(crowded: &[usize; CORNERS.len()]) -> SeriesLabelPosition {
    let least = (0..CORNERS.len()).min_by_key(|&corner| crowded[corner]).unwrap_or(0);
    CORNERS[least].clone()
}

/// Six digits, as many as anybody wants to read on an axis.
pub(crate) fn plain(value: &f64) -> String {
    format!("{value:.5e}").parse::<f64>().map_or_else(|_| value.to_string(), |value| value.to_string())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Panel {
    fn draw(&self, area: &Area<'_>) -> Drawn {
        let points = || self.lines.iter().chain(&self.marks).flat_map(|(_, points)| points);
        let greatest = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MIN_POSITIVE, f64::max);
        let least = |values: &mut dyn Iterator<Item = f64>, most: f64| values.filter(|value| *value > most * RANGE).fold(most, f64::min);
        let (right, top) = (greatest(&mut points().map(|point| point.0)) * 1.05, greatest(&mut points().map(|point| point.1)) * 1.2);
        let (left, bottom) = (least(&mut points().map(|point| point.0), right) / 1.2, least(&mut points().map(|point| point.1), top) / 1.5);
        match self.scale {
            // Room above the lines for the legend.
            Scale::Linear => self.chart(area, 0.0..right, 0.0..top * (1.0 + 0.04 * self.lines.len() as f64), &plain),
            Scale::LogY => self.chart(area, 0.0..right, (bottom..top).log_scale(), &plain),
            Scale::LogX => self.chart(area, (left..right).log_scale(), 0.0..top, &plain),
            Scale::LogBoth => self.chart(area, (left..right).log_scale(), (bottom..top).log_scale(), &plain),
            Scale::Sizes => {
                // Room above the lines for the legend.
                let (x, y) = ((left..right).log_scale().base(4.0), (bottom..top * 2.0).log_scale());
                self.chart(area, x, y, &|value| size(*value))
            }
        }
    }

    fn chart<X, Y>(&self, area: &Area<'_>, x: X, y: Y, x_label: &dyn Fn(&f64) -> String) -> Drawn
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
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(self.x).y_desc(self.y).light_line_style(TRANSPARENT).x_label_formatter(x_label).y_label_formatter(&plain);
        mesh.draw()?;
        let mut crowded = [0; CORNERS.len()];
        let (width, height) = area.dim_in_pixel();
        for &point in self.lines.iter().chain(&self.marks).flat_map(|(_, points)| points) {
            let (x, y) = chart.backend_coord(&point);
            let (left, top) = area.get_base_pixel();
            let (right_half, lower_half) = (x - left > width as i32 / 2, y - top > height as i32 / 2);
            crowded[usize::from(lower_half) * 2 + usize::from(right_half)] += 1;
        }
        let mut colours = COLOURS.iter().cycle();
        for ((name, points), &colour) in self.lines.iter().zip(&mut colours) {
            let line =
                LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(if points.len() > MARKED { 0 } else { 3 });
            chart.draw_series(line)?.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
        for ((name, points), &colour) in self.marks.iter().zip(&mut colours) {
            let marks = points.iter().map(|&point| Cross::new(point, 3, colour.stroke_width(1)));
            chart.draw_series(marks)?.label(name).legend(move |(x, y)| Cross::new((x + 9, y), 4, colour.stroke_width(1)));
        }
        chart.configure_series_labels().position(legend(&crowded)).background_style(WHITE.mix(0.8)).border_style(TRANSPARENT).draw()?;
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
        for scale in [Scale::Linear, Scale::LogY, Scale::LogX, Scale::LogBoth, Scale::Sizes] {
            let lines = vec![("alpha".to_owned(), vec![(1.0, 10.0), (2.0, 20.0)]), ("beta".to_owned(), vec![(1.0, 1.0), (2e6, 400.0)])];
            let marks = vec![("gamma".to_owned(), vec![(4.0, 2.0)])];
            let panel = || Panel { title: "both".into(), x: "load", y: "rate", scale, lines: lines.clone(), marks: marks.clone() };
            draw(&path, &[panel(), panel(), panel(), panel()]).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(["alpha", "beta", "gamma", "both", "load", "rate"].iter().all(|word| text.contains(word)));
            assert_eq!(text.contains("\n64K\n"), scale == Scale::Sizes, "{text}");
        }
        assert!(draw("/nowhere/plot.svg".as_ref(), &[]).unwrap_err().to_string().contains("/nowhere/plot.svg"));
    }

    #[test]
    fn axes_have_no_more_digits_than_are_read() {
        assert_eq!([0.15000000000000002, 2000.0, 0.0001, 0.0].map(|value| plain(&value)), ["0.15", "2000", "0.0001", "0"]);
    }

    #[test]
    fn sizes_are_written_as_people_write_them() {
        assert_eq!([16.0, 1024.0, 1536.0, 65_536.0, 1_048_576.0].map(size), ["16", "1K", "1.5K", "64K", "1M"]);
    }
}
