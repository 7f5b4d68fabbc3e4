// One look at the page. query: {marker, turn, texts, limit}. marker is looked for in user messages; turn is the id of an
// answer that was seen before, for pages that no longer show the message above it. texts asks for whole texts.

const items = itemsOf()
const users = items.map((item, i) => ({item, i})).filter(({item}) => isUser(item))
const marked = query.marker ? users.filter(({item}) => userText(item).includes(query.marker)) : []
const last = users.at(-1)
const mine = marked.at(-1)
const known = query.turn ? items.findIndex((item) => idOf(item) === query.turn) : -1
const start = mine ? mine.i : known >= 0 ? known - 1 : -2

const describe = (user) => ({
  id: messageID(user.item) || idOf(user.item),
  text: query.texts || user === mine ? userText(user.item).slice(0, query.limit) : '',
})

// The last turn of a page without finish marks is finished when the page is idle, any other one when a message follows it.
const ended = (answer) => has(rules.idle) && (answer === lastAnswer || answer.at(-1) === lastAnswer.at(-1) ? idle() : true)

const judge = (answer) => {
  const text = answer.map((item) => item.textContent).join('\n')
  const tail = answer.at(-1)
  return {
    present: answer.length > 0,
    id: answer.length > 0 ? idOf(answer[0]) : '',
    signature: `${answer.length} ${text.length} ${hash(text)}`,
    finished: tail ? every(tail, rules.finished).length > 0 || ended(answer) : false,
    busy: answer.some((item) => hasAny(item, rules.busy ?? []) || every(item, rules.busy).length > 0),
    ...(query.texts ? answerTexts(answer, query.limit) : {}),
  }
}

const answer = start > -2 ? answerAfter(items, start) : last ? answerAfter(items, last.i) : []
const lastAnswer = last ? answerAfter(items, last.i) : []

return JSON.stringify({
  url: location.href,
  title: document.title,
  ready: editor() !== null,
  draft: draft(),
  stop: working(),
  items: items.length,
  states: statesOf(items, start > -2 ? answer : lastAnswer),
  marker: mine ? {...describe(mine), count: marked.length} : null,
  found: start > -2,
  later: start > -2 ? users.filter(({i}) => i > Math.max(start, known) && !marked.some((one) => one.i === i)).length : 0,
  last: last ? describe(last) : null,
  answer: judge(answer),
  lastAnswer: judge(lastAnswer),
})
