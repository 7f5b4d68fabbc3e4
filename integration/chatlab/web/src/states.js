import {h} from './dom.js'

// drawState shows a page state in place of the one before it. act(kind) reports a pressed button.
export function drawState(layout, chat, state, act) {
  const {say} = chat
  layout.overlay.replaceChildren()
  layout.notices.replaceChildren()
  layout.account.replaceChildren(state.kind === 'login' ? logIn(say, act) : h('span', {class: 'avatar'}, 'C'))
  document.body.classList.toggle('signed-out', state.kind === 'login')
  layout.title.textContent = state.kind === 'login' ? 'Chatlab' : layout.title.dataset.own
  const time = () => new Intl.DateTimeFormat(document.documentElement.lang, {hour: 'numeric', minute: '2-digit'})
    .format(state.until ? new Date(state.until) : new Date())
  switch (state.kind) {
    case 'rate_limit':
    case 'rate_limit_on_load':
      return show(layout, state, say('tooMany'), say('tooManyBody'), [say('gotIt'), 'got_it'], act)
    case 'usage_limit':
      return show(layout, state, say('usageTitle'), say('usage', {time: time()}), [say('gotIt'), 'got_it'], act)
    case 'consent':
      return show(layout, {where: 'dialog'}, '', say('consent'), [say('accept'), 'accept'], act)
    case 'conversation_limit':
      return notice(layout, say('conversation_limit'), h('a', {class: 'pill', href: '/'}, say('newChat')))
    case 'disconnected':
      return notice(layout, say('disconnected'))
    case 'error':
      return notice(layout, say('error'), h('button', {type: 'button', class: 'pill', click: () => location.reload()}, say('retry')))
  }
}

export function notice(layout, text, ...more) {
  layout.notices.replaceChildren(h('div', {class: 'notice', role: 'alert'}, h('span', {}, text), ...more))
}

function show(layout, {where}, title, body, [label, kind], act) {
  if (where === 'alert') return notice(layout, title + '. ' + body)
  const close = () => {
    layout.overlay.replaceChildren()
    act(kind)
  }
  layout.overlay.replaceChildren(h('div', {class: 'shade'},
    h('div', {role: 'dialog', 'aria-modal': 'true', class: 'dialog'},
      title ? h('h2', {}, title) : null, h('p', {}, body),
      h('div', {class: 'dialog-foot'}, h('button', {type: 'button', class: 'pill strong', click: close}, label)))))
}

function logIn(say, act) {
  return h('div', {class: 'log-in'},
    h('button', {type: 'button', class: 'pill strong', 'data-testid': 'login-button', click: () => act('login')}, say('logIn')),
    h('button', {type: 'button', class: 'pill', 'data-testid': 'signup-button', click: () => act('signup')}, say('signUp')))
}
