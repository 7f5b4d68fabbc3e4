// Which of the profile's page states the page shows.

// holds is Node.contains, through shadow roots.
const holds = (outer, element) => {
  for (let at = element; at; at = at.getRootNode().host) if (outer.contains(at)) return true
  return false
}

const squeeze = (text) => text.replace(/\s+/g, ' ').trim().toLowerCase()

const alternatives = (languages) => Object.values(languages ?? {}).flat().map(squeeze)

// fits returns the text of the element that makes a rule hold, or null.
const fits = (rule, candidates) => {
  if ((rule.present ?? []).length > 0 && !rule.present.some((selector) => all(document, selector).length > 0)) return null
  if (every(document, rule.absent).length > 0) return null
  const titles = alternatives(rule.title)
  if (titles.length > 0 && !titles.some((title) => squeeze(document.title).includes(title))) return null
  if ((rule.select ?? []).length === 0) return document.title
  const texts = alternatives(rule.text)
  for (const element of candidates(rule.select)) {
    const text = squeeze(element.textContent)
    if (texts.length === 0 || texts.some((one) => (rule.whole ? text === one : text.includes(one)))) {
      return element.textContent.replace(/\s+/g, ' ').trim().slice(0, 300)
    }
  }
  return null
}

// statesOf returns the names of the states that hold, in the profile's order. A failed turn shows it in a status region of
// that turn; every other state shows outside of the conversation.
const statesOf = (items, answer) => {
  const regions = (selectors) => answer.flatMap((item) => selectors.flatMap((selector) => [...item.querySelectorAll(selector)]))
    .filter((element) => shown(element) && !within(element, rules.content ?? []))
  const outside = (selectors) => selectors.flatMap((selector) => all(document, selector))
    .filter((element) => shown(element) && !items.some((item) => holds(item, element)))
  const found = []
  for (const state of states) {
    for (const rule of state.rules) {
      const text = fits(rule, state.kind === 'failed' ? regions : outside)
      if (text !== null) {
        found.push({state: state.state, text})
        break
      }
    }
  }
  return found
}
