import type { SchematicContext } from '@angular-devkit/schematics';
import type ts from 'typescript';
import type { Application } from './application.js';
import type { Compiler } from './application-compiler.js';

const FACTORY = /^create(?:ApplicationContext|Microservice)?$/;

/** The call of NestFactory with which the program starts: in the entry file, or else in the first file that has one. */
export function startCall({ sources, entry }: Application): ts.CallExpression | undefined {
  const paths = [entry, ...sources.files()].filter((path) => sources.tree.exists(path));
  for (const path of paths) {
    const found = [...sources.nodes(sources.parse(path))].find((node) => isStartCall(sources.ts, node));
    if (found) return found as ts.CallExpression;
  }
  return undefined;
}

function isStartCall(ts: Compiler, node: ts.Node): boolean {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
  const { expression, name } = node.expression;
  return expression.getText() === 'NestFactory' && FACTORY.test(name.text);
}

/** Without this, SIGTERM ends the process while requests and handlers still run. */
export function enableShutdownHooks(application: Application, context: SchematicContext): void {
  const { sources } = application;
  const call = startCall(application);
  if (!call || call.getSourceFile().text.includes('enableShutdownHooks')) return;
  const { ts } = sources;
  const variable = ts.findAncestor(call, ts.isVariableDeclaration);
  const statement = ts.findAncestor(call, ts.isVariableStatement);
  const isPlain = variable && statement && variable.parent.parent === statement && ts.isIdentifier(variable.name);
  if (!isPlain) {
    context.logger.warn('Call enableShutdownHooks() of the application, as the page "Deploying and upgrading" says.');
    return;
  }
  const { fileName, text } = statement.getSourceFile();
  const indent = /[ \t]*$/.exec(text.slice(0, statement.getStart()))![0];
  const end = statement.getText().endsWith(';') ? ';' : '';
  sources.write(fileName, [
    { at: statement.getEnd(), text: `\n${indent}${variable.name.getText()}.enableShutdownHooks()${end}` },
  ]);
}
