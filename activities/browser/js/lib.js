// What every script in the page shares. `rules` is the page section of a site profile; lists of selectors in it are ordered
// fallbacks, and only what is visible counts.

// roots are the document and the open shadow roots of the hosts that the profile names, also those inside one another.
const roots = () => {
  const found = [document]
  for (const selector of rules.shadow ?? []) {
    for (const root of found) {
      for (const host of root.querySelectorAll(selector)) if (host.shadowRoot) found.push(host.shadowRoot)
    }
  }
  return found
}

// all is querySelectorAll; for the document it looks into the shadow roots too.
const all = (root, selector) =>
  (root === document ? roots() : [root]).flatMap((one) => [...one.querySelectorAll(selector)])

// above is the parent of an element; that of a shadow root's child is the root's host.
const above = (element) => element.parentElement ?? element.getRootNode().host ?? null

// closest is Element.closest, through shadow roots.
const closest = (element, selector) => {
  for (let at = element; at; at = at.getRootNode().host) {
    const found = at.closest(selector)
    if (found) return found
  }
  return null
}

const shown = (element) => element.checkVisibility({checkVisibilityCSS: true})

const within = (element, selectors) => selectors.some((selector) => closest(element, selector))

const hasAny = (element, selectors) => selectors.some((selector) => element.matches(selector))

// every returns what the first selector that matches something visible matches.
const every = (root, selectors) => {
  for (const selector of selectors ?? []) {
    const found = all(root, selector).filter(shown)
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
  for (const selector of rules.form) {
    const found = closest(element, selector)
    if (found) return found
  }
  return null
}

const enabled = (control) => !control.disabled && control.getAttribute('aria-disabled') !== 'true'

const sendControl = () => (form() ? first(form(), rules.send) : null)

const stopControl = () => (form() ? first(form(), rules.stop) : null)

const has = (list) => (list ?? []).length > 0

// idle tells that the page bears the profile's sign that no answer is being written.
const idle = () => has(rules.idle) && form() !== null && first(form(), rules.idle) !== null

// working tells that the composer shows an answer being written.
const working = () => stopControl() !== null || has(rules.idle) && form() !== null && !idle()

// draft is the exact text in the editor: its direct paragraphs joined by newlines, or what is rendered when the profile knows
// of no paragraphs.
const draft = () => {
  const element = editor()
  if (!element) return null
  if ('value' in element) return element.value
  if (!rules.paragraphs) return element.innerText === '\n' ? '' : element.innerText // a lone line break holds an empty editor open
  const lines = [...element.children].filter((child) => child.matches(rules.paragraphs))
  return lines.length > 0 ? lines.map((line) => line.textContent).join('\n') : element.textContent
}

// hash is FNV-1a over UTF-16 code units: a cheap way to see that a text changed. It proves nothing.
const hash = (text, seed = 0x811c9dc5) => {
  let h = seed
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  return h >>> 0
}
