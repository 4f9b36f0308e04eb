//! Tests what a flame graph or an icicle graph draws, and how it reacts to the mouse and the keyboard.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::devtools::Browser;

/// Height of a row in pixels.
const ROW: f64 = 20.0;

/// JavaScript function that returns the pixels of a part of a canvas: four bytes for each pixel.
const PIXELS: &str = "(canvas, ...part) => { \
     const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true}); \
     copy.drawImage(canvas, 0, 0); return copy.getImageData(...part).data; }";

/// JavaScript function that returns red, green and blue of a colour in the style sheet, in the current colour scheme.
const COLOUR: &str = "(key) => { const probe = document.createElement('span'); \
     probe.style.color = `var(--${key})`; document.body.append(probe); \
     const colour = getComputedStyle(probe).color; probe.remove(); return colour.match(/\\d+/g).map(Number); }";

/// Waits until `count` graphs are drawn in the current colours of the page. The first row of a graph shows all stacks,
/// so it has one known colour.
pub(super) fn has_colours(browser: &mut Browser, count: usize) -> Result<()> {
    browser.wait(&format!(
        "(() => {{ const graphs = [...document.querySelectorAll('.flame')].filter((f) => Number(f.dataset.drawn) > 0); \
         const root = ({COLOUR})('root').join(); \
         return graphs.length === {count} && graphs.every((graph) => {{ const c = graph.querySelector('canvas'); \
         return [...({PIXELS})(c, c.width - 8, 3, 1, 1)].slice(0, 3).join() === root; }}); }})()"
    ))?;
    Ok(())
}

/// True if a frame fills the visible width of the graph. There is always a small gap beside a frame.
fn is_whole(left: f64, width: f64) -> bool {
    left < 0.001 && width > 0.995
}

/// A graph of frames on a page.
pub(super) struct Graph<'a> {
    pub(super) browser: &'a mut Browser,
    /// ID of the HTML element of the graph.
    pub(super) id: &'a str,
    /// ID of the search field.
    pub(super) field: &'a str,
    /// A search text that occurs in the names of some frames.
    pub(super) find: &'a str,
    /// True if the page must show `(estimated)` beside byte counts: the agent's samples are estimates, but the stacks
    /// that a dump itself records are exact.
    pub(super) is_estimated: bool,
}

