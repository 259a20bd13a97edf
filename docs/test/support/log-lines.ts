import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import ts from 'typescript';
import { ROOT } from './compiler.js';

/** A line that a package can write. `...` in its text stands for what differs from case to case. */
export interface LogLine {
  readonly level: string;
  readonly text: string;
  readonly path: string;
}

interface KnownTexts {
  readonly means: string;
  readonly do: string;
  readonly see?: string;
}

/** What `nest-session explain` knows of a line. */
export interface KnownLine extends KnownTexts {
  readonly line: string;
  readonly level: string;
}

export function knownLines(): KnownLine[] {
  const path = join(ROOT, 'packages/session-cli/src/explanation/log-lines.json');
  const { shared, ...byLevel } = JSON.parse(readFileSync(path, 'utf8')) as Record<
    string,
    Record<string, KnownTexts>
  > & {
    readonly shared: readonly (Omit<KnownLine, 'line'> & { readonly lines: readonly string[] })[];
  };
  const known = Object.entries(byLevel).flatMap(([level, lines]) =>
    Object.entries(lines).map(([line, texts]) => ({ line, level, ...texts })),
  );
  return [...known, ...shared.flatMap(({ lines, ...texts }) => lines.map((line) => ({ line, ...texts })))];
}

/** Files that hand on what others write. */
const HELPERS = ['/logging/', '/express-session.logger.ts'];
const VARIES = '...';
/** A name may lead to another one. */
const MOST_NAMES = 3;

/** The texts that an argument may have. */
type TextsOf = (argument: number) => readonly string[];
type Emitter = (texts: TextsOf) => readonly (readonly [level: string, texts: readonly string[]])[];

/** What writes lines beside `logger`: a class or a function, with the lines that its arguments make. */
const EMITTERS = new Map<string, Emitter>([
  [
    'FailureLog',
    (texts) => [
      ['error', texts(0).map((failing) => `${failing}: ${VARIES}`)],
      ['log', texts(1)],
    ],
  ],
  ['warnOnce', (texts) => [['warn', texts(0)]]],
  ['attributeProblem', (texts) => [['error', texts(1).map((sentence) => `Session attribute ${VARIES} ${sentence}`)]]],
]);

/** Every line that the sources of the packages can write. */
export async function logLines(): Promise<LogLine[]> {
  const packages = await readdir(join(ROOT, 'packages'));
  const paths = (await Promise.all(packages.map((name) => sourcesIn(`packages/${name}/src`)))).flat();
  const lines = paths.map(async (path) => linesIn(path, await readFile(join(ROOT, path), 'utf8')));
  return (await Promise.all(lines)).flat();
}

async function sourcesIn(folder: string): Promise<string[]> {
  const names = await readdir(join(ROOT, folder), { recursive: true });
  const paths = names.map((name) => `${folder}/${name}`);
  return paths.filter((path) => path.endsWith('.ts') && !HELPERS.some((helper) => path.includes(helper)));
}

/** The lines of a source, by the calls that write them. */
export function linesIn(path: string, source: string): LogLine[] {
  const file = new SourceFile(path, source);
  return file.calls.flatMap((call) => {
    const textsOf: TextsOf = (place) => file.textsOf(call.arguments?.[place]);
    const written = emitterOf(call.expression)?.(textsOf) ?? [];
    return written.flatMap(([level, texts]) => texts.map((text) => ({ level, text, path })));
  });
}

function emitterOf(callee: ts.Expression): Emitter | undefined {
  if (ts.isIdentifier(callee)) return EMITTERS.get(callee.text);
  if (!ts.isPropertyAccessExpression(callee)) return undefined;
  const { name, expression } = callee;
  if (expression.getText() === 'logger') return (texts) => [[name.text, texts(0)]];
  // `WarnOnce.warn(cause, message)`
  return name.text === 'warn' ? (texts) => [['warn', texts(1)]] : undefined;
}

type Call = ts.CallExpression | ts.NewExpression;

/** What the texts in a file can be, as far as they stand there. */
class SourceFile {
  readonly #nodes: readonly ts.Node[];
  readonly calls: readonly Call[];

  constructor(path: string, source: string) {
    this.#nodes = nodesOf(ts.createSourceFile(path, source, ts.ScriptTarget.ES2022, true));
    this.calls = this.#nodes.filter((node) => ts.isCallExpression(node) || ts.isNewExpression(node));
  }

  textsOf(node: ts.Expression | undefined, names = 0): string[] {
    const textsOf = (inner: ts.Expression) => this.textsOf(inner, names);
    if (!node) return [];
    if (ts.isStringLiteralLike(node)) return [node.text];
    if (ts.isParenthesizedExpression(node)) return textsOf(node.expression);
    if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)];
    if (isSum(node)) return joined([textsOf(node.left), textsOf(node.right)]);
    if (ts.isTemplateExpression(node)) {
      const spans = node.templateSpans.flatMap((span) => [textsOf(span.expression), [span.literal.text]]);
      return joined([[node.head.text], ...spans]);
    }
    const values = ts.isIdentifier(node) && names < MOST_NAMES ? this.#valuesOf(node) : [];
    return values.length === 0 ? [VARIES] : values.flatMap((value) => this.textsOf(value, names + 1));
  }

  /** What a parameter is given by the calls in the file, or else a constant. */
  #valuesOf(name: ts.Identifier): ts.Expression[] {
    for (let outer: ts.Node = name; !ts.isSourceFile(outer); outer = outer.parent) {
      if (!ts.isFunctionLike(outer)) continue;
      const place = outer.parameters.findIndex((parameter) => parameter.name.getText() === name.text);
      if (place >= 0) return this.#argumentsOf(outer.name?.getText(), place);
    }
    return this.#nodes.flatMap((node) =>
      ts.isVariableDeclaration(node) && node.name.getText() === name.text ? (node.initializer ?? []) : [],
    );
  }

  #argumentsOf(called: string | undefined, place: number): ts.Expression[] {
    const nameOf = ({ expression }: Call) =>
      (ts.isPropertyAccessExpression(expression) ? expression.name : expression).getText();
    return this.calls.filter((call) => nameOf(call) === called).flatMap((call) => call.arguments?.[place] ?? []);
  }
}

function nodesOf(node: ts.Node): ts.Node[] {
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => void children.push(child));
  return [node, ...children.flatMap(nodesOf)];
}

function isSum(node: ts.Expression): node is ts.BinaryExpression {
  return ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken;
}

/** All texts that are made of one text of each place. */
function joined(places: readonly (readonly string[])[]): string[] {
  return places.reduce<string[]>((begun, texts) => begun.flatMap((text) => texts.map((next) => text + next)), ['']);
}
