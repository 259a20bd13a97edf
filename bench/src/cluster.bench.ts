import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent, SessionIdChangedEvent } from '@nest-session/core';
import type { StorePrimitives } from '@nest-session/core/internal';
import { RedisCluster, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { clusterReport } from './cluster.report.js';
import { redisUsage, type RedisUsage } from './redis.usage.js';
import { byFigure, type Comparison, isQuick, writeResults } from './results.js';
import { interleave } from './rounds.js';
import { startStore } from './store.context.js';
import { measureOperation, OPERATION_NAMES, type Operations, operationsOf } from './store.operations.js';

const ROUNDS = isQuick ? 5 : 15;
const WARM_UP = 2;
const IN_FLIGHT = 48;
const PRIMARIES = 3;
const PARTITIONS = 64;

/** Handles the events of ends and of new ids: the figures contain what it takes to wake a handler and to serve it. */
@Injectable()
class Handlers {
  private static expected = 0;
  private static settle: (() => void) | undefined;

  /** The operations, with the handling of their events as a part of them. */
  static of(operations: Operations): Operations {
    return {
      ...operations,
      changeId: (id, newId) => {
        Handlers.expected++;
        return operations.changeId(id, newId);
      },
      delete: (id) => {
        Handlers.expected++;
        return operations.delete(id);
      },
    };
  }

  /** Resolves when all events have been handled. */
  static settled(): Promise<void> {
    if (Handlers.expected === 0) return Promise.resolve();
    return new Promise((resolve) => (Handlers.settle = resolve));
  }

  @OnSessionEvent(SessionDeletedEvent)
  onDeleted(): void {
    Handlers.count();
  }

  @OnSessionEvent(SessionIdChangedEvent)
  onIdChanged(): void {
    Handlers.count();
  }

  private static count(): void {
    if (--Handlers.expected === 0) Handlers.settle?.();
  }
}

/** The same sessions on a Cluster, and divided among as many servers that know nothing of each other. */
async function compare(): Promise<{ comparisons: Comparison[]; version: string | undefined }> {
  const cluster = await RedisCluster.start({ primaries: PRIMARIES, replicas: 0 });
  const together = await startStore({ cluster: { nodes: cluster.addresses } }, [Handlers]);
  const apart = [await startServers('servers', PARTITIONS), await startServers('simple servers', 1)];
  const contenders = [
    { name: 'cluster', operations: operationsOf(together.store), clients: clientsOf(cluster.nodes) },
    ...apart,
  ];
  // The share goes by the first character, and the partition by others.
  const mayReplace = (drawn: string, id: string) =>
    together.store.mayReplace(drawn, id) && shareOf(drawn) === shareOf(id);
  const comparisons: Comparison[] = [];
  for (const operation of OPERATION_NAMES) {
    const each = contenders.map(({ name, operations, clients }) => ({
      name,
      measure: () =>
        measureOperation(
          Handlers.of(operations),
          operation,
          IN_FLIGHT,
          () => usageOf(clients),
          mayReplace,
          Handlers.settled,
        ),
    }));
    const rounds = await interleave(each, ROUNDS, WARM_UP);
    const figures = each.map(({ name }, n) => ({ name, figures: byFigure(rounds[n]!) }));
    comparisons.push({ title: operation, contenders: figures });
  }
  const [, version] = /redis_version:(\S+)/.exec(await contenders[0]!.clients[0]!.info('server')) ?? [];
  for (const { clients } of contenders) for (const client of clients) client.disconnect();
  await Promise.all([together.stop(), ...apart.map(({ stop }) => stop())]);
  await cluster.stop();
  return { comparisons, version };
}

/** Servers with a store on each, which have the same layout as a Cluster, or that of a single server. */
async function startServers(name: string, partitions: number) {
  const servers = await Promise.all(Array.from({ length: PRIMARIES }, () => RedisServer.start()));
  const stores = await Promise.all(servers.map(({ url }) => startStore({ url, partitions }, [Handlers])));
  const stop = async () => {
    await Promise.all(stores.map((each) => each.stop()));
    await Promise.all(servers.map((each) => each.stop()));
  };
  return { name, operations: divided(stores.map(({ store }) => store)), clients: clientsOf(servers), stop };
}

function clientsOf(servers: readonly RedisServer[]): Redis[] {
  return servers.map(({ url }) => new Redis(url));
}

/** What an application would do that has several servers: each session is on one of them, by its id. */
function divided(stores: readonly StorePrimitives[]): Operations {
  const each = stores.map((store) => operationsOf(store));
  const of = (id: string) => each[shareOf(id)]!;
  return {
    load: (id) => of(id).load(id),
    save: (id) => of(id).save(id),
    touch: (id) => of(id).touch(id),
    create: (id) => of(id).create(id),
    changeId: (id, newId) => of(id).changeId(id, newId),
    delete: (id) => of(id).delete(id),
  };
}

function shareOf(id: string): number {
  return id.charCodeAt(0) % PRIMARIES;
}

/** The sum over the servers. */
async function usageOf(clients: readonly Redis[]): Promise<RedisUsage> {
  const all = await Promise.all(clients.map((client) => redisUsage(client)));
  const sum = (figure: keyof RedisUsage) => all.reduce((total, each) => total + each[figure], 0);
  return {
    processorTime: sum('processorTime'),
    inScripts: sum('inScripts'),
    inCommands: sum('inCommands'),
    commands: sum('commands'),
  };
}

const { comparisons, version } = await compare();
console.log(clusterReport(await writeResults('cluster', comparisons, version)));
