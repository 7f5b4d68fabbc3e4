// assistant-ui: React components around a text area, in which Cancel takes the place of Send while an answer is written.
import {AssistantRuntimeProvider, useExternalStoreRuntime, useMessage} from '@assistant-ui/react'
import {makeMarkdownText, Thread} from '@assistant-ui/react-ui'
import {useEffect, useState} from 'react'
import {flushSync} from 'react-dom'
import {createRoot} from 'react-dom/client'
import {Host} from './host.js'

let redraw = () => {}
let root = null

const host = new Host({
  show() {
    if (root) return redraw()
    root = createRoot(host.place)
    flushSync(() => root.render(<Chat/>))
  },
  hide() {
    root?.unmount()
    root = null
  },
  change: () => redraw(),
  type(text) {
    host.place.querySelector('textarea').focus()
    document.execCommand('insertText', false, text)
  },
})

function message(turn) {
  const failed = turn.note && turn.note.kind !== 'continue_button'
  return {
    id: turn.id, role: turn.role, content: turn.nodes.map(part).filter(Boolean),
    ...(turn.role === 'assistant' ? {status: failed ? {type: 'incomplete', reason: 'error', error: host.say(turn.note.kind)}
      : turn.done ? {type: 'complete', reason: 'stop'} : {type: 'running'}} : {}),
  }
}

function part(node) {
  switch (node.kind) {
    case 'thought': return null
    case 'tool': return {
      type: 'tool-call', toolCallId: node.id, toolName: node.name, args: {}, argsText: '{}', ...(node.running ? {} : {result: node.text}),
    }
    default: return {type: 'text', text: node.text}
  }
}

const MarkdownText = makeMarkdownText()

function Tool({toolName, result}) {
  return <div className="tool">{toolName}: {result === undefined ? host.say('running') : String(result)}</div>
}

// Failure says what went wrong with an answer.
function Failure() {
  const status = useMessage((message) => message.status)
  return status?.reason === 'error' ? <div role="alert">{String(status.error)}</div> : null
}

function Chat() {
  const [, set] = useState(0)
  useEffect(() => {
    redraw = () => set((n) => n + 1)
    redraw()
    if (host.page.draft) host.view.type(host.page.draft)
    return () => { redraw = () => {} }
  }, [])
  const runtime = useExternalStoreRuntime({
    messages: [...host.turns],
    isRunning: host.turns.some((turn) => turn.role === 'assistant' && !turn.done),
    convertMessage: message,
    onNew: async ({content}) => { await host.send(content.filter((one) => one.type === 'text').map((one) => one.text).join('\n')) },
    onCancel: async () => { await host.report('stop') },
  })
  return <AssistantRuntimeProvider runtime={runtime}>
    <Thread assistantMessage={{components: {Text: MarkdownText, ToolFallback: Tool, Footer: Failure}}}/>
  </AssistantRuntimeProvider>
}

host.start()
