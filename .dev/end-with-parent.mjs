// Preloaded into the demo by start.mjs: its standard input ends with start.mjs, even when that is killed, and then the
// demo ends too, in its orderly way.
process.stdin.on('end', () => process.kill(process.pid, 'SIGTERM')).resume();
process.stdin.unref();
