import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const file = fileURLToPath(new URL('../../../docs/guarantees.md', import.meta.url));
const text = readFileSync(file, 'utf8');

/** What each paragraph under a heading says, and the list of tests under it. */
const sentences = text
  .split(/^## .*$/m)
  .slice(1)
  .flatMap((section) => [...section.matchAll(/^(?!- )(\S[^]*?)\n\n((?:- .*\n)+)/gm)])
  .map(([, sentence, tests]) => [sentence!.replaceAll(/\s+/g, ' '), tests!] as const);

it('names tests for every sentence', () => {
  const paragraphs = text.split(/\n\n/).filter((part) => part.startsWith('- '));
  expect(sentences).toHaveLength(paragraphs.length);
  expect(sentences.length).toBeGreaterThan(10);
});

it.each(sentences)('%s', (_, tests) => {
  const named = [...tests.matchAll(/^- \[(.+)\]\((.+)\)$/gm)];
  expect(named).toHaveLength(tests.trim().split('\n').length);
  for (const [, title, path] of named) {
    const spec = readFileSync(join(dirname(file), path!), 'utf8');
    expect({ path, isThere: spec.includes(title!) }).toEqual({ path, isThere: true });
  }
});
