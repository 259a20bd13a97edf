// Moves the sessions of a namespace on a Cluster: CLUSTER has the addresses of its nodes as JSON, TO the number of
// partitions.
import { repartition } from '@nest-session/cli';

const { CLUSTER, NAMESPACE, TO } = process.env;
await repartition({ cluster: { nodes: JSON.parse(CLUSTER) }, namespace: NAMESPACE }, { to: Number(TO) });