impl Graph<'_> {
    /// Returns the window coordinates of a point in a row of frames. `share` is the horizontal position of the point in
    /// the row, from 0 (left) to 1 (right). First scrolls the row to the middle of the window, because the mouse does
    /// not reach anything outside the window.
    fn place(&mut self, row: u32, share: f64) -> Result<(f64, f64)> {
        let down = ROW * f64::from(row) + ROW / 2.0;
        let canvas = format!("document.querySelector('#{} canvas')", self.id);
        let side = |side: &str| format!("{canvas}.getBoundingClientRect().{side}");
        // Scroll several times, because parts of the page get their height only when they become visible.
        for _ in 0..3 {
            self.browser.eval(&format!(
                "scrollBy(0, {} + {down} - innerHeight / 2); \
                 new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
                side("top")
            ))?;
        }
        let x = self.browser.number(&side("left"))? + self.browser.number(&side("width"))? * share;
        let y = self.browser.number(&side("top"))? + down;
        let there = format!("document.elementFromPoint({x}, {y}) === {canvas}");
        ensure!(
            self.browser.eval(&there)? == true,
            "row {row} of {} cannot be scrolled into view",
            self.id
        );
        Ok((x, y))
    }

    /// Returns the painted frames. Each frame has its row, its left edge and its width. Edge and width are fractions of
    /// the graph's width.
    pub(super) fn painted(&mut self) -> Result<Vec<(u32, f64, f64)>> {
        // The content of a canvas cannot be read from the page, so the test records the drawing calls. To cause them,
        // the test moves the focus to the graph, which is drawn at each change of the focus.
        let painted = self.browser.eval(&format!(
            "(() => {{ const paint = CanvasRenderingContext2D.prototype.fillRect; \
             const canvas = document.querySelector('#{} canvas'); const all = []; canvas.blur(); \
             CanvasRenderingContext2D.prototype.fillRect = function (...at) {{ \
             if (this.canvas === canvas) all.push(at); return paint.call(this, ...at); }}; \
             try {{ canvas.focus(); }} finally {{ CanvasRenderingContext2D.prototype.fillRect = paint; }} \
             const width = canvas.getBoundingClientRect().width; \
             return all.map(([x, y, w]) => [y, x / width, w / width]); }})()",
            self.id
        ))?;
        let painted = painted.as_array().context("frames")?;
        let number = |frame: &Value, at: usize| frame[at].as_f64().context("a number");
        let frame = |frame| {
            Ok((
                (number(frame, 0)? / ROW) as u32,
                number(frame, 1)?,
                number(frame, 2)?,
            ))
        };
        painted.iter().map(frame).collect()
    }

    /// Checks that a click on a frame zooms it to the width of the view.
    fn zoom(&mut self) -> Result<()> {
        let zoom = format!(
            "(document.getElementById('{}').dataset.zoom ?? '')",
            self.id
        );
        let painted = self.painted()?;
        ensure!(
            painted
                .first()
                .is_some_and(|&(row, x, w)| row == 0 && is_whole(x, w))
        );
        let narrow = painted
            .iter()
            .filter(|&&(row, _, w)| row > 0 && (0.03..0.9).contains(&w))
            .map(|&(row, x, w)| (row, x + w / 2.0));
        // If there is only one path, all frames are as wide as the view. Then use the frame in row 2. A click on folded
        // frames does not zoom, so they are not used.
        let mut candidates = narrow.chain([(2, 0.5)]);
        let (row, share) = loop {
            let (row, share) = candidates.next().context("no frame can be zoomed")?;
            let (x, y) = self.place(row, share)?;
            self.browser.mouse(x, y, false)?;
            let said = format!("document.querySelector('#{} .said').textContent", self.id);
            if self.browser.eval(&format!(
                "{said}.includes('; Enter or a click unfolds them')"
            ))? == false
            {
                break (row, share);
            }
        };
        let (x, y) = self.place(row, share)?;
        self.browser.mouse(x, y, true)?;
        let at = format!("row {row}, {share} of the width, {x}, {y}");
        self.browser
            .wait(&format!("{zoom} && !{zoom}.startsWith('all ')"))
            .with_context(|| format!("{at}: {:?}", self.browser.eval(&zoom)))?;
        // The zoomed frame must be the only one in its row. The rows of its callers are still drawn.
        let painted = self.painted()?;
        let in_row: Vec<_> = painted.iter().filter(|frame| frame.0 == row).collect();
        let is_alone = matches!(in_row[..], [&(_, x, w)] if is_whole(x, w));
        ensure!(
            is_alone,
            "the row of the zoomed frame must have no other frames: {in_row:?}"
        );
        Ok(())
    }

    /// Checks the drawing with mouse, keyboard and search.
    pub(super) fn check(&mut self) -> Result<()> {
        let (graph, field) = (self.id, self.field);
        let data = |key: &str| format!("document.getElementById('{graph}').dataset.{key}");
        let drawn = self.browser.number(&format!("Number({})", data("drawn")))?;
        ensure!((3.0..20_000.0).contains(&drawn), "{drawn} frames are drawn");
        // Checks the details of a frame, which the page shows above the graph.
        let (x, y) = self.place(2, 0.5)?;
        self.browser.mouse(x, y, false)?;
        let said = format!("document.querySelector('#{graph} .said')");
        self.browser
            .wait(&format!("{said}.textContent.includes(' % of all')"))?;
        let told = format!("{said}.textContent.includes(' after (estimated)')");
        ensure!(
            self.browser.eval(&told)? == self.is_estimated,
            "the page does not show if bytes are estimated"
        );
        // The details stay visible above the row that they describe. Only the text itself is measured, because the
        // element has room for more lines.
        let above = format!(
            "(() => {{ const said = {said}.firstElementChild.getBoundingClientRect(); \
             const header = document.querySelector('header'); const covered = getComputedStyle(header).position === 'sticky'; \
             const top = covered ? header.getBoundingClientRect().bottom : 0; \
             return said.height > 0 && said.top >= top - 1 && said.bottom <= {y}; }})()"
        );
        self.browser
            .wait(&above)
            .context("the details are not above the graph")?;
        let total = format!(
            "/^Total: [0-9.]+ [KMG]?i?B$/.test(document.querySelector('#{graph} .total').textContent)"
        );
        ensure!(
            self.browser.eval(&total)? == true,
            "the page shows no total"
        );
        let meaning = format!("document.querySelector('#{graph} .legend').innerText");
        let meaning = self.browser.eval(&meaning)?;
        let class = match graph {
            "held-graph" => "class that accumulates",
            _ => "allocated class",
        };
        let parts = ["application", "JDK and frameworks", class];
        ensure!(
            meaning
                .as_str()
                .is_some_and(|m| parts.iter().all(|part| m.contains(part))),
            "the legend shows {meaning}"
        );
        self.zoom().context("zoom")?;
        let canvas = format!("document.querySelector('#{graph} canvas')");
        self.browser.focus(&canvas)?;
        self.browser.key("Escape")?;
        self.browser
            .wait(&format!("{}.startsWith('all ')", data("zoom")))?;
        // Checks the graph with the keyboard alone: moving, zooming, resetting.
        for key in [
            "ArrowDown",
            "ArrowDown",
            "ArrowRight",
            "ArrowLeft",
            "ArrowDown",
        ] {
            self.browser.key(key)?;
        }
        let chosen = self.browser.eval(&data("chosen"))?;
        ensure!(
            chosen.as_str().is_some_and(|c| !c.is_empty()),
            "the keyboard does not choose a frame"
        );
        let described = format!("{said}.textContent.replaceAll('\\u200b', '').includes({chosen})");
        ensure!(
            self.browser.eval(&described)? == true,
            "the page does not describe the chosen frame {chosen}"
        );
        self.browser.key("Enter")?;
        self.browser
            .wait(&format!("{} === {chosen}", data("zoom")))?;
        self.browser.key("ArrowUp")?;
        self.browser
            .wait(&format!("{} !== {chosen}", data("chosen")))?;
        self.browser.key("Escape")?;
        self.browser
            .wait(&format!("{}.startsWith('all ')", data("zoom")))?;
        // The flame graph handles keys, but must leave key combinations such as Alt with an arrow key to the browser.
        let left = format!(
            "document.querySelector('#{graph} canvas').dispatchEvent(new KeyboardEvent('keydown', \
             {{key: 'ArrowDown', altKey: true, cancelable: true}}))"
        );
        let chosen = self.browser.eval(&data("chosen"))?;
        ensure!(
            self.browser.eval(&left)? == true && self.browser.eval(&data("chosen"))? == chosen,
            "the page handles Alt with an arrow key, which belongs to the browser"
        );
        self.browser.search(field, self.find)?;
        let took = self
            .browser
            .wait(&format!("Number({} ?? 0) > 0", data("matched")))?;
        println!("{graph}: {drawn} frames drawn, search {took:?}");
        let said = format!("document.querySelector('#{graph} .found').textContent");
        let found = format!("(/^[0-9,]+ found, .* of all$/).test({said})");
        self.browser.wait(&found)?;
        let marked = format!(
            "(() => {{ const c = {canvas}; const d = ({PIXELS})(c, 0, 0, c.width, c.height); \
             const [r, g, b] = ({COLOUR})('match'); \
             for (let i = 0; i < d.length; i += 4) if (d[i] === r && d[i+1] === g && d[i+2] === b) return true; \
             return false; }})()"
        );
        ensure!(
            self.browser.eval(&marked)? == true,
            "the search highlights no frame"
        );
        self.browser
            .focus(&format!("document.getElementById('{field}')"))?;
        self.browser.key("Escape")?;
        self.browser
            .wait(&format!("{} === undefined && !{found}", data("matched")))?;
        Ok(())
    }

    /// Checks that the last frame of a stack is the allocated class, and that the page calls only this frame a class.
    pub(super) fn leaf(&mut self) -> Result<()> {
        const DEEPER: usize = 64;
        let canvas = "document.querySelector('#flame-graph canvas')";
        self.browser.focus(canvas)?;
        for _ in 0..DEEPER {
            self.browser.key("ArrowDown")?;
        }
        self.browser.key("Enter")?;
        let data = "document.getElementById('flame-graph').dataset";
        self.browser
            .wait(&format!("{data}.zoom === {data}.chosen"))?;
        let rows = self
            .browser
            .number(&format!("{canvas}.getBoundingClientRect().height / 20"))?;
        let said = "document.querySelector('#flame-graph .said').textContent";
        for (row, is_class) in [(rows as u32 - 1, true), (1, false)] {
            let (x, y) = self.place(row, 0.5)?;
            self.browser.mouse(x, y, false)?;
            self.browser.wait(&format!(
                "{said}.includes(' of all') && {said}.includes('the class that was allocated') === {is_class}"
            ))?;
        }
        self.browser.focus(canvas)?;
        self.browser.key("Escape")?;
        self.browser
            .wait(&format!("{data}.zoom.startsWith('all ')"))?;
        Ok(())
    }
}
