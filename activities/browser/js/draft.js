// The editor alone. query: {op}. op read returns the exact text; focus puts the caret into the editor.

const target = editor()
if (query.op === 'focus' && target) {
  target.focus()
  const selection = getSelection()
  if (!('value' in target)) selection.selectAllChildren(target)
  else target.select()
}
let active = document.activeElement
while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement
return JSON.stringify({
  present: target !== null,
  focused: target !== null && target.contains(active),
  text: draft() ?? '',
  control: sendControl() !== null && enabled(sendControl()),
  stop: working(),
})
