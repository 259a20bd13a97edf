import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './support/compiler.js';
import { codeBlocks } from './support/markdown.js';

/** What an application has that `nest new` generates. */
const OF_NEST_NEW = ['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs'];

// npm shows the README of a package alone. `npm run test:e2e -- readme` compiles its code.
describe.each((await readdir(join(ROOT, 'packages'))).map((folder) => ({ folder })))(
  'the README of packages/$folder stands alone',
  ({ folder }) => {
    let readme: string;
    let manifest: { name: string; peerDependencies: object; peerDependenciesMeta?: object };
    let installed: string[];

    beforeAll(async () => {
      const [text, json] = await Promise.all(
        ['README.md', 'package.json'].map((file) => readFile(join(ROOT, 'packages', folder, file), 'utf8')),
      );
      [readme, manifest] = [text!, JSON.parse(json!)];
      const [commands = ''] = codeBlocks(readme, 'sh');
      installed = [...commands.matchAll(/^npm install (.+)$/gm)].flatMap(([, names]) => names!.split(' '));
    });

    it('begins with the name, and says what the package is, what it needs and under which license it is', () => {
      expect(readme).toMatch(new RegExp(`^# ${manifest.name}\n\n[A-Z]`));
      expect(readme).toContain('\nYou need Node.js 20.19 or later');
      expect(readme).toContain('\nLicense: MIT\n');
    });

    it('installs the package, and all that it cannot do without', () => {
      const optional = Object.keys(manifest.peerDependenciesMeta ?? {});
      const needed = Object.keys(manifest.peerDependencies).filter((name) => !optional.includes(name));
      expect([...installed, ...OF_NEST_NEW]).toEqual(expect.arrayContaining([manifest.name, ...needed]));
    });

    it('has code that imports the package, and nothing that it does not install', () => {
      const imported = codeBlocks(readme, 'ts').flatMap((code) =>
        [...code.matchAll(/ from '((?:@[\w-]+\/)?[\w-]+)/g)].map(([, name]) => name!),
      );
      expect(imported).toContain(manifest.name);
      expect([...installed, ...OF_NEST_NEW]).toEqual(expect.arrayContaining(imported));
    });

    it('leads to the documentation', () => {
      expect(readme).toMatch(/\bdocumentation\s+of\s+nest-session\b/);
    });
  },
);

// npm would ask the public registry for a package that is missing.
describe.each(['README.md', 'docs/getting-started.md'])('what %s packs', (page) => {
  it('has with each package those that it cannot do without', async () => {
    const commands = codeBlocks(await readFile(join(ROOT, page), 'utf8'), 'sh').flatMap((block) =>
      block.split('\n').filter((line) => line.startsWith('npm pack')),
    );
    expect(commands).not.toHaveLength(0);
    for (const command of commands) {
      const folders = [...command.matchAll(/-w (\S+)/g)].map(([, folder]) => folder!);
      const manifests = await Promise.all(folders.map(manifestIn));
      const needed = manifests.flatMap((manifest) => {
        const peers = Object.keys(manifest.peerDependencies ?? {}).filter(
          (name) => manifest.peerDependenciesMeta?.[name] === undefined,
        );
        return [...Object.keys(manifest.dependencies ?? {}), ...peers].filter((name) =>
          name.startsWith('@nest-session/'),
        );
      });
      expect(manifests.map(({ name }) => name)).toEqual(expect.arrayContaining(needed));
    }
  });
});

interface Manifest {
  readonly name: string;
  readonly dependencies?: object;
  readonly peerDependencies?: object;
  readonly peerDependenciesMeta?: Readonly<Record<string, unknown>>;
}

async function manifestIn(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest;
}
