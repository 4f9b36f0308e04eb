//! Draws latencies over time as SVG.

use std::fmt::Write as _;

use anyhow::Result;

use super::latency::Sample;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 380.0;
/// Margins for labels, in SVG units.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 45.0;
const COLORS: [&str; 2] = ["#1565c0", "#c62828"];
/// The lowest latency that is drawn, in milliseconds.
const LOWEST: f64 = 0.05;
/// Number of seconds that one point covers. The point shows the slowest request in that time.
const STEP: f64 = 0.05;

/// Draws the highest latency in each interval of [`STEP`] seconds. The axis of latencies is logarithmic.
pub(super) fn svg(title: &str, series: &[(&str, Vec<Sample>)]) -> Result<String> {
    let all = || series.iter().flat_map(|(_, samples)| samples);
    let (first, last) = all().fold((0.0_f64, 1.0_f64), |(a, b), s| (a.min(s.0), b.max(s.0)));
    let worst = all().fold(10.0_f64, |worst, sample| worst.max(sample.1));
    let (low, high) = (LOWEST.log10(), worst.log10().ceil());
    let x = |at: f64| LEFT + (at - first) / (last - first) * (WIDTH - LEFT - RIGHT);
    let y = |ms: f64| {
        let part = (ms.max(LOWEST).log10() - low) / (high - low);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{title}</text>\n"
    );
    let mut power = 0.1;
    while power <= worst * 10.0 && power.log10() <= high {
        let at = y(power);
        writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{power} ms</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
        )?;
        power = if power < 1.0 { 1.0 } else { power * 10.0 };
    }
    // The time axis gets about eight labels, at whole seconds.
    let every = ((last - first) / 8.0).ceil().max(1.0);
    let mut second = 0.0;
    while second <= last {
        let (at, below) = (x(second), HEIGHT - BOTTOM + 18.0);
        writeln!(
            out,
            "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{second} s</text>"
        )?;
        second += every;
    }
    for ((name, samples), (at, color)) in series.iter().zip(COLORS.iter().enumerate()) {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for &(when, ms) in samples {
            let step = (when / STEP).floor() * STEP;
            match points.last_mut() {
                Some((of, worst)) if *of == step => *worst = worst.max(ms),
                _ => points.push((step, ms)),
            }
        }
        let points: Vec<String> = points
            .iter()
            .map(|&(when, ms)| format!("{:.1},{:.1}", x(when), y(ms)))
            .collect();
        let label = 35.0;
        let beside = LEFT + 160.0 * f64::from(u32::try_from(at)?);
        let name = name.trim_matches('`');
        writeln!(
            out,
            "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"1.2\" points=\"{}\"/>\n\
             <text x=\"{beside}\" y=\"{label}\" fill=\"{color}\">{name}</text>",
            points.join(" ")
        )?;
    }
    out += "</svg>\n";
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_is_a_line_within_the_picture() {
        let samples = vec![(-1.0, 0.2), (0.0, 900.0), (0.01, 2.0), (2.0, 0.001)];
        let text = svg(
            "a title",
            &[("forked", samples.clone()), ("`own`", samples)],
        )
        .expect("it");
        assert_eq!(text.matches("<polyline").count(), 2);
        assert!(
            text.contains(">forked<") && text.contains(">own<"),
            "{text}"
        );
        assert!(text.contains(">1000 ms<"), "{text}");
        let line = text
            .lines()
            .find(|l| l.starts_with("<polyline"))
            .expect("it");
        let points = line
            .split("points=\"")
            .nth(1)
            .expect("it")
            .split('"')
            .next()
            .expect("it");
        assert_eq!(
            points.split(' ').count(),
            3,
            "the worst of each moment: {points}"
        );
        for point in points.split(' ') {
            let (x, y) = point.split_once(',').expect("it");
            let (x, y): (f64, f64) = (x.parse().expect("it"), y.parse().expect("it"));
            assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{point}");
            assert!((TOP - 1.0..=HEIGHT - BOTTOM).contains(&y), "{point}");
        }
    }
}
