import {
  bindingIdIn,
  boundValue,
  challengeAt,
  confirmed,
  type DeviceBinding,
  evidenceIn,
  handleOf,
  mayOfferAgain,
  newBinding,
  offeredAgain,
  refreshed,
  registered,
  registrationChallenge,
  timeOfChallenge,
} from '../../src/device/device-binding.js';
import { type DeviceProof, type PublicKey, proofOf } from '../../src/device/device-jwt.js';
import { newKey, proofBy } from './device.browser.js';

const NOW = Date.UTC(2026, 10, 30);
const SECOND = 1000;
const MINUTE = 60 * SECOND;

type KeyProof = DeviceProof & { readonly publicKey: PublicKey };

/** What a browser with a new key sends to register. */
function proofFor(binding: DeviceBinding, key = newKey()): KeyProof {
  const headers = { 'secure-session-response': proofBy(key, registrationChallenge(binding), true) };
  return proofOf({ headers } as never) as KeyProof;
}

function register(binding: DeviceBinding, now = NOW, proof = proofFor(binding)): DeviceBinding {
  const after = registered(binding, handleOf(binding), proof, now);
  if (typeof after === 'string') throw new Error(after);
  return after;
}

const unconfirmed = register(newBinding(NOW));
const bound = confirmed(unconfirmed);
const others = [bound, confirmed(register(newBinding(NOW)))] as const;

describe('an offer', () => {
  it('makes an id and a secret that nothing else has', () => {
    const [one, other] = [newBinding(NOW), newBinding(NOW)];
    expect(one.id).toMatch(/^[\w-]{43}$/);
    expect(new Set([one.id, one.secret, other.id, other.secret]).size).toBe(4);
    expect(one).toMatchObject({ offers: 1, begunAt: NOW, offeredAt: NOW });
  });

  it('is repeated once a minute, five times in all, until the browser has registered', () => {
    let binding = newBinding(NOW);
    expect(mayOfferAgain(binding, NOW + MINUTE - 1)).toBe(false);
    for (let minutes = 1; minutes <= 4; minutes++) {
      expect(mayOfferAgain(binding, NOW + minutes * MINUTE)).toBe(true);
      binding = offeredAgain(binding, NOW + minutes * MINUTE);
      expect(mayOfferAgain(binding, NOW + minutes * MINUTE + 1)).toBe(false);
    }
    expect(binding.offers).toBe(5);
    expect(mayOfferAgain(binding, NOW + 1000 * MINUTE)).toBe(false);
  });

  it('is repeated for ten minutes from the first one', () => {
    const again = offeredAgain(newBinding(NOW), NOW + 9 * MINUTE);
    expect(mayOfferAgain(again, NOW + 10 * MINUTE)).toBe(true);
    expect(mayOfferAgain(again, NOW + 10 * MINUTE + 1)).toBe(false);
  });

  it('is repeated for a key whose browser was not answered, and only in the minutes after it came', () => {
    expect(mayOfferAgain(unconfirmed, NOW + MINUTE)).toBe(true);
    expect(mayOfferAgain(unconfirmed, NOW + 5 * MINUTE)).toBe(true);
    expect(mayOfferAgain(unconfirmed, NOW + 5 * MINUTE + 1)).toBe(false);
    expect(mayOfferAgain(bound, NOW + MINUTE)).toBe(false);
  });
});

