import {h} from './dom.js'
import {TurnView} from './turn.js'

const guess = 120 // height in pixels of a turn that was never mounted

// Thread shows the turns in order. With page.virtual only that many of them are mounted; scrolling moves the window.
export class Thread {
  // scroller scrolls; act(kind, detail) reports what was pressed in a turn.
  constructor(scroller, chat, act) {
    Object.assign(this, {scroller, chat, act, turns: [], views: new Map(), heights: new Map(), start: 0})
    this.above = h('div', {class: 'spacer'})
    this.below = h('div', {class: 'spacer'})
    this.list = h('div', {class: 'turns'})
    this.element = h('div', {class: 'thread'}, this.above, this.list, this.below)
    scroller.append(this.element)
    if (chat.page.virtual) scroller.addEventListener('scroll', () => this.onScroll())
  }

  set(turns) {
    this.turns = turns
    this.views.clear()
    this.list.replaceChildren()
    this.follow(true)
  }

  // update adds a turn or replaces what is known of it.
  update(turn) {
    const at = this.turns.findIndex((one) => one.id === turn.id)
    const follow = this.atEnd()
    if (at < 0) this.turns.push(turn)
    else this.turns[at] = turn
    this.views.get(turn.id)?.update(turn)
    if (at < 0) this.follow(follow)
    else this.scrollDown(follow)
  }

  append(turnID, nodeID, text) {
    const follow = this.atEnd()
    const view = this.views.get(turnID)
    if (view) view.append(nodeID, text)
    else this.turns.find((one) => one.id === turnID).nodes.find((one) => one.id === nodeID).text += text
    this.scrollDown(follow)
  }

  remove(turnID) {
    if (!this.turns.some((one) => one.id === turnID)) return
    this.turns = this.turns.filter((one) => one.id !== turnID)
    this.views.delete(turnID)
    this.follow(true)
  }

  generating() {
    return this.turns.some((one) => one.stop)
  }

  atEnd() {
    return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < 80
  }

  follow(toEnd) {
    if (toEnd) this.start = Math.max(0, this.turns.length - this.size())
    this.draw()
    this.scrollDown(toEnd)
  }

  scrollDown(wanted) {
    if (wanted) this.scroller.scrollTop = this.scroller.scrollHeight
  }

  size() {
    return this.chat.page.virtual || Infinity
  }

  // onScroll mounts the turns at the scroll position: one above the first that is in view, and those after it; at the end
  // the last ones.
  onScroll() {
    this.measure()
    let first = 0
    for (let y = 0; first < this.turns.length; first++) {
      y += this.height(this.turns[first])
      if (y > this.scroller.scrollTop) break
    }
    const last = this.turns.length - this.size()
    const start = Math.max(0, this.atEnd() ? last : Math.min(first - 1, last))
    if (start === this.start) return
    this.start = start
    this.draw()
  }

  measure() {
    for (const [id, view] of this.views) this.heights.set(id, view.element.offsetHeight || guess)
  }

  height(turn) {
    return this.heights.get(turn.id) ?? guess
  }

  // draw mounts the window of turns and nothing else.
  draw() {
    this.measure()
    const mounted = this.turns.slice(this.start, this.start + this.size())
    const views = new Map(mounted.map((turn) => [turn.id, this.views.get(turn.id) ?? new TurnView(this.chat, turn, this.act)]))
    for (const [id, view] of this.views) if (!views.has(id)) view.element.remove()
    this.views = views
    let place = this.list.firstChild
    let n = 0
    for (const view of views.values()) {
      view.number(++n)
      if (view.element === place) place = place.nextSibling
      else this.list.insertBefore(view.element, place)
    }
    while (place) {
      const next = place.nextSibling
      place.remove()
      place = next
    }
    this.above.style.height = this.room(this.turns.slice(0, this.start))
    this.below.style.height = this.room(this.turns.slice(this.start + mounted.length))
  }

  room(turns) {
    return turns.reduce((sum, turn) => sum + this.height(turn), 0) + 'px'
  }
}
