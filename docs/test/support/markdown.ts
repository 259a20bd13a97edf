/** The fenced code blocks of a Markdown text that are marked with this language. */
export function codeBlocks(markdown: string, language: string): string[] {
  const blocks = markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm);
  return [...blocks].filter(([, marked]) => marked === language).map(([, , code]) => code!);
}

/** The blocks of a page by file name: the line above a block, such as "`jest.config.ts`:", names its file. */
export function namedBlocks(markdown: string): Map<string, string> {
  const blocks = markdown.matchAll(/^`([\w./-]+)`:\n\n```\w+\n([\s\S]*?)^```$/gm);
  return new Map([...blocks].map(([, name, code]) => [name!, code!]));
}

/** The part of a Markdown text under a heading of the second level. */
export function section(markdown: string, heading: string): string {
  const [, after = ''] = markdown.split(`\n## ${heading}\n`);
  return after.split(/^## /m)[0]!;
}

/** The targets of the links in a Markdown text, without links inside code. */
export function links(markdown: string): string[] {
  return [...withoutCode(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
}

/** The anchors that GitHub and npm give the headings of a Markdown text. */
export function anchors(markdown: string): string[] {
  const headings = [...withoutBlocks(markdown).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading!);
  return headings.map(anchorOf);
}

export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

function withoutBlocks(markdown: string): string {
  return markdown.replaceAll(/^```[\s\S]*?^```$/gm, '');
}

function withoutCode(markdown: string): string {
  return withoutBlocks(markdown).replaceAll(/`[^`\n]*`/g, '`code`');
}
