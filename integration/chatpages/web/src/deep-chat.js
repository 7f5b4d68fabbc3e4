// deep-chat: a web component with an open shadow root. It shows a message before the site has it, and has no sign of the
// end of an answer but its one button, which is Send again.
import 'deep-chat'
import {Host, textOf} from './host.js'

let element = null
let live = null // the answer that streams into the component: {signals, id of the message, characters sent, busy}

const host = new Host({
  show(turns) {
    live = null
    element?.remove()
    element = document.createElement('deep-chat')
    element.style.width = '100%'
    element.style.height = '100%'
    element.style.border = 'none'
    element.history = turns.filter((turn) => turn.done).flatMap((turn) => [message(turn), ...failure(turn)])
    element.connect = {stream: true, handler}
    // Without this style the component's editor keeps neither tabs nor several spaces.
    element.textInput = {placeholder: {text: host.say('ask')}, styles: {text: {whiteSpace: 'pre-wrap'}}}
    element.errorMessages = {displayServiceErrorMessages: true}
    if (host.page.draft) element.defaultInput = {text: host.page.draft}
    host.place.append(element)
  },
  hide() {
    element?.remove()
    element = null
  },
  type(text) {
    element.focusInput()
    document.execCommand('insertText', false, text)
  },
  change(event) {
    if (event.type === 'remove') return this.show(host.turns)
    if (live) return pump()
    if (event.type !== 'turn' || !event.turn.done) return
    const {turn} = event
    if (element.getMessages().length < host.turns.length) element.addMessage(message(turn))
    else if (turn.role === 'assistant') element.updateMessage(message(turn), element.getMessages().length - 1)
    for (const one of failure(turn)) element.addMessage(one)
  },
})

function message(turn) {
  return {role: turn.role === 'user' ? 'user' : 'ai', text: textOf(turn)}
}

// failure is what the page shows below an answer that went wrong.
function failure(turn) {
  return turn.note ? [{error: host.say(turn.note.kind === 'continue_button' ? 'goOn' : turn.note.kind)}] : []
}

// handler is called by the component with a new message of the person.
async function handler(body, signals) {
  const mine = {signals, id: '', sent: 0, busy: false}
  live = mine
  signals.stopClicked.listener = () => host.report('stop')
  mine.id = await host.send(body.messages.at(-1).text)
  if (live !== mine) return // drawn anew meanwhile, with this message
  if (mine.id) {
    signals.onOpen()
    return pump()
  }
  live = null
  signals.onResponse({error: host.say('error')})
}

// pump hands on what the site has told of the answer, one piece after the other.
async function pump() {
  const mine = live
  if (!mine.id || mine.busy) return
  mine.busy = true
  while (live === mine) {
    const turn = host.turns[host.turns.findIndex((one) => one.nodes[0]?.id === mine.id) + 1]
    const text = turn?.role === 'assistant' ? textOf(turn) : ''
    if (text.length > mine.sent) {
      const more = text.slice(mine.sent)
      mine.sent = text.length
      await mine.signals.onResponse({text: more})
    } else if (turn?.role === 'assistant' && turn.done) {
      live = null
      for (const one of failure(turn)) await mine.signals.onResponse(one)
      mine.signals.onClose()
    } else {
      break
    }
  }
  mine.busy = false
}

host.start()
