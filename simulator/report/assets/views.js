"use strict";
// The views of a report: one is shown at a time, that of the address. Without a script all are shown, one below the other.

const Views = (() => {
  const views = [...document.querySelectorAll("main > .view")];
  const tabs = [...document.querySelectorAll(".tabs a")];
  const top = document.querySelector(".top");
  const own = { t: "conversation", lane: "conversation" }; // views of what is drawn only once it is wanted, by the start of its address

  /** Show the view that holds an element, or is it. */
  function show(element) {
    const shown = element?.closest(".view");
    if (!shown) return;
    for (const view of views) view.classList.toggle("off", view !== shown);
    for (const tab of tabs) {
      if (tab.hash === `#${shown.id}`) tab.setAttribute("aria-current", "true");
      else tab.removeAttribute("aria-current");
    }
  }

  function follow(hash) {
    const target = document.getElementById(hash.slice(1)) ?? document.getElementById(own[/^#([a-z]+)-/.exec(hash)?.[1]]);
    if (!target?.closest(".view")) return;
    show(target);
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    if (target.matches(".view")) scrollTo(0, 0);
    else target.scrollIntoView();
  }

  /** Tell the style how much of the window's top is covered by what stays in sight. */
  const measure = () => {
    const covering = getComputedStyle(top).position === "sticky" ? top : top.querySelector(".tabs");
    document.documentElement.style.setProperty("--head", `${covering.offsetHeight}px`);
  };

  show(views[0]);
  new ResizeObserver(measure).observe(top);
  measure();
  addEventListener("hashchange", () => follow(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.hash === location.hash) follow(link.hash);
  });
  follow(location.hash);
  return { show };
})();
