// What both pages share: the conversation as the site tells it, and the frame with its page states.
import {drawState, notice} from '../../../chatlab/web/src/states.js'
import {h} from '../../../chatlab/web/src/dom.js'
import {Events, poll, post} from '../../../chatlab/web/src/net.js'
import {strings} from '../../../chatlab/web/src/strings.js'

const boot = JSON.parse(document.getElementById('boot').textContent)
const say = strings(boot.page.language)

// viaOf remembers how the last press was made, because the chat interfaces do not tell.
let via = 'script'
const press = (event) => { via = !event.isTrusted ? 'script' : event.detail > 0 ? 'click' : 'keyboard' }
const key = (event) => { if (event.key === 'Enter') via = event.isTrusted ? 'enter' : 'script' }
addEventListener('click', press, {capture: true})
addEventListener('keydown', key, {capture: true})

// Host is the page around one chat interface. view has: show(turns) draws the whole conversation; change(event) is told of
// everything after it; type(text) is a person who types; hide() takes the interface away.
export class Host {
  constructor(view) {
    Object.assign(this, {view, say, page: boot.page, id: boot.conversation_id, project: boot.project, turns: [], signedOut: false})
    const title = boot.conversation_id ? boot.title : 'Chatlab'
    this.layout = {
      title: h('h1', {'data-own': title}, title), account: h('div', {class: 'account'}), notices: h('div', {class: 'notices'}),
      overlay: h('div', {class: 'overlay'}),
    }
    this.place = h('main', {})
    document.getElementById('root').append(
      h('nav', {}, ...(boot.sidebar ?? []).map((link) => h('a', {href: link.href}, link.title))),
      h('div', {class: 'page'}, h('header', {}, this.layout.title, this.layout.account), this.layout.notices, this.place),
      this.layout.overlay)
  }

  start() {
    if (boot.not_found) return notice(this.layout, say('notFound'))
    this.events = new Events((event) => this.onEvent(event))
    this.setState(boot.state)
    if (!this.signedOut) this.events.open(this.id, this.project)
    if (boot.page.long_poll) poll()
    if (this.id === '' && !this.signedOut) this.view.show([])
  }

  report(kind, detail = '') {
    return post('/backend-api/ui', {conversation_id: this.id, project: this.project, kind, detail})
  }

  // setState shows a page state. A signed-out page has no conversation.
  setState(state) {
    drawState(this.layout, {say}, state, (kind) => this.report(kind))
    const before = this.signedOut
    this.signedOut = state.kind === 'login'
    if (this.signedOut) this.view.hide()
    else if (before) this.events.open(this.id, this.project)
  }

  onEvent(event) {
    switch (event.type) {
      case 'state': return this.setState(event.state)
      case 'route': return this.route(event.path)
      case 'draft': return this.view.type(event.text)
      case 'snapshot':
        this.turns = event.turns
        this.route(event.path)
        return this.view.show(this.turns)
      case 'turn': this.update(event.turn); break
      case 'append': this.node(event.turn_id, event.node_id).text += event.text; break
      case 'remove': this.turns = this.turns.filter((turn) => turn.id !== event.turn_id); break
      default: return
    }
    if (!this.signedOut) this.view.change(event)
  }

  update(turn) {
    const at = this.turns.findIndex((one) => one.id === turn.id)
    if (at < 0) this.turns.push(turn)
    else this.turns[at] = turn
  }

  node(turnID, nodeID) {
    return this.turns.find((turn) => turn.id === turnID).nodes.find((node) => node.id === nodeID)
  }

  route(path) {
    if (path !== location.pathname) history.replaceState(null, '', path)
  }

  // send posts a message and returns its id; or null when the site refuses it, with a note at the top of the page.
  async send(text) {
    const id = crypto.randomUUID()
    const how = via
    via = 'script'
    let response, answer
    try {
      response = await post('/backend-api/conversation', {conversation_id: this.id, project: this.project, message_id: id, text, via: how})
      answer = await response.json()
    } catch {
      notice(this.layout, say('network_error'))
      return null
    }
    if (!response.ok) {
      if (response.status === 429) drawState(this.layout, {say}, {kind: 'rate_limit', where: 'dialog'}, (kind) => this.report(kind))
      else notice(this.layout, say('error'))
      return null
    }
    if (!this.id && answer.conversation_id) {
      this.id = answer.conversation_id
      history.pushState(null, '', answer.path)
      this.events.open(this.id, this.project)
    }
    return id
  }
}

// textOf is what an answer says so far.
export function textOf(turn) {
  return turn.nodes.filter((node) => node.kind !== 'tool' && node.kind !== 'thought').map((node) => node.text).join('\n\n')
}
