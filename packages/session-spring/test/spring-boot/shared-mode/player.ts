// Plays random operations on shared sessions from both sides, and knows what each session must have.
import assert from 'node:assert/strict';
import { type Session, SessionAttributeError } from '@nest-session/core';
import type { JavaSession, SpringApplication } from '@nest-session/test-infrastructure/spring';
import type { NestSide } from './nest.js';
import type { Random } from './random.js';

const PRINCIPAL = 'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME';
const USERS = ['ann', 'böb:x', 'o"h'];

interface Known {
  id: string;
  attributes: Map<string, unknown>;
  principal: string | undefined;
  /** The ids that it had, the first one first. */
  readonly ids: string[];
}

export class Player {
  readonly live: Known[] = [];
  readonly ended: Known[] = [];
  refused = 0;
  /** Of the session that was looked at last. */
  lastId = '';
  readonly played = new Map<string, number>();
  readonly #steps: readonly (readonly [name: string, step: () => Promise<Known | undefined>])[] = [
    ['nest creates', () => this.#createByNest()],
    ['spring creates', () => this.#createBySpring()],
    ['nest sets', () => this.#setByNest()],
    ['nest sets', () => this.#setByNest()],
    ['spring sets', () => this.#setBySpring()],
    ['spring sets', () => this.#setBySpring()],
    ['nest removes', () => this.#removeByNest()],
    ['spring removes', () => this.#removeBySpring()],
    ['nest changes in place', () => this.#changeInPlace()],
    ['nest saves what it loaded before', () => this.#saveLate()],
    ['nest changes the id', () => this.#changeIdByNest()],
    ['spring changes the id', () => this.#changeIdBySpring()],
    ['nest signs in', () => this.#signInByNest()],
    ['nest signs out', () => this.#forgetByNest()],
    ['spring sets the user', () => this.#userBySpring()],
    ['nest touches', () => this.#touch()],
    ['nest sets the interval', () => this.#intervalByNest()],
    ['spring sets the interval', () => this.#intervalBySpring()],
    ['nest deletes', () => this.#deleteByNest()],
    ['spring deletes', () => this.#deleteBySpring()],
    ['both find', () => this.#find()],
  ];

  constructor(
    private readonly random: Random,
    private readonly sides: readonly NestSide[],
    private readonly spring: SpringApplication,
  ) {}

  /** One operation. Then both sides read the session, and another one. */
  async step(): Promise<void> {
    const few = this.live.length < 10;
    const [name, play] = few ? this.#steps[this.random.below(2)]! : this.random.of(this.#steps);
    const session = await play();
    this.played.set(name, (this.played.get(name) ?? 0) + 1);
    if (session) await this.#check(session, name);
    if (this.live.length > 0) await this.#check(this.random.of(this.live), `after: ${name}`);
  }

  async #check(session: Known, what: string): Promise<void> {
    this.lastId = session.id;
    const [java, here] = await Promise.all([this.spring.load(session.id), this.#nest.findById(session.id)]);
    if (this.ended.includes(session)) return assert.deepEqual([java, here], [null, null], what);
    assert.ok(java && here, `${what}: ${session.id} is found by ${java ? 'Java' : here ? 'NestJS' : 'nobody'}`);
    const expected = sorted(session.attributes);
    assert.deepEqual(sorted(ofJava(java)), expected, `${what}: Java`);
    assert.deepEqual(sorted(ofNest(here)), withoutProto(expected), `${what}: NestJS`);
    assert.equal(java.attributes[PRINCIPAL], session.principal, `${what}: the principal in Java`);
    assert.equal(here.principalName, session.principal, `${what}: the principal in NestJS`);
  }

  get #nest() {
    return this.random.of(this.sides).sessions;
  }

  get #any(): Known {
    return this.random.of(this.live);
  }

  async #createByNest(): Promise<Known | undefined> {
    const session = this.#nest.createSession();
    const attributes = new Map<string, unknown>();
    // A session without attributes is not stored.
    while (attributes.size === 0) this.#set(session, attributes);
    await session.save();
    return this.#begin(session.id, attributes);
  }

  async #createBySpring(): Promise<Known> {
    const [name, value] = [this.random.name(), this.#javaValue()];
    const { id } = await this.spring.create({ attributes: { [name]: value } });
    return this.#begin(id, new Map([[name, value]]));
  }

  #begin(id: string, attributes: Map<string, unknown>): Known {
    const known: Known = { id, attributes, principal: undefined, ids: [id] };
    this.live.push(known);
    return known;
  }

  async #setByNest(): Promise<Known> {
    const known = this.#any;
    const session = (await this.#nest.findById(known.id))!;
    const attributes = new Map(known.attributes);
    this.#set(session, attributes);
    await session.save();
    known.attributes = attributes;
    return known;
  }

  /** What it refuses is not stored. */
  #set(session: Session, attributes: Map<string, unknown>): void {
    const [name, value] = [this.random.name(), this.random.value()];
    try {
      session.setAttribute(name, value);
      attributes.set(name, JSON.parse(JSON.stringify(value)));
    } catch (error) {
      assert.ok(error instanceof SessionAttributeError, String(error));
      this.refused++;
    }
  }

  async #setBySpring(): Promise<Known> {
    const known = this.#any;
    const [name, value] = [this.random.name(), this.#javaValue()];
    await this.spring.change(known.id, { attributes: { [name]: value } });
    known.attributes.set(name, value);
    return known;
  }

  /** What JSON carries to Java, and Jackson to Redis, without change. */
  #javaValue(): unknown {
    for (;;) {
      const value: unknown = JSON.parse(JSON.stringify(this.random.value()));
      const text = JSON.stringify(value);
      const isExact = !/@class|"java\.|\\ud8|e[+-]|9007199254740992/.test(text) && value !== null;
      if (isExact) return value;
    }
  }

  async #removeByNest(): Promise<Known> {
    const known = this.#any;
    const session = (await this.#nest.findById(known.id))!;
    const name = this.random.name();
    session.removeAttribute(name);
    await session.save();
    known.attributes.delete(name);
    return known;
  }

  async #removeBySpring(): Promise<Known> {
    const known = this.#any;
    const name = this.random.name();
    await this.spring.change(known.id, { attributes: { [name]: null } });
    known.attributes.delete(name);
    return known;
  }

  /** What Java has written with classes of its own is refused. */
  async #changeInPlace(): Promise<Known> {
    const known = this.#any;
    const session = (await this.#nest.findById(known.id))!;
    const [name, value] = [...known.attributes].find(([, each]) => Array.isArray(each)) ?? [];
    if (name === undefined) return known;
    session.getAttribute<unknown[]>(name)!.push('more');
    try {
      await session.save();
      (value as unknown[]).push('more');
    } catch (error) {
      assert.ok(error instanceof SessionAttributeError, String(error));
      this.refused++;
    }
    return known;
  }

  /** Changes of both sides that are of different attributes both stay. */
  async #saveLate(): Promise<Known> {
    const known = this.#any;
    const late = (await this.#nest.findById(known.id))!;
    await this.spring.change(known.id, { attributes: { color: 'of Spring' } });
    late.setAttribute('cart', 'late');
    await late.save();
    known.attributes.set('color', 'of Spring').set('cart', 'late');
    return known;
  }

  async #changeIdByNest(): Promise<Known> {
    const known = this.#any;
    const session = (await this.#nest.findById(known.id))!;
    session.changeSessionId();
    await session.save();
    return this.#renamed(known, session.id);
  }

  async #changeIdBySpring(): Promise<Known> {
    const known = this.#any;
    return this.#renamed(known, (await this.spring.change(known.id, { changeId: true }))!.id);
  }

  async #renamed(known: Known, id: string): Promise<Known> {
    const former = known.id;
    known.id = id;
    known.ids.push(id);
    assert.deepEqual([await this.spring.load(former), await this.#nest.findById(former)], [null, null]);
    return known;
  }

  async #signInByNest(): Promise<Known> {
    const known = this.#any;
    const session = (await this.#nest.findById(known.id))!;
    const user = this.random.of(USERS);
    // The session of another user starts empty.
    if (known.principal !== undefined && known.principal !== user) known.attributes.clear();
    known.principal = user;
    session.signIn(user);
    await session.save();
    return this.#renamed(known, session.id);
  }

  async #forgetByNest(): Promise<Known> {
    const known = this.#any;
    const session = (await this.#nest.findById(known.id))!;
    session.principalName = undefined;
    await session.save();
    known.principal = undefined;
    return session.id === known.id ? known : this.#renamed(known, session.id);
  }

  async #userBySpring(): Promise<Known> {
    const known = this.#any;
    known.principal = this.random.of([...USERS, undefined]);
    await this.spring.change(known.id, { attributes: { [PRINCIPAL]: known.principal ?? null } });
    return known;
  }

  async #touch(): Promise<Known> {
    const known = this.#any;
    const session = (await this.#nest.findById(known.id))!;
    assert.equal(await this.#nest.touch(session), 'touched');
    return known;
  }

  async #intervalByNest(): Promise<Known> {
    const known = this.#any;
    const session = (await this.#nest.findById(known.id))!;
    session.maxInactiveInterval = 600 + this.random.below(3600);
    await session.save();
    return known;
  }

  async #intervalBySpring(): Promise<Known> {
    const known = this.#any;
    await this.spring.change(known.id, { maxInactiveInterval: 600 + this.random.below(3600) });
    return known;
  }

  async #deleteByNest(): Promise<Known> {
    const known = this.#end();
    assert.equal(await this.#nest.deleteById(known.id), true);
    return known;
  }

  async #deleteBySpring(): Promise<Known> {
    const known = this.#end();
    await this.spring.delete(known.id);
    return known;
  }

  #end(): Known {
    const known = this.#any;
    this.live.splice(this.live.indexOf(known), 1);
    this.ended.push(known);
    return known;
  }

  async #find(): Promise<undefined> {
    const name = this.random.of(USERS);
    const expected = this.live.filter(({ principal }) => principal === name).map(({ id }) => id);
    const [java, here] = [await this.spring.ofPrincipal(name), await this.#nest.findByPrincipalName(name)];
    assert.deepEqual(here.map(({ id }) => id).toSorted(), expected.toSorted(), 'found by NestJS');
    assert.deepEqual(java.map(({ id }) => id).toSorted(), expected.toSorted(), 'found by Java');
  }
}

function ofJava({ attributes }: JavaSession): Map<string, unknown> {
  return new Map(Object.entries(attributes).filter(([name]) => name !== PRINCIPAL));
}

function ofNest(session: Session): Map<string, unknown> {
  // The principal has a name of its own here.
  const names = session.attributeNames.filter((name) => !name.startsWith('nest-session.'));
  return new Map(names.map((name) => [name, session.getAttribute(name)]));
}

function sorted(attributes: ReadonlyMap<string, unknown>): (readonly [string, unknown])[] {
  return [...attributes].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** NestJS reads no key `__proto__` of what other software has stored. */
function withoutProto(data: unknown): unknown {
  return JSON.parse(JSON.stringify(data), (key, value: unknown) => (key === '__proto__' ? undefined : value));
}
