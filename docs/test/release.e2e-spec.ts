import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './support/compiler.js';

const ADDRESS = 'https://github.com/acme/nest-session';
const FOLDERS = [...readdirSync(join(ROOT, 'packages')).map((name) => `packages/${name}`), 'libs/testing'];
const COPIED = ['.dev', 'packages', 'libs', 'apps', 'bench', 'examples'];
const FILES = ['.npmrc', 'package.json', 'package-lock.json', 'CHANGELOG.md', 'SECURITY.md'];

let copy: string;

/** What the commands read and write, without sources and what is built of them. */
beforeEach(() => {
  copy = mkdtempSync(join(tmpdir(), 'release-'));
  const filter = (path: string) => !/\/(?:node_modules|dist|src|test)$/.test(path);
  for (const path of [...COPIED, ...FILES]) cpSync(join(ROOT, path), join(copy, path), { recursive: true, filter });
  // The repository itself may be at any place, and have nothing to release.
  writeFileSync(
    join(copy, 'CHANGELOG.md'),
    read('CHANGELOG.md').replace('## [Unreleased]\n', '## [Unreleased]\n\n- A change.\n'),
  );
  for (const folder of ['', ...FOLDERS]) {
    const { repository: _, homepage: __, bugs: ___, ...manifest } = json(join(folder, 'package.json'));
    writeFileSync(join(copy, folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  }
});

afterEach(() => rmSync(copy, { recursive: true, force: true }));

const read = (path: string) => readFileSync(join(copy, path), 'utf8');
const json = (path: string) => JSON.parse(read(path));

function run(script: string, ...args: string[]): { code: number | null; output: string } {
  const options = { cwd: copy, encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [`.dev/${script}.mjs`, ...args], options);
  return { code: status, output: `${stdout}${stderr}` };
}

function succeed(script: string, ...args: string[]): void {
  expect(run(script, ...args)).toEqual({ code: 0, output: expect.any(String) });
}

/** All that the commands may write. */
function written(): string[] {
  const paths = ['', 'bench', 'apps/demo', 'examples/file-session-store', ...FOLDERS].map((folder) =>
    join(folder, 'package.json'),
  );
  return [...paths, ...FOLDERS.map((folder) => join(folder, 'README.md')), ...FILES].map(read);
}

describe('npm run release:address', () => {
  it('writes the address into every package, its README and SECURITY.md', () => {
    succeed('release-address', `${ADDRESS}.git`);
    const fields = FOLDERS.map((folder) => {
      const { repository, homepage, bugs } = json(`${folder}/package.json`);
      return { repository, homepage, bugs };
    });
    expect(fields).toEqual(
      FOLDERS.map((directory) => ({
        repository: { type: 'git', url: `git+${ADDRESS}.git`, directory },
        homepage: `${ADDRESS}#readme`,
        bugs: { url: `${ADDRESS}/issues` },
      })),
    );
    expect(json('package.json').repository).toEqual({ type: 'git', url: `git+${ADDRESS}.git` });
    const links = FOLDERS.map((folder) =>
      /\[(documentation\s+of\s+nest-session)\]\((.*?)\)/.exec(read(`${folder}/README.md`)),
    );
    expect(links.map((link) => link?.[2])).toEqual(FOLDERS.map(() => `${ADDRESS}#readme`));
    expect(read('SECURITY.md')).toContain(`[the page of this repository on GitHub](${ADDRESS}/security)`);
  });

  it('changes nothing when it is called once more, and replaces the former address', () => {
    succeed('release-address', ADDRESS);
    const once = written();
    succeed('release-address', `${ADDRESS}/`);
    expect(written()).toEqual(once);
    succeed('release-address', 'https://github.com/other/place');
    expect(written().join('\n')).not.toContain(ADDRESS);
    succeed('release-address', ADDRESS);
    expect(written()).toEqual(once);
  });

  it.each([
    '',
    'acme/nest-session',
    'http://github.com/acme/nest-session',
    'https://github.com/acme',
    'https://github.com/acme/nest-session/tree/main',
    'https://github.com/acme/nest session',
    'https://gitlab.com/acme/nest-session',
    'https://github.com/OWNER/NAME',
  ])('refuses "%s", says how an address is written, and writes nothing', (url) => {
    const before = written();
    const { code, output } = run('release-address', url);
    expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining(`"${url}" is not the address`) });
    expect(output).toContain('npm run release:address -- https://github.com/OWNER/NAME');
    expect(written()).toEqual(before);
  });

  it('writes nothing when a text has no words for the link', () => {
    writeFileSync(join(copy, 'SECURITY.md'), '# Security\n');
    const before = written();
    expect(run('release-address', ADDRESS)).toEqual({ code: 1, output: expect.stringContaining('SECURITY.md') });
    expect(written()).toEqual(before);
  });
});

