//! The last hour as a picture.

use crate::history::{History, SLOT, SLOTS};
use crate::web::show;
use maud::{html, Markup};
use std::fmt::Write;
use std::time::Instant;

const HEIGHT: f64 = 60.0;

/// A line of a plot.
struct Line {
    name: &'static str,
    class: &'static str,
    /// Values by slot, in order.
    points: Vec<(u64, f64)>,
}

impl Line {
    fn new((name, class, points): (&'static str, &'static str, Vec<(u64, f64)>)) -> Self {
        Self {
            name,
            class,
            points,
        }
    }

    fn most(&self) -> f64 {
        self.points.iter().map(|point| point.1).fold(0.0, f64::max)
    }

    /// The path, with gaps where nothing was sampled.
    fn path(&self, first: u64, most: f64) -> String {
        let (mut path, mut next) = (String::new(), None);
        for &(slot, value) in self.points.iter().filter(|point| point.0 >= first) {
            let y = HEIGHT - HEIGHT * value / most.max(f64::MIN_POSITIVE);
            let x = slot - first;
            // A point alone is a line too, as long as a slot.
            let follows = next == Some(slot);
            let (begin, end) = if follows { ('L', "") } else { ('M', "h.5") };
            let _ = write!(path, "{begin}{x} {y:.1}{end}");
            next = Some(slot + 1);
        }
        path
    }
}

/// How many items were ready and dead, and how many came and went per second.
pub(crate) fn hour(history: &History, began: Instant) -> Markup {
    let last = began.elapsed().as_secs() / SLOT.as_secs();
    #[allow(clippy::cast_precision_loss)] // for people
    let point = |slot, count| (slot, count as f64);
    let ready = history.past().map(|past| point(past.slot, past.ready));
    let dead = history.past().map(|past| point(past.slot, past.dead));
    let counts = [
        ("ready", "a", ready.collect()),
        ("dead", "b", dead.collect()),
    ]
    .map(Line::new);
    let come = history.past_rates().map(|(slot, rates)| (slot, rates.0));
    let gone = history.past_rates().map(|(slot, rates)| (slot, rates.1));
    let rates = [
        ("in per second", "a", come.collect()),
        ("out per second", "c", gone.collect()),
    ];
    let rates = rates.map(Line::new);
    html! { div.plots { (plot(&counts, last)) (plot(&rates, last)) } }
}

fn plot(lines: &[Line], last: u64) -> Markup {
    // The present is at the right edge, also in the first hour.
    let first = (last + 1).saturating_sub(SLOTS);
    let shift = (SLOTS - 1).saturating_sub(last - first);
    let most = lines.iter().map(Line::most).fold(0.0, f64::max);
    html! {
        figure {
            figcaption {
                @for line in lines { span class={ "key " (line.class) } { (line.name) } " " }
                span.most { "at most " (show::rate(most)) ", last hour" }
            }
            svg viewBox={ "0 -2 " (SLOTS) " 64" } preserveAspectRatio="none" role="img" aria-label="the last hour" {
                @for quarter in 1..4 { line.grid x1=(quarter * 90) x2=(quarter * 90) y1="0" y2="60" {} }
                line.grid x1="0" x2=(SLOTS) y1="60" y2="60" {}
                @for line in lines { path.(line.class) transform={ "translate(" (shift) ")" } d=(line.path(first, most)) {} }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn a_path_has_gaps() {
        let points = vec![(3, 9.0), (10, 0.0), (11, 4.0), (13, 2.0)];
        let line = Line {
            name: "",
            class: "",
            points,
        };
        assert_eq!(format!("{}", line.most()), "9");
        assert_eq!(line.path(10, 4.0), "M0 60.0h.5L1 0.0M3 30.0h.5");
        assert_eq!(line.path(14, 0.0), "");
    }
}
