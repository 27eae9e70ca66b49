"use strict";
// The views of a report. The address selects one of them. Without a script all are shown, one below the other.

const Views = (() => {
  const views = [...document.querySelectorAll("main > .view")];
  const tabs = [...document.querySelectorAll(".tabs a")];
  const [top, tabBar, tools] = [".top", ".tabs", "#tools"].map((selector) => document.querySelector(selector));
  const own = { t: "conversation", lane: "conversation" }; // views of elements that are drawn on demand, by the start of their address
  const STILL_FRAMES = 10; // a layout that keeps its shape this long has settled: a change shows in the next frame or the one after
  const MAX_FRAMES = 120; // a conversation that is playing may never settle
  let keeping = new AbortController(); // ends the newest keepInView

  /** Show the view that contains an element, or is the element. */
  function show(element) {
    const shown = element?.closest(".view");
    if (!shown) return;
    for (const view of views) view.classList.toggle("off", view !== shown);
    for (const tab of tabs) {
      if (tab.hash === `#${shown.id}`) tab.setAttribute("aria-current", "true");
      else tab.removeAttribute("aria-current");
    }
  }

  /**
   * Scroll an element into view. Scroll again when the layout moves it, until the layout settles or the user acts.
   * Lists of turns get their real height only near the window (content-visibility), so the first scroll can miss.
   */
  function keepInView(element, options) {
    keeping.abort();
    keeping = new AbortController();
    const { signal } = keeping;
    measure(); // the tools may have been folded until now
    const stop = () => keeping.abort();
    for (const input of ["wheel", "pointerdown", "keydown"]) addEventListener(input, stop, { signal, capture: true, passive: true });
    const frame = (before, still, left) => {
      if (signal.aborted) return;
      const layout = `${Math.round(element.getBoundingClientRect().top + scrollY)} of ${document.documentElement.scrollHeight}`;
      const moved = layout !== before;
      if (moved) element.scrollIntoView(options);
      if (left && (moved || still < STILL_FRAMES)) requestAnimationFrame(() => frame(layout, moved ? 0 : still + 1, left - 1));
      else stop();
    };
    frame("", 0, MAX_FRAMES);
  }

  function follow(hash) {
    const target = document.getElementById(hash.slice(1)) ?? document.getElementById(own[/^#([a-z]+)-/.exec(hash)?.[1]]);
    if (!target?.closest(".view")) return;
    show(target);
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    if (!target.matches(".view")) keepInView(target);
    else {
      keeping.abort();
      scrollTo(0, 0);
    }
  }

  /** Pass the heights of the elements that cover the window's top to the style: the head (on a phone, only the tabs) and the search tools. */
  function measure() {
    const covering = getComputedStyle(top).display === "contents" ? tabBar : top;
    document.documentElement.style.setProperty("--head", `${covering.offsetHeight}px`);
    document.documentElement.style.setProperty("--tools", `${tools.offsetHeight}px`);
  }

  show(views[0]);
  const resized = new ResizeObserver(measure);
  for (const part of [top, tabBar, tools]) resized.observe(part);
  measure();
  addEventListener("hashchange", () => follow(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.hash === location.hash) follow(link.hash);
  });
  follow(location.hash);
  return { keepInView, show };
})();
