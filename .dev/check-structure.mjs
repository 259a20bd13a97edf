// npm run check:structure: whether the sources keep the rules that CONTRIBUTING.md lists under "Where things are" and
// "Redis scripts": what files are called, that a name stands for one thing, and that they load anywhere.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { luaProblems } from './lua-structure.mjs';
import { root } from './processes.mjs';
import { publishedPackages, workspaces } from './workspaces.mjs';

// Prettier keeps code to this width, and leaves comments as they are.
const WIDE_COMMENT = /^(?=.{121})\s*(?:\/\/|\/?\*)/;
const EXPORTED = /^export (?:async |abstract )?(?:function\*?|class|interface) (\w+)/gm;

const published = publishedPackages().map(({ folder }) => folder);
const folders = workspaces()
  .map(({ folder }) => folder)
  .filter((folder) => !folder.startsWith('apps/'));

const exported = new Map();
const problems = [...folders.flatMap(problemsOf), ...luaProblems()];
for (const problem of problems) console.error(problem);
console.log(`${folders.join(', ')}: ${problems.length} problems`);
process.exitCode = problems.length > 0 ? 1 : 0;

function problemsOf(packageFolder) {
  const source = join(root, packageFolder, 'src');
  const files = readdirSync(source, { encoding: 'utf8', recursive: true }).filter((file) => file.endsWith('.ts'));
  return files.flatMap((file) => {
    const text = readFileSync(join(source, file), 'utf8');
    const found = [...nameProblems(file, text), ...widthProblems(text)];
    found.push(...sameNameProblems(`${packageFolder}/src/${file}`, text));
    if (published.includes(packageFolder)) found.push(...loadProblems(text));
    return found.map((problem) => `${packageFolder}/src/${file}: ${problem}`);
  });
}

/** `subject.role.ts` for a class `SubjectRole`, or the kebab-case name of what has no role. */
function* nameProblems(file, text) {
  const [subject, ...rest] = basename(file, '.ts').split('.');
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(subject)) yield 'its name is not in kebab case';
  const name = [...subject.split('-'), ...rest.flatMap((role) => role.split('-'))].map(capitalized).join('');
  const classes = [...text.matchAll(/^export (?:abstract )?class (\w+)/gm)].map(([, each]) => each);
  if (classes.length === 1 && classes[0] !== name && !file.endsWith('s.ts')) {
    yield `its class ${classes[0]} is not called ${name}`;
  }
}

/** A name stands for one function, class or interface of all packages. Every command has a function `run`. */
function* sameNameProblems(path, text) {
  if (path.endsWith('.command.ts')) return;
  for (const [, name] of text.matchAll(EXPORTED)) {
    const other = exported.get(name);
    if (other && other !== path) yield `exports ${name}, as does ${other}`;
    exported.set(name, path);
  }
}

function* widthProblems(text) {
  for (const [index, line] of text.split('\n').entries())
    if (WIDE_COMMENT.test(line)) yield `line ${index + 1} is a comment of more than 120 columns`;
}

/** CommonJS has no `import.meta`, and nothing lies beside a bundle. */
function* loadProblems(text) {
  if (/\bimport\.meta\b/.test(text)) yield 'uses import.meta, and must load as CommonJS and from a bundle';
}

function capitalized(word) {
  return word[0].toUpperCase() + word.slice(1);
}
