//! The throughput of all subjects of a workload against the number of cores.

use crate::table::{Row, Runs};
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const SIZE: (u32, u32) = (720, 420);
const COLORS: [RGBColor; 5] = [
    RGBColor(0x1f, 0x77, 0xb4),
    RGBColor(0xff, 0x7f, 0x0e),
    RGBColor(0x2c, 0xa0, 0x2c),
    RGBColor(0xd6, 0x27, 0x28),
    RGBColor(0x7f, 0x7f, 0x7f),
];

pub(crate) fn plot(
    path: &Path,
    workload: &str,
    cores: &[usize],
    rows: &[Row],
) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let all = rows
        .iter()
        .flat_map(|row| &row.outcomes)
        .map(Runs::throughput);
    let (least, most) = all.fold((f64::MAX, 0.0), |(least, most), now| {
        (now.min(least), now.max(most))
    });
    let widest = cores.iter().max().copied().unwrap_or(1);
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("Simulated machine: {workload}"), ("sans-serif", 17))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(
            (1..widest + 1).log_scale().base(2.0),
            (least * 0.8..most * 1.3).log_scale(),
        )?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("simulated cores")
        .y_desc("items per µs")
        .draw()?;
    for (row, color) in rows.iter().zip(COLORS.iter().cycle()) {
        let points = cores
            .iter()
            .copied()
            .zip(row.outcomes.iter().map(Runs::throughput));
        let line = PathElement::new(points.collect::<Vec<_>>(), color.stroke_width(2));
        let legend = |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2));
        chart.draw_series([line])?.label(row.subject).legend(legend);
    }
    let mut labels = chart.configure_series_labels();
    labels.position(SeriesLabelPosition::LowerLeft);
    labels
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}
