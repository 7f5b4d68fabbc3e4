import {Composer} from './composer.js'
import {h} from './dom.js'
import {drawLayout} from './layout.js'
import {renderer} from './markdown.js'
import {Events, poll, post} from './net.js'
import {drawState, notice} from './states.js'
import {strings} from './strings.js'
import {Thread} from './thread.js'

const boot = JSON.parse(document.getElementById('boot').textContent)
const root = document.getElementById('root')
const say = strings(boot.page.language)

// chat is what all parts of the page share.
const chat = {
  id: boot.conversation_id, project: boot.project, page: boot.page, sendMS: boot.send_ms, say,
  click: {ignore: 0, replace_form: '', freeze_ms: 0},
  markdown: renderer({newlines: boot.page.code === 'newlines', copyLabel: say('copyCode')}),
  generating: () => thread?.generating() ?? false,
}
let layout, thread, composer, events

function report(kind, detail = '') {
  return post('/backend-api/ui', {conversation_id: chat.id, project: chat.project, kind, detail})
}

function start() {
  layout = drawLayout(root, chat, boot)
  thread = new Thread(layout.scroller, chat, report)
  if (location.search) history.replaceState(null, '', location.pathname)
  if (boot.not_found) {
    notice(layout, say('notFound'))
    layout.account.append(h('span', {class: 'avatar'}, 'C'))
    return
  }
  setState(boot.state)
  events = new Events(onEvent)
  events.open(chat.id, chat.project)
  if (boot.page.long_poll) poll()
}

// setState shows a page state. A signed-out page has no history, and a composer only if it is to look as if it worked.
function setState(state) {
  drawState(layout, chat, state, report)
  const wasSignedOut = chat.signedOut
  chat.signedOut = state.kind === 'login'
  if (chat.signedOut) thread.set([])
  else if (wasSignedOut) events.open(chat.id, chat.project)
  const wanted = state.kind !== 'login' || state.composer
  if (wanted && !composer) composer = new Composer(layout.composer, chat, send, report)
  if (!wanted && composer) {
    composer.unmount()
    composer = null
  }
}

function onEvent(event) {
  if (chat.signedOut && event.type !== 'state') return
  switch (event.type) {
    case 'snapshot':
      chat.click = event.click
      thread.set(event.turns)
      route(event.path)
      break
    case 'turn': thread.remove('pending ' + event.turn.nodes[0]?.id); thread.update(event.turn); break
    case 'append': thread.append(event.turn_id, event.node_id, event.text); break
    case 'remove': thread.remove(event.turn_id); break
    case 'click': chat.click = event.click; break
    case 'state': setState(event.state); break
    case 'draft': composer?.editor.type(event.text); break
    case 'route': route(event.path); break
  }
  composer?.refresh()
}

function route(path) {
  if (path !== location.pathname) history.replaceState(null, '', path)
}

// send posts a message. What is shown of it comes from the server, unless the page is optimistic.
async function send(text, via) {
  const id = crypto.randomUUID()
  if (chat.page.optimistic) thread.update(localTurn(id, text))
  let response, answer
  try {
    response = await post('/backend-api/conversation', {conversation_id: chat.id, project: chat.project, message_id: id, text, via})
    answer = await response.json()
  } catch {
    notice(layout, say('network_error'))
    return
  }
  if (!response.ok) return refused(response.status, id, text)
  if (answer.signed_out) thread.update(localTurn(id, text))
  else if (!chat.id) found(answer)
}

// found binds the page of a new chat to the conversation that its first message made.
function found({conversation_id: id, path}) {
  chat.id = id
  layout.scroller.querySelector('.welcome')?.remove()
  history.pushState(null, '', path)
  events.open(id, chat.project)
}

// refused gives the text back. An optimistic page leaves the turn standing, with an error, until a reload.
function refused(status, id, text) {
  if (chat.page.optimistic) thread.update({...localTurn(id, text), note: {kind: 'error'}})
  else composer?.editor.setText(text)
  if (status === 429) drawState(layout, chat, {kind: 'rate_limit', where: 'dialog'}, report)
  else notice(layout, say('error'))
}

function localTurn(id, text) {
  return {
    id: 'pending ' + id, role: 'user', done: true,
    nodes: [{id: 'pending ' + id, kind: 'user', role: 'user', text, pending: true}],
  }
}

// Before the page is alive there is only a bare text area, as in server-rendered pages.
if (boot.hydrate_ms > 0) {
  root.append(h('form', {class: 'composer fallback'}, h('textarea', {name: 'prompt-textarea', placeholder: say('ask')})))
  setTimeout(start, boot.hydrate_ms)
} else {
  start()
}
