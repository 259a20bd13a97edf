// The pages as they are written, for programs that read text: beside each page in HTML, listed in llms.txt, and all in
// llms-full.txt.
// See https://llmstxt.org.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { contents, publicEntryPoints, read, referencePage } from './pages.mjs';

export function writeMarkdown(from, dist) {
  cpSync(from, dist, { recursive: true });
  const groups = contents();
  const reference = publicEntryPoints().map(({ name }) => `- [${name}](${referencePage(name)})`);
  const lists = groups.map(({ title, items }) => `## ${title}\n\n${items.map(entry).join('\n')}\n`);
  const { description } = JSON.parse(read('package.json'));
  const start = '- [nest-session](introduction.md): What is it, for whom, and how does a first program look?';
  const text = ['# nest-session\n', `> ${description}\n`, `${start}\n`, ...lists, '## Reference\n', ...reference];
  writeFileSync(join(dist, 'llms.txt'), `${text.join('\n')}\n`);
  const guides = ['introduction.md', ...groups.flatMap(({ items }) => items.map(({ page }) => page))];
  const texts = guides.map((page) => `<!-- ${page} -->\n\n${readFileSync(join(from, page), 'utf8')}`);
  writeFileSync(join(dist, 'llms-full.txt'), texts.join('\n'));
}

function entry({ title, page, question }) {
  return `- [${title}](${page})${question ? `: ${question}` : ''}`;
}
