// npm run pictures: draws the pictures of the documentation from the real demo, so that they show what it does now.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { animationOf } from './animation.mjs';
import { ensureChromium } from './install.mjs';
import { main, root } from './processes.mjs';

const FOLDER = 'docs/pictures';

await main(async () => {
  const executablePath = await ensureChromium();
  const demo = spawn(process.execPath, ['.dev/start.mjs'], {
    cwd: root,
    env: { ...process.env, PORT: '0', HOST: '', REDIS_URL: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(demo, 'exit');
  try {
    const address = await addressOf(demo);
    const browser = await chromium.launch({ executablePath, chromiumSandbox: false });
    try {
      await draw(browser, address);
    } finally {
      await browser.close();
    }
  } finally {
    demo.kill('SIGTERM');
    await ended;
  }
});

function addressOf(demo) {
  return new Promise((resolve, reject) => {
    let output = '';
    demo.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
      const [, address] = /^Open (\S+)$/m.exec(output) ?? [];
      if (address) resolve(address);
    });
    demo.once('exit', () => reject(new Error(`The demo has ended:\n${output}`)));
  });
}

async function draw(browser, address) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 1240 },
    locale: 'en',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  await page.goto(address);
  const press = (name) => page.getByRole('button', { name, exact: true }).click();
  await page.locator('#scenarios button').last().waitFor();
  for (const name of await page.locator('#scenarios button').allInnerTexts()) {
    await press(name);
    // A comparison ends when all buttons can be pressed again.
    await page.locator('#scenarios [aria-disabled="false"]').first().waitFor({ timeout: 120_000 });
  }
  // A head that sticks would cover a part of the whole page.
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `${root}${FOLDER}/comparison.png`, fullPage: true });
  writeFileSync(
    `${root}${FOLDER}/comparison.svg`,
    animationOf(await page.locator('.scenario').evaluateAll(findingsIn)),
  );
  await page.getByRole('tab', { name: 'Shop and engine room' }).click();
  await press('Add a lantern');
  await page.locator('#items', { hasText: 'lantern' }).waitFor();
  await press('Sign in as ann');
  await page.getByText('Signed in as ann').waitFor();
  await press('Add a teapot');
  await page.locator('#items', { hasText: 'teapot' }).waitFor();
  await page.locator('#fields', { hasText: 'teapot' }).waitFor();
  await page.screenshot({ path: `${root}${FOLDER}/demo.png` });
  await press('Kill the instance');
  await page.locator('#verdict', { hasText: 'Lost: nothing' }).waitFor({ timeout: 60_000 });
  await page.locator('#timeline-card').screenshot({ path: `${root}${FOLDER}/timeline.png` });
}

/** Of each scenario, its title, what happens, and what both sides have made of it. Runs in the page. */
function findingsIn(scenarios) {
  return scenarios.map((each) => ({
    title: each.querySelector('button').textContent,
    about: each.querySelector('.ask p').textContent,
    lanes: [...each.querySelectorAll('.lane')].map((lane) => ({
      side: lane.querySelector('.side').textContent,
      verdict: lane.dataset.verdict,
      text: lane.querySelector('.finding').textContent,
    })),
  }));
}