describe('a registration', () => {
  it('stores the key, not yet confirmed', () => {
    const proof = proofFor(newBinding(NOW));
    const binding = newBinding(NOW);
    const after = register(binding, NOW + MINUTE, { ...proof, challenge: registrationChallenge(binding) });
    expect(after.key).toEqual({
      publicKey: proof.publicKey,
      since: NOW + MINUTE,
      offer: 1,
      isConfirmed: false,
      answered: 0,
      answeredAt: 0,
    });
  });

  it('names the binding in its handle, and no more', () => {
    const binding = newBinding(NOW);
    expect(bindingIdIn(handleOf(binding))).toBe(binding.id);
    expect(handleOf(binding)).not.toContain(binding.secret);
    for (const other of ['', binding.id, `${handleOf(binding)}a`, `${handleOf(binding)}/`, `.${handleOf(binding)}`])
      expect(bindingIdIn(other)).toBeUndefined();
  });

  it('is refused with a handle of another binding, of another offer, or changed', () => {
    const binding = newBinding(NOW);
    const again = offeredAgain(binding, NOW + MINUTE);
    const changed = handleOf(binding).replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
    for (const handle of [handleOf(newBinding(NOW)), changed, '', binding.id])
      expect(registered(binding, handle, proofFor(binding), NOW)).toBe('unknown-handle');
    expect(registered(again, handleOf(binding), proofFor(again), NOW + MINUTE)).toBe('unknown-handle');
    expect(registered(again, handleOf(again), proofFor(binding), NOW + MINUTE)).toBe('foreign-challenge');
  });

  it('is refused five minutes after the offer, with room for clocks', () => {
    const binding = newBinding(NOW);
    const until = NOW + 5 * MINUTE + 30 * SECOND;
    expect(registered(binding, handleOf(binding), proofFor(binding), until)).toMatchObject({ key: { since: until } });
    expect(registered(binding, handleOf(binding), proofFor(binding), until + 1)).toBe('unknown-handle');
  });

  it('is repeated by the same key for a minute, or until its browser is answered', () => {
    const binding = newBinding(NOW);
    const proof = proofFor(binding);
    const after = register(binding, NOW, proof);
    expect(registered(after, handleOf(binding), proof, NOW + MINUTE)).toBe(after);
    expect(registered(confirmed(after), handleOf(binding), proof, NOW + MINUTE)).toEqual(confirmed(after));
    expect(registered(confirmed(after), handleOf(binding), proof, NOW + MINUTE + 1)).toBe('unknown-handle');
    expect(registered(after, handleOf(binding), proof, NOW + MINUTE + 1)).toBe(after);
  });

  it('is refused to a second key of the same offer, and to any once the first is confirmed', () => {
    const again = offeredAgain(unconfirmed, NOW + MINUTE);
    const both = offeredAgain(bound, NOW + MINUTE);
    expect(registered(unconfirmed, handleOf(unconfirmed), proofFor(unconfirmed), NOW)).toBe('second-key');
    expect(registered(bound, handleOf(bound), proofFor(bound), NOW)).toBe('second-key');
    expect(registered(both, handleOf(both), proofFor(both), NOW + MINUTE)).toBe('second-key');
    const second = proofFor(again);
    expect(register(again, NOW + MINUTE, second).key).toMatchObject({ publicKey: second.publicKey, offer: 2 });
  });
});

describe('a challenge', () => {
  it('tells its time to its binding alone', () => {
    const [one, other] = others;
    const challenge = challengeAt(one, NOW);
    expect(timeOfChallenge(one, challenge)).toBe(NOW);
    expect(timeOfChallenge(other, challenge)).toBeUndefined();
    expect(timeOfChallenge({ ...one, secret: other.secret }, challenge)).toBeUndefined();
    expect(timeOfChallenge({ ...one, id: other.id }, challenge)).toBeUndefined();
  });

  it('cannot be made to tell another time', () => {
    const [time = '', proof = ''] = challengeAt(bound, NOW).split('.');
    const later = (NOW + 1).toString(36);
    for (const text of [`${later}.${proof}`, `0${time}.${proof}`, `${time}.${proof}=`, `${time}.`, proof, '', '.'])
      expect(timeOfChallenge(bound, text)).toBeUndefined();
  });

  it('is answered in 75 minutes, which is longer than the longest proof counts', () => {
    expect(refreshed(bound, NOW, NOW + 75 * MINUTE)).toBeDefined();
    expect(refreshed(bound, NOW, NOW + 75 * MINUTE + 1)).toBeUndefined();
  });

  it('confirms the key', () => {
    expect(refreshed(unconfirmed, NOW, NOW)?.key).toMatchObject({ isConfirmed: true, answered: NOW, answeredAt: NOW });
    expect(refreshed(newBinding(NOW), NOW, NOW)).toBeUndefined();
  });

  it('is answered once more within a minute, because the reply may be lost, and not later', () => {
    const after = refreshed(bound, NOW, NOW + 8 * MINUTE)!;
    expect(refreshed(after, NOW, NOW + 9 * MINUTE)).toEqual(after);
    expect(refreshed(after, NOW, NOW + 9 * MINUTE + 1)).toBeUndefined();
  });

  it('counts no longer because it is answered again and again', () => {
    let after = refreshed(bound, NOW, NOW)!;
    after = refreshed(after, NOW, NOW + 40 * SECOND)!;
    expect(refreshed(after, NOW, NOW + 80 * SECOND)).toBeUndefined();
  });

  it('gives way to one that was answered: a tab may bring that of a minute before, a recording of before none', () => {
    const after = refreshed(bound, NOW + 2 * MINUTE, NOW + 2 * MINUTE)!;
    expect(refreshed(after, NOW + MINUTE, NOW + 2 * MINUTE)?.key).toMatchObject({ answered: NOW + 2 * MINUTE });
    expect(refreshed(after, NOW + MINUTE - 1, NOW + 2 * MINUTE)).toBeUndefined();
    expect(refreshed(after, NOW + 2 * MINUTE + 1, NOW + 5 * MINUTE)).toBeDefined();
  });

  it('is still answered after the clock of the store was set back', () => {
    const ahead = refreshed(bound, NOW + 10 * MINUTE, NOW + 10 * MINUTE)!;
    expect(refreshed(ahead, NOW, NOW)).toBeDefined();
    expect(refreshed(ahead, NOW - 2 * MINUTE, NOW)).toBeUndefined();
  });
});

