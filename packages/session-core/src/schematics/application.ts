import { posix } from 'node:path';
import type { Rule, SchematicContext, TaskConfigurationGenerator, Tree } from '@angular-devkit/schematics';
import { applicationCompiler } from './application-compiler.js';
import { ApplicationSources, type Insertion } from './application-sources.js';
import { Refusal } from './refusal.js';
import { shownChanges } from './shown-changes.js';

/** What the Nest CLI says of the application. */
export interface ApplicationOptions {
  readonly sourceRoot?: string;
  readonly project?: string;
}

type Packages = Record<string, string>;

interface Manifest {
  type?: string;
  dependencies?: Packages;
  devDependencies?: Packages;
}

/** The application in which the command runs. */
export class Application {
  readonly sourceRoot: string;
  readonly sources: ApplicationSources;
  readonly packages: Readonly<Packages>;
  readonly #manifest: Manifest;
  readonly #entryFile: string;

  constructor(
    readonly tree: Tree,
    options: ApplicationOptions,
  ) {
    const config = (tree.exists('nest-cli.json') ? tree.readJson('nest-cli.json') : {}) as NestConfig;
    const project = config.projects?.[options.project ?? ''];
    this.sourceRoot = posix.normalize(project?.sourceRoot ?? options.sourceRoot ?? config.sourceRoot ?? 'src');
    this.#entryFile = project?.entryFile ?? config.entryFile ?? 'main';
    this.sources = new ApplicationSources(applicationCompiler(process.cwd()), tree, this.sourceRoot);
    this.#manifest = tree.readJson('package.json') as Manifest;
    this.packages = { ...this.#manifest.devDependencies, ...this.#manifest.dependencies };
  }

  get entry(): string {
    return `/${this.sourceRoot}/${this.#entryFile}.ts`;
  }

  /** The first file that imports a name from a package. */
  importing(name: string, from: string): string | undefined {
    return [...this.sources.files()].find((path) => this.sources.imports(path, name, from));
  }

  /** The ending that imports of files have in a file. */
  ending(path: string): string {
    return /from ['"]\.[^'"]*(\.[jt]s)['"]/.exec(this.sources.parse(path).text)?.[1] ?? '';
  }

  /** The import of a name from a file of the application, written as a file writes its imports. */
  import(name: string, path: string, from: string): Insertion {
    const source = this.sources.parse(path);
    const relative = posix.relative(posix.dirname(path), from).replace(/\.ts$/, this.ending(path));
    const quote = source.text.includes('from "') ? '"' : "'";
    const line = `import { ${name} } from ${quote}${relative.startsWith('.') ? '' : './'}${relative}${quote}`;
    const last = source.statements.findLast((each) => this.sources.ts.isImportDeclaration(each));
    const end = last?.getText().endsWith(';') === false ? '' : ';';
    return last ? { at: last.end, text: `\n${line}${end}` } : { at: 0, text: `${line}${end}\n` };
  }

  create(path: string, text: string): void {
    if (this.tree.exists(path)) throw new Refusal(`The file ${posix.relative('/', path)} exists already`);
    this.tree.create(path, text);
  }

  /** Adds lines to the end of a file, which need not exist. */
  append(path: string, ...lines: string[]): void {
    const old = this.tree.exists(path) ? this.tree.readText(path) : '';
    const text = `${old && !old.endsWith('\n') ? `${old}\n` : old}${lines.join('\n')}\n`;
    if (this.tree.exists(path)) this.tree.overwrite(path, text);
    else this.tree.create(path, text);
  }

  /** Writes what is missing to package.json. Returns the names of these packages. */
  addPackages(dependencies: Packages, devDependencies: Packages = {}): string[] {
    const isMissing = ([name]: [string, string]) => !(name in this.packages);
    const [runtime, development] = [dependencies, devDependencies].map((all) => Object.entries(all).filter(isMissing));
    const added = [...runtime!, ...development!].map(([name]) => name);
    if (added.length === 0) return added;
    const manifest = { ...this.#manifest, dependencies: merged(this.#manifest.dependencies, runtime!) };
    if (development!.length > 0) manifest.devDependencies = merged(this.#manifest.devDependencies, development!);
    const indent = /^[ \t]+(?=")/m.exec(this.tree.readText('package.json'))?.[0] ?? '  ';
    this.tree.overwrite('package.json', `${JSON.stringify(manifest, null, indent)}\n`);
    return added;
  }
}

interface NestConfig {
  readonly sourceRoot?: string;
  readonly entryFile?: string;
  readonly projects?: Readonly<Record<string, { readonly sourceRoot?: string; readonly entryFile?: string }>>;
}

function merged(present: Packages | undefined, added: readonly [string, string][]): Packages {
  const all = [...Object.entries(present ?? {}), ...added];
  return Object.fromEntries(all.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** A rule that changes the application, and with --dry-run shows each line that it would change. */
export function changing(
  options: ApplicationOptions,
  change: (application: Application, context: SchematicContext) => void,
): Rule {
  return (tree, context) => {
    change(new Application(tree, options), context);
    if (process.argv.includes('--dry-run')) context.logger.info(shownChanges(tree));
    return tree;
  };
}

/** Lets the package manager of the application install what package.json has. */
export function install(context: SchematicContext): void {
  const task: TaskConfigurationGenerator = {
    toConfiguration: () => ({ name: 'node-package', options: { command: 'install', quiet: true } }),
  };
  context.addTask(task);
}
