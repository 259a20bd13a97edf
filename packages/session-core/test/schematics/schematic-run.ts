import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type * as schematics from '@angular-devkit/schematics';
import type { Rule, SchematicContext, TaskConfigurationGenerator } from '@angular-devkit/schematics';
import { jest } from '@jest/globals';

// Of HostTree.beginUpdate(), which no schematic calls. It is an ES module, which Jest cannot require.
jest.mock('magic-string', () => ({}));
const { HostTree } = createRequire(import.meta.url)('@angular-devkit/schematics') as typeof schematics;

const COLLECTION = fileURLToPath(new URL('../../schematics/collection.json', import.meta.url));

export const MANIFEST = {
  dependencies: {
    '@nest-session/core': '^0.1.0',
    '@nestjs/core': '^12.0.0',
  },
  devDependencies: { vitest: '^4.0.0', '@nestjs/testing': '^12.0.0' },
};

/** The files that `nest new` makes, as far as a schematic reads them. */
export const STARTER: Readonly<Record<string, string>> = {
  'package.json': JSON.stringify(MANIFEST, null, 2),
  'tsconfig.json': '{ "compilerOptions": { "module": "nodenext" } }',
  'src/main.ts': [
    `import { NestFactory } from '@nestjs/core';`,
    `import { AppModule } from './app.module.js';`,
    '',
    'const app = await NestFactory.create(AppModule);',
    'await app.listen(3000);',
    '',
  ].join('\n'),
  'src/app.module.ts': [
    `import { Module } from '@nestjs/common';`,
    '',
    '@Module({ imports: [] })',
    'export class AppModule {}',
    '',
  ].join('\n'),
};

/** A schematic that ran in an application of files, and what it did there. */
export class SchematicRun {
  readonly tree: schematics.Tree = new HostTree();
  readonly told: string[] = [];
  readonly tasks: unknown[] = [];

  constructor(files: Readonly<Record<string, string | undefined>>) {
    for (const [path, text] of Object.entries(files)) if (text !== undefined) this.tree.create(path, text);
  }

  /** The paths that it created or changed. */
  run(rule: Rule): string[] {
    const before = this.#contents();
    const tell = (line: string) => this.told.push(line);
    const context = {
      schematic: { collection: { description: { path: COLLECTION } } },
      logger: { info: tell, warn: tell },
      addTask: (task: TaskConfigurationGenerator<object>) => this.tasks.push(task.toConfiguration()),
    };
    void rule(this.tree, context as unknown as SchematicContext);
    return Object.entries(this.#contents()).flatMap(([path, text]) => (before[path] === text ? [] : [path.slice(1)]));
  }

  text(path: string): string {
    return this.tree.readText(path);
  }

  #contents(): Record<string, string> {
    const texts: Record<string, string> = {};
    this.tree.visit((path, entry) => (texts[path] = String(entry?.content)));
    return texts;
  }
}
