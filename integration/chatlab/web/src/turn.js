import {h, icon} from './dom.js'

// TurnView is the element of one turn. It changes in place while the answer streams.
export class TurnView {
  constructor(chat, turn, act) {
    Object.assign(this, {chat, act, turn, nodes: new Map()})
    this.body = h('div', {class: 'turn-body'})
    this.foot = h('div', {class: 'turn-foot'})
    this.element = h(chat.page.turn_element, {
      class: `turn turn-${turn.role}`, 'data-turn': turn.role, 'data-turn-id': turn.id, dir: 'auto',
    }, h('h6', {class: 'sr-only'}, chat.say(turn.role === 'user' ? 'youSaid' : 'said')), this.body, this.foot)
    this.update(turn)
  }

  number(n) {
    this.element.setAttribute('data-testid', `conversation-turn-${n}`)
  }

  update(turn) {
    this.turn = turn
    for (const node of turn.nodes) this.updateNode(node)
    this.body.querySelector(':scope > .thinking')?.remove()
    if (turn.thinking || (turn.busy && turn.nodes.length === 0)) this.body.append(this.thinking())
    if (turn.busy) this.element.setAttribute('aria-busy', 'true')
    else this.element.removeAttribute('aria-busy')
    this.body.querySelector('.result-streaming')?.classList.remove('result-streaming')
    if (turn.busy) this.body.lastElementChild?.querySelector('.markdown')?.classList.add('result-streaming')
    this.updateFoot()
  }

  // append adds streamed text to one node.
  append(nodeID, text) {
    const node = this.turn.nodes.find((one) => one.id === nodeID)
    node.text += text
    this.draw(this.nodes.get(nodeID), node)
  }

  updateNode(node) {
    let view = this.nodes.get(node.id)
    if (!view) {
      const content = contentOf(node)
      view = {content, drawn: null}
      view.element = h('div', {
        class: `node node-${node.kind}`,
        'data-message-author-role': node.role,
        'data-message-id': node.pending ? undefined : node.id,
      }, content)
      this.nodes.set(node.id, view)
      this.body.append(view.element)
    }
    this.draw(view, node)
  }

  // draw renders a node. A very long answer is rendered less often while it streams.
  draw(view, node) {
    const key = `${node.text.length} ${node.running}`
    if (view.drawn === key) return
    const now = performance.now()
    clearTimeout(view.timer)
    if (this.turn.busy && now < view.next) {
      view.timer = setTimeout(() => this.draw(view, node), view.next - now)
      return
    }
    fill(this.chat, view.content, node)
    view.drawn = key
    const cost = performance.now() - now
    view.next = now + (cost > 30 ? 4 * cost : 0)
  }

  thinking() {
    const {say} = this.chat
    return h('div', {class: 'thinking'}, h('span', {class: 'shimmer'}, say('thinking')),
      this.turn.reasoning ? h('p', {}, this.turn.reasoning) : null)
  }

  updateFoot() {
    const {turn} = this
    const key = JSON.stringify([turn.note, turn.bar])
    if (key === this.footKey) return
    this.footKey = key
    this.foot.replaceChildren()
    if (turn.note) this.foot.append(this.note(turn.note))
    if (turn.bar || turn.role === 'user') this.foot.append(this.bar())
  }

  note({kind, auto_retry_ms: auto}) {
    const {say} = this.chat
    if (auto) setTimeout(() => this.act('auto_retry', this.turn.id), auto)
    if (kind === 'continue_button') {
      return h('div', {class: 'note'}, h('button', {type: 'button', class: 'pill', click: () => this.act('continue')}, say('goOn')))
    }
    const broken = kind === 'error' || kind === 'network_error'
    return h('div', {class: broken ? 'note note-error' : 'note', role: broken ? 'alert' : 'status'},
      h('span', {}, say(kind)),
      broken ? h('button', {
        type: 'button', class: 'pill', 'data-testid': 'regenerate-thread-error-button', click: () => this.act('retry', this.turn.id),
      }, say('retry')) : null)
  }

  bar() {
    const {say, page} = this.chat
    const button = (label, name, attributes) => h('button', {type: 'button', 'aria-label': label, ...attributes}, icon(name))
    const text = () => this.turn.nodes.filter((node) => node.kind !== 'tool').map((node) => node.text).join('\n\n')
    const bar = h('div', {class: 'actions'}, button(say('copy'), 'copy', {
      'data-testid': 'copy-turn-action-button', click: () => navigator.clipboard.writeText(text()),
    }))
    if (this.turn.role === 'user') return bar
    bar.append(button(say('good'), 'good', {'data-testid': 'good-response-turn-action-button'}))
    if (page.decoys?.includes('stop')) {
      bar.append(button(say('stopReading'), 'stop', {'data-testid': 'stop-button', click: () => this.act('decoy_stop')}))
    }
    return bar
  }
}

function contentOf(node) {
  switch (node.kind) {
    case 'user': return h('div', {class: 'bubble'}, h('div', {class: 'whitespace-pre-wrap'}))
    case 'markdown': return h('div', {class: 'markdown prose'})
    case 'thought': return h('button', {type: 'button', class: 'thought'})
    case 'tool': return h('div', {class: 'tool-card'}, h('div', {class: 'tool-head'}), h('div', {class: 'tool-output'}))
    default: return h('div', {class: 'cot'})
  }
}

function fill(chat, content, node) {
  switch (node.kind) {
    case 'user': content.firstChild.textContent = node.text; break
    case 'markdown': content.innerHTML = chat.markdown(node.text); break
    case 'thought': content.textContent = chat.say('thought', {n: node.seconds}); break
    case 'tool':
      content.firstChild.textContent = node.name
      content.lastChild.textContent = node.running ? chat.say('running') : node.text
      break
    default: content.replaceChildren(...node.text.split(/\n+/).map((line) => h('p', {}, line)))
  }
}
