// What every script in the page shares. `rules` is the page section of a site profile; lists of selectors in it are ordered
// fallbacks, and only what is visible counts.

const shown = (element) => element.checkVisibility({checkVisibilityCSS: true})

const within = (element, selectors) => selectors.some((selector) => element.closest(selector))

const hasAny = (element, selectors) => selectors.some((selector) => element.matches(selector))

// every returns what the first selector that matches something visible matches.
const every = (root, selectors) => {
  for (const selector of selectors ?? []) {
    const found = [...root.querySelectorAll(selector)].filter(shown)
    if (found.length > 0) return found
  }
  return []
}

const first = (root, selectors) => every(root, selectors)[0] ?? null

const attribute = (element, names) => {
  for (const name of names ?? []) if (element.getAttribute(name)) return element.getAttribute(name)
  return ''
}

const editor = () => first(document, rules.editor)

const form = () => {
  const element = editor()
  if (!element) return first(document, rules.form)
  for (const selector of rules.form) if (element.closest(selector)) return element.closest(selector)
  return null
}

const enabled = (control) => !control.disabled && control.getAttribute('aria-disabled') !== 'true'

const sendControl = () => (form() ? first(form(), rules.send) : null)

const stopControl = () => (form() ? first(form(), rules.stop) : null)

// draft is the exact text in the editor: its direct paragraphs joined by newlines.
const draft = () => {
  const element = editor()
  if (!element) return null
  if ('value' in element) return element.value
  const lines = rules.paragraphs ? [...element.children].filter((child) => child.matches(rules.paragraphs)) : []
  return lines.length > 0 ? lines.map((line) => line.textContent).join('\n') : element.textContent
}

// hash is FNV-1a over UTF-16 code units: a cheap way to see that a text changed. It proves nothing.
const hash = (text, seed = 0x811c9dc5) => {
  let h = seed
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  return h >>> 0
}
