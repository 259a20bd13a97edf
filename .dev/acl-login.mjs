// Loaded by the tests of `npm run test:acl`, and by the processes that they start: the connections of the library,
// which it names after their namespace, log in as the user of that name. What Redis denies them is written to
// $ACL_DENIED.
import { appendFileSync } from 'node:fs';
import { Redis } from 'ioredis';

// ioredis puts a prefix before the name of the connection on which it asks a Cluster for its slots.
const OWN =
  /^(?:ioredis-cluster\(\w+\):)?(.+):(request|writes|background|subscriber|notifications|signals|reader|broadcast)$/;
/** The namespace of a test in which nobody logs in. */
const ANONYMOUS = 'anonymous';
// The password is only wrong where a namespace has no user: see NAMESPACES in test-acl.mjs.
const DENIED = /^NOPERM|^WRONGPASS|The user executing the script can't/;
// It only tells Redis the name of ioredis.
const NOT_MISSED = /client\|setinfo/;

// The test files of a worker share ioredis.
if (!Object.hasOwn(Redis, 'logsIn')) logIn();

function logIn() {
  Redis.logsIn = true;
  const { connect, sendCommand } = Redis.prototype;

  Redis.prototype.connect = function (...args) {
    const { options } = this;
    const namespace = OWN.exec(options.connectionName ?? '')?.[1];
    // A test that logs in by itself is about that.
    if (namespace !== undefined && namespace !== ANONYMOUS && !options.username && !options.password) {
      Object.assign(options, { username: namespace, password: 'a-long-secret' });
    }
    return connect.apply(this, args);
  };

  Redis.prototype.sendCommand = function (command, ...args) {
    const reply = sendCommand.call(this, command, ...args);
    if (OWN.exec(this.options.connectionName ?? '')?.[1] === this.options.username) {
      command.promise.catch(({ message }) => {
        if (!DENIED.test(message) || NOT_MISSED.test(message)) return;
        appendFileSync(
          process.env.ACL_DENIED,
          `${command.name} ${String(command.args[0]).slice(0, 100)}: ${message}\n`,
        );
      });
    }
    return reply;
  };
}
