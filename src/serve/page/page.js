// The page. It asks what everybody may ask, and shows the answers as text and nothing else: no text of theirs is ever
// read as markup.
'use strict';

const MOVING = 2000;   // Milliseconds between two questions while something moves,
const RESTING = 15000; // and while nothing does.
const SHOWN = 60;      // So many objects of a phase are listed on the overview,
const EVENTS = 20;     // and so many events.

// Each phase: how it looks, and what it means.
const PHASES = {
  Failed: ['bad', 'its controller gave up'],
  Refused: ['bad', 'cannot be applied until somebody changes something'],
  Quarantined: ['bad', 'it failed, and stays as it is'],
  RolledBack: ['bad', 'it failed, and is back at its last good content'],
  RollingOut: ['move', 'its pods are being replaced'],
  Progressing: ['move', 'its controller is still working on it'],
  Waiting: ['wait', 'a change is pending'],
  PruneWaiting: ['wait', 'its deletion is pending'],
  Paused: ['held', 'somebody paused it'],
  Held: ['held', 'somebody holds it'],
  Settled: ['good', 'applied and healthy'],
  OptedOut: ['held', 'an annotation on the live object keeps rhumb away'],
  LeftAlone: ['rest', 'left alone, as its manifest asks'],
};
const WELL = ['Settled', 'LeftAlone'];
const ATTENTION = Object.keys(PHASES).filter((phase) => !WELL.includes(phase) && phase !== 'PruneWaiting');

const state = { status: null, objects: [], events: [], last: 0, trouble: null, live: false, view: null, tab: 'difference' };

// --- Building -------------------------------------------------------------------------------------------------------

// Characters that change the direction of the text around them, take no room or control something.
const MISLEADING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const plain = (text) => (typeof text === 'string' ? text.replace(MISLEADING, '\ufffd') : text);

/** An element with properties and children; texts become text nodes. */
function el(name, properties, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'class') element.className = value;
    else if (key === 'on') for (const [what, call] of Object.entries(value)) element.addEventListener(what, call);
    else if (key === 'grow') element.style.flexGrow = value;
    else element.setAttribute(key, key === 'title' ? plain(value) : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false).map(plain));
  return element;
}

/** Replaces what an element holds, where it is another; whatever had the focus keeps it. */
function fill(element, key, make) {
  const text = JSON.stringify(key);
  if (element.dataset.shown === text) return;
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : undefined;
  element.replaceChildren(...[make()].flat(9).filter(Boolean));
  element.dataset.shown = text;
  if (focused) {
    const again = [...element.querySelectorAll('[data-key]')].find((one) => one.dataset.key === focused);
    if (again) again.focus({ preventScroll: true });
  }
}

const section = (title, count, ...children) =>
  el('section', {}, el('h2', {}, title, count === undefined ? null : el('span', { class: 'count' }, String(count))), children);

/** A link, only where it leads to the web. */
function shownLocation(text) {
  return /^https?:\/\//i.test(text) ? el('a', { href: text, rel: 'noreferrer noopener' }, text) : text;
}

const short = (revision) => (/^[0-9a-f]{40,64}$/.test(revision) ? revision.slice(0, 12) : revision);
const plural = (count, one, many) => `${count} ${count === 1 ? one : many || one + 's'}`;
const look = (phase) => (PHASES[phase] || ['rest', ''])[0];
const chip = (phase) => el('span', { class: `chip ${look(phase)}`, title: (PHASES[phase] || [])[1] }, spaced(phase));
const spaced = (word) => word.replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);

