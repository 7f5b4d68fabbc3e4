import {h, icon} from './dom.js'
import {Editor} from './editor.js'

// Composer is the form at the bottom: the editor and the one slot in which Send, Stop and Voice take turns.
export class Composer {
  // chat is the shared state of the page; send(text, via) and report(kind) leave the page.
  constructor(place, chat, send, report) {
    Object.assign(this, {place, chat, send, report})
    this.mount(this.draft())
  }

  mount(text) {
    const {say, page} = this.chat
    this.slot = h('span', {class: 'slot'})
    const box = h('div', {class: 'editor'})
    this.form = h('form', {class: 'composer', 'data-type': 'unified-composer', submit: (event) => this.onFormSubmit(event)},
      h('textarea', {name: 'prompt-textarea', placeholder: say('ask'), style: 'display:none'}),
      box,
      h('div', {class: 'composer-foot'},
        h('button', {type: 'button', class: 'round plain', 'aria-label': '+', 'data-testid': 'composer-plus-btn'}, icon('plus')),
        h('span', {class: 'stretch'}),
        this.decoy(),
        this.slot))
    this.place.append(this.form)
    this.editor = new Editor(box, {
      hint: say('ask'), enter: page.enter, links: page.autolink, text,
      onSubmit: () => this.submit('enter'),
      onChange: () => this.changed(),
    })
    this.changed()
  }

  decoy() {
    const {say, page} = this.chat
    if (!page.decoys?.includes('submit')) return null
    return h('button', {type: 'submit', class: 'pill', click: (event) => {
      event.preventDefault()
      this.report('decoy_submit')
    }}, say('answerNow'))
  }

  // replace removes the form and puts a new, empty one in its place.
  replace() {
    this.editor.destroy()
    this.form.remove()
    this.mount('')
  }

  unmount() {
    this.editor.destroy()
    this.form.remove()
  }

  changed() {
    if (!this.editor) return
    if (this.chat.page.keep_draft) localStorage.setItem(this.draftKey(), this.editor.text())
    this.refresh()
  }

  draftKey() {
    return 'draft:' + this.chat.id
  }

  draft() {
    const kept = this.chat.page.keep_draft ? localStorage.getItem(this.draftKey()) : null
    return kept || this.chat.page.draft
  }

  // refresh puts the right button into the slot. Send appears only when there is text, perhaps a little later.
  refresh() {
    const hasText = this.editor.text().trim() !== ''
    if (!hasText) this.ready = false
    let wanted = 'voice'
    if (this.chat.generating()) wanted = 'stop'
    else if (hasText && (this.ready || this.chat.sendMS === 0)) wanted = 'send'
    else if (hasText) this.getReady()
    if (this.shown !== wanted || !this.slot.firstChild) {
      this.slot.replaceChildren(this[wanted + 'Button']())
      this.shown = wanted
    }
  }

  getReady() {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.ready = true
      this.refresh()
    }, this.chat.sendMS)
  }

  sendButton() {
    return h('button', {
      id: 'composer-submit-button', type: 'submit', class: 'round', 'data-testid': 'send-button', 'aria-label': this.chat.say('send'),
      pointerdown: (event) => this.chat.click.replace_form === 'pointerdown' && this.submit(viaOf(event)),
      click: (event) => {
        event.preventDefault()
        this.submit(viaOf(event))
      },
    }, icon('send'))
  }

  stopButton() {
    return h('button', {
      id: 'composer-submit-button', type: 'button', class: 'round', 'data-testid': 'stop-button', 'aria-label': this.chat.say('stop'),
      click: () => this.report('stop'),
    }, icon('stop'))
  }

  voiceButton() {
    return h('button', {
      type: 'button', class: 'round', 'data-testid': 'composer-speech-button', 'aria-label': this.chat.say('voice'),
      click: () => this.report('voice'),
    }, icon('voice'))
  }

  // A form that is submitted by script has no submitter.
  onFormSubmit(event) {
    event.preventDefault()
    if (!event.submitter) this.submit('form')
  }

  submit(via) {
    const text = this.editor.text()
    if (text.trim() === '' || this.chat.generating()) return
    const {click} = this.chat
    if (click.ignore > 0) {
      click.ignore--
      this.report('click_ignored')
      return
    }
    if (click.replace_form) this.replace()
    else this.editor.setText('')
    this.send(text, via)
    if (click.freeze_ms) freeze(click.freeze_ms)
  }
}

// viaOf tells a real click from a press of the focused button and from a script.
function viaOf(event) {
  if (!event.isTrusted) return 'script'
  return event.type === 'pointerdown' || event.detail > 0 ? 'click' : 'keyboard'
}

function freeze(ms) {
  const until = performance.now() + ms
  while (performance.now() < until);
}
