"use strict";
// Zooms into the series of a workload, all of its plots at once: by dragging across one of them, or
// by the buttons. Without it the page shows all there is.
(() => {
    const STEPS = [1, 2, 5, 10];
    // Round seconds between two ends, about five.
    const ticks = (from, to) => {
        const raw = (to - from) / 5;
        const power = 10 ** Math.floor(Math.log10(raw));
        const step = STEPS.find((it) => it * power >= 0.999 * raw) * power;
        const found = [];
        for (let number = Math.ceil(from / step); number * step <= to; number += 1) {
            found.push(number * step);
        }
        const decimals = Math.max(0, -Math.floor(Math.log10(step)));
        return found.map((value) => [value, `${value.toFixed(decimals)} s`]);
    };

    const zoomable = (section) => {
        const areas = [...section.querySelectorAll("svg.area")].map((svg) => {
            const { width, height } = svg.viewBox.baseVal;
            const axis = svg.parentNode.querySelector(".across");
            return {
                svg, width, height, axis,
                end: Number(svg.dataset.end) / 1000,
                left: svg.x.baseVal.value,
                wide: svg.width.baseVal.value,
                ticks: [...axis.children],
                marked: svg.parentNode.querySelector(".whole"),
                selection: svg.querySelector(".selection"),
            };
        });
        if (areas.length === 0) {
            return;
        }
        let shown = [0, 1];
        const bar = document.createElement("p");
        const draw = () => {
            const [from, to] = shown;
            const whole = from === 0 && to === 1;
            for (const area of areas) {
                const box = [from * area.width, 0, (to - from) * area.width, area.height];
                area.svg.setAttribute("viewBox", box.join(" "));
                area.marked.style.display = whole ? "" : "none";
                if (whole) {
                    area.axis.replaceChildren(...area.ticks);
                    continue;
                }
                const span = [from * area.end, to * area.end];
                const texts = ticks(...span).map(([value, text]) => {
                    const tick = area.ticks[0].cloneNode();
                    const share = (value - span[0]) / (span[1] - span[0]);
                    tick.setAttribute("x", area.left + share * area.wide);
                    tick.textContent = text;
                    return tick;
                });
                area.axis.replaceChildren(...texts);
            }
            bar.classList.toggle("zoomed", !whole);
        };
        const show = (from, to) => {
            const length = Math.min(1, Math.max(1e-4, to - from));
            const begin = Math.min(1 - length, Math.max(0, from));
            shown = [begin, begin + length];
            draw();
        };
        const around = (factor, shift) => {
            const length = (shown[1] - shown[0]) * factor;
            const middle = (shown[0] + shown[1]) / 2 + shift * (shown[1] - shown[0]);
            show(middle - length / 2, middle + length / 2);
        };

        bar.className = "zoom";
        bar.append("Drag across a plot to zoom. ");
        for (const [text, label, press] of [
            ["+", "Zoom in", () => around(0.5, 0)],
            ["\u2212", "Zoom out", () => around(2, 0)],
            ["\u25c2", "Earlier", () => around(1, -0.25)],
            ["\u25b8", "Later", () => around(1, 0.25)],
            ["whole", "Show all of it", () => show(0, 1)],
        ]) {
            const button = document.createElement("button");
            button.type = "button";
            button.textContent = text;
            button.setAttribute("aria-label", label);
            button.addEventListener("click", press);
            bar.append(button);
        }
        areas[0].svg.closest(".plots").before(bar);

        for (const { svg, selection } of areas) {
            const place = (event) => {
                const { left, width } = svg.getBoundingClientRect();
                const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
                return shown[0] + share * (shown[1] - shown[0]);
            };
            const { width } = svg.viewBox.baseVal;
            let begin = null;
            const mark = (from, to) => {
                selection.setAttribute("x", Math.min(from, to) * width);
                selection.setAttribute("width", Math.abs(to - from) * width);
            };
            const stop = () => {
                begin = null;
                mark(0, 0);
            };
            svg.addEventListener("pointerdown", (event) => {
                if (event.button === 0) {
                    begin = place(event);
                    svg.setPointerCapture(event.pointerId);
                }
            });
            svg.addEventListener("pointermove", (event) => {
                if (begin !== null) {
                    mark(begin, place(event));
                }
            });
            svg.addEventListener("pointerup", (event) => {
                if (begin === null) {
                    return;
                }
                const [from, to] = [begin, place(event)].sort((a, b) => a - b);
                stop();
                if (to - from > 0.02 * (shown[1] - shown[0])) {
                    show(from, to);
                }
            });
            svg.addEventListener("pointercancel", stop);
            svg.addEventListener("dblclick", () => show(0, 1));
        }
    };
    document.querySelectorAll("section").forEach(zoomable);
})();
