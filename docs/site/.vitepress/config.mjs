import { defineConfig } from 'vitepress';
import { address, base, contents, publicEntryPoints, read, referencePage } from '../pages.mjs';

export default defineConfig({
  title: 'nest-session',
  description: JSON.parse(read('package.json')).description,
  srcDir: 'pages',
  outDir: 'dist',
  base,
  cleanUrls: true,
  // Those are examples.
  ignoreDeadLinks: 'localhostLinks',
  markdown: { anchor: { slugify: headingSlug } },
  themeConfig: {
    nav: [
      { text: 'Documentation', link: '/documentation' },
      { text: 'Reference', link: '/reference/' },
      { text: 'Changelog', link: '/changelog' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
    ...(address && { socialLinks: [{ icon: 'github', link: address }] }),
  },
  // The index of the search is one file.
  vite: { build: { chunkSizeWarningLimit: Infinity } },
});

function sidebar() {
  return [
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

/** The name of a heading in addresses, as GitHub has it: links lead to headings in both. */
function headingSlug(text) {
  return text
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