function age(from, to) {
  const seconds = Math.max(0, Math.round((Date.parse(to) - Date.parse(from)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

const kindOf = (object) => object.kind + (object.group ? `.${object.group}` : '');
const nameOf = (object) => (object.namespace ? `${object.namespace}/` : '') + object.name;
const hrefOf = (object) =>
  '#/object/' + [kindOf(object), object.namespace || '-', object.name].map(encodeURIComponent).join('/');
/** As `rhumb prune list -o name` writes it: a shell takes it for a word, whatever is in the name. */
const typedName = (object) => (object.namespace ? `${object.namespace}/` : '') + `${kindOf(object).toLowerCase()}/${worded(object.name)}`;
const worded = (name) => encodeURIComponent(name).replaceAll('%3A', ':')
  .replace(/[!*'()]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

function named(object, key) {
  return el('a', { class: 'name', href: hrefOf(object), 'data-key': `${key} ${hrefOf(object)}` },
    nameOf(object), ' ', el('small', {}, object.kind));
}

function bar(parts) {
  return el('div', { class: 'bar', 'aria-hidden': 'true' },
    parts.filter(([, count]) => count > 0).map(([tone, count]) =>
      el('span', tone ? { class: `fill-${tone}`, grow: count } : { grow: count })));
}

// --- The overview ---------------------------------------------------------------------------------------------------

function tone(source) {
  const phases = Object.keys(source.objects);
  if (!source.revision || !source.complete || phases.some((phase) => look(phase) === 'bad')) return 'bad';
  if (source.pruneWaiting || phases.some((phase) => look(phase) === 'wait')) return 'wait';
  if (phases.some((phase) => look(phase) === 'move')) return 'move';
  return source.observed || source.paused !== undefined ? 'rest' : 'good';
}

function sourceCard(source, at) {
  const counts = Object.entries(source.objects).sort(([a], [b]) => Object.keys(PHASES).indexOf(a) - Object.keys(PHASES).indexOf(b));
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  const to = (phase) => `#/objects/${encodeURIComponent(source.name)}/${phase}`;
  return el('article', { class: `card source ${tone(source)}` },
    el('header', {}, el('h3', {}, source.name), el('span', { class: 'ellipsis soft', title: source.location }, shownLocation(source.location)),
      source.observed ? el('span', { class: 'chip rest', title: 'nothing is written' }, 'observed') : null),
    source.revision ? el('div', { class: 'commit' },
      el('span', { class: 'hash', title: source.revision }, short(source.revision)),
      el('span', { class: 'ellipsis', title: source.subject }, source.subject || ''),
      el('span', { class: 'soft', title: source.since }, source.since ? age(source.since, at) : ''),
      source.author ? el('span', { class: 'who soft ellipsis' }, source.author) : null) : null,
    bar([...counts].reverse().map(([phase, count]) => [look(phase), count])),
    el('div', { class: 'legend' },
      el('a', { href: to('all'), 'data-key': `all ${source.name}` }, el('b', {}, String(total)), total === 1 ? ' object' : ' objects'),
      counts.map(([phase, count]) => el('a', { href: to(phase), 'data-key': `${phase} ${source.name}` }, el('b', {}, String(count)), ` ${spaced(phase).toLowerCase()}`)),
      source.driftRepaired ? el('span', {}, el('b', {}, String(source.driftRepaired)), ' repaired') : null,
      source.findings ? el('span', {}, el('b', {}, String(source.findings)), source.findings === 1 ? ' finding' : ' findings') : null),
    source.paused !== undefined ? el('p', { class: 'says held' }, `paused${source.paused ? `: ${source.paused}` : ''}`) : null,
    source.incomplete ? el('p', { class: 'says bad' }, `incomplete: ${source.incomplete}`) : null,
    (source.firstFindings || []).map((finding) => el('p', { class: 'says wait' }, finding)),
    source.unlisted ? el('p', { class: 'says wait' }, source.unlisted) : null,
    source.unwatched ? el('p', { class: 'says wait' }, source.unwatched) : null);
}

function gauge(title, used, of, note) {
  const full = used >= of;
  return el('div', { class: 'gauge' }, el('dt', {}, title),
    el('dd', {}, String(used), el('small', {}, note || (used > of ? `, at most ${of}` : ` of ${of}`))),
    bar([[full ? 'wait' : 'move', Math.min(used, of)], ['', Math.max(of - used, used ? 0 : 1)]]));
}

function rolling(roll) {
  const behind = Math.max(0, roll.updated - roll.available);
  const fresh = Math.max(0, Math.min(roll.updated, roll.available));
  // Nobody here looks at a workload of another process.
  const unknown = roll.holder && roll.replicas + roll.updated + roll.available === 0;
  return el('li', { class: 'roll' }, named(roll, 'roll'),
    unknown ? null : el('div', { class: 'pods' },
      bar([['good', fresh], ['move', behind], ['', Math.max(0, roll.replicas - roll.updated)]]),
      el('span', {}, `${roll.updated} of ${roll.replicas} new, ${roll.available} available`)),
    roll.step ? el('p', { class: 'why' }, roll.step) : null,
    roll.holder || !roll.source ? el('p', { class: 'why' }, `claimed by ${roll.holder || 'another daemon'}`) : null);
}

function rollout(rollout) {
  const queue = rollout.queue.slice(0, SHOWN);
  return section('Rollout', undefined, el('div', { class: 'card' },
    rollout.unreadable ? el('p', { class: 'says bad' }, rollout.unreadable) : null,
    el('dl', { class: 'gauges' },
      gauge('Workloads rolling out', rollout.workloads.used, rollout.workloads.of),
      gauge('Pods unavailable', rollout.unavailable.used, rollout.unavailable.of),
      gauge('Starts per minute', rollout.starts.used, rollout.starts.of),
      gauge('Allowed now', rollout.window, rollout.workloads.of)),
    rollout.rolling.length + queue.length === 0
      ? el('p', { class: 'empty' }, rollout.known ? 'No rollouts, and none are queued.' : 'The budget has not been read yet.')
      : el('ul', { class: 'rows' }, rollout.rolling.map(rolling), queue.map((queued) =>
        el('li', { class: 'queued' }, el('span', { class: 'position' }, queued.position ? `${queued.position}.` : '–'),
          named(queued, 'queue'), el('p', { class: 'why' }, queued.reason)))),
    rollout.queue.length > queue.length ? el('p', { class: 'more soft' }, `and ${rollout.queue.length - queue.length} more`) : null));
}

function objectRow(object) {
  return el('li', { class: 'object' }, chip(object.phase), named(object, 'object'),
    el('span', { class: 'where' }, object.origin || ''),
    object.reason ? el('p', { class: 'why' }, object.reason) : null);
}

function attention(objects) {
  const open = objects.filter((object) => object.phase !== 'PruneWaiting');
  open.sort((a, b) => ATTENTION.indexOf(a.phase) - ATTENTION.indexOf(b.phase));
  const shown = open.slice(0, SHOWN);
  return section('Needs attention', open.length, el('div', { class: 'card' },
    open.length ? el('ul', { class: 'rows' }, shown.map(objectRow)) : el('p', { class: 'empty' }, 'Nothing needs attention.'),
    open.length > shown.length ? el('p', { class: 'more soft' }, `and ${open.length - shown.length} more`) : null));
}

/** A command to be typed, with a button that copies it. */
function typed(command) {
  const copied = (event) => {
    const button = event.target;
    const done = (word) => { button.textContent = word; setTimeout(() => { button.textContent = 'Copy'; }, 1500); };
    if (navigator.clipboard) navigator.clipboard.writeText(command).then(() => done('Copied'), () => done('No'));
    else done('No');
  };
  return el('div', { class: 'type' }, el('pre', { tabindex: '0' }, command),
    el('button', { type: 'button', 'data-key': command, on: { click: copied } }, 'Copy'));
}

function prunes(sources, objects) {
  const waiting = sources.filter((source) => source.pruneWaiting > 0);
  if (!waiting.length) return null;
  return section('Pending deletions', waiting.reduce((sum, source) => sum + source.pruneWaiting, 0),
    el('div', { class: 'card' }, waiting.map((source) => {
      const own = objects.filter((object) => object.phase === 'PruneWaiting' && object.source === source.name);
      const few = own.length > 0 && own.length <= 5;
      return el('div', { class: 'prune' },
        el('p', {}, el('b', {}, source.name), el('span', { class: 'soft' }, own.length ? `: ${own[0].reason || 'no longer wanted'}` : '')),
        own.length && !few ? el('p', { class: 'soft' }, own.slice(0, 5).map(nameOf).join(', ') + ` and ${own.length - 5} more`) : null,
        few ? typed(`rhumb prune confirm --source ${source.name} ${own.map(typedName).join(' ')}`)
          : typed(`rhumb prune list --source ${source.name}`));
    })));
}

/** Records that cannot be read: each holds something back until a person runs its command. */
function records(unreadable) {
  if (!unreadable.length) return null;
  return section('Unreadable records', unreadable.length,
    el('div', { class: 'card' }, unreadable.map((why) => el('p', { class: 'says bad' }, why))));
}

function changes(sources) {
  const all = sources.flatMap((source) => (source.changes || []).map((change) => ({ ...change, source: source.name })));
  const many = sources.length > 1;
  return section('Recent commits', undefined, el('div', { class: 'card' }, all.length
    ? el('ul', { class: 'rows' }, all.slice(0, 10).map((change) => el('li', { class: 'change' },
      el('span', { class: 'name ellipsis', title: change.subject }, change.subject),
      el('span', { class: 'hash', title: change.revision }, short(change.revision)),
      el('p', { class: 'why' }, many ? `${change.author}, in ${change.source}` : change.author))))
    : el('p', { class: 'empty' }, 'No commits yet.')));
}

const EVENT_TONE = { RolloutFailed: 'bad', Refused: 'bad', Conflict: 'bad', SourceIncomplete: 'bad', RecordUnreadable: 'bad', RolledBack: 'bad', OptedOut: 'held', PruneWaiting: 'wait',
  RolloutStarted: 'move', RolloutSucceeded: 'good', RevisionSettled: 'good', DriftRepaired: 'held' };

/** Returns what an event says beside its chip, and who made the commit that it follows from. */
function eventText(event) {
  const message = event.message.toLowerCase() === spaced(event.reason).toLowerCase() ? '' : event.message;
  const made = event.author && event.reason !== 'DriftRepaired' && !message.includes(event.author)
    ? `${event.author}: ${event.subject || ''}` : '';
  return message && made ? `${message} (${made})` : message || made;
}

function eventList(events, at) {
  return section('Events', undefined, el('div', { class: 'card' }, events.length
    ? el('ul', { class: 'rows' }, events.slice(0, EVENTS).map((event) => el('li', { class: 'event' },
      el('time', { datetime: event.at, title: event.at }, age(event.at, at)),
      el('span', {}, el('span', { class: `chip ${EVENT_TONE[event.reason] || 'rest'}` }, spaced(event.reason)), ' ',
        event.object ? named(event.object, `event ${event.number}`) : el('b', {}, event.source)),
      el('p', { class: 'why' }, eventText(event)))))
    : el('p', { class: 'empty' }, 'No events yet.')));
}

function overview() {
  const { status, objects, events } = state;
  const parts = frame('overview', ['sources', 'records', 'prunes', 'left', 'right']);
  // Ages are shown anew in each minute, and nothing else of an overview at rest.
  const minute = Math.floor(Date.parse(status.at) / 10000);
  fill(parts.sources, [status.sources, minute], () =>
    section('Sources', status.sources.length, el('div', { class: 'grid' }, status.sources.map((source) => sourceCard(source, status.at)))));
  fill(parts.records, status.unreadable || [], () => records(status.unreadable || []));
  fill(parts.prunes, [status.sources.map((source) => source.pruneWaiting), objects], () => prunes(status.sources, objects));
  fill(parts.left, [status.rollout, objects], () => [rollout(status.rollout), attention(objects)]);
  fill(parts.right, [status.sources.map((source) => source.changes), events.map((one) => one.number), minute], () =>
    [changes(status.sources), eventList(events, status.at)]);
}

/** The places of a view; made once, and kept while it is shown. */
function frame(name, parts) {
  const view = document.getElementById('view');
  if (view.dataset.frame !== name) {
    view.dataset.frame = name;
    const made = Object.fromEntries(parts.map((part) => [part, el('div', { id: `part-${part}` })]));
    const rest = parts.filter((part) => part !== 'left' && part !== 'right').map((part) => made[part]);
    view.replaceChildren(...rest, ...(made.left ? [el('div', { class: 'two' }, made.left, made.right)] : []));
  }
  return Object.fromEntries(parts.map((part) => [part, document.getElementById(`part-${part}`)]));
}

// --- A list of objects, and one object ------------------------------------------------------------------------------

function list(view) {
  const parts = frame(`list ${view.source} ${view.phase}`, ['title', 'rows']);
  fill(parts.title, 'title', () => {
    const input = el('input', { type: 'search', id: 'filter', placeholder: 'Filter by name or kind  ( / )', 'aria-label': 'Filter', on: { input: () => draw() } });
    return [el('a', { class: 'back', href: '#/' }, '← Overview'),
      el('div', { class: 'title' }, el('h1', {}, view.source), view.phase === 'all' ? null : chip(view.phase)), el('div', { class: 'filter' }, input)];
  });
  const words = document.getElementById('filter').value.toLowerCase();
  const all = (view.items || []).filter((object) => `${kindOf(object)} ${nameOf(object)}`.toLowerCase().includes(words));
  const shown = all.slice(0, 500);
  fill(parts.rows, [view.items ? shown : null, all.length], () => el('div', { class: 'card' },
    shown.length ? el('ul', { class: 'rows' }, shown.map(objectRow)) : el('p', { class: 'empty' }, view.items ? 'None.' : 'Loading …'),
    all.length > shown.length ? el('p', { class: 'more soft' }, `and ${all.length - shown.length} more`) : null));
}

function lines(text, marked) {
  const mark = (line) => (!marked ? undefined : line.startsWith('@@') ? 'hunk' : line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : undefined);
  return el('pre', { class: 'yaml card', tabindex: '0' }, text.replace(/\n$/, '').split('\n').map((line) => el('span', { class: mark(line) }, line || ' ')));
}

function single(view) {
  const parts = frame(`object ${view.path}`, ['title', 'facts', 'sides']);
  const object = view.object;
  fill(parts.title, [object && object.phase, view.failed], () => [el('a', { class: 'back', href: '#/' }, '← Overview'),
    el('div', { class: 'title' }, el('h1', {}, `${view.kind} ${view.name}`), object ? chip(object.phase) : null)]);
  fill(parts.facts, [object, view.failed], () => {
    if (!object) return el('p', { class: 'card empty' }, view.failed || 'Loading …');
    const facts = [['Why', object.reason], ['Source', object.source], ['Manifest', object.origin], ['Revision', object.revision],
      ['Wave', object.wave ? String(object.wave) : null], ['Note', object.note]];
    return [view.failed ? el('p', { class: 'says bad', role: 'alert' }, view.failed) : null, el('dl', { class: 'card facts' }, facts.filter(([, value]) => value).map(([what, value]) => [el('dt', {}, what), el('dd', {}, value)]))];
  });
  fill(parts.sides, [object, state.tab], () => {
    if (!object) return null;
    const tab = (name, word) => el('button', { type: 'button', role: 'tab', 'aria-selected': String(state.tab === name), 'data-key': `tab ${name}`,
      on: { click: () => { state.tab = name; draw(); } } }, word);
    const side = (title, text) => el('div', {}, el('h2', {}, title), text ? lines(text) : el('p', { class: 'card empty' }, 'There is none.'));
    const nothing = object.live === undefined && object.desired === undefined ? 'Neither side is known.' : object.desired === undefined ? 'The wanted object is not known.' : 'There is no difference.';
    return [el('div', { class: 'tabs', role: 'tablist', 'aria-label': 'How it is shown' }, tab('difference', 'Difference'), tab('sides', 'Live and wanted')),
      state.tab === 'difference'
        ? (object.difference ? lines(object.difference, true) : el('p', { class: 'card empty' }, nothing))
        : el('div', { class: 'sides' }, side('Live', object.live), side('Desired', object.desired))];
  });
}

// --- Drawing --------------------------------------------------------------------------------------------------------

function verdict() {
  const { status, trouble } = state;
  if (trouble) return ['bad', trouble];
  if (!status) return ['', 'Loading …'];
  const count = (wanted) => status.sources.reduce((sum, source) => sum
    + Object.entries(source.objects).filter(([phase]) => look(phase) === wanted).reduce((all, [, number]) => all + number, 0), 0);
  const unread = status.sources.filter((source) => !source.complete);
  const of = (phase) => status.sources.reduce((sum, source) => sum + (source.objects[phase] || 0), 0);
  const back = of('RolledBack');
  const alone = of('OptedOut');
  const asked = of('LeftAlone');
  const all = status.sources.reduce((sum, source) => sum + Object.values(source.objects).reduce((one, number) => one + number, 0), 0);
  const [bad, wait, move, held] = ['bad', 'wait', 'move', 'held'].map(count);
  const needy = bad - back;
  const words = [];
  const silent = status.process.serverSilentSince;
  if (silent) words.push(`the API server has not answered for ${age(silent, status.at)}`);
  const stuck = status.rollout.unreadable;
  if (stuck) words.push('no rollout starts, as the rollout ledger cannot be read');
  const records = (status.unreadable || []).length;
  if (records) words.push(`${plural(records, 'record')} cannot be read`);
  if (unread.length) words.push(`${plural(unread.length, 'source')} incomplete`);
  if (needy) words.push(`${needy} ${needy === 1 ? 'needs' : 'need'} attention`);
  if (back) words.push(`${back} rolled back`);
  if (move) words.push(`${move} in progress`);
  if (wait) words.push(`${wait} waiting`);
  if (held - alone) words.push(`${held - alone} held or paused`);
  if (alone) words.push(`${alone} left alone by annotation`);
  if (asked) words.push(`${asked} left alone${!words.length && all > asked ? ', all else is healthy' : ''}`);
  const how = bad || silent || stuck || records || unread.length ? 'bad' : wait ? 'wait' : move ? 'move' : held ? 'held'
    : asked && asked === all ? 'rest' : 'good';
  return [how, words.length ? words.join(', ') : 'Everything is healthy'];
}

function draw() {
  const [how, words] = verdict();
  const top = document.getElementById('verdict');
  top.className = `verdict ${how}`;
  if (top.textContent !== plain(words)) top.textContent = plain(words);
  document.title = how === 'good' ? 'rhumb' : `${words} – rhumb`;
  const link = document.getElementById('link');
  link.className = `link ${state.trouble ? 'lost' : state.live ? 'live' : ''}`;
  link.textContent = state.trouble ? 'no answer' : state.live ? 'live' : 'polling';
  if (!state.status) return;
  const { process, at } = state.status;
  fill(document.getElementById('foot'), [process.version, Math.floor(Date.parse(at) / 10000)], () =>
    `rhumb ${process.version}, running for ${age(process.since, at)}; next resync in ${age(at, process.nextResync)}`);
  if (state.view.what === 'object') single(state.view);
  else if (state.view.what === 'list') list(state.view);
  else overview();
}

/** Where the address leads. */
function route() {
  const [, what, ...rest] = location.hash.split('/');
  const parts = rest.map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  // A browser takes dots in a path for its own, and asks for something else.
  if (what === 'object' && parts.length === 3 && !parts.some((part) => ['', '.', '..'].includes(part))) {
    const [kind, namespace, name] = parts;
    return { what: 'object', kind, path: parts.map(encodeURIComponent).join('/'), name: (namespace === '-' ? '' : `${namespace}/`) + name };
  }
  if (what === 'objects' && parts.length === 2) return { what: 'list', source: parts[0], phase: parts[1] };
  return { what: 'overview' };
}

// --- Asking ---------------------------------------------------------------------------------------------------------

async function ask(path) {
  const answer = await fetch(path, { headers: { accept: 'application/json' } });
  const body = await answer.json().catch(() => ({}));
  // The session has ended: the form is at the same address.
  if (answer.status === 401) location.reload();
  if (!answer.ok) throw Object.assign(new Error(body.message || `the answer is ${answer.status}`), { code: answer.status });
  return body;
}

/** What the view needs beside the status. */
async function details(view, status) {
  if (view.what === 'object') {
    try {
      view.object = await ask(`/v1/objects/${view.path}?view=yaml`);
      view.failed = undefined;
    } catch (error) {
      view.failed = error.message;
      // An object that is gone is not shown as if it were there.
      if (error.code === 404) view.object = undefined;
    }
  } else if (view.what === 'list') {
    const phase = view.phase === 'all' ? '' : `&phase=${encodeURIComponent(view.phase)}`;
    view.items = (await ask(`/v1/objects?source=${encodeURIComponent(view.source)}${phase}`)).items;
  } else {
    const there = new Set(status.sources.flatMap((source) => Object.keys(source.objects)));
    const phases = [...ATTENTION, 'PruneWaiting'].filter((phase) => there.has(phase));
    const lists = await Promise.all(phases.map((phase) => ask(`/v1/objects?phase=${phase}`)));
    state.objects = lists.flatMap((one) => one.items);
  }
}

let timer = 0;
let asking = false;
let again = false;

function soon(wait) {
  clearTimeout(timer);
  timer = setTimeout(refresh, wait);
}

async function refresh() {
  if (asking) { again = true; return; }
  asking = true;
  const view = state.view;
  try {
    const status = await ask('/v1/status');
    await details(view, status);
    state.status = status;
    state.trouble = null;
  } catch (error) {
    state.trouble = error instanceof TypeError ? 'rhumb does not answer' : error.message;
  }
  asking = false;
  draw();
  const moves = !state.status || state.trouble || state.status.rollout.rolling.length > 0
    || state.status.sources.some((source) => Object.keys(source.objects).some((phase) => look(phase) === 'move'));
  soon(again ? 100 : moves ? MOVING : RESTING);
  again = false;
}

/** News come by themselves; each has the overview asked for anew. */
function listen() {
  const stream = new EventSource(`/v1/events?after=${state.last}`);
  stream.addEventListener('open', () => { state.live = true; draw(); });
  stream.addEventListener('event', (message) => {
    const event = JSON.parse(message.data);
    if (event.number <= state.last) return;
    state.last = event.number;
    state.events = [event, ...state.events].slice(0, EVENTS);
    soon(150);
  });
  stream.addEventListener('error', () => {
    state.live = false;
    draw();
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, RESTING);
  });
}

addEventListener('hashchange', () => {
  if (location.hash === '#main') return;
  state.view = route();
  draw();
  document.getElementById('main').focus({ preventScroll: true });
  scrollTo(0, 0);
  refresh();
});
addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const filter = document.getElementById('filter');
  if (event.key === 'Escape' && state.view.what !== 'overview') location.hash = '#/';
  else if (event.key === '/' && filter && document.activeElement !== filter) { event.preventDefault(); filter.focus(); }
});
document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });

state.view = route();
refresh().then(listen);
