// Which rules of the profile match nothing on a page that should be usable. What shows only in some moments (send, stop,
// busy) is not asked for. query: {conversation} tells that the page shows one with messages.

const names = []
const ask = (name, found) => { if (!found) names.push(name) }

ask('editor', editor())
ask('form', form())
if (has(rules.idle) && !stopControl()) ask('idle', idle())
const list = itemsOf()
const answers = list.filter(isAssistant)
const people = list.filter(isUser)
if (query.conversation) {
  ask('turns', every(document, rules.turns).length > 0)
  ask('roles', people.length > 0)
}
if (answers.length > 0) {
  ask('roles', answers.some((item) => roleNodes(item)[0] !== item || hasAny(item, rules.roles)))
  if (has(rules.turn_id) || has(rules.message_id)) ask('turn_id', answers.every((item) => idOf(item) !== ''))
  ask('content', answers.some((item) => every(item, rules.content).length > 0))
  if (!working() && has(rules.finished)) ask('finished', answers.some((item) => every(item, rules.finished).length > 0))
}
return JSON.stringify([...new Set(names)])
