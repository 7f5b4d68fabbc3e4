import {h, icon} from './dom.js'

// drawLayout builds the frame of the page and returns its places.
export function drawLayout(root, chat, boot) {
  const {say, page} = chat
  const title = boot.conversation_id ? boot.title : boot.project ? projectTitle(boot.project) : 'Chatlab'
  const places = {
    title: h('h1', {'data-own': title}, title),
    account: h('div', {class: 'account'}),
    scroller: h('div', {class: 'scroller'}),
    notices: h('div', {class: 'notices'}),
    composer: h('div', {class: 'composer-place'}),
    overlay: h('div', {class: 'overlay'}),
  }
  root.replaceChildren(
    h('nav', {class: 'sidebar', 'aria-label': say('chats')},
      h('a', {class: 'brand', href: '/'}, 'chatlab'),
      h('a', {class: 'new-chat', href: '/', 'data-testid': 'create-new-chat-button'}, icon('plus'), say('newChat')),
      h('h2', {}, say('chats')),
      h('div', {id: 'history'}, ...(boot.sidebar ?? []).map((link) =>
        h('a', {href: link.href, class: link.href.endsWith(boot.conversation_id || '-') ? 'current' : undefined}, link.title))),
      page.decoys?.includes('busy') ? h('div', {class: 'spinner', 'aria-busy': 'true'}) : null),
    h('main', {id: 'main'},
      h('header', {}, places.title, places.account),
      places.scroller,
      h('div', {class: 'bottom'}, places.notices, places.composer, h('p', {class: 'disclaimer'}, say('disclaimer')))),
    places.overlay)
  if (!boot.conversation_id && !boot.not_found) places.scroller.append(welcome(chat, boot))
  return places
}

function welcome({say}, boot) {
  const list = (boot.listed ?? []).map((link) => h('li', {}, h('a', {href: link.href}, link.title)))
  return h('div', {class: 'welcome'},
    h('h2', {}, boot.project ? `${say('project')}: ${projectTitle(boot.project)}` : say('hello')),
    h('p', {class: 'signed-out-only'}, say('welcome')),
    boot.project ? h('ol', {class: 'listed', 'data-testid': 'project-conversations'}, ...list) : null)
}

function projectTitle(project) {
  return project.split('-').slice(3).join(' ') || project
}