describe('the bound cookie', () => {
  const evidence = (binding: DeviceBinding, values: string[], now = NOW + 2 * MINUTE) =>
    evidenceIn(binding, values, now);

  it('proves its session until its end, with room for clocks', () => {
    const end = NOW + 10 * MINUTE;
    const value = boundValue(bound, end);
    expect(evidence(bound, [value], end + 30 * SECOND)).toBe('proven');
    expect(evidence(bound, [value], end + 30 * SECOND + 1)).toBe('missing');
  });

  it('proves also with others before it, of another path or planted', () => {
    const [own, other] = others;
    const end = NOW + 10 * MINUTE;
    expect(evidence(own, ['', 'x', boundValue(other, end), boundValue(own, NOW), boundValue(own, end)])).toBe('proven');
  });

  it('is forged where the session never had it', () => {
    const [own, other] = others;
    const end = NOW + 10 * MINUTE;
    const later = (end + MINUTE).toString(36);
    const moved = boundValue(own, end).replace(/^[^.]*/, later);
    for (const value of ['', 'x', boundValue(other, end), moved]) expect(evidence(own, [value])).toBe('forged');
    expect(evidence(own, [])).toBe('missing');
    expect(evidence(own, [boundValue(own, NOW - MINUTE)])).toBe('missing');
  });

  it('proves nothing once its key gave way to that of a later offer', () => {
    const end = NOW + 10 * MINUTE;
    const first = boundValue(unconfirmed, end);
    expect(evidence(unconfirmed, [first])).toBe('proven');
    const replaced = register(offeredAgain(unconfirmed, NOW + MINUTE), NOW + MINUTE);
    expect(evidence(replaced, [first])).toBe('unbound');
    expect(evidence(confirmed(replaced), [first])).toBe('forged');
  });

  it('is asked of nobody for five minutes before a key is confirmed, nor for a minute after it came', () => {
    expect(evidence(newBinding(NOW), [])).toBe('unbound');
    expect(evidence(unconfirmed, [], NOW + 5 * MINUTE)).toBe('unbound');
    expect(evidence(unconfirmed, [], NOW + 5 * MINUTE + 1)).toBe('missing');
    expect(evidence(bound, ['x'], NOW + MINUTE - 1)).toBe('under-way');
    expect(evidence(bound, [], NOW + MINUTE)).toBe('missing');
  });
});

it('what the secret proves for one purpose proves nothing for another', () => {
  const end = NOW + 10 * MINUTE;
  const [cookie, challenge] = [boundValue(bound, end), challengeAt(bound, end)];
  expect(timeOfChallenge(bound, cookie)).toBeUndefined();
  expect(evidenceIn(bound, [challenge], NOW + 2 * MINUTE)).toBe('forged');
  const binding = newBinding(NOW);
  const asChallenge = { ...proofFor(binding), challenge: handleOf(binding).split('.')[1]! };
  expect(registered(binding, handleOf(binding), asChallenge, NOW)).toBe('foreign-challenge');
  const asHandle = `${binding.id}.${registrationChallenge(binding)}`;
  expect(registered(binding, asHandle, proofFor(binding), NOW)).toBe('unknown-handle');
  const refresh = { ...proofFor(binding), challenge: challengeAt(binding, NOW) };
  expect(registered(binding, handleOf(binding), refresh, NOW)).toBe('foreign-challenge');
});
