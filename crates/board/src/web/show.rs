//! Numbers and times for people.

use std::time::Duration;

/// A count, in groups of three digits.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// What is not known is a dash.
pub(crate) fn known<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or("–".into(), show)
}

pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Items per second.
pub(crate) fn rate(rate: f64) -> String {
    match rate {
        ..0.05 => "0".into(),
        rate if rate < 9.95 => format!("{rate:.1}"),
        // A rate of more than 2^64 items is none.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        rate => count(rate.round() as u64),
    }
}

/// At most so many letters of a text, and whether there are more.
pub(crate) fn head(text: &str, letters: usize) -> (&str, bool) {
    match text.char_indices().nth(letters) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_short() {
        let counts = [
            (0, "0"),
            (999, "999"),
            (1000, "1\u{202f}000"),
            (1_234_567, "1\u{202f}234\u{202f}567"),
        ];
        for (number, text) in counts {
            assert_eq!(count(number), text);
        }
        let times = [
            (0, "0 ms"),
            (1, "1 s"),
            (119, "119 s"),
            (120, "2 min"),
            (7200, "2 h"),
            (172_800, "2 days"),
        ];
        for (seconds, text) in times {
            assert_eq!(time(Duration::from_secs(seconds)), text);
        }
        let rates = [
            (0.0, "0"),
            (0.04, "0"),
            (0.06, "0.1"),
            (9.94, "9.9"),
            (9.96, "10"),
            (1234.4, "1\u{202f}234"),
        ];
        for (number, text) in rates {
            assert_eq!(rate(number), text);
        }
        assert_eq!(known(None::<u64>, count), "–");
    }

    #[test]
    fn a_head_ends_between_letters() {
        assert_eq!(head("größer", 3), ("grö", true));
        assert_eq!(head("größer", 6), ("größer", false));
    }
}
