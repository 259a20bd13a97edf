import { defineConfig } from 'vitepress';
import { address, base, contents, publicEntryPoints, read, referencePage } from '../pages.mjs';

export default defineConfig({
  title: 'nest-session',
  description: JSON.parse(read('package.json')).description,
  srcDir: 'pages',
  outDir: 'dist',
  base,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}icon.svg` }]],
  cleanUrls: true,
  // Those are examples.
  ignoreDeadLinks: 'localhostLinks',
  markdown: { anchor: { slugify: headingSlug }, config: labelCells },
  themeConfig: {
    logo: '/icon.svg',
    nav: [
      { text: 'Documentation', link: '/documentation' },
      { text: 'Reference', link: '/reference/' },
      { text: 'Changelog', link: '/changelog' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local', options: { _render: searchedText, miniSearch: { searchOptions: { boostDocument } } } },
    ...(address && { socialLinks: [{ icon: 'github', link: address }] }),
  },
  // The index of the search is one file.
  vite: { build: { chunkSizeWarningLimit: Infinity } },
});

function sidebar() {
  return [
    { text: 'What it is', link: '/introduction' },
    ...contents().map(({ title, items }) => ({
      text: title,
      items: items.map(({ title: text, page }) => ({ text, link: `/${page}` })),
    })),
    {
      text: 'Reference',
      items: publicEntryPoints().map(({ name }) => ({ text: name, link: `/${referencePage(name)}` })),
    },
  ];
}

/** Gives each cell the text of its column, which narrow screens show with it. */
function labelCells(markdown) {
  markdown.core.ruler.push('label_cells', ({ tokens }) => {
    let labels = [];
    let column = 0;
    for (const [i, token] of tokens.entries()) {
      if (token.type === 'thead_open') labels = [];
      else if (token.type === 'tr_open') column = 0;
      else if (token.type === 'th_open')
        labels.push(tokens[i + 1].content.replaceAll(/[`*]|\[([^\]]*)\]\([^)]*\)/g, '$1'));
      else if (token.type === 'td_open') token.attrSet('data-label', labels[column++] ?? '');
    }
  });
}

/** What readers call otherwise is found as well. Headings stay: links lead to them. */
function searchedText(source, environment, markdown) {
  const words = source.replaceAll(/^(?!#)(.*?\bsign(?:s|ed|ing)?) out\b/gim, '$1 out (log out, logout)');
  return markdown.render(words, environment);
}

/** Pages to read before lists to look things up. */
function boostDocument(id) {
  if (id.includes('/reference/')) return 0.2;
  if (id.includes('/signing-in')) return 2;
  return id.includes('/evidence/') ? 0.5 : 1;
}

/** The name of a heading in addresses, as GitHub has it: links lead to headings in both. */
function headingSlug(text) {
  return text
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
