// The gate stands between the click and the page. From its making it swallows every press; aim() lets one press on one
// control through, until a deadline on this page's own clock, and for Send only while the editor holds exactly the text.
// However late a click arrives, and wherever it was held up (the worker, the driver, the browser, this page), it is
// judged here, in the moment in which it would take effect. query: {control} is send or stop; text is what Send sends.

const kinds = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']
let deadline = 0
let open = false
let passed = 0
let refused = ''

const wanted = () => (query.control === 'stop' ? stopControl() : sendControl())

const unchanged = () => query.control === 'stop' || draft() === text

const problem = (event) => {
  const control = wanted()
  if (!open) return 'closed'
  if (performance.now() > deadline) return 'late'
  if (!control || !event.composedPath().includes(control)) return 'elsewhere'
  if (!unchanged()) return 'changed'
  return ''
}

const judge = (event) => {
  if (!event.isTrusted) return
  const reason = problem(event)
  if (reason === '') {
    passed++
    if (event.type === 'click') open = false
    return
  }
  refused ||= reason
  event.preventDefault()
  event.stopImmediatePropagation()
}

for (const kind of kinds) window.addEventListener(kind, judge, {capture: true, passive: false})

return {
  now: () => performance.now(),

  // aim checks everything once more, opens the gate, and returns the point to click; or the reason why it stays closed.
  aim: (until) => {
    const control = wanted()
    if (performance.now() > until) return {problem: 'late'}
    if (!control) return {problem: 'no_control'}
    if (!enabled(control)) return {problem: 'disabled'}
    if (!unchanged()) return {problem: 'changed'}
    control.scrollIntoView({block: 'nearest', behavior: 'instant'})
    const box = control.getBoundingClientRect()
    const x = box.left + box.width / 2
    const y = box.top + box.height / 2
    const top = control.getRootNode().elementFromPoint(x, y)
    if (!top || !control.contains(top)) return {problem: 'covered'}
    deadline = until
    open = true
    return {x, y}
  },

  // close shuts the gate for good: no press that is still on its way takes effect after it.
  close: () => {
    open = false
    return {passed, refused}
  },

  // remove takes the gate away. Only for a gate that was never opened, or whose click has passed.
  remove: () => {
    for (const kind of kinds) window.removeEventListener(kind, judge, {capture: true})
    return {passed, refused}
  },
}
