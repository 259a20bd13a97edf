import { posix } from 'node:path';
import type { Tree } from '@angular-devkit/schematics';
import type ts from 'typescript';
import type { Compiler } from './application-compiler.js';

/** Text, and where in a file it is to stand. */
export interface Insertion {
  readonly at: number;
  readonly text: string;
}

/** The TypeScript files of an application. Paths begin at the folder in which the command runs. */
export class ApplicationSources {
  readonly #options: ts.CompilerOptions;
  readonly #host: ts.ModuleResolutionHost & ts.ParseConfigHost;

  constructor(
    readonly ts: Compiler,
    readonly tree: Tree,
    readonly root: string,
  ) {
    this.#host = {
      fileExists: (path) => tree.exists(path),
      readFile: (path) => (tree.exists(path) ? tree.readText(path) : undefined),
      readDirectory: () => [],
      useCaseSensitiveFileNames: true,
    };
    const tsconfig = ts.findConfigFile(`/${root}`, this.#host.fileExists);
    const config: unknown = tsconfig && ts.readConfigFile(tsconfig, this.#host.readFile).config;
    this.#options = ts.parseJsonConfigFileContent(config ?? {}, this.#host, posix.dirname(tsconfig ?? '/')).options;
  }

  parse(path: string): ts.SourceFile {
    return this.ts.createSourceFile(path, this.tree.readText(path), this.ts.ScriptTarget.Latest, true);
  }

  /** All of them, without tests. */
  *files(): Generator<string> {
    const paths: string[] = [];
    this.tree.getDir(this.root).visit((path) => paths.push(path));
    for (const path of paths) if (/(?<!spec|test|\.d)\.ts$/.test(path) && !path.includes('/node_modules/')) yield path;
  }

  /** All nodes of a file, or below a node. */
  *nodes(node: ts.Node): Generator<ts.Node> {
    yield node;
    const children: ts.Node[] = [];
    node.forEachChild((child) => void children.push(child));
    for (const child of children) yield* this.nodes(child);
  }

  /** The declaration of a class that a file declares, imports or exports again, under the name that it has there. */
  findClass(path: string, name: string, seen: readonly string[] = []): ts.ClassDeclaration | undefined {
    if (seen.includes(path)) return undefined;
    const { ts } = this;
    for (const statement of this.parse(path).statements) {
      if (ts.isClassDeclaration(statement) && (statement.name?.text === name || isDefault(ts, statement, name)))
        return statement;
      const isFrom = ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement);
      if (!isFrom || !statement.moduleSpecifier) continue;
      const there = nameThere(ts, statement, name);
      const file = there && this.#resolve((statement.moduleSpecifier as ts.StringLiteral).text, path);
      const found = file && this.findClass(file, there, [...seen, path]);
      if (found) return found;
    }
    return undefined;
  }

  /** Whether a file imports a name from a package. */
  imports(path: string, name: string, from: string): boolean {
    const { ts } = this;
    return this.parse(path).statements.some(
      (each) =>
        ts.isImportDeclaration(each) &&
        (each.moduleSpecifier as ts.StringLiteral).text === from &&
        nameThere(ts, each, name) === name,
    );
  }

  write(path: string, insertions: readonly Insertion[]): void {
    const text = [...insertions]
      .toSorted((a, b) => b.at - a.at)
      .reduce((rest, { at, text }) => rest.slice(0, at) + text + rest.slice(at), this.parse(path).text);
    this.tree.overwrite(path, text);
  }

  #resolve(specifier: string, from: string): string | undefined {
    const { resolvedModule } = this.ts.resolveModuleName(specifier, from, this.#options, this.#host);
    return resolvedModule?.isExternalLibraryImport === false ? resolvedModule.resolvedFileName : undefined;
  }
}

/** How the module calls what a file imports or exports from it under a name. */
function nameThere(
  ts: Compiler,
  statement: ts.ImportDeclaration | ts.ExportDeclaration,
  name: string,
): string | undefined {
  const clause = ts.isImportDeclaration(statement) ? statement.importClause?.namedBindings : statement.exportClause;
  if (ts.isImportDeclaration(statement) && statement.importClause?.name?.text === name) return 'default';
  if (ts.isExportDeclaration(statement) && !clause) return name;
  if (!clause || !(ts.isNamedImports(clause) || ts.isNamedExports(clause))) return undefined;
  const elements: readonly (ts.ImportSpecifier | ts.ExportSpecifier)[] = clause.elements;
  const element = elements.find((each) => each.name.text === name);
  return element && (element.propertyName ?? element.name).text;
}

function isDefault(ts: Compiler, { modifiers }: ts.ClassDeclaration, name: string): boolean {
  return name === 'default' && modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword) === true;
}
