// The editor alone. query: {op}. op read returns the exact text; focus puts the caret into the editor; lines types the text
// into the focused editor as a person would, line by line.

const target = editor()
if (query.op === 'lines' && target) {
  text.split('\n').forEach((line, i) => {
    if (i > 0) document.execCommand('insertLineBreak')
    if (line !== '') document.execCommand('insertText', false, line)
  })
}
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
