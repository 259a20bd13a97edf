import { Cluster, Redis } from 'ioredis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisCluster, type RedisServer } from '@nest-session/testing';

LeakGuard.install();

describe('RedisCluster', () => {
  const clients: (Cluster | Redis)[] = [];
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start({ replicas: 1 });
  }, 60_000);
  afterEach(() => {
    for (const client of clients.splice(0)) client.disconnect();
  });
  afterAll(() => cluster.stop());

  function connect(): Cluster {
    const client = new Cluster(cluster.addresses, { lazyConnect: true, maxRedirections: 100 });
    client.on('error', () => undefined);
    clients.push(client);
    return client;
  }

  function at(node: RedisServer): Redis {
    const client = new Redis(node.url, { lazyConnect: true });
    clients.push(client);
    return client;
  }

  const slotOf = (key: string) => at(cluster.nodes.find((node) => node.isRunning)!).cluster('KEYSLOT', key);
  const primaryOf = async (key: string) => cluster.primaryOf(await slotOf(key));

  it('keeps keys on the primaries of their slots', async () => {
    const client = connect();
    const keys = Array.from({ length: 30 }, (_, i) => `key-${i}`);
    for (const key of keys) await client.set(key, 'value');
    const owners = new Set<RedisServer>();
    for (const key of keys) {
      const owner = await primaryOf(key);
      owners.add(owner);
      expect(await at(owner).get(key)).toBe('value');
    }
    expect([...owners].every((owner) => cluster.nodes.slice(0, 3).includes(owner))).toBe(true);
    expect(owners.size).toBe(3);
  });

  it('moves a slot with its keys', async () => {
    const client = connect();
    await client.set('moved', 'value');
    const from = await primaryOf('moved');
    const to = cluster.nodes.slice(0, 3).find((node) => node !== from)!;
    await cluster.moveSlots([await slotOf('moved')], to);
    expect(await primaryOf('moved')).toBe(to);
    expect(await at(to).get('moved')).toBe('value');
    await expect(at(from).get('moved')).rejects.toThrow('MOVED');
    expect(await client.get('moved')).toBe('value');
  });

  it('replaces a primary by its replica when a test asks for it', async () => {
    const client = connect();
    await client.set('replaced', 'value');
    const before = await primaryOf('replaced');
    const [replica] = await cluster.replicasOf(before);
    expect(await cluster.failover(before)).toBe(replica);
    expect(await primaryOf('replaced')).toBe(replica);
    expect(await cluster.replicasOf(replica!)).toEqual([before]);
    expect(await client.get('replaced')).toBe('value');
  });

  it('replaces a primary that is killed, and takes it back as a replica', async () => {
    const client = connect();
    await client.set('killed', 'value');
    const before = await primaryOf('killed');
    expect(await at(before).wait(1, 10_000)).toBe(1);
    await before.kill();
    const after = await primaryOf('killed');
    expect(after).not.toBe(before);
    expect(await at(after).get('killed')).toBe('value');
    await before.restart();
    expect(await cluster.replicasOf(after)).toEqual([before]);
  }, 60_000);

  it('leaves no process behind when it has stopped, also of frozen and killed nodes', async () => {
    const other = await RedisCluster.start();
    await other.nodes[0]!.kill();
    other.nodes[1]!.freeze();
    await other.stop();
    for (const { isRunning, pid } of other.nodes) {
      expect(isRunning).toBe(false);
      expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    }
  }, 60_000);

  it('fails with the output of Redis, and leaves nothing behind, when a node cannot start', async () => {
    await expect(RedisCluster.start({ args: ['--no-such-option', 'x'] })).rejects.toThrow(/no-such-option/);
  });
});
