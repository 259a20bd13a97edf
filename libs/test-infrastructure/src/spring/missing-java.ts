import { spawnSync } from 'node:child_process';

const OLDEST_JAVA = 17;

/** Says in a sentence what is missing here for applications of Java, and how to get it. Undefined when nothing is. */
export function missingJava(): string | undefined {
  const missing: string[] = [];
  if (versionOfJava() < OLDEST_JAVA) missing.push(`no JDK of Java ${OLDEST_JAVA} or later`);
  if (spawnSync('mvn', ['--version']).status !== 0) missing.push('no Maven');
  if (missing.length === 0) return undefined;
  return (
    `There is ${missing.join(' and ')} on the PATH: install both (Debian and Ubuntu: sudo apt-get install ` +
    `openjdk-${OLDEST_JAVA}-jdk-headless maven; macOS: brew install openjdk@${OLDEST_JAVA} maven).`
  );
}

/** Of the compiler: a runtime alone is not enough. */
function versionOfJava(): number {
  const { stdout } = spawnSync('javac', ['-version'], { encoding: 'utf8' });
  return Number(/^javac (\d+)/.exec(stdout ?? '')?.[1] ?? 0);
}
