import { createRequire } from 'node:module';
import { join } from 'node:path';
import type ts from 'typescript';

export type Compiler = typeof ts;

/** The TypeScript of the application, or else that of its Nest CLI. */
export function applicationCompiler(root: string): Compiler {
  const require = createRequire(join(root, 'package.json'));
  const ways = [() => require, () => createRequire(require.resolve('@nestjs/cli/package.json'))];
  for (const way of ways) {
    try {
      const compiler = way()('typescript') as Compiler;
      if (typeof compiler.createSourceFile === 'function') return compiler;
    } catch {
      // The next one has it.
    }
  }
  throw new Error('The package typescript is not installed. Install it, and try again');
}
