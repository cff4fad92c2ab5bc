// Diagrams are drawn where mermaid is here; their source stays to be read where it is not, or where it fails.
let ready = null;
let number = 0;

function load() {
  ready ||= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = "/static/vendor/mermaid.min.js";
    script.onload = () => {
      const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
      const fontFamily = getComputedStyle(document.body).fontFamily;
      window.mermaid.initialize({
        startOnLoad: false,
        securityLevel: "strict",
        htmlLabels: false,
        flowchart: { htmlLabels: false },
        theme: isDark ? "dark" : "neutral",
        fontFamily,
        maxTextSize: 20000,
        maxEdges: 300,
      });
      done(window.mermaid);
    };
    script.onerror = failed;
    document.head.append(script);
  });
  return ready;
}

// The page forbids styles in its text: those of a drawing are given by script, which it allows.
function styled(svg) {
  for (const style of svg.querySelectorAll("style")) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style.textContent);
    document.adoptedStyleSheets.push(sheet);
    style.remove();
  }
  for (const one of [svg, ...svg.querySelectorAll("[style]")]) {
    const words = one.getAttribute("style");
    if (words) one.style.cssText = words;
  }
}

// Labels are measured in the page itself, so no tag and no picture gets that far; `<<interface>>` and `<br>` are words of its own.
function harmless(text) {
  if (/\bimg\b["']?\s*:|^\s*(links?|properties|details)\s.*:/im.test(text)) throw new Error("pictures and menus are not drawn");
  return text.replace(/<<[\w ]+>>|<(?!br\s*\/?>)(?=[/!?a-z])/gi, (found) => (found === "<" ? "‹" : found));
}

async function one(figure, mermaid) {
  const source = figure.querySelector(".mermaid-source");
  const { svg } = await mermaid.render(`diagram-${++number}`, harmless(source.textContent));
  const drawn = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  drawn.querySelectorAll("script, foreignObject, a, image, use[href^='http']").forEach((bad) => bad.remove());
  for (const one of drawn.querySelectorAll("*")) one.getAttributeNames().forEach((name) => name.startsWith("on") && one.removeAttribute(name));
  const held = document.importNode(drawn, true);
  figure.prepend(held);
  styled(held);
  const folded = document.createElement("details");
  folded.innerHTML = "<summary class=\"faint\">Source</summary>";
  folded.append(source);
  figure.append(folded);
}

export async function draw() {
  const figures = [...document.querySelectorAll("figure.diagram:not([data-drawn])")];
  if (!figures.length || !document.body.dataset.diagrams) return;
  figures.forEach((figure) => { figure.dataset.drawn = "yes"; });
  const mermaid = await load().catch(() => null);
  if (!mermaid) return;
  for (const figure of figures) await one(figure, mermaid).catch(() => {});
  document.querySelectorAll("[id^=ddiagram-]").forEach((left) => left.remove());
}
