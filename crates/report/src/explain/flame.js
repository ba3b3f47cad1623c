"use strict";
// Zooms into a flame graph: a click on a frame, or Enter, makes it as wide as the graph, the same on the
// outermost one shows all. The graph is one stop for the tab key; arrow keys go from frame to frame. Prints
// the figures of a frame, for screens without a pointer. Finds functions by name. Without it the page shows
// all there is.
(() => {
    const LABELLED = 2;
    const NEAR = 2e-3;
    const graph = (svg) => {
        const frames = [...svg.children].filter((it) => it.tagName === "svg").map((it) => ({
            it,
            x: parseFloat(it.getAttribute("x")),
            wide: parseFloat(it.getAttribute("width")),
            y: Number(it.getAttribute("y")),
            name: it.querySelector("title").textContent.split("\n")[0].replace(/, [^,]*$/, ""),
        }));
        const show = (frame) => {
            const scale = 100 / frame.wide;
            for (const { it, x, wide, y, name } of frames) {
                const isBelow = y >= frame.y && x <= frame.x + NEAR
                    && x + wide >= frame.x + frame.wide - NEAR;
                const isAbove = y <= frame.y && x >= frame.x - NEAR
                    && x + wide <= frame.x + frame.wide + NEAR;
                const shown = isBelow ? 100 : wide * scale;
                it.style.display = isBelow || isAbove ? "" : "none";
                it.classList.toggle("caller", isBelow && y > frame.y);
                it.setAttribute("x", `${isBelow ? 0 : (x - frame.x) * scale}%`);
                it.setAttribute("width", `${shown}%`);
                let text = it.querySelector("text");
                if (shown >= LABELLED && !text) {
                    text = document.createElementNS(svg.namespaceURI, "text");
                    text.textContent = name;
                    it.append(text);
                }
                if (text) {
                    text.style.display = shown >= LABELLED ? "" : "none";
                }
            }
        };
        const figures = document.createElement("pre");
        figures.className = "told";
        figures.setAttribute("aria-live", "polite");
        const tell = (it) => { figures.textContent = it.querySelector("title").textContent; };
        tell(frames[0].it);
        // The frame that an arrow key goes to: the widest callee, the caller, or a neighbour.
        const beside = (from, key) => {
            const isWithin = (one, other) =>
                one.x >= other.x - NEAR && one.x + one.wide <= other.x + other.wide + NEAR;
            const up = from.it.height.baseVal.value;
            const found = (is) => frames.filter((to) => to.it.style.display !== "none" && is(to));
            switch (key) {
            case "ArrowUp": return found((to) => to.y === from.y - up && isWithin(to, from))
                .reduce((one, other) => (one && one.wide >= other.wide ? one : other), undefined);
            case "ArrowDown": return found((to) => to.y === from.y + up && isWithin(from, to))[0];
            case "ArrowLeft": return found((to) => to.y === from.y && to.x < from.x).pop();
            case "ArrowRight": return found((to) => to.y === from.y && to.x > from.x)[0];
            default: return undefined;
            }
        };
        for (const frame of frames) {
            frame.it.setAttribute("tabindex", frame === frames[0] ? "0" : "-1");
            frame.it.addEventListener("click", () => { tell(frame.it); show(frame); });
            frame.it.addEventListener("keydown", (event) => {
                const to = beside(frame, event.key);
                if (event.key === "Enter") {
                    show(frame);
                } else if (to) {
                    event.preventDefault();
                    to.it.focus();
                }
            });
            frame.it.addEventListener("pointerenter", () => tell(frame.it));
            frame.it.addEventListener("focus", () => {
                frames.forEach(({ it }) => it.setAttribute("tabindex", it === frame.it ? "0" : "-1"));
                tell(frame.it);
            });
        }
        const bar = document.createElement("p");
        bar.className = "zoom";
        bar.append("Point at a frame, tap it or go to it by arrow keys for its figures; click it or press "
            + "Enter to zoom. ");
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = "whole";
        button.addEventListener("click", () => show(frames[0]));
        const search = document.createElement("input");
        search.type = "search";
        search.placeholder = "find a function";
        search.setAttribute("aria-label", "Find a function");
        search.addEventListener("input", () => {
            const wanted = search.value.trim();
            for (const { it, name } of frames) {
                it.classList.toggle("found", wanted !== "" && name.includes(wanted));
            }
        });
        bar.append(button, " ", search);
        svg.before(bar, figures);
    };
    document.querySelectorAll(".flame > svg").forEach(graph);
})();
