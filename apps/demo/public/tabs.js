// The tabs of the page. The address names the open one, or something in it, so that links and reloads lead there.
import { $ } from './dom.js';

const tabs = [...document.querySelectorAll('[role=tab]')];

const panelOf = (tab) => $(tab.getAttribute('aria-controls'));

function open(tab) {
  for (const each of tabs) {
    const isOpen = each === tab;
    each.setAttribute('aria-selected', isOpen);
    // The arrow keys lead to the others.
    each.tabIndex = isOpen ? 0 : -1;
    panelOf(each).hidden = !isOpen;
  }
}

function openByAddress() {
  const target = $(location.hash.slice(1));
  const tab = tabs.find((each) => target && panelOf(each).contains(target)) ?? tabs[0];
  open(tab);
  if (!target || target === panelOf(tab)) return;
  target.tabIndex = -1;
  target.focus();
}

function choose(tab) {
  history.replaceState(null, '', `#${panelOf(tab).id}`);
  open(tab);
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener('click', () => choose(tab));
  tab.addEventListener('keydown', ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = tabs.at((i + step) % tabs.length);
    choose(next);
    next.focus();
  });
}
addEventListener('hashchange', openByAddress);
openByAddress();
