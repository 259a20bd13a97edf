import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SchematicContext } from '@angular-devkit/schematics';

const MARK = /^(.*?) *\/\/ with (\w+)$/;

/**
 * The files beside collection.json. A line that ends with `// with redis` is for applications that have `redis` among
 * their traits. All imports of these files end in `.js`, and get the ending that the application writes.
 */
export class Templates {
  readonly #folder: string;

  constructor(
    context: SchematicContext,
    private readonly traits: ReadonlySet<string>,
    private readonly ending: string,
  ) {
    const { path } = context.schematic.collection.description as { readonly path?: string };
    this.#folder = join(dirname(path!), 'files');
  }

  text(name: string): string {
    const lines = readFileSync(join(this.#folder, `${name}.template`), 'utf8').split('\n');
    const chosen = lines.flatMap((line) => {
      const [, code, trait] = MARK.exec(line) ?? [undefined, line];
      return trait === undefined || this.traits.has(trait) ? [code!] : [];
    });
    return chosen.join('\n').replace(/(from '\.[^']*)\.js'/g, `$1${this.ending}'`);
  }
}
