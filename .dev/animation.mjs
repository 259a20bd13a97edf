// An SVG that shows what the demo has found.
const SECONDS = 5;
const COLOURS = { good: '#1a7a46', slow: '#8a5a00' };
const WRONG = '#b3173c';

/** One scenario after the other, then all of them; only the latter for who wants no motion. It needs no script. */
export function animationOf(scenarios) {
  const scores = (upTo) =>
    scenarios[0].lanes.map(({ side }, n) => {
      const right = scenarios.slice(0, upTo).filter(({ lanes }) => lanes[n].verdict === 'good').length;
      return `${side} ${right} of ${upTo}`;
    });
  const scenes = [
    ...scenarios.map(({ title, about, lanes }, n) => [
      ...text(title, 52, { size: 22, weight: 700 }),
      ...text(about, 84, { fill: '#4b535c' }),
      ...lanes.flatMap(({ side, verdict, text: finding }, lane) => laneOf(side, verdict, finding, 160 + 122 * lane)),
      ...text(`Right: ${scores(n + 1).join(', ')}`, 432, { weight: 700 }),
    ]),
    [
      ...text(`Right: ${scores(scenarios.length).join(', ')}`, 52, { size: 20, weight: 700 }),
      ...scenarios[0].lanes.flatMap(({ side }, lane) => text(side, 84, { x: 330 + 150 * lane, fill: '#4b535c' })),
      ...scenarios.flatMap(({ title, lanes }, n) => [
        ...text(title, 116 + 40 * n),
        ...lanes.map(({ verdict }, lane) => markOf(verdict, 370 + 150 * lane, 116 + 40 * n)),
      ]),
    ],
  ];
  const length = SECONDS * scenes.length;
  const style = [
    `.scene{visibility:hidden;animation:scene ${length}s step-end infinite}`,
    `@keyframes scene{0%{visibility:visible}${(100 / scenes.length).toFixed(3)}%{visibility:hidden}}`,
    ...scenes.map((_, n) => `.scene:nth-of-type(${n + 1}){animation-delay:${SECONDS * n}s}`),
    '@media (prefers-reduced-motion:reduce){.scene{animation:none}.scene:last-of-type{visibility:visible}}',
  ];
  return [
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 460" width="640" height="460" role="img"',
    `  aria-labelledby="title" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif">`,
    `  <title id="title">The demo: ${escaped(scores(scenarios.length).join(', '))}</title>`,
    `  <style>${style.join('')}</style>`,
    '  <rect width="640" height="460" rx="12" fill="#ffffff" stroke="#d0d7de" />',
    ...scenes.map((lines) => `  <g class="scene">\n${lines.map((line) => `    ${line}\n`).join('')}  </g>`),
    '</svg>',
    '',
  ].join('\n');
}

function laneOf(side, verdict, finding, y) {
  const colour = COLOURS[verdict] ?? WRONG;
  return [
    `<rect x="24" y="${y - 26}" width="592" height="110" rx="8" fill="#f6f8fa" />`,
    `<rect x="24" y="${y - 26}" width="5" height="110" rx="2" fill="${colour}" />`,
    ...text(side, y, { x: 44, fill: '#4b535c' }),
    ...text(finding, y + 26, { x: 44, size: 16, fill: colour, weight: 600 }),
  ];
}

function markOf(verdict, x, y) {
  const path = verdict === 'good' ? `M${x} ${y - 6}l6 6 12-14` : `M${x} ${y - 13}l14 14m0-14-14 14`;
  return `<path d="${path}" fill="none" stroke="${COLOURS[verdict] ?? WRONG}" stroke-width="3" />`;
}

/** In lines: nothing in an SVG wraps them. */
function text(content, y, { x = 24, size = 17, weight = 400, fill = '#1f2328' } = {}) {
  const lines = content.match(/.{1,55}(?: |$)/g).map((line) => line.trimEnd());
  const attributes = `font-size="${size}" font-weight="${weight}" fill="${fill}"`;
  return lines.map((line, n) => `<text x="${x}" y="${y + 24 * n}" ${attributes}>${escaped(line)}</text>`);
}

function escaped(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
