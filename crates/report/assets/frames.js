// The frames of a stack.

/**
 * Returns list items for the frames of a stack, innermost first. Frames of the JDK and of frameworks are folded, except
 * the frame that the application called.
 *
 * If there is no application frame, frames of frameworks that the user added are shown instead. If there are no such
 * frames either, frames of known frameworks are shown.
 */
const framesView = (frames) => {
  const line = (frame) => element("li", isRuntime(frame) ? { class: "runtime" } : {}, name(frame));
  const kinds = [(frame) => !isRuntime(frame), isAddedFramework, isFramework];
  const isTelling = kinds.find((kind) => frames.some(kind));
  if (!isTelling) return frames.map(line);
  const own = frames.findIndex(isTelling);
  const lines = [];
  let folded = [];
  const unfold = () => {
    const kinds = new Set(folded.map((frame) => (isFramework(frame) ? "framework" : "JDK")));
    const whose = [...kinds].sort().reverse().join(" and ");
    const word = folded.length > 1 ? "frames" : "frame";
    const count = element("summary", {}, `\u2026 ${grouped(folded.length)} ${whose} ${word}`);
    const all = element("details", {}, count, element("ol", { class: "frames" }, ...folded.map(line)));
    if (folded.length) lines.push(element("li", { class: "runtime" }, all));
    folded = [];
  };
  frames.forEach((frame, i) => {
    if (!isTelling(frame) && i + 1 !== own) {
      folded.push(frame);
    } else {
      unfold();
      lines.push(line(frame));
    }
  });
  unfold();
  return lines;
};