describe('npm run release:version', () => {
  it('gives all packages one version, and asks for it wherever one needs another', () => {
    succeed('release-version', '9.8.7');
    expect(new Set(FOLDERS.map((folder) => json(`${folder}/package.json`).version))).toEqual(new Set(['9.8.7']));
    const ranges = written().flatMap((text) => [...text.matchAll(/^ +"@nest-session\/[\w-]+": "(\^.*)"/gm)]);
    expect(ranges.length).toBeGreaterThan(30);
    expect(new Set(ranges.map(([, range]) => range))).toEqual(new Set(['^9.8.7']));
  });

  it('leaves a lock file to which npm has nothing to add', () => {
    succeed('release-version', '9.8.7');
    const lock = read('package-lock.json');
    const args = ['install', '--package-lock-only', '--offline', '--ignore-scripts'];
    expect(spawnSync('npm', args, { cwd: copy }).status).toBe(0);
    expect(read('package-lock.json')).toBe(lock);
  });

  it('puts what was unreleased under the version and the day, once', () => {
    const [before, after] = read('CHANGELOG.md').split('## [Unreleased]\n');
    succeed('release-version', '9.8.7');
    succeed('release-version', '9.8.7');
    const today = new Date().toISOString().slice(0, 10);
    expect(read('CHANGELOG.md')).toBe(`${before}## [Unreleased]\n\n## [9.8.7] - ${today}\n${after}`);
  });

  it('refuses a version without changes, and writes nothing', () => {
    succeed('release-version', '9.8.7');
    const before = written();
    const { code, output } = run('release-version', '9.8.8');
    expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining('nothing under "## [Unreleased]"') });
    expect(written()).toEqual(before);
  });

  it.each(['', '1', '1.0', 'v1.0.0', '01.0.0', '1.0.0-rc', '^1.0.0'])('refuses "%s" and writes nothing', (version) => {
    const before = written();
    const { code, output } = run('release-version', version);
    expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining(`"${version}" is not a version`) });
    expect(written()).toEqual(before);
  });
});

describe('npm run release:check', () => {
  beforeEach(() => {
    succeed('release-address', ADDRESS);
    succeed('release-version', '9.8.7');
  });

  it('agrees to a tag with the version and the address of all packages', () => {
    expect(run('release-check', 'v9.8.7', ADDRESS)).toEqual({ code: 0, output: '' });
  });

  const edit = (path: string, change: (manifest: Record<string, unknown>) => void) => {
    const manifest = json(path);
    change(manifest);
    writeFileSync(join(copy, path), JSON.stringify(manifest));
  };

  it.each([
    {
      what: 'a package without an address',
      break: () => edit('libs/testing/package.json', (manifest) => delete manifest['repository']),
      told: 'libs/testing/package.json has no address',
    },
    {
      what: 'a package of another folder',
      break: () =>
        edit('libs/testing/package.json', (manifest) => (manifest['repository'] = json('package.json').repository)),
      told: `libs/testing/package.json does not have the address ${ADDRESS}`,
    },
    {
      what: 'a package of another version',
      break: () => edit('packages/session-redis/package.json', (manifest) => (manifest['version'] = '9.8.6')),
      told: 'packages/session-redis/package.json has version 9.8.6',
    },
    {
      what: 'a version without a heading',
      break: () => writeFileSync(join(copy, 'CHANGELOG.md'), '# Changelog\n\n## [Unreleased]\n'),
      told: 'CHANGELOG.md has no heading "## [9.8.7] - DATE"',
    },
  ])('refuses $what, and says what to call', ({ break: breakIt, told }) => {
    breakIt();
    const { code, output } = run('release-check', 'v9.8.7', ADDRESS);
    expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining(told) });
    expect(output).toContain('npm run release:version -- 9.8.7');
  });

  it.each([
    ['9.8.7', ADDRESS, 'The tag is "9.8.7"'],
    ['v9.8.8', ADDRESS, 'packages/session-core/package.json has version 9.8.7'],
    [
      'v9.8.7',
      'https://github.com/fork/nest-session',
      'does not have the address https://github.com/fork/nest-session',
    ],
  ])('refuses the tag %s of %s', (tag, address, told) => {
    expect(run('release-check', tag, address)).toEqual({ code: 1, output: expect.stringContaining(told) });
  });
});

