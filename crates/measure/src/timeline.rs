//! What went on when: rows of bars over time, as SVG.

use crate::plot::{COLOURS, Error, plain, save};
use plotters::prelude::*;
use std::path::Path;

/// A row: its name, and from when to when its bars reach.
pub type Row = (String, Vec<(f64, f64)>);

const WIDTH: u32 = 1200;
const ROW: u32 = 28;
/// Bars less wide than this are drawn as wide, in pixels: there are more of them than of pixels.
const LEAST: f64 = 1.5;

/// Draws rows, the first one on top.
///
/// # Errors
/// Naming the file.
pub fn draw(path: &Path, title: &str, x: &str, rows: &[Row]) -> Result<(), Error> {
    save(path, drawn(title, x, rows).map_err(|error| Error::new(path, &*error))?)
}

fn drawn(title: &str, x: &str, rows: &[Row]) -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    let root = SVGBackend::with_string(&mut text, (WIDTH, 100 + ROW * rows.len() as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let end = rows.iter().flat_map(|(_, bars)| bars).fold(f64::MIN_POSITIVE, |end, bar| end.max(bar.1));
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(130)
        .build_cartesian_2d(0.0..end, (0..rows.len().saturating_sub(1) as i32).into_segmented())?;
    let name = |place: &SegmentValue<i32>| match place {
        SegmentValue::CenterOf(row) => rows.iter().rev().nth(*row as usize).map(|(name, _)| name.clone()).unwrap_or_default(),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .x_desc(x)
        .x_label_formatter(&plain)
        .y_label_formatter(&name)
        .y_labels(rows.len())
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .draw()?;
    let least = end * LEAST / f64::from(WIDTH);
    for (place, (_, bars)) in rows.iter().rev().enumerate() {
        let edge = |row: usize| SegmentValue::Exact(row as i32);
        let colour = COLOURS[1];
        let bar = |&(from, to): &(f64, f64)| {
            let mut bar = Rectangle::new([(from, edge(place)), (to.max(from + least), edge(place + 1))], colour.filled());
            bar.set_margin(4, 4, 0, 0);
            bar
        };
        chart.draw_series(bars.iter().map(bar))?;
    }
    root.present()?;
    drop((chart, root));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_named_and_every_bar_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("timeline.svg");
        let rows = [("alpha".to_owned(), vec![(0.0, 1.0), (2.0, 3.0)]), ("beta".to_owned(), vec![(1.0, 2.0)])];
        draw(&path, "what when", "seconds", &rows).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(["alpha", "beta", "what when", "seconds"].iter().all(|word| text.contains(word)), "{text}");
        assert_eq!(text.matches("fill=\"#0072B2\"").count(), 3, "{text}");
        assert!(text.find("alpha") > text.find("beta"), "drawn from the bottom up");
        assert_eq!(text.matches("text-anchor=\"end\"").count(), 2, "one label for each row: {text}");
        assert!(draw("/nowhere/t.svg".as_ref(), "t", "x", &rows).unwrap_err().to_string().contains("/nowhere/t.svg"));
    }
}
