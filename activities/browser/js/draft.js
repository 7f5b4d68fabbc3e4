// The editor alone. query: {op}. op read returns the exact text; focus puts the caret into the editor.

const target = editor()
if (query.op === 'focus' && target) {
  target.focus()
  const selection = getSelection()
  if (!('value' in target)) selection.selectAllChildren(target)
  else target.select()
}
return JSON.stringify({
  present: target !== null,
  focused: target !== null && (document.activeElement === target || target.contains(document.activeElement)),
  text: draft() ?? '',
  control: sendControl() !== null && enabled(sendControl()),
  stop: stopControl() !== null,
})
