const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const number = new Intl.NumberFormat('en');

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];

/** An instant as in `5 minutes ago` or `in 2 hours`. */
export function when(date) {
  const seconds = (date.getTime() - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1];
  return relative.format(Math.trunc(seconds / length), unit);
}

/** Seconds as in `2 hours`. */
export function duration(seconds) {
  const [unit, length] = UNITS.find(([, each]) => seconds >= each) ?? ['second', 1];
  return count(Math.floor(seconds / length), unit);
}

export const count = (amount, noun) => `${number.format(amount)} ${noun}${amount === 1 ? '' : 's'}`;

export function bytes(size) {
  if (size < 1000) return count(size, 'byte');
  return size < 1_000_000
    ? `${number.format(Math.round(size / 100) / 10)} kB`
    : `${number.format(Math.round(size / 1e5) / 10)} MB`;
}

// The first that fits: a browser also names those that it resembles.
const BROWSERS = [
  [/Edg/, 'Edge'],
  [/OPR\/|Opera/, 'Opera'],
  [/SamsungBrowser/, 'Samsung Internet'],
  [/Firefox|FxiOS/, 'Firefox'],
  [/Chrom|CriOS/, 'Chrome'],
  [/Safari/, 'Safari'],
  [/^curl/, 'curl'],
];

const SYSTEMS = [
  [/Windows/, 'Windows'],
  [/Android/, 'Android'],
  [/iPhone/, 'an iPhone'],
  [/iPad/, 'an iPad'],
  [/Mac OS X|Macintosh/, 'a Mac'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
];

/** A device as in `Chrome on Windows`. */
export function deviceName(device) {
  const userAgent = device?.userAgent ?? '';
  const [browser, system] = [BROWSERS, SYSTEMS].map((all) => all.find(([pattern]) => pattern.test(userAgent))?.[1]);
  if (browser && system) return `${browser} on ${system}`;
  return browser ?? (system ? `An application on ${system}` : userAgent || 'Unknown device');
}
