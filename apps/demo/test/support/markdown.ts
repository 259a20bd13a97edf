/** The fenced code blocks of a Markdown text that are marked with this language. */
export function codeBlocks(markdown: string, language: string): string[] {
  const blocks = markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm);
  return [...blocks].filter(([, marked]) => marked === language).map(([, , code]) => code!);
}

/** What a Markdown text has under a heading of the second level. */
export function section(markdown: string, heading: string): string {
  const [, after = ''] = markdown.split(`\n## ${heading}\n`);
  return after.split(/^## /m)[0]!;
}
