// Code as a list of tokens. Whitespace, comments, the style of quotes and trailing commas make no difference.
const TEXT = String.raw`"(?:\\[^]|[^"\\])*"|'(?:\\[^]|[^'\\])*'`;
const REGEX = String.raw`(?<=(?:[=(,:!&|?{};]|return)\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n[])+\/\w*`;

const LANGUAGES = {
  ts: new RegExp(String.raw`//.*|/\*[^]*?\*/|${REGEX}|${TEXT}|\`(?:\\[^]|[^\`\\])*\`|#?[\w$]+|\S`, 'g'),
  lua: new RegExp(String.raw`--\[\[[^]*?\]\]|--.*|^#!.*|${TEXT}|\w+|\S`, 'g'),
};

const COMMENTS = { ts: /^\/[/*]/, lua: /^--/ };

/** The tokens of a text, each with where it begins and ends. */
export function tokensOf(text, language) {
  const found = [...text.matchAll(LANGUAGES[language])].filter(([token]) => !COMMENTS[language].test(token));
  const tokens = found.flatMap(({ 0: token, index }) =>
    token.startsWith('`') ? tokensOfTemplate(token, index) : [tokenAt(token, index)],
  );
  return tokens.filter(({ token }, i) => token !== ',' || !/^[)\]}]$/.test(tokens[i + 1]?.token ?? ''));
}

/** A template literal: its texts, and the tokens of the expressions between them. */
function tokensOfTemplate(template, start) {
  let at = start;
  return template.split(/(\$\{[^}]*\})/).flatMap((part) => {
    const begin = at;
    at += part.length;
    if (!part.startsWith('${')) return [tokenAt(part, begin)];
    const inside = tokensOf(part.slice(2, -1), 'ts');
    return inside.map(({ token, start, end }) => ({ token, start: begin + 2 + start, end: begin + 2 + end }));
  });
}

function tokenAt(token, start) {
  return { token: plain(token), start, end: start + token.length };
}

/** The numbers of the tokens at which others begin to stand. */
export function occurrencesOf(others, tokens) {
  const starts = tokens.map((_, i) => i);
  return starts.filter((start) => others.every(({ token }, i) => token === tokens[start + i]?.token));
}

/** How many tokens two lists have in common, in whatever order. */
export function commonTokens(some, others) {
  const left = others.map(({ token }) => token);
  return some.filter(({ token }) => {
    const at = left.indexOf(token);
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  }).length;
}

function plain(token) {
  return /^['"]/.test(token) ? JSON.stringify(token.slice(1, -1).replace(/\\(['"])/g, '$1')) : token;
}