describe('the publication', () => {
  /** Packs packages that have a manifest and nothing else. Returns their folder. */
  function pack(manifests: Record<string, unknown>[]): string {
    const folder = join(copy, 'tarballs');
    for (const [i, manifest] of manifests.entries()) {
      mkdirSync(join(folder, `${i}`), { recursive: true });
      writeFileSync(join(folder, `${i}`, 'package.json'), JSON.stringify({ name: `@acme/no-${i}`, ...manifest }));
      expect(spawnSync('npm', ['pack', `./${i}`], { cwd: folder }).status).toBe(0);
    }
    return folder;
  }

  const repository = { type: 'git', url: `git+${ADDRESS}.git` };

  it('takes tarballs with an address and one version', () => {
    const folder = pack([
      { version: '9.8.7', repository },
      { version: '9.8.7', repository },
    ]);
    const { code, output } = run('release-publish', '--dry-run', folder);
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/no-0@9\.8\.7[^]*no-1@9\.8\.7/) });
  });

  it.each([
    { what: 'one without an address', second: { version: '9.8.7' }, told: 'has no address of the repository' },
    {
      what: 'two versions',
      second: { version: '9.8.8', repository },
      told: 'has not one version, but these: 9.8.7, 9.8.8',
    },
  ])('refuses $what before it publishes any', ({ second, told }) => {
    const folder = pack([{ version: '9.8.7', repository }, second]);
    const { code, output } = run('release-publish', '--dry-run', folder);
    expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining(told) });
    expect(output).not.toContain('+ @acme');
  });
});

describe('the workflow of a release', () => {
  const workflow = readFileSync(join(ROOT, '.github/workflows/release.yml'), 'utf8');
  const named = (pattern: RegExp) => [...workflow.matchAll(pattern)].map(([, name]) => name!);

  it('calls commands and scripts that exist', () => {
    const commands = named(/npm run ([\w:]+)/g);
    expect(commands).toEqual(['release:check', 'release:pack', 'site']);
    expect(Object.keys(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts)).toEqual(
      expect.arrayContaining(commands),
    );
    const scripts = named(/(\.(?:dev|ci)\/[\w.-]+)/g);
    expect(scripts).toEqual(['.dev/install-server.sh', '.ci/run', '.dev/release-publish.mjs']);
    expect(scripts.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  /** The text of each job, by its name. */
  const jobs = new Map(
    workflow
      .split(/^jobs:$/m)[1]!
      .split(/^ {2}(?=\w+:$)/m)
      .slice(1)
      .map((text) => [text.slice(0, text.indexOf(':')), text] as const),
  );

  it('packs in a job that runs no script of a package, before any test', () => {
    expect([...jobs.keys()]).toEqual(['pack', 'test', 'publish', 'site', 'deploy']);
    expect(jobs.get('pack')).toMatch(
      /npm ci --ignore-scripts\n[^]*npm run release:pack[^]*PACKAGES: installed[^]*upload-artifact/,
    );
    expect(jobs.get('test')).toContain('needs: pack\n');
    expect(workflow).not.toMatch(/npm install\b/);
    expect(workflow.match(/npm ci.*/g)!.filter((each) => !each.includes('--ignore-scripts'))).toEqual([]);
  });

  it('publishes only what has the digests of what was packed', () => {
    const [, check] = /working-directory: tarballs\n *run: (.*)/.exec(jobs.get('publish')!)!;
    const folder = mkdtempSync(join(tmpdir(), 'digests-'));
    try {
      for (const name of ['a.tgz', 'b.tgz']) writeFileSync(join(folder, name), name);
      const digests = execFileSync('bash', ['-c', 'sha256sum -- *.tgz'], { cwd: folder, encoding: 'utf8' }).trimEnd();
      const checked = () =>
        spawnSync('bash', ['-c', check!], { cwd: folder, env: { ...process.env, DIGESTS: digests } }).status;
      expect(checked()).toBe(0);
      writeFileSync(join(folder, 'c.tgz'), 'one more');
      expect(checked()).toBe(1);
      rmSync(join(folder, 'c.tgz'));
      writeFileSync(join(folder, 'b.tgz'), 'changed');
      expect(checked()).toBe(1);
      rmSync(join(folder, 'b.tgz'));
      expect(checked()).toBe(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
    expect(jobs.get('publish')).toContain('DIGESTS: ${{ needs.pack.outputs.digests }}');
    expect(jobs.get('publish')!.indexOf(check!)).toBeLessThan(jobs.get('publish')!.indexOf('release-publish.mjs'));
  });

  it('gives no right but to read to a job that runs packages of others', () => {
    for (const [name, text] of jobs) {
      const hasRight = /: write\b/.test(text);
      expect([name, hasRight && /npm (?:ci|run|install)|\.ci\/run/.test(text)]).toEqual([name, false]);
    }
  });

  it('uses actions by their commits, since a tag of an action can be moved', () => {
    const actions = named(/uses: (.*)/g);
    expect(actions.length).toBeGreaterThan(3);
    expect(actions.filter((action) => !/^[\w-]+\/[\w-]+@[\da-f]{40} # v[\d.]+$/.test(action))).toEqual([]);
  });
});

it('docs/releasing.md lets npm trust the workflow for every package', () => {
  const text = readFileSync(join(ROOT, 'docs/releasing.md'), 'utf8');
  const [, names = ''] = /^ *for name in (.*); do$/m.exec(text) ?? [];
  const published = FOLDERS.map((folder) => JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')).name);
  expect(new Set(names.split(' ').map((name) => `@nest-session/${name}`))).toEqual(new Set(published));
});
