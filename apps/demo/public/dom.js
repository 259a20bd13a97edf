/** What the parts of the page share. */
export const $ = (id) => document.getElementById(id);

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

export const timeOf = (at) => clock.format(at);

/** An element with properties and children; texts are never markup. */
export function make(tag, { className = '', ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** Only a change may reach screen readers. */
export function set(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

/** Shows a list, and lets it alone when it shows the same already: focus and selection stay. */
export function fill(id, children) {
  const isSame =
    $(id).children.length === children.length && children.every((child, i) => child.isEqualNode($(id).children[i]));
  if (!isSame) $(id).replaceChildren(...children);
}

export function minutes(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

export function chips(texts) {
  return make('ul', { className: 'chips' }, ...texts.map((text) => make('li', { textContent: text })));
}
