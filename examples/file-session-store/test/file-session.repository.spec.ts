import { copyFile, mkdtemp, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Session, SessionStoreError } from '@nest-session/core';
import { ManualClock } from '@nest-session/testing';
import { FileSessionRepository } from '../src/file-session.repository.js';

describe('the folder of sessions', () => {
  const clock = new ManualClock();
  let folder: string;
  let repository: FileSessionRepository;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sessions-'));
    repository = restarted();
  });

  afterEach(() => rm(folder, { recursive: true }));

  const restarted = () => new FileSessionRepository({ folder, clock });

  async function sessionOf(name: string): Promise<Session> {
    const session = repository.createSession();
    session.principalName = name;
    await repository.save(session);
    return session;
  }

  it('has one file for each session, also after a rotation', async () => {
    const ada = await sessionOf('ada');
    await sessionOf('bob');
    const before = await readdir(folder);
    ada.changeSessionId();
    await repository.save(ada);
    expect(await readdir(folder)).toEqual(before);
    expect(before).toHaveLength(2);
  });

  it('holds whole sessions also while they are written', async () => {
    const ada = await sessionOf('ada');
    const [name = ''] = await readdir(folder);
    let written = false;
    const writes = (async () => {
      for (let i = 0; i < 20; i++) {
        ada.setAttribute('text', `${i}`.padEnd(1_000_000));
        await repository.save(ada);
      }
      written = true;
    })();
    while (!written) JSON.parse(await readFile(join(folder, name), 'utf8'));
    await writes;
  });

  it('has no file of a session that has ended', async () => {
    const ada = await sessionOf('ada');
    const bob = await sessionOf('bob');
    await repository.deleteById(ada.id);
    bob.maxInactiveInterval = 0;
    await repository.save(bob);
    expect(await readdir(folder)).toEqual([]);
  });

  it('keeps only the former ids of an ended session, for a minute', async () => {
    const ada = await sessionOf('ada');
    ada.changeSessionId();
    await repository.save(ada);
    await repository.deleteById(ada.id);
    const [name = ''] = await readdir(folder);
    expect(await readFile(join(folder, name), 'utf8')).not.toContain('ada');
    clock.advance(59_999);
    await repository.removeExpired();
    expect(await readdir(folder)).toEqual([name]);
    clock.advance(1);
    await repository.removeExpired();
    expect(await readdir(folder)).toEqual([]);
  });

  it('loses the files of ended sessions at the next cleanup, also after a restart', async () => {
    await sessionOf('ada');
    clock.advance(1_800_000);
    await sessionOf('bob');
    await restarted().removeExpired();
    expect(await readdir(folder)).toHaveLength(1);
    expect(await restarted().findByPrincipalName('bob')).toHaveLength(1);
  });

  it('may hold a truncated file, which is no session and is removed by the next start', async () => {
    const ada = await sessionOf('ada');
    const bob = await sessionOf('bob');
    const id = bob.id;
    for (const name of await readdir(folder)) {
      await truncate(join(folder, name), 100);
    }
    expect(await repository.findByIds([ada.id, id])).toEqual([null, null]);
    expect(await repository.findByPrincipalName('ada')).toEqual([]);
    ada.setAttribute('items', 1);
    expect(await repository.save(ada)).toBe('gone');
    await sessionOf('eve');
    await restarted().removeExpired();
    expect(await readdir(folder)).toHaveLength(1);
  });

  it('may hold a temporary file from a crash, which is removed by the next start', async () => {
    const ada = await sessionOf('ada');
    const [name = ''] = await readdir(folder);
    await copyFile(join(folder, name), join(folder, `${name}.tmp`));
    expect((await restarted().findById(ada.id))?.principalName).toBe('ada');
    expect(await readdir(folder)).toEqual([name]);
  });

  it('may hold other files, which stay unchanged', async () => {
    await writeFile(join(folder, 'notes.session'), '');
    await restarted().removeExpired();
    expect(await readdir(folder)).toEqual(['notes.session']);
  });

  it('makes the store fail while it is missing, and ends no session', async () => {
    const ada = await sessionOf('ada');
    await rename(folder, `${folder}-away`);
    await expect(repository.findById(ada.id)).rejects.toThrow(SessionStoreError);
    await expect(repository.deleteById(ada.id)).rejects.toThrow(SessionStoreError);
    await rename(`${folder}-away`, folder);
    expect((await repository.findById(ada.id))?.principalName).toBe('ada');
  });

  it('keeps a session no longer after the clock was wrong, once the session is accessed', async () => {
    const ada = await sessionOf('ada');
    clock.advance(600_000);
    await repository.touch(ada);
    clock.advance(-600_000);
    await repository.touch(ada);
    clock.advance(1_799_999);
    expect(await repository.findById(ada.id)).not.toBeNull();
    clock.advance(1);
    expect(await repository.findById(ada.id)).toBeNull();
  });
});
